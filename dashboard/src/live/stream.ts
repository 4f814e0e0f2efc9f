// Reads server-sent events with fetch. Unlike EventSource, this also sees keep-alive comments, which show that an
// idle stream is still connected.

import { csrfHeader, signedOut } from "../api";

export interface Message {
  id: string;
  name: string;
  data: unknown;
}

/** Reads one connection to its end. `onData` is called for every chunk, including comments. */
export async function readStream(
  url: string,
  lastId: string,
  signal: AbortSignal,
  onOpen: () => void,
  onData: () => void,
  onMessage: (message: Message) => void,
): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream", ...csrfHeader() };
  if (lastId) headers["Last-Event-ID"] = lastId;
  const response = await fetch(url, { headers, signal, cache: "no-store", credentials: "same-origin" });
  if (response.status === 401) signedOut.value = true;
  if (!response.ok || !response.body) throw new Error(`the event stream answered ${response.status}`);
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onData();
    const blocks = (buffer + value.replaceAll("\r\n", "\n")).split("\n\n");
    buffer = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parse(block);
      if (message) onMessage(message);
    }
  }
}

export function parse(block: string): Message | null {
  const message = { id: "", name: "message" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") message.id = value;
    else if (field === "event") message.name = value;
    else if (field === "data") data.push(value);
  }
  if (data.length === 0) return null;
  try {
    return { ...message, data: JSON.parse(data.join("\n")) };
  } catch {
    return null; // not valid JSON
  }
}
