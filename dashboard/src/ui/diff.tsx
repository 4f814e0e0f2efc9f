import { diff } from "../diff";

const CLASS = { same: "", add: "add", cut: "cut-line", gap: "gap" } as const;

export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = diff(before, after);
  return (
    <div class="diff" role="group" aria-label={label} tabIndex={0}>
      {lines.map(({ sort, text }, n) => (
        <div key={n} class={CLASS[sort]}>
          {sort === "add" || sort === "cut" ? <span class="unseen">{sort === "add" ? "added: " : "removed: "}</span> : null}
          {text || " "}
        </div>
      ))}
    </div>
  );
}
