"""Record after which next characters tiktoken and Hugging Face tokenizers change the tokens of a separator.

    settings=$(go run ./internal/deps/fetch -no-engine -vocabs -references testdata/reference -env) && eval "$settings"
    PYTHONPATH=$UNFRAY_TEST_REFERENCES python3 boundary/delimiter/testdata/record.py $UNFRAY_TEST_VOCABS > boundary/delimiter/testdata/breaks.json

For each vocabulary and separator: "ids", its tokens behind CONTEXT, and "breaks", the first characters of those of the
texts of NEXT that change a token of the context with the separator. The argument is the folder of the vocabularies.
"""

import json
import os
import sys

import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizers

CONTEXT = "a word"
SEPARATORS = [
    "\n---\n", "\n\n---\n\n", "\n###\n", "```python\n", "<ctx>\n", "Context:\n", "```", "\nAnswer:", "https:", '{"answer": "',
    "\nAnswer: ", " # # ", " # #", "\n", "\n\n", "</ctx>", '"""\n',
]
FIRST = [chr(c) for c in range(0x20, 0x7F)] + ["\n", "\r", "\t", "é", "漢", "🙂", "\u00a0", "\u3000"]
NEXT = [c + more for c in FIRST for more in ("", "a", "\n", " a", "\n\n", c, "1")]


def with_tiktoken(path):
    name = os.path.basename(path).removesuffix(".tiktoken")
    # The package fetches rank files; pattern and special tokens are its own.
    openai_public.load_tiktoken_bpe = lambda *_, **__: tiktoken.load.load_tiktoken_bpe(path)
    encoding = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    return encoding.encode_ordinary


def with_tokenizers(path):
    t = tokenizers.Tokenizer.from_file(path)
    return lambda s: t.encode(s, add_special_tokens=False).ids


def main(folder):
    out = {"references": f"tiktoken {tiktoken.__version__}, tokenizers {tokenizers.__version__}", "context": CONTEXT, "first": "".join(FIRST), "vocabularies": {}}
    for name, load in [
        ("mistral/tokenizer.json", with_tokenizers), ("llama3/tokenizer.json", with_tokenizers), ("qwen3/tokenizer.json", with_tokenizers),
        ("cl100k_base.tiktoken", with_tiktoken), ("o200k_base.tiktoken", with_tiktoken),
    ]:
        encode = load(os.path.join(folder, name))
        rows = []
        for d in SEPARATORS:
            ids = encode(CONTEXT + d)
            breaks = dict.fromkeys(s[0] for s in NEXT if encode(CONTEXT + d + s)[: len(ids)] != ids)
            rows.append({"text": d, "ids": ids, "breaks": "".join(breaks)})
        out["vocabularies"][name] = rows
    json.dump(out, sys.stdout, ensure_ascii=True, indent=1)
    print()


main(sys.argv[1])
