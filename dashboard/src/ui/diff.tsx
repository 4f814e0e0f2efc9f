import { diff } from "../diff";

const CLASS = { same: "", add: "add", remove: "remove", gap: "gap" } as const;

export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = diff(before, after);
  return (
    <div class="diff" role="group" aria-label={label} tabIndex={0}>
      {lines.map(({ type, text }, n) => (
        <div key={n} class={CLASS[type]}>
          {type === "add" || type === "remove" ? <span class="visually-hidden">{type === "add" ? "added: " : "removed: "}</span> : null}
          {text || " "}
        </div>
      ))}
    </div>
  );
}
