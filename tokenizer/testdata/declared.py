"""Records the ids that Hugging Face's tokenizers give by what a tokenizer.json declares.

Run: pip install tokenizers==0.23.3 && python declared.py, in this folder.
Writes declared.jsonl: a tokenizer.json each, with texts and their ids, control
tokens recognized and none added.
"""
import json

from tokenizers import Tokenizer

UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [
    [t, s] for t, s in [("<unk>", 0), ("▁", -2), ("a", -3), ("b", -3.5), ("▁a", -2.5), ("▁b", -2.6), ("ab", -3), ("  ", -1), (",", -4)]]}


def spell(data):
    """GPT-2's alphabet."""
    plain = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = dict(zip(plain + [b for b in range(256) if b not in plain], map(chr, plain + list(range(256, 324)))))
    return "".join(table[b] for b in data)


def bpe(letters, *merges, **fields):
    vocab = {}
    for token in [*letters, *(m.replace(" ", "") for m in merges)]:
        vocab.setdefault(token, len(vocab))
    return {"type": "BPE", "vocab": vocab, "merges": list(merges), **fields}


LETTERS = bpe(["<unk>", *"▁abcdeht"], "t h", "th e", "a b", "▁ a", "▁ ▁", unk_token="<unk>")
BYTES = bpe([spell([b]) for b in range(256)], "1 2", "12 3", "c a", "ca n", "Ã ³", "Ġ n", "n a", "Ġ Ġ")
PIECES = bpe(["<unk>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", *"▁ab"], "a b", unk_token="<unk>", byte_fallback=True)
WORDS = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
         "vocab": {t: i for i, t in enumerate(["[UNK]", "a", "##b", "##c", "1", "##2"])}}


def added(model, content, flags=""):
    vocab = [t for t, _ in model["vocab"]] if isinstance(model["vocab"], list) else list(model["vocab"])
    known = vocab.index(content) if content in vocab else None
    return {"id": known, "content": content, "single_word": "w" in flags, "lstrip": "l" in flags,
            "rstrip": "r" in flags, "normalized": "n" in flags, "special": "s" in flags}


def sequence(kind, *parts):
    return {"type": "Sequence", kind: list(parts)}


def split(pattern, behavior="Isolated", regex=False):
    return {"type": "Split", "pattern": {"Regex" if regex else "String": pattern}, "behavior": behavior, "invert": False}


def replace(pattern, content, regex=False):
    return {"type": "Replace", "pattern": {"Regex" if regex else "String": pattern}, "content": content}


META = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
BYTELEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}

CASES = [
    ("white space before Metaspace", UNIGRAM, None,
     sequence("pretokenizers", {"type": "WhitespaceSplit"}, META), ["<s>/s"],
     ["a b", " a  b ", "", " ", "\n\n", "a▁b", "a ▁b", "▁ b", "▁▁a", "a▁ ", "a\u2003b\u00a0", "ab<s> b<s>", "a <s>▁a"]),
    ("spaces in a vocabulary of ▁", UNIGRAM, None, META, [], ["a    b", "  ", "▁▁▁"]),
    ("pretokens that are removed", LETTERS, None, split("c", "Removed"), [], ["thecab", "ccc", "tche", "c", "acb"]),
    ("white space that is removed", LETTERS, None, {"type": "WhitespaceSplit"}, [], ["the ab", " \n", " the\u3000"]),
    ("bytes spelt before Digits", BYTES, None,
     sequence("pretokenizers", {"type": "Punctuation", "behavior": "Contiguous"}, BYTELEVEL,
              {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]", regex=True)),
     [], ["canción na", "1234567", "2²31234", "¼1", "ó", "123ó123", "  12"]),
    ("splits of splits", BYTES, None,
     sequence("pretokenizers", split(r"[\r\n]", regex=True), split(r"\s?\p{L}+", regex=True), split(r"\s?\p{P}+", regex=True),
              split(r"\s+$", regex=True), split("[一-龥ࠀ-一가-퟿]+", regex=True),
              {"type": "Digits", "individual_digits": True}, dict(BYTELEVEL, use_regex=False)),
     [], ["can na  \n\n na", " can, 12 中文na 한국!  ", "na中can  中", "12" * 200 + " na" + " " * 700 + "na", "中n" * 200 + " -", " " * 300 + "\n"]),
    ("tokens of raw and of normalized text", LETTERS, None, None, ["ab/n", "bc", "th/nw"], ["abc", "ab", "bcth", "tha", "bc th ab"]),
    ("a token that no merge makes", PIECES, None, None, ["\U0001f600/nw"], ["a\U0001f600", "\U0001f600", "\U0001f600 b"]),
    ("a token that is no piece", WORDS, None, {"type": "BertPreTokenizer"}, ["12/nw"], ["12", "a12", "12a", "ab 12"]),
    ("a byte that is an added token", PIECES, None, None, ["<0x98>/s"], ["\U0001f600", "<0x98>"]),
    ("a token whose spaces are still spaces", LETTERS, None, META, ["th/nlr"], ["a  th  b", "▁ab", "the th"]),
    ("word characters of Oniguruma", LETTERS, replace(r"[^\w\s]", "a", True), split(r"\w+", "Removed", True), [],
     ["a²b", "-²-", "½b", "t\u200dh", "\u200c", "b-"]),
]

with open("declared.jsonl", "w", encoding="utf-8") as out:
    for name, model, normalizer, pre_tokenizer, words, texts in CASES:
        tokens = [added(model, *word.split("/")) for word in words]
        size = len(model["vocab"])
        for t in tokens:
            if t["id"] is None:
                t["id"], size = size, size + 1
        file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normalizer,
                "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None, "model": model}
        tokenizer = Tokenizer.from_str(json.dumps(file))
        cases = [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts]
        out.write(json.dumps({"name": name, "file": file, "cases": cases}, ensure_ascii=False) + "\n")
