"""guidance, greedy:

    pip install -r requirements.txt
    python guided.py MODEL.gguf eval.json > guidance.jsonl
"""

import cuts


def load(model, tokenizer):
    from guidance import gen
    from guidance.models import Transformers

    lm = Transformers(model, tokenizer, echo=False)

    def run(prompt, tokens, chars):
        return str(lm + prompt + gen(max_tokens=tokens, temperature=0.0))

    return run


if __name__ == "__main__":
    cuts.main(load)
