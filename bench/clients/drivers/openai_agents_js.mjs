// OpenAI Agents for JavaScript: an agent with one tool.
import { createRequire } from "node:module";
import { KEY, PROMPT, load, serve } from "./loop.mjs";

const { Agent, run, tool, OpenAIChatCompletionsModel, OpenAIResponsesModel, setTracingDisabled } = await load("@openai/agents");
const own = createRequire(createRequire(process.env.CLIENT_HOME + "/package.json").resolve("@openai/agents"));
const { OpenAI } = own("openai");
const { z } = await load("zod");
setTracingDisabled(true);

await serve(async (cell) => {
  const client = new OpenAI({ baseURL: cell.v1, apiKey: KEY, ...cell.retries });
  const Model = cell.wire === "chat" ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
  const append = tool({
    name: "append_row", description: "Append a row.", parameters: z.object({ row: z.string() }),
    execute: async ({ row }) => cell.appendRow(row),
  });
  const agent = new Agent({ name: "a", instructions: "", model: new Model(client, cell.model), tools: [append] });
  const result = await run(agent, PROMPT, { stream: cell.stream });
  if (cell.stream) {
    for await (const _ of result.toStream());
    await result.completed;
    if (result.error) throw result.error;
  }
  return String(result.finalOutput ?? "");
});
