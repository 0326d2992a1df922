"""Records how Hugging Face tokenizers and tiktoken split hard strings.

    pip install tokenizers==0.23.3 tiktoken==0.14.0
    python record.py

writes splits.json.gz: for each case the steps of New or the pattern of Pattern,
and for each of the common strings the ends of its pretokens in bytes, without
those that are removed.
"""

import gzip
import json
import random

import tiktoken
from tokenizers import Regex, pre_tokenizers

HERE = __file__.rsplit("/", 1)[0]

PARTS = (
    ["a", "s", "t", "re", "ve", "m", "ll", "d", "l", "r", "v", "e", "A", "S", "RE", "'", "'", "’", "'s", "'LL"]
    + [" ", " ", "  ", "\n", "\r\n", "\r", "\t", "\v", "\f", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u2029"]
    + ["\u202f", "\u205f", "\u3000", "\u200b", "\u180e", "\ufeff", "\x00", "\x1c", "\x1f", "\x7f", "\xad"]
    + ["5", "12", "1234", "٣", "²", "½", "Ⅷ", "〇", "５", "é", "É", "e\u0301", "\u0301", "\u0903", "\u20dd", "ß", "ſ", "İ", "ı"]
    + ["K", "ǅ", "ʰ", "ー", "中", "文字", "한", "ㄱ", "あ", "・", "゠", "゛", "々", "⺀", "龦", "ا", "ש", "ก", "ि", "ª", "ⓐ"]
    + ["😀", "👨\u200d👩\u200d👧", "🏳️\u200d🌈", "\U000e0061", "\U0001d7d8", "\U0001d400", "\ufffd", "\ue000", "\U0010ffff"]
    + ["!", "...", "_", "-", "€", "`", "\\", "/", "//", "~", "$", "+", "¿", "«", "،", "。", "、", "\u0378"]
    + ["\u1c89", "\u1c8a", "\U00010d41", "\U0002ebf0", "\U000323b0", "\ua7ce", "\u0897", "\U0001ccf0", "\U00011de0", "\u166d", "\u2e5d"]
    + ["HTTPServer", "fooBar", "don't", "x=1;", "\n\n  ", " \n \n", "▁", "the-final--countdown"]
)


def strings():
    rng = random.Random(4)
    out = ["", "Hello, world! It's 2024\n\n  ok", "'ſ'The", "\n   \n", "中AB 中ABc AB中c", "a  5", "  \n\t x"]
    for n in range(1700):
        out.append("".join(rng.choice(PARTS) for _ in range(rng.randint(1, 12 if n % 2 else 5))))
    return out


def byte_ends(text, ends):
    at, sizes = 0, [0]
    for c in text:
        at += len(c.encode())
        sizes.append(at)
    return [sizes[e] for e in ends]


def hub(pretokenizer, text, spelled):
    """Ends of the pretokens. If they are spelled in bytes, each letter is one."""
    pieces = pretokenizer.pre_tokenize_str(text)
    if not spelled:
        return byte_ends(text, [hi for _, (_, hi) in pieces])
    ends, at = [], 0
    for piece, _ in pieces:
        at += len(piece)
        ends.append(at)
    return ends


def openai_ends(pattern, texts):
    """tiktoken shows pretokens only as tokens: here every substring is one."""
    out = []
    for i in range(0, len(texts), 50):
        group = [t.encode() for t in texts[i : i + 50]]
        pieces = {b[j:k] for b in group for j in range(len(b)) for k in range(j + 2, len(b) + 1)}
        ranks = {bytes([b]): b for b in range(256)}
        for piece in sorted(pieces, key=lambda p: (len(p), p)):
            ranks[piece] = len(ranks)
        encoding = tiktoken.Encoding("split", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for b in group:
            ends, at = [], 0
            for token in encoding.encode_ordinary(b.decode()):
                at += len(encoding.decode_single_token_bytes(token))
                ends.append(at)
            out.append(ends)
    return out


def split(regex, behavior="Isolated", invert=False):
    return {"Type": "Split", "Pattern": regex, "Regex": True, "Behavior": behavior, "Invert": invert}


def string(text, behavior, invert=False):
    return {"Type": "Split", "Pattern": text, "Behavior": behavior, "Invert": invert}


BEHAVIORS = {
    "Isolated": "isolated", "Removed": "removed", "Contiguous": "contiguous",
    "MergedWithPrevious": "merged_with_previous", "MergedWithNext": "merged_with_next",
}
BYTES = {"Type": "ByteLevel"}
GPT2 = {"Type": "ByteLevel", "UseRegex": True}


def build(step):
    kind = step["Type"]
    if kind == "Split":
        pattern = Regex(step["Pattern"]) if step.get("Regex") else step["Pattern"]
        return pre_tokenizers.Split(pattern, BEHAVIORS[step["Behavior"]], step.get("Invert", False))
    if kind == "ByteLevel":
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=step.get("UseRegex", False))
    if kind == "Digits":
        return pre_tokenizers.Digits(step.get("Individual", False))
    if kind == "Punctuation":
        return pre_tokenizers.Punctuation(BEHAVIORS[step["Behavior"]])
    if kind == "CharDelimiterSplit":
        return pre_tokenizers.CharDelimiterSplit(chr(step["Delimiter"]))
    if kind == "FixedLength":
        return pre_tokenizers.FixedLength(step["Length"])
    return getattr(pre_tokenizers, kind)()


ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
BLANKS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = ENDINGS + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + BLANKS
CL100K_OLD = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
CL100K_NEW = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
QWEN2 = CL100K.replace("{1,3}", "")
QWEN35 = ENDINGS + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + BLANKS
SEED = ENDINGS + "|" + PREFIX + "\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"


def cased(but, endings):
    u, l = "[" + UPPER + but + "]", "[" + LOWER + but + "]"
    return PREFIX + u + "*" + l + "+" + endings + "|" + PREFIX + u + "+" + l + "*" + endings


O200K = cased("", ENDINGS + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + BLANKS
TEKKEN = cased("", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + BLANKS
KIMI = r"[\p{Han}]+|" + cased(r"&&[^\p{Han}]", ENDINGS + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + BLANKS
ORIGINAL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
KANA = "[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
EXAONE = ENDINGS + "|" + PREFIX + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"

HUB = {
    "gpt-2": [GPT2],
    "gpt-2 split": [split(ORIGINAL), BYTES],
    "starcoder": [{"Type": "Digits", "Individual": True}, GPT2],
    "digits gpt-2": [{"Type": "Digits"}, GPT2],
    "cl100k": [split(CL100K, "Removed", True), BYTES],
    "cl100k possessive": [split(CL100K_NEW), BYTES],
    "llama 3": [split(CL100K), BYTES],
    "qwen2": [split(QWEN2), BYTES],
    "qwen3.5": [split(QWEN35), BYTES],
    "seed-coder": [split(SEED), BYTES],
    "o200k": [split(O200K), BYTES],
    "tekken": [split(TEKKEN), BYTES],
    "kimi": [split(KIMI), BYTES],
    "deepseek-v3": [split(r"\p{N}{1,3}"), split(KANA), split(DEEPSEEK), BYTES],
    "minicpm5": [split(r"\p{N}{1,3}"), split(CL100K.replace("{1,3}", "+")), BYTES],
    "punctuation gpt-2 digits": [{"Type": "Punctuation", "Behavior": "Contiguous"}, GPT2, split("[0-9][0-9][0-9]")],
    "bloom": [split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), BYTES],
    "cl100k unknown": [split("(?:" + CL100K_NEW + ")"), BYTES],
    "gpt-2 unknown": [split("(?:" + ORIGINAL + ")"), BYTES],
    "deepseek unknown": [split("(?:" + DEEPSEEK + ")"), BYTES],
    "exaone": [split(EXAONE), BYTES],
    "whitespace": [{"Type": "Whitespace"}],
    "whitespace split": [{"Type": "WhitespaceSplit"}],
    "bert": [{"Type": "BertPreTokenizer"}],
    "delimiter": [{"Type": "CharDelimiterSplit", "Delimiter": ord("-")}],
    "fixed length": [{"Type": "FixedLength", "Length": 3}],
    "whitespace digits": [{"Type": "Whitespace"}, {"Type": "Digits", "Individual": True}],
    "whitespace split punctuation": [{"Type": "WhitespaceSplit"}, {"Type": "Punctuation", "Behavior": "Isolated"}],
}
for b in BEHAVIORS:
    HUB["punctuation " + b] = [{"Type": "Punctuation", "Behavior": b}]
    for invert in (False, True):
        HUB["string - %s %s" % (b, invert)] = [string("-", b, invert)]
        HUB["string ll %s %s" % (b, invert)] = [string("ll", b, invert)]
        HUB["numbers %s %s" % (b, invert)] = [split(r"\p{N}{1,3}", b, invert)]
        HUB["pattern %s %s" % (b, invert)] = [split(r"[a-z]{2,}|--" + (r"|[A-Z](?=[^a-z])" if b != "Removed" else ""), b, invert)]

TIKTOKEN = {
    "r50k": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "gpt-2": ORIGINAL,
    "cl100k": CL100K_NEW,
    "cl100k old": CL100K_OLD,
    "cl100k hub": CL100K,
    "o200k": O200K,
    "tekken": TEKKEN,
    "kimi": KIMI,
    "qwen2": QWEN2,
    "cl100k unknown": "(?:" + CL100K_NEW + ")",
    "o200k unknown": "(?:" + O200K + ")",
    "kimi unknown": "(?:" + KIMI + ")",
    "unknown": r"\w+-|[^\W\d]+|\d{2}|\s+$|\s|.",
}


def main():
    texts = strings()
    cases = []
    for name, steps in HUB.items():
        pretokenizer = pre_tokenizers.Sequence([build(s) for s in steps])
        spelled = any(s["Type"] == "ByteLevel" for s in steps)
        cases.append({"name": name, "steps": steps, "ends": [hub(pretokenizer, t, spelled) for t in texts]})
    for name, pattern in TIKTOKEN.items():
        cases.append({"name": "tiktoken " + name, "pattern": pattern, "ends": openai_ends(pattern, texts)})
    data = json.dumps({"texts": texts, "cases": cases}, ensure_ascii=False, separators=(",", ":"))
    with gzip.GzipFile(HERE + "/splits.json.gz", "wb", 9, mtime=0) as f:
        f.write(data.encode())


if __name__ == "__main__":
    main()
