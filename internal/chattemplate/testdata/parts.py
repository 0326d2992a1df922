"""Records which form of content vLLM finds that templates take, and what it
makes of the parts of messages for them and of tool calls, in parts.json and
partsvocabs.json.

Run: pip install vllm==0.32.0 (a build for CPUs will do), then
    python parts.py VOCABS
where VOCABS is the folder that `go run ./internal/deps/fetch -no-engine -vocabs
-env` names. The templates of that folder are known by their SHA-256.
"""
import copy
import glob
import hashlib
import json
import os
import sys
import types

import vllm
from vllm.renderers import chat_utils, hf

here = os.path.dirname(os.path.abspath(__file__))


def detect(source):
    return hf._detect_content_format(source, default="string")


class Tracker:
    """A tracker for messages of text."""

    def create_parser(self, mm_processor_kwargs=None):
        return types.SimpleNamespace(
            model_config=types.SimpleNamespace(enable_prompt_embeds=False),
            mm_placeholder_storage=dict,
        )


def parse(message, form):
    [m] = chat_utils._parse_chat_message_content(copy.deepcopy(message), Tracker(), form, False)
    return m["content"]


def called(calls):
    message = {"role": "assistant", "content": "", "tool_calls": copy.deepcopy(calls)}
    chat_utils._postprocess_messages([message])
    return message.get("tool_calls")


def write(name, value):
    with open(os.path.join(here, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, indent=1)
        f.write("\n")


record = json.load(open(os.path.join(here, "parts.json"), encoding="utf-8"))
record["vllm"] = vllm.__version__
record["formats"] = [detect(s) for s in record["templates"]]
record["calls"] = [called(c) for c in record["called"]]
record["contents"] = [{form: parse(m, form) for form in ("string", "openai")} for m in record["messages"]]
write("parts.json", record)

vocabs = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*", "tokenizer_config.json"))):
    source = json.load(open(path, encoding="utf-8")).get("chat_template")
    if source:
        vocabs[hashlib.sha256(source.encode()).hexdigest()] = detect(source)
for path in sorted(glob.glob(os.path.join(sys.argv[1], "templates", "*.jinja"))):
    source = open(path, encoding="utf-8", newline="").read()
    vocabs[hashlib.sha256(source.encode()).hexdigest()] = detect(source)
write("partsvocabs.json", {"vllm": vllm.__version__, "formats": vocabs})
