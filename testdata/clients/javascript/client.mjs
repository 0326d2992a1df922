// Drives an OpenAI-compatible server with the unmodified JavaScript client.
//
// usage: node client.mjs BASE_URL MODEL
//
// Prints one JSON object of results on standard output; exits non-zero on the first failed expectation.

import OpenAI from "openai";

const prompt = "const userNa";

function expect(condition, message) {
  if (!condition) {
    throw new Error(message);
  }
}

// expectError returns the status of the error of the given class that the promise must reject with.
async function expectError(kind, message, promise) {
  try {
    await promise;
  } catch (err) {
    expect(err instanceof kind, `${message}: ${err}`);
    expect(err.error?.message, `${message}: the error object has no message: ${JSON.stringify(err.error)}`);
    return err.status;
  }
  throw new Error(`${message}: no error`);
}

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0, timeout: 120_000 });
const greedy = { model, prompt, temperature: 0, max_tokens: 8 };
const results = { models: [] };

for await (const m of client.models.list()) {
  results.models.push(m.id);
}
expect(results.models.includes(model), `${model} is not among the models ${results.models}`);

const whole = await client.completions.create(greedy);
results.text = whole.choices[0].text;
results.finish_reason = whole.choices[0].finish_reason;
results.usage = { prompt_tokens: whole.usage.prompt_tokens, completion_tokens: whole.usage.completion_tokens };
expect(results.text, "the completion is empty");
expect(["length", "stop"].includes(results.finish_reason), `finish reason ${results.finish_reason}`);
expect(
  whole.usage.total_tokens === whole.usage.prompt_tokens + whole.usage.completion_tokens,
  "usage does not add up",
);

let streamed = "";
let usage = null;
let finish = null;
const options = { stream: true, stream_options: { include_usage: true } };
for await (const chunk of await client.completions.create({ ...greedy, ...options })) {
  for (const choice of chunk.choices) {
    streamed += choice.text;
    finish = choice.finish_reason ?? finish;
  }
  usage = chunk.usage ?? usage;
}
expect(streamed === results.text, `streamed ${JSON.stringify(streamed)}, not streamed ${JSON.stringify(results.text)}`);
expect(finish === results.finish_reason, `streamed finish reason ${finish}`);
expect(usage?.total_tokens === whole.usage.total_tokens, `streamed usage ${JSON.stringify(usage)}`);

const sampled = { ...greedy, temperature: 0.8, n: 2, seed: 7 };
const first = (await client.completions.create(sampled)).choices.map((c) => c.text);
const again = (await client.completions.create(sampled)).choices.map((c) => c.text);
expect(first.length === 2, `n=2 gave ${first.length} choices`);
expect(JSON.stringify(first) === JSON.stringify(again), `one seed, two answers: ${JSON.stringify([first, again])}`);
results.n = first.length;

const stop = results.text.slice(-2);
const stopped = (await client.completions.create({ ...greedy, stop: [stop] })).choices[0];
expect(
  stopped.text === results.text.slice(0, results.text.indexOf(stop)),
  `stop ${JSON.stringify(stop)} gave ${JSON.stringify(stopped.text)}`,
);
expect(stopped.finish_reason === "stop", `finish reason ${stopped.finish_reason} after a stop string`);
results.stopped = stopped.text;

const { logprobs } = (await client.completions.create({ ...greedy, logprobs: 2 })).choices[0];
const counts = ["tokens", "token_logprobs", "top_logprobs", "text_offset"].map((field) => logprobs[field].length);
expect(counts[0] > 0 && counts.every((n) => n === counts[0]), `logprobs lists of different lengths: ${counts}`);
expect(logprobs.token_logprobs.every((p) => p <= 0), `logprobs ${logprobs.token_logprobs}`);
results.logprob_tokens = counts[0];

const chat = { model, messages: [{ role: "user", content: "Say hello." }], temperature: 0, max_tokens: 8 };
const answer = (await client.chat.completions.create(chat)).choices[0].message;
expect(answer.role === "assistant" && answer.content, `chat answer ${JSON.stringify(answer)}`);
streamed = "";
for await (const chunk of await client.chat.completions.create({ ...chat, stream: true })) {
  for (const choice of chunk.choices) {
    streamed += choice.delta.content ?? "";
  }
}
expect(streamed === answer.content, `streamed ${JSON.stringify(streamed)}, not streamed ${JSON.stringify(answer.content)}`);
results.chat = answer.content;

results.unknown_model = await expectError(
  OpenAI.NotFoundError,
  "unknown model",
  client.completions.create({ ...greedy, model: "no-such-model" }),
);
results.too_long = await expectError(
  OpenAI.BadRequestError,
  "prompt too long",
  client.completions.create({ ...greedy, prompt: "word ".repeat(40_000) }),
);
console.log(JSON.stringify(results));
