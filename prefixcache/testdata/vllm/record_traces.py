"""Records what vLLM's KVCacheManager finds in generated conversations.

    python record_traces.py > traces.jsonl

Needs vLLM 0.32.0 (its core only, no model, no GPU). It drives the manager as
the scheduler does (v1/core/sched/scheduler.py): look up, allocate part by part,
then one token per step, free. Several requests run at once. The requests come
from a generator that paged_vllm_test.go has, too, so the file holds results
only. A line is one engine: its options, and for each step the tokens found (-1
where a prompt did not fit, -2 where a request ended), the blocks evicted in
the step, and the blocks cached after it.
"""

import json
import math
import sys
from types import SimpleNamespace

import torch
from record_hashes import Random, media_of
from vllm.lora.request import LoRARequest
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256_cbor
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import (
    get_request_block_hasher,
    init_none_hash,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    MambaSpec,
    SlidingWindowSpec,
)
from vllm.v1.request import Request, RequestStatus
from vllm.version import __version__

MAX_MODEL_LEN = 1_000_000


def spec_of(group):
    size = group["block_size"]
    if group["kind"] == "mamba":
        return MambaSpec(
            block_size=size,
            shapes=((1,),),
            dtypes=(torch.float32,),
            mamba_cache_mode="align",
        )
    head = dict(block_size=size, num_kv_heads=1, head_size=1, dtype=torch.float32)
    if group["kind"] == "window":
        return SlidingWindowSpec(sliding_window=group["window"], **head)
    return FullAttentionSpec(**head)


class Engine:
    def __init__(self, o):
        self.o = o
        groups = [
            KVCacheGroupSpec([f"layer.{i}"], spec_of(g), is_eagle_group=g["eagle"])
            for i, g in enumerate(o["groups"])
        ]
        self.retention = o["retention"] if o["retention"] >= 0 else None
        config = KVCacheConfig(
            num_blocks=o["blocks"],
            kv_cache_tensors=[],
            kv_cache_groups=groups,
            prefix_cache_retention_interval=self.retention,
        )
        cache = SimpleNamespace(
            block_size=o["groups"][0]["block_size"],
            prefix_match_unit=None,
            enable_prefix_caching=True,
        )
        parallel = SimpleNamespace(decode_context_parallel_size=o["dcp"])
        block, unit = resolve_kv_cache_block_sizes(
            config,
            SimpleNamespace(
                cache_config=cache, parallel_config=parallel, kv_transfer_config=None
            ),
        )
        self.batch = o["batch"] or MAX_MODEL_LEN
        self.manager = KVCacheManager(
            kv_cache_config=config,
            max_model_len=MAX_MODEL_LEN,
            scheduler_block_size=block,
            hash_block_size=unit,
            max_in_flight_tokens=self.batch,
            use_eagle=o["eagle"],
            dcp_world_size=o["dcp"],
        )
        self.hasher = get_request_block_hasher(unit, sha256_cbor)
        self.split = None
        if any(g["kind"] == "mamba" for g in o["groups"]):
            self.split = SimpleNamespace(
                cache_config=cache,
                hash_block_size=unit,
                block_size=block,
                mamba_partial_cache_hit=False,
                use_eagle_block_drop=o["eagle"],
                mamba_has_prefill_checkpoint_blocks=False,
                mamba_prefill_checkpoint_alignment=None,
                max_num_scheduled_tokens=self.batch,
                scheduler_config=SimpleNamespace(long_prefill_token_threshold=0),
                mamba_shared_prefix_checkpoint=False,
            )
        pool = self.manager.block_pool
        self.evicted = 0
        evict = pool._maybe_evict_cached_block

        def counting(block):
            done = evict(block)
            self.evicted += done
            return done

        pool._maybe_evict_cached_block = counting

    def cached(self):
        pool = self.manager.block_pool
        return sum(b.block_hash is not None for b in pool.blocks)

    def begin(self, number, tokens, keys, bypass):
        params = SamplingParams(max_tokens=1)
        params.skip_reading_prefix_cache = bypass
        r = Request(
            request_id=str(number),
            prompt_token_ids=list(tokens),
            sampling_params=params,
            pooling_params=None,
            mm_features=[
                MultiModalFeatureSpec(
                    data=None,
                    modality="image",
                    identifier=h,
                    mm_position=PlaceholderRange(offset=at, length=n),
                )
                for h, at, n in keys["media"]
            ],
            lora_request=LoRARequest(keys["lora"], 1, "/a") if keys["lora"] else None,
            cache_salt=keys["salt"] or None,
            block_hasher=self.hasher,
        )
        m = self.manager
        m.new_step_starts()
        blocks, hit, r.shared_prefix_boundary = m.get_computed_blocks(r)
        done = hit
        while done < r.num_tokens:
            n = min(self.batch, r.num_tokens - done)
            first = r.status == RequestStatus.WAITING
            if self.split:
                n = Scheduler._mamba_block_aligned_split(
                    self.split, r, n, hit if first else 0
                )
            if first:
                got = m.allocate_slots(
                    r,
                    n,
                    num_new_computed_tokens=hit,
                    new_computed_blocks=blocks,
                    num_lookahead_tokens=self.o["lookahead"],
                    full_sequence_must_fit=True,
                    has_scheduled_reqs=False,
                )
            else:
                m.new_step_starts()
                got = m.allocate_slots(r, n, num_lookahead_tokens=self.o["lookahead"])
            if got is None:
                m.free(r)
                return None, -1
            done += n
            r.num_computed_tokens = done
            r.status = RequestStatus.RUNNING
        return r, hit

    def end(self, r, output):
        m = self.manager
        for token in output[:-1]:
            r.append_output_token_ids(token)
            m.new_step_starts()
            if (
                m.allocate_slots(r, 1, num_lookahead_tokens=self.o["lookahead"])
                is None
            ):
                break
            r.num_computed_tokens += 1
        m.free(r)


def conversation(r, o, conversations):
    """The prompt of the next request, and the conversation it belongs to."""
    if not conversations or r.below(5) == 0:
        system = Random(r.below(3))
        tokens = [system.below(o["vocabulary"]) for _ in range(r.below(o["turn"]))]
        c = {
            "tokens": tokens,
            "salt": ["", "", "", "salt"][r.below(4)],
            "lora": ["", "", "", "adapter"][r.below(4)],
            "media": media_of(r, len(tokens)),
        }
        conversations.append(c)
    else:
        c = conversations[r.below(len(conversations))]
        if r.below(4) == 0:
            n = r.below(len(c["tokens"]) + 1)
            c = dict(
                c,
                tokens=c["tokens"][:n],
                media=[m for m in c["media"] if m[1] + m[2] <= n],
            )
            conversations.append(c)
    if len(c["tokens"]) > o["longest"]:
        c["tokens"], c["media"] = [], []
    c["tokens"] = c["tokens"] + [
        r.below(o["vocabulary"]) for _ in range(1 + r.below(o["turn"]))
    ]
    return c


def record(o):
    r = Random(o["seed"])
    engine = Engine(o)
    conversations, running, results = [], [], []
    for number in range(o["steps"]):
        before = engine.evicted
        if len(running) < o["running"] and (r.below(2) == 0 or not running):
            c = conversation(r, o, conversations)
            bypass = r.below(15) == 0
            request, found = engine.begin(number, c["tokens"], c, bypass)
            if request is not None:
                running.append((request, c))
        else:
            request, c = running.pop(r.below(len(running)))
            output = [r.below(o["vocabulary"]) for _ in range(r.below(o["turn"]))]
            engine.end(request, output)
            if r.below(4) != 0:
                c["tokens"] = c["tokens"] + output
            found = -2
        results.append([found, engine.evicted - before, engine.cached()])
    return results


def group(kind, size, window=0, eagle=False):
    return {"kind": kind, "block_size": size, "window": window, "eagle": eagle}


def engines():
    """Plain engines, then hybrid ones; small, so that blocks are evicted."""
    full = lambda size: [group("full", size)]
    shapes = [(full(size), size) for size in (1, 2, 3, 5, 8, 16, 16, 32, 64)]
    shapes += [
        ([group("full", 4), group("window", 4, 10)], 4),
        ([group("full", 16), group("window", 16, 33)], 16),
        ([group("full", 16), group("window", 16, 1)], 16),
        ([group("full", 8)] + [group("window", 8, 20)] * 3, 8),
        ([group("window", 8, 20), group("full", 8)], 8),
        ([group("window", 8, 20)], 8),
        ([group("full", 8), group("window", 4, 9)], 8),
        ([group("full", 4), group("window", 8, 12)], 8),
        ([group("full", 6), group("window", 4, 9), group("window", 4, 30)], 12),
        ([group("full", 8), group("full", 4), group("window", 4, 9)], 8),
        ([group("full", 8), group("mamba", 8)], 8),
        ([group("full", 16), group("mamba", 16), group("mamba", 16)], 16),
        ([group("full", 8), group("mamba", 8), group("window", 8, 20)], 8),
    ]
    number = 0
    for groups, size in shapes:
        sizes = math.lcm(*(g["block_size"] for g in groups))
        hybrid = len(groups) > 1 or groups[0]["kind"] != "full"
        for variant in range(10 if hybrid else 5):
            number += 1
            o = {
                "seed": number,
                "steps": 150,
                "groups": [dict(g) for g in groups],
                "blocks": (30, 60, 200, 1000, 90)[variant % 5] * len(groups),
                "dcp": 1,
                "eagle": False,
                "lookahead": 0,
                "retention": 0,
                "batch": 0,
                "running": (1, 3, 6, 2)[variant % 4],
                "vocabulary": (2, 50, 50_000)[number % 3],
                "turn": size * 5 + 3,
                "longest": size * 25,
            }
            if variant == 3:
                o["eagle"], o["lookahead"] = True, 3
            if variant == 4 and not hybrid:
                o["dcp"] = 2
            if variant == 4 and hybrid:
                o["retention"] = -1
            if variant == 5:
                o["retention"], o["batch"] = sizes * 3, size * 3 + 1
            if variant == 6:
                o["eagle"], o["retention"], o["batch"] = True, -1, size * 4
            if variant == 7:
                o["batch"] = size + size // 2
                for g in o["groups"]:
                    g["eagle"] = g["kind"] == "full"
                o["eagle"] = any(g["eagle"] for g in o["groups"])
            if variant == 8:
                o["eagle"], o["vocabulary"], o["retention"] = True, 2, -1
            if variant == 9:
                o["batch"] = max(size // 2, 1)
            yield o


if __name__ == "__main__":
    init_none_hash(sha256_cbor)
    for o in engines():
        results = record(o)
        print(json.dumps({"engine": o, "results": results}, separators=(",", ":")))
    print(f"recorded with vLLM {__version__}", file=sys.stderr)
