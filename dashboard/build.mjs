// Bundles the dashboard into the folder given (by default, the service's static files): hashed names, relative addresses.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../src/rung/service/static"));
const fresh = `${target}.new`; // swapped in whole, so that a service never serves half a bundle

rmSync(fresh, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.tsx", "src/theme.ts", "src/style/app.css", "src/icon.svg"],
  outdir: join(fresh, "assets"),
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

// The page names its entry points by their source; each gets the name it was built under.
let page = readFileSync(join(here, "index.html"), "utf8");
const chunks = [];
for (const [path, made] of Object.entries(metafile.outputs)) {
  const address = relative(fresh, resolve(here, path)).replaceAll("\\", "/");
  if (made.entryPoint) page = page.replaceAll(`./${made.entryPoint}"`, `./${address}"`);
  if (made.entryPoint === "src/main.tsx") chunks.push(...made.imports.filter((one) => one.kind === "import-statement"));
}
// What the first page needs is asked for at once instead of after the entry point was read.
const preload = chunks.map((one) => `<link rel="modulepreload" href="./assets/${basename(one.path)}" />`).join("\n    ");
page = page.replace("<!-- preload -->", preload);
if (/"\.\/src\//.test(page)) throw new Error("index.html names a source that is no entry point");
writeFileSync(join(fresh, "index.html"), page);

// Bundled packages ask that their licences go with them.
const bundled = new Set(
  Object.keys(metafile.inputs)
    .map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter((name) => name !== undefined),
);
const licences = [...bundled].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8") : ""}`;
});
writeFileSync(join(fresh, "LICENSES.txt"), licences.join("\n----\n\n"));

if (existsSync(target)) rmSync(target, { recursive: true, force: true });
try {
  renameSync(fresh, target);
} catch {
  cpSync(fresh, target, { recursive: true }); // another file system
  rmSync(fresh, { recursive: true, force: true });
}
