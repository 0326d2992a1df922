"""Records what transformers makes of conversations.json with the chat templates
of models, in renderings.json.

Run: pip install transformers==5.19.0 jinja2==3.1.6, then
    python record.py VOCABS
where VOCABS is the folder that `go run ./internal/deps/fetch -no-engine -vocabs
-env` names. Templates are known by their SHA-256; neither they nor what they
render is kept, but the length and SHA-256 of each rendering (in UTF-8), and why
a conversation was refused.
"""
import datetime
import glob
import hashlib
import json
import os
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils

NOW = datetime.datetime(2026, 11, 5, 9, 7, 3)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def spelling(token):
    return token["content"] if isinstance(token, dict) else token or ""


def templates(folder):
    """Yields name, source, BOS and EOS."""
    for path in sorted(glob.glob(os.path.join(folder, "*", "tokenizer_config.json"))):
        config = json.load(open(path, encoding="utf-8"))
        if config.get("chat_template"):
            name = os.path.basename(os.path.dirname(path))
            yield name, config["chat_template"], spelling(config.get("bos_token")), spelling(config.get("eos_token"))
    for path in sorted(glob.glob(os.path.join(folder, "templates", "*.jinja"))):
        yield os.path.basename(path)[:-6], open(path, encoding="utf-8", newline="").read(), "<BOS>", "<EOS>"


def render(source, bos, eos, conv):
    return chat_template_utils.render_jinja_template(
        [conv["messages"]],
        tools=conv.get("tools"),
        chat_template=source,
        add_generation_prompt=conv.get("add_generation_prompt", True),
        continue_final_message=conv.get("continue_final_message", False),
        bos_token=bos,
        eos_token=eos,
        **conv.get("chat_template_kwargs", {}),
    )[0][0]


def main():
    chat_template_utils.datetime = Clock
    here = os.path.dirname(os.path.abspath(__file__))
    conversations = json.load(open(os.path.join(here, "conversations.json"), encoding="utf-8"))
    out = []
    for name, source, bos, eos in templates(sys.argv[1]):
        renderings = {}
        for title, conv in conversations.items():
            try:
                text = render(source, bos, eos, conv)
                renderings[title] = {"bytes": len(text.encode()), "sha256": sha(text)}
            except Exception as e:
                renderings[title] = {"refused": f"{type(e).__name__}: {e}".split("\n")[0][:200]}
        out.append({"name": name, "sha256": sha(source), "bos": bos, "eos": eos, "renderings": renderings})
    record = {
        "transformers": transformers.__version__, "jinja2": jinja2.__version__,
        "now": NOW.isoformat() + "Z", "templates": out,
    }
    with open(os.path.join(here, "renderings.json"), "w", encoding="utf-8") as f:
        json.dump(record, f, ensure_ascii=False, indent=1)
        f.write("\n")


main()
