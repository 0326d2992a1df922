"""Turns SmolLM2-135M-Instruct's GGUF file into a folder that vLLM serves: float32 weights and tokenizer.json.

usage: vllm-convert.py FILE.gguf FOLDER
"""

import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def plain(model):
    """Takes the note away that the weights are quantized: they are float32 now, and saving refuses others."""
    model.hf_quantizer = None
    model.is_quantized = False
    for owner, name in ((model, "quantization_method"), (model.config, "quantization_config")):
        if hasattr(owner, name):
            delattr(owner, name)
    return model


def split_digits(path):
    """Writes the pre-tokenizer "smollm" in full: the conversion keeps GPT-2's pattern and loses the single digits."""
    with open(path, encoding="utf-8") as file:
        tokenizer = json.load(file)
    tokenizer["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        ],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, ensure_ascii=False)


def main():
    source, target = sys.argv[1:]
    folder, name = os.path.split(os.path.abspath(source))
    torch.set_num_threads(1)
    plain(AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)).save_pretrained(target)
    AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(target)
    split_digits(os.path.join(target, "tokenizer.json"))


main()
