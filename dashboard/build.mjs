// Bundles the dashboard into the given directory (default: the service's static files), with hashed names and relative URLs.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../src/rung/service/static"));
const staging = `${target}.new`; // renamed at the end, so that a running service never serves a partial bundle

rmSync(staging, { recursive: true, force: true });
mkdirSync(staging, { recursive: true });

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.tsx", "src/theme.ts", "src/style/app.css", "src/icon.svg"],
  outdir: join(staging, "assets"),
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "copy" },
  minify: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

// Replace the source paths of the entry points in the page by their hashed names.
let page = readFileSync(join(here, "index.html"), "utf8");
const chunks = [];
for (const [path, output] of Object.entries(metafile.outputs)) {
  const address = relative(staging, resolve(here, path)).replaceAll("\\", "/");
  if (output.entryPoint) page = page.replaceAll(`./${output.entryPoint}"`, `./${address}"`);
  if (output.entryPoint === "src/main.tsx") chunks.push(...output.imports.filter((chunk) => chunk.kind === "import-statement"));
}
// Preload the chunks of the entry point, so that the browser fetches them in parallel.
const preload = chunks.map((chunk) => `<link rel="modulepreload" href="./assets/${basename(chunk.path)}" />`).join("\n    ");
page = page.replace("<!-- preload -->", preload);
if (/"\.\/src\//.test(page)) throw new Error("index.html names a source that is no entry point");
writeFileSync(join(staging, "index.html"), page);

// The licences of bundled packages must be distributed with them.
const bundled = new Set(
  Object.keys(metafile.inputs)
    .map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter((name) => name !== undefined),
);
const licences = [...bundled].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8") : ""}`;
});
writeFileSync(join(staging, "LICENSES.txt"), licences.join("\n----\n\n"));

if (existsSync(target)) rmSync(target, { recursive: true, force: true });
try {
  renameSync(staging, target);
} catch {
  cpSync(staging, target, { recursive: true }); // rename fails across file systems
  rmSync(staging, { recursive: true, force: true });
}
