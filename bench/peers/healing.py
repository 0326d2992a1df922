"""Transformers' generate(token_healing=True), greedy:

    pip install -r requirements.txt
    python healing.py MODEL.gguf eval.json > transformers.jsonl

It strips the white space around a prompt. What stood there is put back before
the comparison, at the end only if the output has it too.
"""

import cuts


def load(model, tokenizer):
    def run(prompt, tokens, chars):
        inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        out = model.generate(
            **inputs,
            max_new_tokens=tokens,
            do_sample=False,
            token_healing=True,
            tokenizer=tokenizer,
            stopping_criteria=cuts.enough(tokenizer, prompt, chars),
        )
        whole = tokenizer.decode(out[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        start = prompt[: len(prompt) - len(prompt.lstrip())]
        return whole if whole.startswith(prompt) else start + whole

    return run


if __name__ == "__main__":
    cuts.main(load)
