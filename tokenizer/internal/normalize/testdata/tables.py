"""Writes ../tables.txt: what the reference does with every code point.

The rows come from the behaviour of Hugging Face tokenizers, asked one code
point at a time, so that they hold whatever Unicode version each of its parts
is built on (0.23: 9.0 for the normalization forms, 17.0 for case). Only the
values of combining classes (unicodedata) and the grapheme properties (the
tables of the crate unicode-segmentation 1.13.3, which it is built with) come
from elsewhere; tests compare those with the reference.

    pip install tokenizers==0.23.3
    python tables.py unicode-segmentation-1.13.3/src/tables.rs
"""
import os
import re
import sys
import unicodedata

import tokenizers
from tokenizers import normalizers as n

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
NFC, NFD, NFKD = n.NFC(), n.NFD(), n.NFKD()
out = []


def hexes(s):
    return " ".join("%04X" % ord(c) for c in s)


def each(normalizer):
    return {c: normalizer.normalize_str(chr(c)) for c in SCALARS}


def ranges(name, members):
    """Writes a set of code points as inclusive ranges."""
    lo = prev = None
    for c in sorted(members) + [None]:
        if lo is not None and c != prev + 1:
            out.append("%s %04X %04X" % (name, lo, prev))
            lo = None
        if lo is None:
            lo = c
        prev = c


def hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


canonical = {c: s for c, s in each(NFD).items() if s != chr(c) and not hangul(c)}
compat = {c: s for c, s in each(NFKD).items() if s != chr(c) and not hangul(c) and s != canonical.get(c)}
for c, s in canonical.items():
    out.append("canonical %04X %s" % (c, hexes(s)))
for c, s in compat.items():
    out.append("compat %04X %s" % (c, hexes(s)))

# A class above zero moves a character over a neighbour of another class.
classes = {}
for c in SCALARS:
    if c in canonical or hangul(c):
        continue
    moved = NFD.normalize_str(chr(c) + "\u0334") != chr(c) + "\u0334" or (
        NFD.normalize_str("\u0301" + chr(c)) != "\u0301" + chr(c))
    ccc = unicodedata.combining(chr(c))
    if moved or (ccc in (230,) and NFD.normalize_str(chr(c) + "\u0316") != chr(c) + "\u0316"):
        assert ccc, hex(c)
        classes.setdefault(ccc, []).append(c)
for ccc in sorted(classes):
    ranges("class %X" % ccc, classes[ccc])

# The pair that a character is composed of: the composition of all but the last
# character of its decomposition, and that last one.
for c, s in canonical.items():
    if len(s) < 2 or NFC.normalize_str(s) != chr(c):
        continue
    found = [(a, b) for a in NFC.normalize_str(s[:-1]) for b in s[-1]
             if NFC.normalize_str(s[:-1]) == a and NFC.normalize_str(a + b) == chr(c)]
    assert len(found) == 1, hex(c)
    out.append("pair %04X %s" % (c, hexes(found[0])))

for c, s in each(n.Lowercase()).items():
    if s != chr(c):
        out.append("lower %04X %s" % (c, hexes(s)))

clean = each(n.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False))
ranges("control", [c for c, s in clean.items() if s == ""])
ranges("blank", [c for c, s in clean.items() if s == " " and c != 0x20])
assert all(s in ("", " ", chr(c)) for c, s in clean.items())

chinese = each(n.BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False))
ranges("chinese", [c for c, s in chinese.items() if s == " " + chr(c) + " "])
assert all(s in (chr(c), " " + chr(c) + " ") for c, s in chinese.items())

accents = n.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
ranges("nonspacing", [c for c in SCALARS if c not in canonical and not hangul(c) and accents.normalize_str(chr(c)) == ""])
ranges("mark", [c for c, s in each(n.StripAccents()).items() if s == ""])
ranges("white", [c for c in SCALARS if n.Strip().normalize_str("a" + chr(c)) == "a"])
nmt = each(n.Nmt())
ranges("nmtdrop", [c for c, s in nmt.items() if s == ""])
ranges("nmtblank", [c for c, s in nmt.items() if s == " " and c != 0x20])
assert all(s in ("", " ", chr(c)) for c, s in nmt.items())

# What the classes of its regular expressions (Oniguruma) match.
for name, pattern in [("space", r"\s"), ("digit", r"\d"), ("word", r"\w")]:
    found = each(n.Replace(tokenizers.Regex(pattern), ""))
    ranges("regexp-" + name, [c for c, s in found.items() if s == ""])

# Grapheme properties: what Precompiled cuts the text by.
source = open(sys.argv[1], encoding="utf-8").read()


def table(name):
    """The character literals of one table of the crate, in order."""
    body = re.search(r"const %s: .*?= &\[(.*?)\];" % name, source, re.S).group(1)
    return [(int(lo, 16), int(hi, 16), cat) for lo, hi, cat in re.findall(
        r"\('\\u\{([0-9a-f]+)\}',\s*'\\u\{([0-9a-f]+)\}'(?:,\s*GC_(\w+))?\)", body)]


categories = {}
for lo, hi, cat in table("grapheme_cat_table"):
    categories.setdefault(cat, set()).update(range(lo, hi + 1))
for cat in sorted(categories.keys() - {"LV", "LVT"}):  # those two are every 28th and the other syllables
    ranges("grapheme-" + cat, categories[cat])
ranges("joiner", [c for lo, hi, _ in table("InCB_Extend_table") for c in range(lo, hi + 1)])
linkers = re.search(r"fn is_incb_linker.*?\}\n", source, re.S).group(0)
ranges("linker", [int(h, 16) for h in re.findall(r"\\u\{([0-9A-F]+)\}", linkers)])

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tables.txt"), "w") as f:
    f.write("# Written by testdata/tables.py with tokenizers %s; do not edit.\n" % tokenizers.__version__)
    f.write("# Code points in hexadecimal: a character and what it becomes, or a range, both ends in it.\n")
    f.write("\n".join(out) + "\n")
