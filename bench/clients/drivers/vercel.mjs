// Vercel's ai: streamText and generateText with a tool.
import { KEY, PROMPT, load, serve } from "./loop.mjs";

const { streamText, generateText, tool, stepCountIs, isStepCount } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { z } = await load("zod");
const MODELS = {
  messages: (cell) => createAnthropic({ baseURL: cell.v1, apiKey: KEY })(cell.model),
  chat: (cell) => createOpenAI({ baseURL: cell.v1, apiKey: KEY }).chat(cell.model),
  responses: (cell) => createOpenAI({ baseURL: cell.v1, apiKey: KEY }).responses(cell.model),
  compatible: (cell) => createOpenAICompatible({ name: "up", baseURL: cell.v1, apiKey: KEY })(cell.model),
};

await serve(async (cell) => {
  const append_row = tool({
    description: "Append a row.", inputSchema: z.object({ row: z.string() }),
    execute: async ({ row }) => cell.appendRow(row),
  });
  let failure;
  const told = {
    model: MODELS[cell.wire](cell), prompt: PROMPT, tools: { append_row }, stopWhen: (isStepCount ?? stepCountIs)(6), ...cell.retries,
  };
  if (!cell.stream) return (await generateText(told)).text;
  const result = streamText({ ...told, onError: ({ error }) => { failure ??= error; } });
  let text = "";
  for await (const part of result.fullStream) {
    if (part.type === "start-step") text = "";
    if (part.type === "text-delta") text += part.text;
    if (part.type === "error") failure ??= part.error;
  }
  if (failure) throw failure;
  return text;
});
