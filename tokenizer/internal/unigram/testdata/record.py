"""Records answers.json.gz: what SentencePiece and Hugging Face tokenizers make
of hard texts, for models trained here on the documents of this repository and
for toy vocabularies full of ties.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
    python record.py
"""
import glob
import gzip
import io
import json
import os
import random

import sentencepiece as sp
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import models

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..", "..")
rng = random.Random(7)
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
META = "▁"

DOCS = "".join(open(p, encoding="utf-8").read() for p in sorted(glob.glob(ROOT + "/docs/*.md") + [ROOT + "/README.md"]))
OTHER = """Größe und Maß der Straße. Où êtes-vous allé hier soir ? El niño comió piñones. Здравствуй, мир, как дела сегодня?
日本語の文章を分割する。日本の東京は大きい。 中文分词测试，今天天气很好。 한국어 문장을 나눕니다. שלום עולם ग़ज़ल हिन्दी भाषा 😀😃 👍🏽""".split("\n")
CORPUS = [line for line in DOCS.split("\n") + OTHER * 20 if line.strip()]


def train(**options):
    buf = io.BytesIO()
    sp.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=buf, model_type="unigram", normalization_rule_name="identity",
        add_dummy_prefix=False, remove_extra_whitespaces=False, minloglevel=2, num_threads=1, **options)
    m = proto.ModelProto()
    m.ParseFromString(buf.getvalue())
    return m


def toy(pieces, byte_fallback=False):
    m = proto.ModelProto()
    m.CopyFrom(BASE)
    del m.pieces[:]
    m.trainer_spec.byte_fallback = byte_fallback
    all = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    all += [("<0x%02X>" % b, 0.0, BYTE) for b in range(256)] if byte_fallback else []
    for text, score, kind in all + pieces:
        m.pieces.add(piece=text, score=score, type=kind)
    return m


BASE = train(vocab_size=400, hard_vocab_limit=False)


def words(alphabet, longest):
    return {"".join(rng.choice(alphabet) for _ in range(rng.randint(1, longest))) for _ in range(40)}


def random_toy(scores, alphabet="ab▁é", longest=5):
    return [(w, rng.choice(scores), rng.choice([NORMAL] * 8 + [UNUSED, USER])) for w in sorted(words(alphabet, longest))]


def toy_texts(alphabet):
    texts = ["".join(rng.choice(alphabet) for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 40]))) for _ in range(150)]
    return texts + ["".join(rng.choice(alphabet) for _ in range(9000)), alphabet[0] * 6000, (alphabet[0] + alphabet[1]) * 3000]


def real_texts():
    lines = rng.sample(CORPUS, 150)
    odd = list("\t\0\x7fßéñж日本😀�ǅ⃝￿▁") + ["  ", "\n\n", "▁▁", "<unk>", "<s>", "<0x0A>", "xyzzy", "QQQ", "日日日", "👍🏽"]
    mixed = ["".join(rng.choice(odd + l.split(" ")) + rng.choice(["", " "]) for _ in range(rng.randint(1, 12))) for l in lines]
    return lines + mixed + [" ".join(CORPUS[40:160]), " ".join(CORPUS[40:140]) * 40, "日本" * 3000, " " * 5000, "é" * 5000 + "q" * 5000]


def sentencepiece(name, m, texts):
    p = sp.SentencePieceProcessor(model_proto=m.SerializeToString())
    return {"Name": "SentencePiece " + name, "Single": True, "ByteFallback": m.trainer_spec.byte_fallback, "Unknown": 0,
            "Pieces": [[x.piece, x.score, x.type] for x in m.pieces], "Texts": texts, "IDs": [p.encode(t) for t in texts]}


def hugging(name, m, texts):
    fallback = m.trainer_spec.byte_fallback
    h = models.Unigram([(x.piece, x.score) for x in m.pieces], 0, fallback)
    ids = [[t.id for t in h.tokenize(t.replace(" ", META))] for t in texts]
    return {"Name": "Hugging Face " + name, "Single": False, "ByteFallback": fallback, "Unknown": 0,
            "Pieces": [[x.piece, x.score, x.type] for x in m.pieces], "Texts": texts, "IDs": ids}


cases = []
plain = train(vocab_size=1500, hard_vocab_limit=False, user_defined_symbols=["<sep>", "Unicode", META * 2])
for i in range(300, 330):
    plain.pieces[i].type = UNUSED
texts = real_texts()
cases += [sentencepiece("trained", plain, texts), hugging("trained", plain, texts)]
fallback = train(vocab_size=900, hard_vocab_limit=False, byte_fallback=True)
texts = real_texts()
cases += [sentencepiece("byte fallback", fallback, texts), hugging("byte fallback", fallback, texts)]
for i, scores in enumerate([
    [-1.0], [-1.0, -2.0, -3.0], [-0.1, -0.2, -0.3, -0.7], [-1 / 3, -2 / 3, -1.0, -5 / 3], [0.0, -1e-8, -16777216.0, -1.5],
    [1.0, 2.0, 0.1, -0.3], [5.5, 100.25, 7.1], [-9.7651, -9.7652, -19.5303, -4.88255], [0.0], [-3.1, -12.4, -6.2, -9.3],
]):
    fallback = i % 3 == 2
    m = toy(random_toy(scores), fallback)
    texts = toy_texts("ab é" + "x" * (i % 2) + "日" * (i % 4 == 3))
    cases += [sentencepiece("toy %d" % i, m, texts), hugging("toy %d" % i, m, texts)]
# Unknown characters that are a piece side by side, and pieces that are spelled as special tokens are.
m = toy([("a", 50.0, NORMAL), ("xy", 40.5, NORMAL), ("zz", 41.0, NORMAL)])
cases.append(hugging("unknown pieces", m, ["xy", "axya", "zz", "xzzy", "a<unk>b", "<s>a", "xyxy", "zzz", "<unk>", "<unk>xy"]))
m = toy([("a", -1.0, NORMAL)], True)
del m.pieces[10:14]
cases.append(hugging("bytes missing", m, ["a\x07b", "\x07", "bb", "a<0x41>", "<0x0B>\x0b", "é\x08a\x09"]))

with gzip.GzipFile(os.path.join(HERE, "answers.json.gz"), "wb", 9, mtime=0) as f:
    f.write(json.dumps(cases, ensure_ascii=False, separators=(",", ":")).encode())
