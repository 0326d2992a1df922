"""Records what SGLang's own prefix cache does on random traces.

    python record.py DIR | gzip -9n > radix.jsonl.gz

DIR is where the wheel of sglang 0.5.23 was unpacked. torch, transformers and
what else sglang imports must be installed; no GPU is needed. Every trace is run
on UnifiedRadixCache with both cores that SGLang ships, in Python and in Rust
(Python 3.11), and on RadixCache, which came before it, and the script stops if
they differ.

What runs is SGLang's: Req.init_next_round_input, UnifiedRadixCache,
PrefillBudget, the allocators, evict_from_tree_cache, checkpoint_kv_cache and
release_kv_cache. This file stands in for the scheduler and the model: it admits
a request alone, asks for room as alloc_for_extend and alloc_for_decode do
(mem_cache/allocation.py), and counts no output in advance.

A line is a trace: its options, then its events in order (traces.py).
"""

import argparse
import dataclasses
import importlib.abc
import importlib.machinery
import json
import sys
import types
from array import array

from traces import Trace, length, tokens

STUBS = ("IPython", "sglang.srt.configs")  # what the cache does not use


class Stub(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {})
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if not any(name == s or name.startswith(s + ".") for s in STUBS):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


@dataclasses.dataclass
class Options:
    page: int
    capacity: int
    policy: str
    chunk: int = 0
    bigrams: bool = False
    config: dict = dataclasses.field(default_factory=dict)  # of the policy


class Engine:
    """A scheduler that runs one request at a time through SGLang's cache."""

    def __init__(self, sg, o, core):
        self.sg, self.o = sg, o
        args = dict(dtype=None, device="cpu", kvcache=None, need_sort=False)
        if o.page == 1:
            self.alloc = sg.TokenToKVPoolAllocator(o.capacity, **args)
        else:
            self.alloc = sg.PagedTokenToKVPoolAllocator(o.capacity, o.page, **args)
        self.rows = sg.ReqToTokenPool(64, o.capacity + 4096, "cpu", False)
        params = sg.CacheInitParams(
            disable=False,
            req_to_token_pool=self.rows,
            token_to_kv_pool_allocator=self.alloc,
            page_size=o.page,
            is_eagle=o.bigrams,
            eviction_policy=o.policy,
            eviction_policy_config=o.config or None,
            tree_components=(sg.ComponentType.FULL,),
            tree_core_backend=core,
        )
        if core == "RadixCache":
            self.tree, name = sg.RadixCache(params), "evict"
        else:
            self.tree, name = sg.UnifiedRadixCache(params), "_evict"
        self.evicted = 0
        evict = getattr(self.tree, name)

        def counted(*a, **k):
            result = evict(*a, **k)
            self.evicted += result.num_tokens_evicted
            return result

        setattr(self.tree, name, counted)
        self.lastid = self.running = 0

    def held(self):
        return self.tree.evictable_size() + self.tree.protected_size()

    def free(self):
        return self.alloc.available_size()

    def fits(self, e, output):
        """So much of an output as finds room, less a page."""
        n, p = length(e["prompt"]), self.o.page
        room = (self.free() + self.tree.evictable_size()) // p * p
        return max(1, min(output, -(-n // p) * p + room - n - p))

    def take(self, req, start, end, ask):
        """Room for tokens start..end of a request, after asking for ask tokens."""
        self.sg.evict_from_tree_cache(self.tree, ask)
        p = self.o.page
        first, last = -(-start // p) * p, -(-end // p) * p
        if last > first:
            locs = self.alloc.alloc(last - first)
            assert locs is not None
            self.rows.write((req.kv.req_pool_idx, slice(first, last)), locs)
        req.kv.kv_committed_len = req.kv.kv_allocated_len = end

    def begin(self, e):
        sg, p = self.sg, self.o.page
        self.lastid += 1
        req = sg.Req(
            str(self.lastid),
            "",
            array("q", tokens(e["prompt"])),
            sg.SamplingParams(max_new_tokens=1 << 20),
            return_logprob=e.get("bypass", False),
            extra_key=e.get("extra") or None,
            cache_salt=e.get("salt") or None,
            lora_id=e.get("lora") or None,
            priority=e.get("priority"),
        )
        if e.get("bypass"):
            req.logprob_start_len = 0
        req.init_next_round_input(self.tree)
        n = len(req.origin_input_ids)
        # PrefillAdder.add_one_req (managers/schedule_policy.py), for no output.
        pin = self.tree.lock(req.last_node)
        fits, _ = sg.PrefillBudget(self.alloc, self.tree).check_prefill(
            extend_input_len=n - req.prefix_len,
            total_tokens=n - req.prefix_len + p,
            max_new_tokens=0,
            input_tokens=n,
            swa_host_hit_length=0,
            chunk_limit=None,
        )
        if not fits:
            self.tree.unlock(pin)
            return None, -1
        req.lock = pin
        self.running += 1
        cached = at = req.prefix_len
        self.rows.alloc([req])
        row = self.tree.path_device_indices(req.last_node)
        self.rows.write((req.kv.req_pool_idx, slice(0, cached)), row)
        while at < n:
            end = min(n, at + self.o.chunk) if self.o.chunk else n
            self.take(req, at, end, end - at + (p if p > 1 else 0))
            req.extend_end = at = end
            # A request whose first token is its last is not checkpointed.
            if end < n or not e.get("short"):
                sg.checkpoint_kv_cache(req, self.tree)
        return req, cached

    def end(self, req, output):
        sg, p = self.sg, self.o.page
        n = len(req.origin_input_ids)
        for i in range(n, n + max(len(output) - 1, 0)):
            self.take(req, i, i + 1, p * self.running if p > 1 else 1)
        self.running -= 1
        req.output_ids.extend(output)
        req.finished_reason = sg.FINISH_LENGTH(length=len(output))
        req.finished_len = len(output)
        sg.release_kv_cache(req, self.tree, checkpoint=True)


def load(where):
    sys.meta_path.insert(0, Finder())
    sys.path.insert(0, where)
    import torch
    from sglang.srt.managers import schedule_batch
    from sglang.srt.mem_cache import common
    from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
    from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
    from sglang.srt.mem_cache.prefill_budget import PrefillBudget
    from sglang.srt.mem_cache.radix_cache import RadixCache
    from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
    from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
    from sglang.srt.sampling.sampling_params import SamplingParams

    torch.set_num_threads(1)
    serving = types.SimpleNamespace(strip_thinking_cache=False)
    spec = types.SimpleNamespace(speculative_algorithm=None)
    for module in (common, schedule_batch):
        module.get_serving = lambda: serving
        module.get_spec = lambda: spec
    return types.SimpleNamespace(
        Req=schedule_batch.Req,
        FINISH_LENGTH=schedule_batch.FINISH_LENGTH,
        evict_from_tree_cache=common.evict_from_tree_cache,
        checkpoint_kv_cache=common.checkpoint_kv_cache,
        release_kv_cache=common.release_kv_cache,
        **{k: v for k, v in locals().items() if k[0].isupper()},
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dir", help="the unpacked wheel of sglang 0.5.23")
    where = parser.parse_args().dir
    sg = load(where)
    options = []
    for policy in ("lru", "lfu", "fifo", "mru", "filo", "priority", "slru"):
        options += [Options(1, 300, policy), Options(16, 1600, policy), Options(64, 4096, policy)]
    options += [
        Options(1, 300, "lru", chunk=32),
        Options(16, 1607, "lfu", chunk=64),
        Options(64, 4096, "slru", chunk=128),
        Options(1, 300, "slru", config={"protected_threshold": 3}),
        Options(1, 300, "tlru"),
        Options(1, 300, "tlru", config={"threshold": 40, "next_prompt_estimate": 10}),
        Options(16, 1600, "tlru", config={"threshold": 100}),
        Options(1, 300, "lru", bigrams=True),
        Options(16, 1600, "lru", chunk=32, bigrams=True),
        Options(1, 1 << 15, "lru"),
        Options(16, 1 << 15, "lru"),
    ]
    for seed, o in enumerate(options):
        runs = []
        for core in ("python", "rust", "RadixCache"):
            if core == "RadixCache" and o.policy in ("fifo", "filo", "tlru"):
                continue  # it dates a cut anew, and does not have tlru
            runs.append(Trace(seed, o.capacity // o.page * o.page - o.page - 1, 160).run(Engine(sg, o, core)))
        assert all(run == runs[0] for run in runs), f"they differ: {o}"
        line = {"sglang": "0.5.23", **dataclasses.asdict(o), "events": runs[0]}
        print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    main()
