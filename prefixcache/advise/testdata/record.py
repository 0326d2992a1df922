"""Record what tiktoken and Hugging Face tokenizers do with the last tokens of a text once more is typed.

    settings=$(go run ./internal/deps/fetch -no-engine -vocabs -references testdata/reference -env) && eval "$settings"
    PYTHONPATH=$UNFRAY_TEST_REFERENCES python3 prefixcache/advise/testdata/record.py $UNFRAY_TEST_VOCABS FILE.jsonl.gz... \
        > prefixcache/advise/testdata/seams.json

The first argument is the folder of the vocabularies; the files have "prefix" and "next" in each line. For each vocabulary,
file and way (keystrokes: each character of "next" for itself; whole: all of it) it writes the number of seams, how many have
r = 0, 1, 2, 3 or more changed tokens, their sum, the largest, the tokens of all prefixes, and for each block size the tokens
lost and how many seams lose any.
"""

import gzip
import json
import os
import sys

import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizers

BLOCKS = [1, 16, 64, 528, 1056]


def with_tiktoken(path):
    name = os.path.basename(path).removesuffix(".tiktoken")
    # The package fetches rank files; pattern and special tokens are its own.
    openai_public.load_tiktoken_bpe = lambda *_, **__: tiktoken.load.load_tiktoken_bpe(path)
    encoding = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    return encoding.encode_ordinary


def with_tokenizers(path):
    t = tokenizers.Tokenizer.from_file(path)
    return lambda s: t.encode(s, add_special_tokens=False).ids


class Count:
    def __init__(self):
        self.seams, self.r, self.sum, self.max, self.tokens = 0, [0, 0, 0, 0], 0, 0, 0
        self.lost, self.hit = [0] * len(BLOCKS), [0] * len(BLOCKS)

    def add(self, before, after):
        n = len(before)
        kept = 0
        while kept < n and kept < len(after) and before[kept] == after[kept]:
            kept += 1
        r = n - kept
        self.seams += 1
        self.tokens += n
        self.sum += r
        self.max = max(self.max, r)
        self.r[min(r, 3)] += 1
        for i, b in enumerate(BLOCKS):
            lost = (n // b - kept // b) * b
            self.lost[i] += lost
            self.hit[i] += lost > 0


def main(folder, files):
    out = {"references": f"tiktoken {tiktoken.__version__}, tokenizers {tokenizers.__version__}", "blocks": BLOCKS, "rows": []}
    for name, load in [
        ("gpt2/tokenizer.json", with_tokenizers), ("llama3/tokenizer.json", with_tokenizers), ("qwen3/tokenizer.json", with_tokenizers),
        ("mistral/tokenizer.json", with_tokenizers), ("gemma3/tokenizer.json", with_tokenizers), ("cl100k_base.tiktoken", with_tiktoken),
        ("o200k_base.tiktoken", with_tiktoken),
    ]:
        encode = load(os.path.join(folder, name))
        for file in files:
            keys, whole = Count(), Count()
            with gzip.open(file, "rt", encoding="utf-8") as f:
                for line in f:
                    row = json.loads(line)
                    text, start = row["prefix"], encode(row["prefix"])
                    ids = start
                    for c in row["next"]:
                        text += c
                        now = encode(text)
                        keys.add(ids, now)
                        ids = now
                    whole.add(start, ids)
            for way, c in ("keystrokes", keys), ("whole", whole):
                out["rows"].append({"vocabulary": name, "file": os.path.basename(file), "way": way, **vars(c)})
    json.dump(out, sys.stdout, indent=1)
    print()


main(sys.argv[1], sys.argv[2:])
