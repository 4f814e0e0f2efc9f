// openai for Node: hand-written loops over Chat Completions and Responses.
import { KEY, PROMPT, ROW, load, serve } from "./loop.mjs";

const { OpenAI } = await load("openai");
const FUNCTION = { name: "append_row", description: "Append a row.", parameters: ROW };

async function chat(client, cell) {
  const messages = [{ role: "user", content: PROMPT }];
  for (let turn = 0; turn < 6; turn++) {
    const told = { model: cell.model, messages, tools: [{ type: "function", function: FUNCTION }] };
    const said = cell.stream
      ? await client.chat.completions.stream(told).finalMessage()
      : (await client.chat.completions.create(told)).choices[0].message;
    if (!said.tool_calls?.length) return said.content ?? "";
    messages.push({ role: "assistant", content: said.content, tool_calls: said.tool_calls });
    for (const call of said.tool_calls) {
      const done = cell.appendRow(JSON.parse(call.function.arguments).row);
      messages.push({ role: "tool", tool_call_id: call.id, content: done });
    }
  }
  throw new Error("too many turns");
}

async function responses(client, cell) {
  const input = [{ role: "user", content: PROMPT }];
  for (let turn = 0; turn < 6; turn++) {
    const told = { model: cell.model, input, tools: [{ type: "function", strict: false, ...FUNCTION }], store: false };
    const answer = cell.stream
      ? await client.responses.stream(told).finalResponse()
      : await client.responses.create(told);
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (!calls.length) {
      const parts = answer.output.flatMap((item) => item.content ?? []);
      return parts.map((part) => part.text ?? "").join("");
    }
    for (const { parsed_arguments, ...item } of answer.output) input.push(item);
    for (const call of calls) {
      const output = cell.appendRow(JSON.parse(call.arguments).row);
      input.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
  throw new Error("too many turns");
}

await serve((cell) => {
  const client = new OpenAI({ baseURL: cell.v1, apiKey: KEY, ...cell.retries });
  return (cell.wire === "chat" ? chat : responses)(client, cell);
});
