// Claude Agent SDK: one query with the Bash tool.
import { mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import { KEY, PROMPT, load, serve } from "./loop.mjs";

const { query } = await load("@anthropic-ai/claude-agent-sdk");

await serve(async (cell) => {
  const tries = cell.tries === "default" ? {} : { CLAUDE_CODE_MAX_RETRIES: "0" };
  const env = {
    ...process.env, HOME: mkdtempSync(join(dirname(cell.rows), "home-")), ANTHROPIC_BASE_URL: cell.url, ANTHROPIC_API_KEY: KEY,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", ...tries,
  };
  const options = { cwd: dirname(cell.rows), env, model: "claude-sonnet-4-5", allowedTools: ["Bash"] };
  let result;
  for await (const message of query({ prompt: PROMPT, options })) if (message.type === "result") result = message;
  if (result.is_error) throw new Error(result.result ?? result.subtype);
  return result.result;
});
