"""Record what the reference tokenizers make of the corpora.

    settings=$(go run ./internal/deps/fetch -no-engine -vocabs -references testdata/reference -env) && eval "$settings"
    PYTHONPATH=$UNFRAY_TEST_REFERENCES python3 testdata/reference/record.py [NAME ...]

writes ids/NAME.ids.gz for the vocabularies named, else for all: a line of JSON that says what was recorded, then for each
corpus the CRC-32 of each chunk's ids (the ids as little-endian 32-bit numbers) and their count (16 bits), in the order
of the chunks. With --show NAME it reads one chunk from standard input and prints its ids.

Chunks are cut as internal/deps/corpus.Chunks does. Texts of special tokens count as the tokens, except with
SentencePiece, which reads them as text.
"""

import array
import gzip
import hashlib
import io
import json
import os
import struct
import sys
import zlib

import sentencepiece
import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
CORPORA = ["go", "multi", "fuzz"]
CHUNK_BYTES = 4096


def vocab(path):
    folder = os.environ.get("UNFRAY_TEST_VOCABS")
    if not folder:
        sys.exit("UNFRAY_TEST_VOCABS is not set: see the head of this file")
    return os.path.join(folder, path)


def model(path):
    return os.path.join(HERE, "models", path)


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


# Each reference is a function from a file's path to its version and a function from texts to lists of ids.


def with_tiktoken(path):
    name = os.path.basename(path).removesuffix(".tiktoken")
    # The package fetches rank files; pattern and special tokens are its own.
    openai_public.load_tiktoken_bpe = lambda *_, **__: tiktoken.load.load_tiktoken_bpe(path)
    encoding = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    return f"tiktoken {tiktoken.__version__}", lambda texts: [encoding.encode(t, allowed_special="all") for t in texts]


def with_tokenizers(path):
    return with_tokenizer(tokenizers.Tokenizer.from_str(read(path).decode()))


def with_tokenizer(tokenizer):
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts):
        return [e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    return f"tokenizers {tokenizers.__version__}", encode


def with_sentencepiece(path):
    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    return f"sentencepiece {sentencepiece.__version__}", lambda texts: processor.encode(texts, num_threads=1)


def with_gguf(path):
    """SmolLM2's tokenizer.json is in no package: tokenizers gets the vocabulary and merges of the GGUF file, and the
    pre-tokenizers that its vendor declares."""
    fields = read_gguf(path)
    tokens = fields["tokenizer.ggml.tokens"]
    kinds = fields["tokenizer.ggml.token_type"]
    merges = [tuple(m.split(" ", 1)) for m in fields["tokenizer.ggml.merges"]]
    bpe = tokenizers.models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges)
    tokenizer = tokenizers.Tokenizer(bpe)
    pre = tokenizers.pre_tokenizers
    tokenizer.pre_tokenizer = pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)])
    control = 3
    tokenizer.add_special_tokens([t for t, k in zip(tokens, kinds) if k == control])
    return with_tokenizer(tokenizer)


def read_gguf(path):
    """Return the metadata of a GGUF file, version 3."""
    scalars = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    string, of_array = 8, 9
    with open(path, "rb") as f:

        def number(code):
            return struct.unpack("<" + code, f.read(struct.calcsize(code)))[0]

        def value(kind):
            if kind == string:
                return f.read(number("Q")).decode()
            if kind == of_array:
                kind, n = number("I"), number("Q")
                return [value(kind) for _ in range(n)]
            return number(scalars[kind])

        if f.read(4) != b"GGUF" or number("I") != 3:
            sys.exit(f"{path} is not a GGUF file of version 3")
        number("Q")  # tensors
        return {value(string): value(number("I")) for _ in range(number("Q"))}


# SmolLM2's path is that of the model the tests run with.
VOCABS = {
    "o200k_base": (with_tiktoken, lambda: vocab("o200k_base.tiktoken")),
    "cl100k_base": (with_tiktoken, lambda: vocab("cl100k_base.tiktoken")),
    "p50k_base": (with_tiktoken, lambda: vocab("p50k_base.tiktoken")),
    "r50k_base": (with_tiktoken, lambda: vocab("r50k_base.tiktoken")),
    "llama3": (with_tokenizers, lambda: vocab("llama3/tokenizer.json")),
    "qwen3": (with_tokenizers, lambda: vocab("qwen3/tokenizer.json")),
    "qwen2_5": (with_tokenizers, lambda: vocab("qwen2_5/tokenizer.json")),
    "deepseek_v3": (with_tokenizers, lambda: vocab("deepseek_v3/tokenizer.json")),
    "gptoss": (with_tokenizers, lambda: vocab("gptoss/tokenizer.json")),
    "gpt4o": (with_tokenizers, lambda: vocab("gpt4o/tokenizer.json")),
    "gemma3": (with_tokenizers, lambda: vocab("gemma3/tokenizer.json")),
    "mistral": (with_tokenizers, lambda: vocab("mistral/tokenizer.json")),
    "mistral_nemo": (with_tokenizers, lambda: vocab("mistral_nemo/tokenizer.json")),
    "claude": (with_tokenizers, lambda: vocab("claude/tokenizer.json")),
    "gpt2": (with_tokenizers, lambda: vocab("gpt2/tokenizer.json")),
    "smollm2": (with_gguf, lambda: os.environ["UNFRAY_TEST_MODEL"]),
    "gemma2": (with_sentencepiece, lambda: vocab("gemma2/tokenizer.model")),
    "sp_unigram": (with_sentencepiece, lambda: model("unigram.model")),
    "sp_bpe": (with_sentencepiece, lambda: model("bpe.model")),
    "hf_unigram": (with_tokenizers, lambda: model("unigram.json.gz")),
    "hf_wordpiece": (with_tokenizers, lambda: model("wordpiece.json.gz")),
}


def chunks(text):
    at = 0
    while at < len(text):
        end = min(at + CHUNK_BYTES, len(text))
        if end < len(text):
            newline = text.rfind(b"\n", at + CHUNK_BYTES // 2, end)
            if newline >= 0:
                end = newline + 1
            else:
                while text[end] & 0xC0 == 0x80:
                    end -= 1
        yield text[at:end].decode()
        at = end


def little_endian(code, numbers):
    a = array.array(code, numbers)
    if sys.byteorder == "big":
        a.byteswap()
    return a.tobytes()


def record(name):
    reference, path = VOCABS[name]
    version, encode = reference(path())
    head = {"vocab": name, "reference": version, "sha256": hashlib.sha256(read(path())).hexdigest(), "corpora": []}
    body = io.BytesIO()
    for corpus in CORPORA:
        text = read(vocab(f"corpora/{corpus}.txt"))
        texts = list(chunks(text))
        sums, counts = [], []
        for i in range(0, len(texts), 64):
            for ids in encode(texts[i : i + 64]):
                sums.append(zlib.crc32(little_endian("I", ids)))
                counts.append(len(ids))
        head["corpora"].append({"name": corpus, "sha256": hashlib.sha256(text).hexdigest(), "chunks": len(texts), "ids": sum(counts)})
        body.write(little_endian("I", sums) + little_endian("H", counts))
    packed = gzip.compress(json.dumps(head).encode() + b"\n" + body.getvalue(), mtime=0)
    with open(os.path.join(HERE, "ids", name + ".ids.gz"), "wb") as f:
        f.write(packed)
    total = sum(c["ids"] for c in head["corpora"])
    print(f"{name}: {total} ids by {version}, {len(packed)} bytes", flush=True)


def main(args):
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if args[:1] == ["--show"]:
        reference, path = VOCABS[args[1]]
        _, encode = reference(path())
        print(json.dumps(encode([sys.stdin.buffer.read().decode()])[0]))
        return
    for name in args or VOCABS:
        record(name)


if __name__ == "__main__":
    main(sys.argv[1:])
