"""Drives an OpenAI-compatible server with the unmodified Python client.

usage: client.py BASE_URL MODEL

Prints one JSON object of results on standard output; exits non-zero on the first failed expectation.
"""

import json
import sys

import openai

PROMPT = "const userNa"


def expect(condition, message):
    if not condition:
        sys.exit(f"client.py: {message}")


def expect_error(kind, message, call):
    """Returns the status of the error of the given class that call must raise."""
    try:
        call()
    except kind as err:
        expect(err.body and err.body.get("message"), f"{message}: the error object has no message: {err.body!r}")
        return err.status_code
    sys.exit(f"client.py: {message}: no error")


def main():
    base_url, model = sys.argv[1:]
    client = openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0, timeout=120)
    greedy = {"model": model, "prompt": PROMPT, "temperature": 0, "max_tokens": 8}
    results = {"models": [m.id for m in client.models.list()]}
    expect(model in results["models"], f"{model} is not among the models {results['models']}")

    whole = client.completions.create(**greedy)
    choice = whole.choices[0]
    results["text"] = choice.text
    results["finish_reason"] = choice.finish_reason
    results["usage"] = {"prompt_tokens": whole.usage.prompt_tokens, "completion_tokens": whole.usage.completion_tokens}
    expect(choice.text, "the completion is empty")
    expect(choice.finish_reason in ("length", "stop"), f"finish reason {choice.finish_reason!r}")
    expect(whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, "usage does not add up")

    streamed, usage, finish = "", None, None
    for chunk in client.completions.create(**greedy, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            streamed += choice.text
            finish = choice.finish_reason or finish
        usage = chunk.usage or usage
    expect(streamed == results["text"], f"streamed {streamed!r}, not streamed {results['text']!r}")
    expect(finish == results["finish_reason"], f"streamed finish reason {finish!r}")
    expect(usage and usage.total_tokens == whole.usage.total_tokens, f"streamed usage {usage}, not streamed {whole.usage}")

    sampled = {**greedy, "temperature": 0.8, "n": 2, "seed": 7}
    first, again = ([c.text for c in client.completions.create(**sampled).choices] for _ in range(2))
    expect(len(first) == 2, f"n=2 gave {len(first)} choices")
    expect(first == again, f"one seed, two answers: {first} and {again}")
    results["n"] = len(first)

    stop = results["text"][-2:]
    stopped = client.completions.create(**greedy, stop=[stop]).choices[0]
    expect(stopped.text == results["text"][: results["text"].index(stop)], f"stop {stop!r} gave {stopped.text!r}")
    expect(stopped.finish_reason == "stop", f"finish reason {stopped.finish_reason!r} after a stop string")
    results["stopped"] = stopped.text

    logprobs = client.completions.create(**greedy, logprobs=2).choices[0].logprobs
    counts = [len(logprobs.tokens), len(logprobs.token_logprobs), len(logprobs.top_logprobs), len(logprobs.text_offset)]
    expect(min(counts) > 0 and min(counts) == max(counts), f"logprobs lists of different lengths: {counts}")
    expect(all(p <= 0 for p in logprobs.token_logprobs), f"logprobs {logprobs.token_logprobs}")
    results["logprob_tokens"] = counts[0]

    chat = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 8}
    answer = client.chat.completions.create(**chat).choices[0].message
    expect(answer.role == "assistant" and answer.content, f"chat answer {answer}")
    streamed = ""
    for chunk in client.chat.completions.create(**chat, stream=True):
        for choice in chunk.choices:
            streamed += choice.delta.content or ""
    expect(streamed == answer.content, f"streamed {streamed!r}, not streamed {answer.content!r}")
    results["chat"] = answer.content

    results["unknown_model"] = expect_error(
        openai.NotFoundError, "unknown model", lambda: client.completions.create(**{**greedy, "model": "no-such-model"})
    )
    results["too_long"] = expect_error(
        openai.BadRequestError, "prompt too long", lambda: client.completions.create(**{**greedy, "prompt": "word " * 40_000})
    )
    print(json.dumps(results))


main()
