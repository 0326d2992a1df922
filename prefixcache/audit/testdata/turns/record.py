"""Records how chat templates drift over the turns of probe.json, in drift.json,
by transformers' own renderings and the tokenizers' own IDs.

Run: pip install transformers==5.19.0 jinja2==3.1.6 tokenizers==0.23.3, then
    python record.py VOCABS
where VOCABS is the folder that `go run ./internal/deps/fetch -no-engine -vocabs
-env` names. Templates are known by their SHA-256; of prompts and answers only
length and SHA-256 (of UTF-8) are kept.

An answer is what follows the prompt once the message is added to the history, up
to the control token that ends the turn; with a reasoning block that only the
prompt opens, the message's reasoning and the block's end come first.
"""
import copy
import hashlib
import json
import os
import re
import sys

import jinja2
import tokenizers
import transformers
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
# The tokenizer's folder, and the template: "" for that of the tokenizer.
PAIRS = [
    ("qwen3", ""), ("qwen3", "Qwen-Qwen3-0.6B"), ("qwen3", "Qwen3-Coder"), ("qwen3", "Qwen3.5-4B"), ("qwen3", "Qwen-QwQ-32B"), ("qwen2_5", ""),
    ("llama3", ""), ("llama3", "meta-llama-Llama-3.1-8B-Instruct"), ("llama3", "meta-llama-Llama-3.2-3B-Instruct"),
    ("llama3", "meta-llama-Llama-3.3-70B-Instruct"), ("gemma3", ""), ("deepseek_v3", ""),
    ("deepseek_v3", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B"), ("deepseek_v3", "deepseek-ai-DeepSeek-V3.1"),
    ("mistral_nemo", ""), ("gptoss", "openai-gpt-oss-120b"), ("qwen3", "HuggingFaceTB-SmolLM3-3B"),
]
THOUGHTS = [
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
]
FORMS = [(False, False), (False, True), (True, False), (True, True)]  # arguments as text, content null


def sha(text):
    return {"bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def common(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def spelling(token):
    return token["content"] if isinstance(token, dict) else token or ""


class Model:
    def __init__(self, vocabs, folder, template):
        self.config = json.load(open(os.path.join(vocabs, folder, "tokenizer_config.json"), encoding="utf-8"))
        path = os.path.join(vocabs, folder, "tokenizer.json")
        self.tok = tokenizers.Tokenizer.from_file(path)
        added = json.load(open(path, encoding="utf-8"))["added_tokens"]
        self.special = sorted((t["content"] for t in added if t["special"]), key=len, reverse=True)
        self.source = self.config.get("chat_template")
        if template:
            self.source = open(os.path.join(vocabs, "templates", template + ".jinja"), encoding="utf-8", newline="").read()
        self.bos, self.eos = spelling(self.config.get("bos_token")), spelling(self.config.get("eos_token"))
        self.reasoning = self.reasoning_field()
        self.form = self.tool_form()
        self.arguments = {}

    def render(self, messages, tools, generate, **arguments):
        return chat_template_utils.render_jinja_template(
            [messages], tools=tools, chat_template=self.source, add_generation_prompt=generate, bos_token=self.bos, eos_token=self.eos,
            **arguments,
        )[0][0]

    def ids(self, text):
        return self.tok.encode(text, add_special_tokens=False).ids

    def reasoning_field(self):
        for field in ("reasoning_content", "thinking", "reasoning"):
            answer = {"role": "assistant", "content": "probe_answer", field: "probe_reasoning"}
            try:
                if "probe_reasoning" in self.render([{"role": "user", "content": "Hello"}, answer], None, False):
                    return field
            except Exception:
                pass
        return "reasoning_content"

    def tool_form(self):
        conv = load()
        conv["messages"] = conv["messages"][1:4]  # a question, a call and its result
        for form in FORMS:
            try:
                text = self.render(shaped(conv["messages"], form, "reasoning_content"), conv["tools"], True)
            except Exception:
                continue
            if "celsius" in text.split("Is tomorrow")[-1].split("18.5")[0] and "'city': " not in text:
                return form
        return FORMS[0]


def load():
    conv = json.load(open(os.path.join(HERE, "probe.json"), encoding="utf-8"))
    return conv


def shaped(messages, form, reasoning):
    messages = copy.deepcopy(messages)
    for m in messages:
        if "reasoning_content" in m:
            m[reasoning] = m.pop("reasoning_content")
        if m.get("tool_calls"):
            if form[1] and not m["content"]:
                m["content"] = None
            if form[0]:
                for c in m["tool_calls"]:
                    c["function"]["arguments"] = json.dumps(c["function"]["arguments"], ensure_ascii=False)
    return messages


def probe(tools, reasoning):
    conv = load()
    messages = conv["messages"]
    if not reasoning:
        for m in messages:
            m.pop("reasoning_content", None)
    if not tools:
        messages = [m for m in messages if not m.get("tool_calls") and m["role"] != "tool"]
    return messages, conv["tools"] if tools else None


def answer(model, prompt, history, message, tools):
    whole = model.render(history + [message], tools, False, **model.arguments)
    try:
        without = model.render(history, tools, False, **model.arguments)
    except Exception:
        without = ""
    out = answer_in(prompt, whole, common(prompt, without), message["content"] or "", message.get(model.reasoning) or "")
    return cut(model, out, message, without == prompt)


def answer_in(prompt, whole, header, content, reasoning):
    n = common(prompt, whole)
    trimmed = prompt.rstrip()
    block = next(((len(trimmed) - len(o), o, c) for o, c in THOUGHTS if trimmed.endswith(o)), None)

    def closed(rest):
        at, opening, closing = block
        if rest.startswith(closing):
            return reasoning + rest
        if prompt[at + len(opening):].endswith("\n"):
            return reasoning + "\n" + closing + "\n\n" + rest
        return reasoning + closing + rest

    if n == len(prompt):
        return whole[n:]
    if block and block[0] >= header and n >= block[0]:
        return closed(whole[block[0]:])
    if n >= header:
        return whole[n:]
    head = prompt[header:]
    if head and head in whole:
        return whole[whole.rindex(head) + len(head):]
    if block and block[0] > header and prompt[header:block[0]] in whole:
        head = prompt[header:block[0]]
        return closed(whole[whole.rindex(head) + len(head):])
    return content


def leaves(v):
    if isinstance(v, str):
        yield v
    elif isinstance(v, dict):
        for e in v.values():
            yield from leaves(e)
    elif isinstance(v, list):
        for e in v:
            yield from leaves(e)


def cut(model, out, message, always):
    said = [message["content"] or ""]
    for c in message.get("tool_calls", []):
        said += [c["function"]["name"], *leaves(c["function"]["arguments"])]
    end = max((out.rfind(s.strip()) + len(s.strip()) for s in said if s.strip() and s.strip() in out), default=0)
    found = [m.end() for m in re.finditer("|".join(map(re.escape, model.special)), out) if m.end() > end]
    if found and always:
        return out[:found[0]]
    if found and not out[found[-1]:].strip():
        return out[:found[-1]]
    return out + model.eos


def turns(model, messages, tools, drop):
    messages = shaped(messages, model.form, model.reasoning)
    history = [{k: v for k, v in m.items() if k != model.reasoning} for m in messages] if drop else messages
    steps = []
    for i, m in enumerate(messages):
        if m["role"] == "assistant":
            prompt = model.render(history[:i], tools, True, **model.arguments)
            steps.append((prompt, answer(model, prompt, history[:i], m, tools)))
    if messages[-1]["role"] != "assistant":
        steps.append((model.render(history, tools, True, **model.arguments), ""))
    out = []
    for i, (prompt, output) in enumerate(steps):
        ids, gen = model.ids(prompt), model.ids(output)
        step = {"prompt": sha(prompt), "prompt_tokens": len(ids), "output": sha(output), "output_tokens": len(gen)}
        if i + 1 < len(steps):
            following = steps[i + 1][0]
            held = (ids + gen)[:-1]
            kept = common(held, model.ids(following))
            old = (prompt + output).encode()
            n = common(old, following.encode())
            if kept < len(held) or n < len(old):
                step["drift"] = {"byte": n, "token": kept, "lost_tokens": len(held) - kept, "lost_blocks": len(held) // 16 - kept // 16}
        out.append(step)
    return out


def varied(messages, system, said):
    """Leaves out the system message, or the text beside tool calls."""
    messages = [copy.deepcopy(m) for m in messages if system or m["role"] != "system"]
    for m in messages:
        if m.get("tool_calls") and not said:
            m["content"] = ""
    return messages


def record(model, tools, reasoning, drop, silent=False):
    messages, listed = probe(tools, reasoning)
    first = None
    for system, said in ((True, True), (False, True), (True, False), (False, False))[2 * silent:]:
        try:
            return {"system": system, "said": said, "steps": turns(model, varied(messages, system, said), listed, drop)}
        except Exception as e:
            first = first or e
    return {"refused": f"{type(first).__name__}: {first}".split("\n")[0][:200]}


def main():
    out = []
    for folder, template in PAIRS:
        model = Model(sys.argv[1], folder, template)
        entry = {
            "tokenizer": folder, "template": template, "sha256": sha(model.source)["sha256"], "bos": model.bos, "eos": model.eos,
            "form": {"text_arguments": model.form[0], "null_content": model.form[1],
                     "reasoning": "" if model.reasoning == "reasoning_content" else model.reasoning}, "probes": {},
        }
        for name, args in {
            "plain": (False, False, False), "tools": (True, False, False), "reasoning": (False, True, False), "both": (True, True, False),
            "both, reasoning not sent back": (True, True, True),
            "tools, nothing beside calls": (True, False, False, True),
        }.items():
            entry["probes"][name] = record(model, *args)
        model.arguments = {"enable_thinking": True, "thinking": True}
        entry["probes"]["both, thinking on"] = record(model, True, True, False)
        out.append(entry)
    versions = {"transformers": transformers.__version__, "jinja2": jinja2.__version__, "tokenizers": tokenizers.__version__}
    with open(os.path.join(HERE, "drift.json"), "w", encoding="utf-8") as f:
        text = json.dumps({**versions, "models": out}, ensure_ascii=False)
        f.write(re.sub(r'(?<=[\[{,]) ?(?=\{"prompt"|"(?:tokenizer|tokenizers|models|probes|steps)": )', "\n", text) + "\n")


main()
