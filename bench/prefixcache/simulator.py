"""Replay a trace by kvcache-simulator for the benchmark, in its two backends.

    python simulator.py compile                      builds the C++ core, where the package itself looks for it
    python simulator.py phases BACKEND TRACE BLOCK   times reading and replaying, apart from each other
    python simulator.py run BACKEND TRACE BLOCK      what a user of the command waits for: the package's own main

phases and run print the package's JSON on a line, with "seconds": [reading, replaying] for phases.
"""

import json
import sys
import time

MODEL = "glm-5.2"


def main():
    what = sys.argv[1]
    if what == "compile":
        from kvcache_sim.cpp_backend import ensure_cpp_simulator

        ensure_cpp_simulator()
        return
    backend, path, block = sys.argv[2:]
    if what == "run":
        from kvcache_sim import cli

        sys.exit(cli.main(["run", "--trace", path, "--model", MODEL, "--block-size", block, "--backend", backend, "--format", "json", "--no-progress"]))
    from kvcache_sim.simulator import run_sweep
    from kvcache_sim.calculator import load_models_data
    from kvcache_sim.trace import parse_trace_file

    models = load_models_data()
    t0 = time.perf_counter()
    trace = parse_trace_file(path, block_size=int(block))
    t1 = time.perf_counter()
    result = run_sweep(trace, model_id=MODEL, backend=backend, models_data=models)
    t2 = time.perf_counter()
    result["seconds"] = [t1 - t0, t2 - t1]
    print(json.dumps(result))


main()
