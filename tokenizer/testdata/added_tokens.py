"""Records how Hugging Face's tokenizers divide texts by added tokens.

Run: pip install tokenizers==0.23.3 && python added_tokens.py, in this folder.
Writes added_tokens.jsonl: tokens with their flags (w single_word, l lstrip,
r rstrip), a text, and the tokens found in it, -1 for text between them. Texts
that make the library panic are left out.
"""
import json
import random

from tokenizers import AddedToken, Tokenizer, models

CASES = 400
SEED = 1
LETTERS = ["a", "b", " ", "  ", "<", ">", "é", "\u2003", "\n", "_", "-", "ab", "1", "\u00a0", "你"]

# Found by hand: word characters of recent Unicode, white space that two tokens want.
CHOSEN = [
    (["<s>/r", "  "], "<s>    x"),
    (["<s>/r", "  "], "<s>   x"),
    (["<s>/r", " b/l"], "<s>  b"),
    (["<s>/r", "<m>/l"], "<s>  <m>  <m>x <m>"),
    (["ab", "abc/w"], "xabc abc abcd ab abé"),
    (["ab/w"], "ab ab_ _ab \u200dab ab\u0301 ab\u1c89 ab\u16d40 ab\U000105c0 ab-ab ab▁ab 你ab ab२"),
    (["ab", "bc", "abcd"], "abc abcd abcabcd"),
    (["ab/lr"], "x\u00a0\u2003ab\u3000\u0085 \u200b ab\x1c"),
    (["  /w", "b/l"], "a  b"),
    (["a/w"], "a\u00aa a\u02c1 a\u1885 a\u24b6 a\u203f a\u2040 \u200ca a\u20dd a\u00b2 a\u0660 a\ufe33"),
]


def found(words, text):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    for word in words:
        content, _, flags = word.partition("/")
        tokenizer.add_tokens([AddedToken(
            content, single_word="w" in flags, lstrip="l" in flags, rstrip="r" in flags, normalized=False)])
    return [i - 1 for i in tokenizer.encode(text).ids]


def chance(rng):
    words = {}
    letters = LETTERS[:rng.randint(3, len(LETTERS))]
    for _ in range(rng.randint(1, 4)):
        content = "".join(rng.choice(letters) for _ in range(rng.randint(1, 3)))
        flags = "".join(f for f in "wlr" if rng.random() < 0.35)
        words[content] = content + ("/" + flags if flags else "")
    parts = letters + list(words) * 2 + [" "]
    return list(words.values()), "".join(rng.choice(parts) for _ in range(rng.randint(1, 10)))


rng = random.Random(SEED)
cases = CHOSEN + [chance(rng) for _ in range(CASES)]
with open("added_tokens.jsonl", "w", encoding="utf-8") as out:
    for words, text in cases:
        try:
            ids = found(words, text)
        except BaseException:
            continue
        out.write(json.dumps({"tokens": words, "text": text, "ids": ids}, ensure_ascii=False) + "\n")
