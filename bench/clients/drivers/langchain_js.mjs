// LangChain.js: createAgent with one tool.
import { KEY, PROMPT, load, serve } from "./loop.mjs";

const { createAgent, tool } = await load("langchain");
const { ChatOpenAI } = await load("@langchain/openai");
const { ChatAnthropic } = await load("@langchain/anthropic");
const { z } = await load("zod");

const model = (cell) => cell.wire === "messages"
  ? new ChatAnthropic({ model: cell.model, anthropicApiUrl: cell.url, apiKey: KEY, streaming: cell.stream, ...cell.retries })
  : new ChatOpenAI({
    model: cell.model, apiKey: KEY, configuration: { baseURL: cell.v1 }, streaming: cell.stream, streamUsage: true,
    useResponsesApi: cell.wire === "responses", ...cell.retries,
  });

await serve(async (cell) => {
  const appendRow = tool(async ({ row }) => cell.appendRow(row), {
    name: "append_row", description: "Append a row.", schema: z.object({ row: z.string() }),
  });
  const agent = createAgent({ model: model(cell), tools: [appendRow] });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: PROMPT }] });
  return messages.at(-1).text;
});
