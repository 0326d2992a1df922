"""Run other tokenizers for the benchmark, one process each: requests and answers are lines of JSON.

    {"open": TOOL, "path": FILE}             loads a vocabulary; answers {"version": ...}
    {"encode": FILE, "cuts": [[A, B], ...]}  encodes bytes A to B of a text, one after the other;
                                             answers {"seconds": ..., "ids": COUNT, "sum": CRC-32 of all ids}

or {"error": ...}.

Only the encoding itself is timed, in the form in which a tool gives ids most cheaply: as arrays where it has them.
"""

import array
import importlib.metadata
import json
import os
import sys
import time
import zlib

# One thread, whatever a tool does inside.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def open_tiktoken(path):
    import tiktoken
    import tiktoken.load
    import tiktoken_ext.openai_public as openai_public

    name = os.path.basename(path).removesuffix(".tiktoken")
    openai_public.load_tiktoken_bpe = lambda *_, **__: tiktoken.load.load_tiktoken_bpe(path)
    encoding = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    return "tiktoken", lambda text: encoding.encode_to_numpy(text, disallowed_special=()), as_array


def open_tokenizers(path):
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return "tokenizers", lambda text: tokenizer.encode_batch_fast([text], add_special_tokens=False), lambda got: as_list(got[0].ids)


def open_sentencepiece(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    return "sentencepiece", processor.encode, as_list


def open_quicktok(path):
    """quicktok ships its own copies of these vocabularies."""
    import quicktok

    name = os.path.basename(path).removesuffix(".tiktoken")
    if name == "tokenizer.json":
        name = os.path.basename(os.path.dirname(path))
    encoding = quicktok.get_encoding(name)
    return "quicktok-v1", lambda text: encoding.encode_batch([text], 1, False)[0], as_array


def open_gigatoken(path):
    import gigatoken

    if path.endswith(".tiktoken"):
        tokenizer = gigatoken.Tokenizer.from_tiktoken(path)
    elif path.endswith(".model"):
        tokenizer = gigatoken.Tokenizer.from_sentencepiece(path)
    else:
        with open(path, "rb") as f:
            tokenizer = gigatoken.Tokenizer.from_json(f.read())
    return "gigatoken", tokenizer.encode, as_array


def as_array(ids):
    return len(ids), ids.astype("<u4").tobytes()


def as_list(ids):
    a = array.array("I", ids)
    if sys.byteorder == "big":
        a.byteswap()
    return len(ids), a.tobytes()


OPEN = {
    "tiktoken": open_tiktoken,
    "tokenizers": open_tokenizers,
    "sentencepiece": open_sentencepiece,
    "quicktok": open_quicktok,
    "gigatoken": open_gigatoken,
}


def main():
    encode = read = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "open" in request:
                package, encode, read = OPEN[request["open"]](request["path"])
                encode("a")  # what is loaded at the first call
                answer = {"version": f"{package} {importlib.metadata.version(package)}"}
            else:
                answer = measure(encode, read, request["encode"], request["cuts"])
        except Exception as e:  # a tool may refuse anything, and the next request is another matter
            answer = {"error": str(e)}
        print(json.dumps(answer), flush=True)


def measure(encode, read, path, cuts):
    with open(path, "rb") as f:
        text = f.read()
    parts = [text[a:b].decode() for a, b in cuts]
    start = time.perf_counter()
    got = [encode(part) for part in parts]
    seconds = time.perf_counter() - start
    ids = crc = 0
    for part in got:
        n, raw = read(part)
        ids += n
        crc = zlib.crc32(raw, crc)
    return {"seconds": seconds, "ids": ids, "sum": crc}


if __name__ == "__main__":
    main()
