// What differs between two texts, line by line.

export interface Line {
  sort: "same" | "add" | "cut" | "gap";
  text: string;
}

const AROUND = 2;
const MOST = 1_500; // lines; beyond that the whole of both is shown

/** The lines of both, in order; long stretches that did not change are left out. */
export function diff(before: string, after: string): Line[] {
  const old = before === "" ? [] : before.split("\n");
  const fresh = after === "" ? [] : after.split("\n");
  if (old.length > MOST || fresh.length > MOST) {
    return [...old.map((text) => ({ sort: "cut" as const, text })), ...fresh.map((text) => ({ sort: "add" as const, text }))];
  }
  return shortened(compare(old, fresh));
}

/** By the longest common subsequence. */
function compare(old: string[], fresh: string[]): Line[] {
  const width = fresh.length + 1;
  const length = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      length[i * width + j] =
        old[i] === fresh[j] ? length[(i + 1) * width + j + 1]! + 1 : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!);
    }
  }
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ sort: "same", text: old[i]! });
      i++;
      j++;
    } else if (i < old.length && (j === fresh.length || length[(i + 1) * width + j]! >= length[i * width + j + 1]!)) {
      lines.push({ sort: "cut", text: old[i++]! });
    } else {
      lines.push({ sort: "add", text: fresh[j++]! });
    }
  }
  return lines;
}

function shortened(lines: Line[]): Line[] {
  const near = (n: number) => lines.slice(Math.max(0, n - AROUND), n + AROUND + 1).some((line) => line.sort !== "same");
  const shown: Line[] = [];
  lines.forEach((line, n) => {
    if (near(n)) shown.push(line);
    else if (shown.at(-1)?.sort !== "gap") shown.push({ sort: "gap", text: "…" });
  });
  return shown;
}
