"""byte-sampler: the heaviest cover of the prompt's bytes, then greedy:

    pip install -r requirements.txt
    git clone https://github.com/SewoongLab/byte-sampler
    git -C byte-sampler checkout f27de98fa3ad9d5df7704a31c8d30972a41d26ce
    pip install --no-deps ./byte-sampler
    python bytesampler.py MODEL.gguf eval.json > bytesampler.jsonl

It was written for Transformers 4, whose cache held its layers' keys and values in
two lists; they are given back here. It begins every text with a BOS token, which
is taken away where the model's own tokenizer has none.
"""

import gc
import sys

import cuts


def load(model, tokenizer):
    from byte_sampling import generate_pbp_batched
    from byte_sampling.byte_conditioning import ByteConditioning
    from transformers import DynamicCache

    DynamicCache.key_cache = property(lambda c: [layer.keys for layer in c.layers])
    DynamicCache.value_cache = property(lambda c: [layer.values for layer in c.layers])
    sys.setrecursionlimit(20000)  # it recurses once a token of the prompt
    conditioning = ByteConditioning(model, tokenizer)
    bos = tokenizer("")["input_ids"]

    def run(prompt, tokens, chars):
        gc.collect()  # the last prompt's tree refers to itself and holds logits
        sampler = conditioning.get_bytewise_sampler(batch_size=1)
        if not bos:
            sampler.trunks = [[]]
        out = generate_pbp_batched(
            sampler,
            [prompt],
            do_sample=False,
            max_new_tokens=tokens,
            generate_kwargs={"stopping_criteria": cuts.enough(tokenizer, prompt, chars)},
        )
        return tokenizer.decode(out[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)

    return run


if __name__ == "__main__":
    cuts.main(load)
