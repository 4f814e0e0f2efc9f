// LangChain.js: createAgent with one tool.
import { KEY, PROMPT, load, serve } from "./loop.mjs";

const { createAgent, tool } = await load("langchain");
const { ChatOpenAI } = await load("@langchain/openai");
const { ChatAnthropic } = await load("@langchain/anthropic");
const { z } = await load("zod");

const model = (cell) => cell.wire === "messages"
  ? new ChatAnthropic({ model: cell.model, anthropicApiUrl: cell.url, apiKey: KEY, ...cell.retries })
  : new ChatOpenAI({
    model: cell.model, apiKey: KEY, configuration: { baseURL: cell.v1 },
    useResponsesApi: cell.wire === "responses", ...cell.retries,
  });

await serve(async (cell) => {
  const appendRow = tool(async ({ row }) => cell.appendRow(row), {
    name: "append_row", description: "Append a row.", schema: z.object({ row: z.string() }),
  });
  const agent = createAgent({ model: model(cell), tools: [appendRow] });
  const told = { messages: [{ role: "user", content: PROMPT }] };
  if (!cell.stream) return (await agent.invoke(told)).messages.at(-1).text;
  // With `streaming` the model would count tokens by tables from the network; a stream of messages does not.
  let last;
  for await (const [mode, value] of await agent.stream(told, { streamMode: ["messages", "values"] })) {
    if (mode === "values") last = value.messages.at(-1);
  }
  return last.text;
});
