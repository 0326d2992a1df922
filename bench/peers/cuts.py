"""What the peers have in common: the prompts of a report of "unfray eval --json"
in, a line {"id", "text"} for each out. A cut that a peer fails at, or where its
output does not begin with the prompt, is left out and said on standard error;
"unfray eval --peer" counts it as wrong."""

import argparse
import json
import os
import sys


def main(load):
    """load(model) returns a function from a prompt and a number of tokens to the
    whole text, prompt included."""
    p = argparse.ArgumentParser()
    p.add_argument("gguf", help="the model that unfray ran")
    p.add_argument("report", help="file that unfray eval --json wrote")
    p.add_argument("-n", type=int, default=0, help="only the first n cuts of each set")
    p.add_argument("--threads", type=int, default=0, help="CPU threads")
    args = p.parse_args()

    with open(args.report, encoding="utf-8") as f:
        report = json.load(f)
    if report["temperature"] != 0:
        sys.exit("the peers are greedy: run unfray eval at temperature 0")
    run = load(*model(args.gguf, args.threads))
    for s in report["sets"]:
        for row in s["rows"][: args.n or None]:
            prompt, name = row["prompt"], row["id"]
            try:
                whole = run(prompt, report["max_tokens"])
            except Exception as e:
                print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
                continue
            if not whole.startswith(prompt):
                print(f"{name}: the output does not begin with the prompt", file=sys.stderr)
                continue
            print(json.dumps({"id": name, "text": whole[len(prompt):]}), flush=True)


def model(path, threads):
    """The GGUF's weights as float32, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if threads:
        torch.set_num_threads(threads)
    folder, name = os.path.split(os.path.abspath(path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32), tokenizer
