// Reads cells from stdin, one JSON object per line, and writes how each ended; runs with the packages of CLIENT_HOME.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { appendFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.CLIENT_HOME + "/package.json");
export const load = async (name) => {
  try {
    return require(name);
  } catch (error) {
    if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED" && error.code !== "ERR_REQUIRE_ASYNC_MODULE") throw error;
    return import(pathToFileURL(createRequire(process.env.CLIENT_HOME + "/package.json").resolve(name)));
  }
};
export const PROMPT = "Append the row one-row once with your tool, then recite the words.";
export const KEY = "sk-test-0123456789";
export const ROW = {
  type: "object", properties: { row: { type: "string" } }, required: ["row"], additionalProperties: false,
};
const MODEL = { messages: "claude-sonnet-4-5", chat: "gpt-5.1", compatible: "gpt-5.1", responses: "gpt-5.1" };

const tell = (found) => process.stdout.write("\n@@" + JSON.stringify(found) + "\n");

async function answer(run, told) {
  const cell = {
    ...told, stream: told.mode === "stream", v1: told.url + "/v1", model: told.model ?? MODEL[told.wire],
    retries: told.tries === "default" ? {} : { maxRetries: Number(told.tries.replace("zero", "0")) },
    appendRow: (row) => { appendFileSync(told.rows, row + "\n"); return "appended"; },
  };
  try {
    tell({ number: told.number, text: await run(cell) });
  } catch (error) {
    tell({ number: told.number, error: `${error?.name}: ${error?.message}`.slice(0, 300) });
  }
}

export async function serve(run) {
  process.on("unhandledRejection", () => {});
  tell({}); // ready
  for await (const line of createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    const done = answer(run, told);
    if (!told.parallel) await done;
  }
}
