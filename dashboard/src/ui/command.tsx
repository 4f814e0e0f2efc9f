// Commands to copy, made for this service: its address, its gateway and its journal.
import { useState } from "preact/hooks";
import { me } from "../api";
import { Icon } from "./icons";

const COPIED_MS = 1_500;

/** A command with a button that copies it. Without a clipboard (plain HTTP on another host), the text is selected. */
export function Command({ text, label = "Copy the command" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (event: Event) => {
    const code = (event.currentTarget as HTMLElement).parentElement?.querySelector("pre");
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_MS);
    } catch {
      if (code) getSelection()?.selectAllChildren(code);
    }
  };
  return (
    <div class="command">
      <pre tabIndex={0}>{text}</pre>
      <button class="button plain tiny" type="button" onClick={copy} aria-label={copied ? "Copied" : label} title={label}>
        <Icon name={copied ? "check" : "copy"} size={15} />
      </button>
    </div>
  );
}

/** Quotes a word for a POSIX shell. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

const journal = (): string => quote(me.value?.journal || "rung.db");

/** Fails once as an overloaded provider does, and succeeds when Rung repeats it. */
export const tryCommand = (): string =>
  `rung run --journal ${journal()} -- sh -c 'mkdir /tmp/rung-try.$PPID 2>/dev/null && { echo "529 overloaded" >&2; exit 1; }; echo done'`;

export const runCommand = (): string => `rung run --journal ${journal()} -- my-agent`;

export const pythonCode = (): string =>
  `import rung\n\noutcome = rung.recover_sync(attempt, "the task", journal=rung.journal(${JSON.stringify(me.value?.journal || "rung.db")}))`;

/** The environment that points agents at the gateway; without one beside the service, how to start it. */
export function gatewayCommand(): string {
  const url = me.value?.gateway;
  if (!url) return `rung gateway --journal ${journal()}\neval "$(rung gateway --print-env)"`;
  return `export ANTHROPIC_BASE_URL=${url}\nexport OPENAI_BASE_URL=${url}/v1\nexport GOOGLE_GEMINI_BASE_URL=${url}`;
}

/** The ways to get data into this journal. */
export function WaysIn() {
  return (
    <dl class="ways-in">
      <div><dt>A command-line agent</dt><dd><Command text={runCommand()} /></dd></div>
      <div><dt>Any agent or SDK, through the gateway</dt><dd><Command text={gatewayCommand()} /></dd></div>
      <div><dt>A Python program</dt><dd><Command text={pythonCode()} label="Copy the code" /></dd></div>
    </dl>
  );
}
