// @anthropic-ai/sdk: a hand-written loop over the Messages API.
import { KEY, PROMPT, ROW, load, serve } from "./loop.mjs";

const { Anthropic } = await load("@anthropic-ai/sdk");
const TOOL = { name: "append_row", description: "Append a row.", input_schema: ROW };

await serve(async (cell) => {
  const client = new Anthropic({ baseURL: cell.url, apiKey: KEY, ...cell.retries });
  const messages = [{ role: "user", content: PROMPT }];
  for (let turn = 0; turn < 6; turn++) {
    const told = { model: cell.model, max_tokens: 2000, messages, tools: [TOOL] };
    const answer = cell.stream
      ? await client.messages.stream(told).finalMessage()
      : await client.messages.create(told);
    const calls = answer.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return answer.content.map((block) => block.text ?? "").join("");
    const results = calls.map((call) => ({
      type: "tool_result", tool_use_id: call.id, content: cell.appendRow(call.input.row),
    }));
    messages.push({ role: "assistant", content: answer.content }, { role: "user", content: results });
  }
  throw new Error("too many turns");
});
