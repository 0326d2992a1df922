"""Records what Jinja makes of the templates in templates.json.

Run: pip install jinja2 && python render.py, in this folder. The environment is
the one that Hugging Face's transformers renders chat templates in.
"""
import json

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


def refuse(message):
    raise ValueError(message)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
env.globals["raise_exception"] = refuse
cases = json.load(open("templates.json", encoding="utf-8"))
for case in cases:
    try:
        case["want"] = env.from_string(case["template"]).render(
            messages=case["messages"],
            add_generation_prompt=case.get("add_generation_prompt", True),
            bos_token="<s>", eos_token="</s>", tools=None, documents=None,
        )
        case.pop("refused", None)
    except ValueError as e:
        case["refused"] = str(e)
        case.pop("want", None)
with open("templates.json", "w", encoding="utf-8") as f:
    json.dump(cases, f, ensure_ascii=False, indent=1)
    f.write("\n")
