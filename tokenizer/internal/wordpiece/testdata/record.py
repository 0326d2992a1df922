"""Records answers.json.gz: what Hugging Face tokenizers makes of words, for
vocabularies of WordPiece made here.

    pip install tokenizers==0.23.3
    python record.py
"""
import gzip
import json
import os
import random

from tokenizers import models

HERE = os.path.dirname(os.path.abspath(__file__))
rng = random.Random(3)


def word(alphabet, longest):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, longest)))


def case(name, tokens, words, prefix="##", max_chars=100):
    vocab = {t: i for i, t in enumerate(tokens)}
    m = models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=max_chars, continuing_subword_prefix=prefix)
    return {"Name": name, "Prefix": prefix, "MaxChars": max_chars, "Tokens": tokens, "Words": words,
            "IDs": [[t.id for t in m.tokenize(w)] for w in words]}


def vocabulary(alphabet, prefix, n, longest):
    pieces = {rng.choice(["", prefix]) + word(alphabet, longest) for _ in range(n)}
    return ["[PAD]", "[UNK]", "[CLS]", prefix + "]"] + sorted(pieces)


ENGLISH = ["[UNK]"] + list("abcdefghijklmnopqrstuvwxyz") + ["##" + c for c in "abcdefghijklmnopqrstuvwxy"] + [
    "un", "##aff", "##able", "##ing", "play", "##ed", "token", "##ization", "##ize", "##iz", "##er", "##s", "the", "##", "#", "###", "##ß",
    "é", "##é", "日", "##本", "日本", "##日本語"]
WORDS = ["unaffable", "playing", "tokenization", "tokenizers", "tokenizez", "zzz", "the", "##ing", "#ing", "##", "###", "é", "éé", "日本",
         "日本日本語", "日本語", "[UNK]", "[CLS]", "a" * 100, "a" * 101, "é" * 100, "é" * 101, "a" * 99 + "z", "aß", "ßa", "�", "a�"]
ENGLISH = list(dict.fromkeys(ENGLISH))
cases = [case("English", ENGLISH, WORDS), case("short words", ENGLISH, WORDS, max_chars=4)]
for i, (alphabet, prefix) in enumerate([("ab", "##"), ("ab", ""), ("aé日", "##"), ("a#", "##"), ("a#b", "#"), ("abc", "</x>")]):
    tokens = list(dict.fromkeys(vocabulary(alphabet, prefix, 14 + 3 * i, 4)))
    cases.append(case("toy %d" % i, tokens, [word(alphabet, 14) for _ in range(400)], prefix, 12))

with gzip.GzipFile(os.path.join(HERE, "answers.json.gz"), "wb", 9, mtime=0) as f:
    f.write(json.dumps(cases, ensure_ascii=False).encode())
