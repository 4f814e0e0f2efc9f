// Reads a server-sent event stream over fetch: unlike EventSource it sees the keep-alive comments, by which
// we know that a quiet stream is still there.

export interface Message {
  id: string;
  name: string;
  data: unknown;
}

/** Reads one connection to its end. `heard` is called for every piece that arrives, comments too. */
export async function read(
  url: string,
  lastId: string,
  signal: AbortSignal,
  opened: () => void,
  heard: () => void,
  told: (message: Message) => void,
): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastId) headers["Last-Event-ID"] = lastId;
  const response = await fetch(url, { headers, signal, cache: "no-store", credentials: "same-origin" });
  if (!response.ok || !response.body) throw new Error(`the event stream answered ${response.status}`);
  opened();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const blocks = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parse(block);
      if (message) told(message);
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
    return null; // not ours
  }
}
