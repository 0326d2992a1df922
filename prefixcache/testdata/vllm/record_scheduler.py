"""Records when vLLM's scheduler begins and ends generated requests under load.

    python record_scheduler.py MODEL > scheduled.jsonl

Needs vLLM 0.32.0 and MODEL, a folder with a small model's config.json. It runs
the whole scheduler (chunked prefill, many requests at once, decoding
interleaved, preemption, the asynchronous scheduler, too); in place of a model
it answers with tokens that a generator chose, which paged_vllm_test.go has,
too. A line is one engine: its options, and the events in the scheduler's order:
[request, tokens found, step] where a request is admitted, [request, the step
that ended its prefill] where it ends.
"""

import json
import os
import sys
from collections import deque

os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"  # its log goes to stdout

from record_hashes import Random
from record_traces import conversation, group, spec_of
from vllm.engine.arg_utils import EngineArgs
from vllm.lora.request import LoRARequest
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256_cbor
from vllm.v1.core.kv_cache_utils import (
    get_request_block_hasher,
    init_none_hash,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.kv_cache_interface import KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.version import __version__


def scheduler_of(model, o):
    config = EngineArgs(
        model=model,
        skip_tokenizer_init=True,
        max_model_len=o["longest"] * 2,
        max_num_seqs=o["running"],
        max_num_batched_tokens=max(o["batch"], o["running"]),
        enable_prefix_caching=True,
        block_size=o["groups"][0]["block_size"],
        async_scheduling=o["async"],
        enforce_eager=True,
    ).create_engine_config()
    config.cache_config.block_size = o["groups"][0]["block_size"]
    config.cache_config.num_gpu_blocks = o["blocks"]
    kv = KVCacheConfig(
        num_blocks=o["blocks"],
        kv_cache_tensors=[],
        kv_cache_groups=[
            KVCacheGroupSpec([f"layer.{i}"], spec_of(g))
            for i, g in enumerate(o["groups"])
        ],
        prefix_cache_retention_interval=0,
    )
    block, unit = resolve_kv_cache_block_sizes(kv, config)
    scheduler = config.scheduler_config.get_scheduler_cls()(
        vllm_config=config,
        kv_cache_config=kv,
        structured_output_manager=StructuredOutputManager(config),
        block_size=block,
        hash_block_size=unit,
    )
    return scheduler, get_request_block_hasher(unit, sha256_cbor)


def requests_of(o):
    """All requests, with their outputs, and the one whose end each awaits."""
    r = Random(o["seed"])
    conversations, requests = [], []
    arrival = 0
    for number in range(o["steps"]):
        c = conversation(r, o, conversations)
        output = [r.below(o["vocabulary"]) for _ in range(1 + r.below(o["turn"]))]
        arrival += r.below(o["gap"])
        requests.append(
            dict(
                prompt=list(c["tokens"]),
                keys=c,  # without the media: there is no model to encode them
                output=output,
                arrival=arrival,
                after=c.get("last", -1),
            )
        )
        if r.below(4) != 0:
            c["tokens"] = c["tokens"] + output
        c["last"] = number
    return requests


def request_of(number, q, hasher, eos):
    return Request(
        request_id=str(number),
        prompt_token_ids=q["prompt"],
        sampling_params=SamplingParams(
            # Half of the requests end by a stop token, which the scheduler
            # cannot foresee.
            max_tokens=len(q["output"]) + (number % 2) * 10,
            stop_token_ids=[eos],
        ),
        pooling_params=None,
        lora_request=LoRARequest(q["keys"]["lora"], 1, "/a")
        if q["keys"]["lora"]
        else None,
        cache_salt=q["keys"]["salt"] or None,
        block_hasher=hasher,
    )


def record(model, o):
    scheduler, hasher = scheduler_of(model, o)
    eos = 1 << 20
    queue = requests_of(o)
    for q in queue[1::2]:
        q["output"][-1] = eos
    given, prefilled, done, events = {}, {}, set(), []
    pending, live = deque(), {}
    step = preempted = 0
    waiting = list(range(len(queue)))
    while len(done) < len(queue):
        step += 1
        for number in list(waiting):
            q = queue[number]
            if q["arrival"] <= step and (q["after"] < 0 or q["after"] in done):
                waiting.remove(number)
                live[number] = request_of(number, q, hasher, eos)
                given[number] = 0
                scheduler.add_request(live[number])
        out = scheduler.schedule()
        for new in out.scheduled_new_reqs:
            events.append([int(new.req_id), new.num_computed_tokens, step])
        preempted += len(out.preempted_req_ids or ())
        sampled = []
        for key, tokens in out.num_scheduled_tokens.items():
            number = int(key)
            r = live[number]
            if r.is_prefill_chunk:
                sampled.append([])
                continue
            output = queue[number]["output"]
            at = given[number]
            if at == 0:
                prefilled[number] = step
            given[number] += 1
            sampled.append([output[at] if at < len(output) else 7])
        keys = list(out.num_scheduled_tokens)
        pending.append(
            (
                out,
                ModelRunnerOutput(
                    req_ids=keys,
                    req_id_to_index={k: i for i, k in enumerate(keys)},
                    sampled_token_ids=sampled,
                ),
            )
        )
        if len(pending) > (1 if o["async"] else 0):
            before = [int(r.request_id) for r in scheduler.running]
            scheduler.update_from_output(*pending.popleft())
            for number in before:
                if str(number) not in scheduler.requests and number not in done:
                    done.add(number)
                    events.append([number, prefilled[number]])
    return events, preempted


def engines():
    number = 0
    for blocks, running, batch, gap in (
        (400, 4, 512, 12),
        (2000, 16, 2048, 4),
        (700, 16, 256, 6),
        (300, 16, 2048, 3),
    ):
        for groups in (
            [group("full", 16)],
            [group("full", 16), group("window", 16, 70)],
        ):
            for asynchronous in (False, True):
                number += 1
                yield {
                    "seed": number,
                    "steps": 300,
                    "groups": groups,
                    "blocks": blocks * len(groups),
                    "running": running,
                    "batch": batch,
                    "async": asynchronous,
                    "vocabulary": 50_000,
                    "turn": 120,
                    "longest": 1500,
                    "gap": gap * 8,
                }


if __name__ == "__main__":
    init_none_hash(sha256_cbor)
    for o in engines():
        events, preempted = record(sys.argv[1], o)
        line = {"engine": o, "preempted": preempted, "events": events}
        print(json.dumps(line, separators=(",", ":")))
    print(f"recorded with vLLM {__version__}", file=sys.stderr)
