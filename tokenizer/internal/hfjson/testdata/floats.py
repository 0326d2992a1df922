"""Records how the Python package tokenizers reads numbers, in floats.tsv.

    pip install tokenizers==0.23.3 && python floats.py > floats.tsv

Each line is a number as a tokenizer.json may spell it and the float64 that the
library made of it, as float.hex() writes it. The library prints what it read
with as many digits as identify the float64, so that reading that again, with
Python's exact json module, gives the same value.
"""

import json
import random
import struct

from tokenizers import Tokenizer


def spellings(n):
    random.seed(1)
    fixed = ["0", "-0", "0.0", "-0.0", "1e0", "-1E+2", "18446744073709551615", "18446744073709551616",
             "-9223372036854775808", "0.1844674407370955161512345", "123456789012345678901.5",
             "1e-400", "0e999", "5e-324", "1.7976931348623157e308", "0.000000000000000000000000000001e30"]
    yield from fixed
    for _ in range(n - len(fixed)):
        kind = random.randrange(6)
        if kind == 0:  # a float32, as converted models have them
            yield repr(struct.unpack("f", struct.pack("f", -random.random() * 20))[0])
        elif kind == 1:
            yield "-%.17f" % (random.random() * 20)
        elif kind == 2:
            yield "%.25e" % (random.random() * 1e-5)
        elif kind == 3:
            yield "-%d.%d" % (random.randrange(1, 10 ** random.randrange(1, 25)), random.randrange(10**20))
        elif kind == 4:
            yield "-0.%s%d" % ("0" * random.randrange(30), random.randrange(10**18))
        else:
            yield "%.3fe%d" % (random.random() * 1000, random.randrange(-320, 290))


numbers = list(spellings(400))
model = {"version": "1.0", "added_tokens": [], "model": {"type": "Unigram", "unk_id": 0, "vocab": "VOCAB"}}
vocab = ",".join('["t%d",%s]' % (i, n) for i, n in enumerate(numbers))
read = Tokenizer.from_str(json.dumps(model).replace('"VOCAB"', "[%s]" % vocab))
for number, (_, value) in zip(numbers, json.loads(read.to_str())["model"]["vocab"]):
    print(number, float(value).hex(), sep="\t")
