"""Records the encodings that the Python package tiktoken knows, in encodings.json.

    pip install tiktoken==0.14.0 && python encodings.py > encodings.json

The special tokens are recorded by their number and the SHA-256 of the lines
"ID<tab>text", sorted by ID and text: o200k_harmony has 1,091 of them. No rank
file is downloaded; only the hash that tiktoken expects is noted.
"""

import hashlib
import json

from tiktoken_ext import openai_public as public

hashes = []


def load_tiktoken_bpe(url, expected_hash=None):
    hashes.append(expected_hash)
    return {}


public.load_tiktoken_bpe = load_tiktoken_bpe
public.data_gym_to_mergeable_bpe_ranks = lambda **_: hashes.append(None) or {}

encodings = []
for name, make in public.ENCODING_CONSTRUCTORS.items():
    encoding = make()
    lines = ["%d\t%s\n" % (id, text) for text, id in encoding["special_tokens"].items()]
    lines.sort(key=lambda line: (int(line.split("\t")[0]), line))
    encodings.append({
        "name": encoding["name"],
        "pat_str": encoding["pat_str"],
        "expected_hash": hashes[-1],
        "special": len(lines),
        "special_sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
    })
print(json.dumps(encodings, indent=1))
