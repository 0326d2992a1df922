"""Records answers.json.gz: what the references make of hard texts.

Hugging Face tokenizers for the steps of a tokenizer.json, SentencePiece for
the normalizers of .model files, which it builds here.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
    python record.py
"""
import base64
import gzip
import hashlib
import io
import json
import os
import random

import sentencepiece as sp
import tokenizers
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import normalizers as n

HERE = os.path.dirname(os.path.abspath(__file__))
rng = random.Random(20250)

PARTS = """a b e E o Z x q 1 = < > . , ' " - _ @ \t \n \r \f \v \0 \x01 \x1f \x7f \x80 \x85 \x8f \x9f \xa0 \xad
é É ﬁ ﬃ ß ẞ İ I ı Σ σ ς ΑΣ ΑΣΑ ǅ ǆ Ω K Å Å ª ² ½ ™ … ″ ｶ ﾞ ｱﾞ ﾟ ヴ カ゛ が か゛ ㍿ ㌀ ﷺ ﷽ ① Ⅳ ٱ ﻼ ำ ำน้ แ้ำ ฯ
한 하 가 각 ᄀ ᅡ ᆨ ᆧ ꥠ ힰ ퟋ ﾡ ﾩ ￂ ㄱ 中 文 丽 﨑 海 豈 々 〆 𠮷 你好 日本語 ー 、 。
क ष क्ष क्‍ष नि ত্র ર્ક ക്ക ണ്‍ র‌্য ကြ ၍ ក្ក 𑄳 𑐏𑑂 ึ ์ ्‌ ़ ා ෙ ො ৌ ো ே ொ ೀ ೋ ോ
😀 👩‍👩‍👧 🇫🇷 🇫🇷🇩 🏴󠁧󠁢 ❤️ ☀︎ ©‍® ⌚‍⌚ 👍🏽 ‍ ‌ ‎ ‏ ​ ⁠  ﻿ � 𐀀 󿿽 ゙ ゚ ⃝ ͏""".split(" ")
PARTS = [p for part in PARTS for p in part.split("\n") if p] + list(" \t\n\r\v\f  　   ")
MARKS = list("̴̛̖̣̱̀́̂̃̄̆̈̊̌̐̓̈́͂ͅ͏ְֱֻּׁׂًّٰ҃ٓٔ͟͢͠ٱ़््ܑํ྄່ཱཱཱིྀྀུ࿆፟ᄀ᠋᳔⃒⃥゙゚᩠᭄᷎᷂᪰⃐゛゙〪꙯︠")
# Characters that came after Unicode 9, with marks of their own.
LATE = [chr(c) for c in [
    0x1DF9, 0x1DF6, 0x1ABF, 0x1AC0, 0x1ACE, 0x08D3, 0x0898, 0x089F, 0x09FE, 0x0C04, 0x0C3C, 0x0B55, 0x0EBA, 0x10D24,
    0x10EAB, 0x10F46, 0x10F82, 0x1133B, 0x1193B, 0x1193C, 0x11938, 0x11935, 0x11930, 0x1E130, 0x1E2EC, 0x1E4EC, 0x1E6E3,
    0x16D67, 0x16D63, 0x16D68, 0x113C5, 0x113C2, 0x113B8, 0x11382, 0x113C9, 0x105C9, 0x105D2, 0x0307, 0x105E4, 0x105DA,
    0x11383, 0x1138E, 0x11391, 0x1611E, 0x16121, 0x16129, 0xA7F2, 0xA7F3, 0xA7F4, 0xA7F1, 0x10781, 0x107B0, 0x1F16C,
    0x1FBF0, 0x1E030, 0x1CCD6, 0x32FF, 0xAB69, 0x10CF1, 0xA7CB, 0xA7DC, 0x1C89, 0x16E40, 0x16EA0, 0x1E900, 0x2C2F,
    0x9FFF, 0x3134A, 0x2CEB0, 0x2B820, 0x323AF, 0x061C, 0x0600, 0x06DD, 0x070F, 0x0890, 0x0D4E, 0x110BD, 0x110CD,
]]


def text():
    out = []
    for _ in range(rng.randint(1, 9)):
        k = rng.random()
        if k < 0.5:
            out.append(rng.choice(PARTS))
        elif k < 0.68:
            out.append("".join(rng.choice(MARKS) for _ in range(rng.choice([1, 1, 1, 2, 3, 5, 40]))))
        elif k < 0.76:
            out.append(rng.choice(LATE) + rng.choice(MARKS + [""] * 20))
        elif k < 0.88:
            out.append(" " * rng.choice([1, 1, 1, 2, 3, 7]))
        elif k < 0.9:
            out.append(chr(rng.choice([0x300, 0x1100, 0x2000, 0x3000, 0xF900, 0xFB00, 0x1D400, 0x2F800]) + rng.randrange(256)))
        else:
            out.append(rng.choice(["hello", "World", "ΣΊΣΥΦΟΣ", "naïve", "``quoted''", "don't", "▁", "▁▁", " ▁ ", "<s>"]))
    return "".join(out)


TEXTS = ["", " ", "  ", "▁", "a", " a", "a ", "\u0301", "é" * 3, "e" + "\u0323\u0301" * 50] + [text() for _ in range(1600)]


def whole():
    """Ranges of characters that anything is special about."""
    points = set()
    with open(os.path.join(HERE, "..", "tables.txt")) as f:
        for line in f:
            fields = line.split()
            if fields[0] in ("#", "joiner", "regexp-word") or fields[0].startswith("grapheme-InCB"):
                continue
            if fields[0] in ("canonical", "compat", "lower", "pair"):
                points.add(int(fields[1], 16))
            else:
                points.update(range(int(fields[-2], 16), min(int(fields[-2], 16) + 300, int(fields[-1], 16) + 1)))
    points.update(range(0, 0x110000, 101))
    out = []
    for c in sorted(points):
        if 0xD800 <= c < 0xE000:
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


POINTS = whole()
# Each of those in two contexts.
WHOLE = [t for lo, hi in POINTS for c in range(lo, hi + 1)
         for t in ("x" + chr(c) + "\u0327\u0301", "\u1100" + chr(c) + chr(c) + "\u0316y")]


def trained(rule, model_type="unigram", **options):
    """A small model for its normalizer's sake."""
    buf = io.BytesIO()
    sp.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f g"] * 30), model_writer=buf, vocab_size=20, hard_vocab_limit=False,
        model_type=model_type, normalization_rule_name=rule, minloglevel=2, **options)
    m = proto.ModelProto()
    m.ParseFromString(buf.getvalue())
    return m


CHARSMAPS = {rule: trained(rule).normalizer_spec.precompiled_charsmap for rule in ("nmt_nfkc",)}
# Rules over several characters, to nothing, to spaces, and with common beginnings.
tsv = os.path.join("/tmp", "rules.tsv")
with open(tsv, "w") as f:
    for src, dst in [("a", "b"), ("ab", "c"), ("abc", " "), ("abcd", "d  "), ("é", "e"), ("x", ""), ("  ", "_"), ("日", "sun "),
                     ("e\u0301", "É"), ("q", " q"), ("\u0301", "'"), ("f", "▁"), ("fi", "▁ ▁")]:
        f.write(" ".join("%X" % ord(c) for c in src) + "\t" + " ".join("%X" % ord(c) for c in dst) + "\n")
CHARSMAPS["own"] = trained("", normalization_rule_tsv=tsv).normalizer_spec.precompiled_charsmap

cases = []
OUTPUTS = []  # for each case, for each text, None for the text itself; written by text, which packs better


def case(name, steps, normalize, whole=True):
    outputs = []
    for t in TEXTS:
        o = normalize(t)
        outputs.append(None if o == t else o)
    digest = hashlib.sha256()
    if whole:
        for t in WHOLE:
            digest.update(normalize(t).encode() + b"\n")
    OUTPUTS.append(outputs)
    cases.append({"Name": name, "Steps": steps, "Whole": digest.hexdigest() if whole else ""})


def b64(data):
    return base64.b64encode(data).decode()


HF = {
    "NFC": lambda s: n.NFC(), "NFD": lambda s: n.NFD(), "NFKC": lambda s: n.NFKC(), "NFKD": lambda s: n.NFKD(),
    "Lowercase": lambda s: n.Lowercase(), "StripAccents": lambda s: n.StripAccents(), "Nmt": lambda s: n.Nmt(),
    "Strip": lambda s: n.Strip(left=s.get("Left", False), right=s.get("Right", False)),
    "Prepend": lambda s: n.Prepend(s["Content"]),
    "Replace": lambda s: n.Replace(tokenizers.Regex(s["Pattern"]) if s.get("Regex") else s["Pattern"], s["Content"]),
    "Precompiled": lambda s: n.Precompiled(CHARSMAPS[s["Map"]]),
    "BertNormalizer": lambda s: n.BertNormalizer(
        clean_text=s.get("CleanText", False), handle_chinese_chars=s.get("ChineseChars", False),
        strip_accents=s.get("StripAccents", False), lowercase=s.get("Lowercase", False)),
}


def hugging(name, *steps):
    steps = [s if isinstance(s, dict) else {"Type": s} for s in steps]
    case(name, steps, n.Sequence([HF[s["Type"]](s) for s in steps]).normalize_str)


def bert(**flags):
    return dict({"Type": "BertNormalizer"}, **flags)


def replace(pattern, content, regex=False):
    return {"Type": "Replace", "Pattern": pattern, "Content": content, "Regex": regex}


def precompiled(name):
    return {"Type": "Precompiled", "Map": name}


for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"):
    hugging(form, form)
hugging("strip", {"Type": "Strip", "Left": True, "Right": True})
hugging("strip left", {"Type": "Strip", "Left": True})
hugging("strip right", {"Type": "Strip", "Right": True})
hugging("Llama 2, Mistral", {"Type": "Prepend", "Content": "▁"}, replace(" ", "▁"))
hugging("Gemma", replace(" ", "▁"))
for m in ("nmt_nfkc", "own"):
    hugging("Precompiled " + m, precompiled(m))
    hugging("T5, XLM-R converted " + m, precompiled(m), {"Type": "Strip", "Right": True}, replace(" {2,}", "▁", True))
hugging("ALBERT", replace("``", '"'), replace("''", '"'), "NFKD", "StripAccents", "Lowercase", precompiled("nmt_nfkc"))
hugging("XLNet converted", replace("``", '"'), replace("''", '"'), precompiled("nmt_nfkc"),
        {"Type": "Strip", "Right": True}, replace(" {2,}", "▁", True))
hugging("DeBERTa", {"Type": "Strip", "Left": True, "Right": True}, precompiled("nmt_nfkc"), replace(" {2,}", " ", True))
hugging("CLIP", "NFC", replace(r"\s+", " ", True), "Lowercase")
hugging("BERT uncased", bert(CleanText=True, ChineseChars=True, StripAccents=True, Lowercase=True))
hugging("BERT cased", bert(CleanText=True, ChineseChars=True))
hugging("BERT accents", bert(StripAccents=True))
hugging("NFKC then rest", "NFKC", "Lowercase", "NFD", "StripAccents", "NFC")
hugging("regexp alternatives", replace(r"ab|a|\n\r?|[̀-ͅ]{2,3}", "<>", True))
hugging("regexp classes", replace(r"[\s​-‏]\w{1,3}?", "-", True))
hugging("regexp digits, dots", replace(r"\d.", "", True))
hugging("regexp concatenation", replace(r"\w+ +[^\sa-z]*", "=", True))
hugging("regexp run of two", replace(r"[aeox]{2,}", "ae", True))
hugging("literal that overlaps itself", replace("▁▁", "▁"), replace("e\u0301", "é"), "NFC")


def sentencepiece(name, rule, **options):
    m = trained(rule, **options) if rule != "own" else trained("", normalization_rule_tsv=tsv, **options)
    spec = m.normalizer_spec
    steps = [{"Type": "SentencePiece", "Map": rule if rule in CHARSMAPS else "", "CollapseSpaces": spec.remove_extra_whitespaces}]
    if spec.add_dummy_prefix:
        steps.append({"Type": "Prepend", "Content": "▁"})
    p = sp.SentencePieceProcessor(model_proto=m.SerializeToString())
    case("SentencePiece " + name, steps, p.normalize)


for rule in ("nmt_nfkc", "own", "identity"):
    for collapse in (True, False):
        for prefix in (True, False):
            sentencepiece("%s%s%s" % (rule, " collapsed" * collapse, " prefixed" * prefix), rule,
                          remove_extra_whitespaces=collapse, add_dummy_prefix=prefix)

with gzip.GzipFile(os.path.join(HERE, "answers.json.gz"), "wb", 9, mtime=0) as f:
    f.write(json.dumps({"Texts": TEXTS, "Points": POINTS, "Cases": cases, "Outputs": [list(row) for row in zip(*OUTPUTS)],
                        "Charsmaps": {k: b64(v) for k, v in CHARSMAPS.items()}}, ensure_ascii=False).encode())
