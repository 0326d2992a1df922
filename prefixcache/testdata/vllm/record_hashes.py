"""Records the block hashes that vLLM computes for 1,000 generated sequences.

    python record_hashes.py > hashes.txt

Needs vLLM 0.32.0 (its core only, no model, no GPU), cbor2 and xxhash. The
sequences come from a generator that hash_test.go has, too, so the file holds
results only: per line the number of blocks, the last block's hash, and the
exclusive or of what KV events call the blocks.
"""

import os
import sys

import xxhash  # noqa: F401  vLLM looks for it when it is imported
from vllm.lora.request import LoRARequest
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core import kv_cache_utils
from vllm.v1.request import Request
from vllm.version import __version__

ALGORITHMS = ["sha256_cbor", "xxhash_cbor"]
SEEDS = [None, "0", "4711", "größer als 23 Byte, länger"]
BLOCKS = [1, 2, 3, 4, 8, 16, 32, 64, 128]
BOUNDS = [20, 200, 50_000, 200_000, 1 << 31]


class Random:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return (z ^ (z >> 31)) % n


def media_of(r, length):
    media, at = [], 0
    if r.below(20) == 0:
        step, size, count = 2, 1, 60
    elif r.below(3) == 0:
        step, size, count = 40, 60, r.below(5)
    else:
        return media
    for _ in range(count):
        at += r.below(step)
        n = 1 + r.below(size)
        if at + n > length:
            break
        media.append((f"{r.below(1 << 40):x}", at, n))
        at += n
    return media


def record(case):
    r = Random(case)
    algorithm = ALGORITHMS[r.below(2)]
    seed = SEEDS[r.below(4)]
    block = BLOCKS[r.below(9)]
    length = r.below(700)
    bound = BOUNDS[r.below(5)]
    ids = [r.below(bound) for _ in range(length)]
    salt = ["", "", f"salt-{r.below(50)}", "Salz für alle Suppen, reichlich"][r.below(4)]
    lora = ["", "", "adapter", "a" * 30][r.below(4)]
    media = media_of(r, length)

    os.environ.pop("PYTHONHASHSEED", None)
    if seed is not None:
        os.environ["PYTHONHASHSEED"] = seed
    elif algorithm == "xxhash_cbor":
        os.environ["PYTHONHASHSEED"] = kv_cache_utils.DEFAULT_NONE_HASH_SEED
    fn = get_hash_fn_by_name(algorithm)
    kv_cache_utils.init_none_hash(fn)
    request = Request(
        request_id=str(case),
        prompt_token_ids=ids,
        sampling_params=SamplingParams(max_tokens=1),
        pooling_params=None,
        mm_features=[
            MultiModalFeatureSpec(
                data=None,
                modality="image",
                identifier=h,
                mm_position=PlaceholderRange(offset=at, length=n),
            )
            for h, at, n in media
        ],
        lora_request=LoRARequest(lora, 1, f"/models/{lora}") if lora else None,
        cache_salt=salt or None,
        block_hasher=kv_cache_utils.get_request_block_hasher(block, fn),
    )
    hashes = request.block_hashes
    events = 0
    for h in hashes:
        events ^= kv_cache_utils.maybe_convert_block_hash(h)
    return f"{len(hashes)} {hashes[-1].hex() if hashes else '-'} {events:x}"


if __name__ == "__main__":
    print(f"# vLLM {__version__}, PYTHONHASHSEED as generated")
    for case in range(1000):
        print(record(case))
    print(f"recorded with vLLM {__version__}", file=sys.stderr)
