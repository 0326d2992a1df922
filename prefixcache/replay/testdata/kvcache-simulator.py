"""Record what kvcache-simulator counts as hits, on Mooncake's traces and on small made-up ones.

    pip install kvcache-simulator==0.1.3
    python kvcache-simulator.py FOLDER > kvcache-simulator.json

FOLDER has mooncake-conversation.jsonl.gz and mooncake-synthetic.jsonl.gz. The package's Python policies give the
figures; on the large traces its C++ core (which needs c++) must agree with them. Points that the package calls
underfilled are null.
"""

import importlib.metadata
import json
import os
import random
import sys

from kvcache_sim.cpp_backend import run_cpp_sweep
from kvcache_sim.plan import build_execution_plan
from kvcache_sim.policies import simulate_ceiling, simulate_policy
from kvcache_sim.trace import parse_trace_file, parse_trace_lines

POLICIES = ["fifo", "lru", "optimal"]


def hits(result):
    return None if result.measurementMode == "underfilled_at_window" else result.hitTokens


def replay(trace, capacities, cpp):
    plan = build_execution_plan(trace)
    ceiling = simulate_ceiling(plan)
    points = [[c] + [hits(simulate_policy(plan, p, c)) for p in POLICIES] for c in capacities]
    if cpp:
        native = run_cpp_sweep(trace, capacities=[c for c in capacities if c], policies=POLICIES, warmup_requests=plan.warmup_requests)
        for c, *row in points:
            if c:
                assert row == [hits(native.results[p, c]) for p in POLICIES], (c, row)
    return {
        "requests": trace.request_count,
        "blocks": len(trace.ids),
        "unique": plan.unique_blocks,
        "tokens": plan.total_measured_tokens,
        "ceiling": ceiling.hitTokens,
        "points": points,
    }


def made_up(rng):
    """Requests of growing and branching conversations; some blocks are used in several places."""
    size = rng.choice([1, 4, 16])
    paths = [[]]
    lines = []
    for _ in range(rng.randrange(2, 50)):
        path = rng.choice(paths)
        path = path[: rng.randrange(len(path) + 1)] if rng.random() < 0.3 else path
        path = path + [rng.randrange(rng.choice([3, 10, 1000])) for _ in range(rng.randrange(1, 6))]
        if len(path) > 12:
            path = path[:12]
        paths.append(path)
        lines.append({"hash_ids": path, "input_length": max(1, len(path) * size - rng.randrange(size + rng.randrange(2) * size))})
    return size, lines


def main():
    folder = sys.argv[1]
    out = {"package": "kvcache-simulator " + importlib.metadata.version("kvcache-simulator"), "policies": POLICIES, "files": [], "traces": []}
    for name in ["mooncake-conversation.jsonl.gz", "mooncake-synthetic.jsonl.gz"]:
        trace = parse_trace_file(os.path.join(folder, name), block_size=512)
        capacities = [0, 1, 22, 100, 250, 1409, 5637, 22550, 45100, 90200, 200000]
        out["files"].append({"file": name, **replay(trace, capacities, cpp=True)})
    rng = random.Random(1)
    for _ in range(60):
        size, lines = made_up(rng)
        trace = parse_trace_lines([json.dumps(line) for line in lines], block_size=size)
        out["traces"].append({
            "block_tokens": size,
            "prompts": [[line["input_length"], *line["hash_ids"]] for line in lines],
            **replay(trace, sorted({1, 2, 3, 5, 8, 13, 21, 40}), cpp=False),
        })
    print("{" + ",\n".join(
        f'"{k}": ' + ("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in v) + "]" if k in ("files", "traces") else json.dumps(v))
        for k, v in out.items()
    ) + "}")


main()
