"""Trains the models of this folder and records what the library reads in them.

    pip install sentencepiece==0.2.3 && python train.py "$(go env GOROOT)/src/strings"

With the name of a .model it prints the SHA-256 of such a record of it, whose
lines are "ID<tab>score<tab>kind<tab>text", the score as the hexadecimal digits
of its float32. gemma2.sha256 is that of Gemma 2's tokenizer.model.

The text is Go's package strings (BSD licence) and the sentences below. For
each NAME.model, NAME.tsv holds first the IDs of unknown, begin, end and
padding, then each piece: ID, text as JSON, score as float.hex() writes it, and
what the library says it is.
"""

import glob
import hashlib
import io
import json
import struct
import sys

import sentencepiece as spm

SENTENCES = """
The quick brown fox jumps over the lazy dog, and the dog does not mind.
Ein Tokenizer zerlegt Text in Stücke; was er nicht kennt, schreibt er in Bytes.
Où commence un mot, et où finit-il ? Les apostrophes n'aident pas l'ordinateur.
Быстрая лисица перепрыгивает через ленивую собаку.
今日は良い天気です。散歩に行きましょう。
1234567890 3.14159 1e-9 0x7f (a+b)*c != d[i] && x -> y
"""

MODELS = {
    # A Unigram model as the trainer makes it, but for the character map: that
    # of nmt_nfkc alone has 240 KB.
    "unigram": dict(model_type="unigram", vocab_size=400, normalization_rule_name="identity"),
    # What Llama's model has: byte fallback, digits apart, no changes to spaces.
    "bpe": dict(model_type="bpe", vocab_size=600, normalization_rule_name="identity", byte_fallback=True,
                split_digits=True, remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, pad_id=3),
    "char": dict(model_type="char", vocab_size=200, normalization_rule_name="identity", bos_id=-1, eos_id=-1),
    "word": dict(model_type="word", vocab_size=150, normalization_rule_name="identity", unk_id=2, bos_id=0, eos_id=1,
                 unk_surface="[?]"),
    # Everything that has another default.
    "odd": dict(model_type="unigram", vocab_size=300, normalization_rule_tsv="rules.tsv", add_dummy_prefix=False,
                remove_extra_whitespaces=False, treat_whitespace_as_suffix=True, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
                unk_piece="[UNK]", bos_piece="[BOS]", eos_piece="[EOS]", pad_piece="[PAD]",
                user_defined_symbols=["<name>", "  "], control_symbols=["<ctl>"]),
}


def kind(model, i):
    return ("unknown" if model.is_unknown(i) else "control" if model.is_control(i) else
            "unused" if model.is_unused(i) else "byte" if model.is_byte(i) else "piece")


def record(model):
    yield "ids\t%d\t%d\t%d\t%d" % (model.unk_id(), model.bos_id(), model.eos_id(), model.pad_id())
    for i in range(model.get_piece_size()):
        text = json.dumps(model.id_to_piece(i), ensure_ascii=False)
        yield "%d\t%s\t%s\t%s" % (i, text, model.get_score(i).hex(), kind(model, i))


def digest(model):
    sha = hashlib.sha256()
    for i in range(model.get_piece_size()):
        score = struct.unpack("<I", struct.pack("<f", model.get_score(i)))[0]
        sha.update(("%d\t%08x\t%s\t%s\n" % (i, score, kind(model, i), model.id_to_piece(i))).encode())
    return sha.hexdigest()


def main(source):
    with open("rules.tsv", "w") as f:  # ß and ﬁ are spelled out, ’ becomes '
        f.write("DF\t73 73\nFB01\t66 69\n2019\t27\n")
    lines = [line for line in SENTENCES.splitlines() if line]
    for path in sorted(glob.glob(source + "/*.go")):
        lines += [line for line in open(path, encoding="utf-8").read().splitlines() if line.strip()]
    for name, options in MODELS.items():
        out = io.BytesIO()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, num_threads=1,
                                       minloglevel=2, **options)
        with open(name + ".model", "wb") as f:
            f.write(out.getvalue())
        model = spm.SentencePieceProcessor(model_proto=out.getvalue())
        with open(name + ".tsv", "w", encoding="utf-8") as f:
            f.write("\n".join(record(model)) + "\n")


if sys.argv[1].endswith(".model"):
    print(digest(spm.SentencePieceProcessor(model_file=sys.argv[1])))
else:
    main(sys.argv[1])
