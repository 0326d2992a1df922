"""What the peers have in common: the prompts of a report of "unfray eval --json"
in, a line {"id", "text"} for each out. A cut that a peer fails at, or where its
output does not begin with the prompt, is left out and said on standard error;
"unfray eval --peer" counts it as wrong. The sets take turns, so that a run that
is broken off has the first cuts of each."""

import argparse
import itertools
import json
import os
import sys


def main(load):
    """load(model, tokenizer) returns a function from a prompt, a number of tokens
    and a number of characters to the whole text, prompt included. It may stop when
    so many characters follow the prompt: no more are compared."""
    p = argparse.ArgumentParser()
    p.add_argument("gguf", help="the model that unfray ran")
    p.add_argument("report", help="file that unfray eval --json wrote")
    p.add_argument("-n", type=int, default=0, help="only the first n cuts of each set")
    p.add_argument("--done", help="earlier output: leave out the cuts that have a result there")
    p.add_argument("--threads", type=int, default=0, help="CPU threads")
    args = p.parse_args()

    with open(args.report, encoding="utf-8") as f:
        report = json.load(f)
    if report["temperature"] != 0:
        sys.exit("the peers are greedy: run unfray eval at temperature 0")
    done = results(args.done)
    run = load(*model(args.gguf, args.threads))
    for row in in_turn(report["sets"], args.n):
        prompt, name = row["prompt"], row["id"]
        if name in done:
            continue
        try:
            whole = run(prompt, report["max_tokens"], max(report["chars"]))
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr, flush=True)
            continue
        if not whole.startswith(prompt):
            print(f"{name}: the output does not begin with the prompt", file=sys.stderr, flush=True)
            continue
        print(json.dumps({"id": name, "text": whole[len(prompt):]}), flush=True)


def results(path):
    """The ids of the cuts that have a result in a file of earlier output."""
    if not path:
        return set()
    with open(path, encoding="utf-8") as f:
        return {json.loads(line)["id"] for line in f}


def in_turn(sets, n):
    """The first n rows of each set (all at 0), one of each set at a time."""
    for rows in itertools.zip_longest(*(s["rows"][: n or None] for s in sets)):
        yield from (row for row in rows if row is not None)


def enough(tokenizer, prompt, chars):
    """Stops generate() when more than so many characters follow the prompt; the
    last one may be half of one."""
    from transformers import StoppingCriteria, StoppingCriteriaList

    class Enough(StoppingCriteria):
        def __call__(self, ids, scores, **kwargs):
            return len(tokenizer.decode(ids[0])) > len(prompt) + chars

    return StoppingCriteriaList([Enough()])


# Values of tokenizer.ggml.pre that mean: each digit alone, then GPT-2's pattern.
DIGITS = {"smollm", "starcoder", "refact", "command-r", "codeshell"}


def model(path, threads):
    """The GGUF's weights as float32, and its tokenizer."""
    import gguf
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if threads:
        torch.set_num_threads(threads)
    folder, name = os.path.split(os.path.abspath(path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    pre = gguf.GGUFReader(path).get_field("tokenizer.ggml.pre")
    if pre and pre.contents() in DIGITS:  # Transformers takes GPT-2's pattern alone
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32), tokenizer
