// Line-based diff of two texts.

export interface Line {
  type: "same" | "add" | "remove" | "gap";
  text: string;
}

const CONTEXT_LINES = 2;
const MAX_LINES = 1_500; // longer texts are shown in full

/** Returns the changed lines with some context; long unchanged parts are collapsed. */
export function diff(before: string, after: string): Line[] {
  const oldLines = before === "" ? [] : before.split("\n");
  const newLines = after === "" ? [] : after.split("\n");
  if (oldLines.length > MAX_LINES || newLines.length > MAX_LINES) {
    return [...oldLines.map((text) => ({ type: "remove" as const, text })), ...newLines.map((text) => ({ type: "add" as const, text }))];
  }
  return collapseUnchanged(compareLines(oldLines, newLines));
}

/** Compares by longest common subsequence. */
function compareLines(oldLines: string[], newLines: string[]): Line[] {
  const width = newLines.length + 1;
  const lcsLengths = new Uint16Array((oldLines.length + 1) * width);
  for (let i = oldLines.length - 1; i >= 0; i--) {
    for (let j = newLines.length - 1; j >= 0; j--) {
      lcsLengths[i * width + j] =
        oldLines[i] === newLines[j] ? lcsLengths[(i + 1) * width + j + 1]! + 1 : Math.max(lcsLengths[(i + 1) * width + j]!, lcsLengths[i * width + j + 1]!);
    }
  }
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < oldLines.length || j < newLines.length) {
    if (i < oldLines.length && j < newLines.length && oldLines[i] === newLines[j]) {
      lines.push({ type: "same", text: oldLines[i]! });
      i++;
      j++;
    } else if (i < oldLines.length && (j === newLines.length || lcsLengths[(i + 1) * width + j]! >= lcsLengths[i * width + j + 1]!)) {
      lines.push({ type: "remove", text: oldLines[i++]! });
    } else {
      lines.push({ type: "add", text: newLines[j++]! });
    }
  }
  return lines;
}

function collapseUnchanged(lines: Line[]): Line[] {
  const isNearChange = (n: number) => lines.slice(Math.max(0, n - CONTEXT_LINES), n + CONTEXT_LINES + 1).some((line) => line.type !== "same");
  const shown: Line[] = [];
  lines.forEach((line, n) => {
    if (isNearChange(n)) shown.push(line);
    else if (shown.at(-1)?.type !== "gap") shown.push({ type: "gap", text: "…" });
  });
  return shown;
}
