"""Train the small models of testdata/reference/models on the corpora, for kinds that no package has.

    settings=$(go run ./internal/deps/fetch -no-engine -vocabs -references testdata/reference -env) && eval "$settings"
    PYTHONPATH=$UNFRAY_TEST_REFERENCES python3 testdata/reference/train.py

Training again gives other models: record.py must then run for them too.
"""

import gzip
import json
import os
import sys

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import record

PIECES = 8000


def sample():
    """Return lines from all over the corpora, about 4 MB."""
    lines = []
    for name, step in [("multi", 6), ("go", 50), ("fuzz", 40)]:
        text = record.read(record.vocab(f"corpora/{name}.txt"))
        for chunk in list(record.chunks(text))[::step]:
            lines += [line for line in chunk.split("\n") if line and "\0" not in line]
    return lines


def train_sentencepiece(lines, name, **options):
    with open(record.model(name), "wb") as f:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=f, vocab_size=PIECES, num_threads=1, minloglevel=1, **options
        )


def convert_unigram():
    """Write the SentencePiece Unigram model as the tokenizer.json that converters make of such models."""
    processor = sentencepiece.SentencePieceProcessor(model_file=record.model("unigram.model"))
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=processor.unk_id(), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap(record.read(record.model("unigram.model")))),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(tokenizers.Regex(" {2,}"), "▁"),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    write("unigram.json.gz", tokenizer)


def charsmap(proto):
    """Return ModelProto.normalizer_spec.precompiled_charsmap (fields 3 and 2)."""
    return fields(fields(proto)[3][-1])[2][-1]


def fields(message):
    """Return the length-delimited fields of a protobuf message by number."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 2:
            size = varint()
            found.setdefault(key >> 3, []).append(message[at : at + size])
            at += size
        elif kind == 0:
            varint()
        elif kind in (1, 5):
            at += {1: 8, 5: 4}[kind]
        else:
            sys.exit(f"protobuf wire type {kind} at byte {at}")
    return found


def train_wordpiece(lines):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=PIECES, special_tokens=specials, limit_alphabet=2000, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    write("wordpiece.json.gz", tokenizer)


def write(name, tokenizer):
    text = tokenizer.to_str().encode()
    json.loads(text)
    with open(record.model(name), "wb") as f:
        f.write(gzip.compress(text, mtime=0))


def main():
    os.makedirs(record.model(""), exist_ok=True)
    lines = sample()
    # The defaults: NFKC, surplus blanks removed, a dummy prefix, unknown characters.
    train_sentencepiece(lines, "unigram.model", model_type="unigram", character_coverage=0.995)
    # As Llama 2 was made: text kept as it is, bytes for what is unknown, single digits.
    train_sentencepiece(
        lines,
        "bpe.model",
        model_type="bpe",
        character_coverage=0.98,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        user_defined_symbols=["<|user|>", "\t\t"],
    )
    convert_unigram()
    train_wordpiece(lines)
    for name in sorted(os.listdir(record.model(""))):
        print(name, os.path.getsize(record.model(name)))


if __name__ == "__main__":
    main()
