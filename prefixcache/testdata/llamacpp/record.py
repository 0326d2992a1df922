"""Records what llama.cpp's own server reports about its prompt cache. xllamacpp 2026.10.11549 (llama.cpp b11549) made
the recordings, with the models SmolLM2-135M-Instruct (Q4_1) and, for window.jsonl, gemma-3-270m (Q4_K_M).

usage: record.py MODEL WINDOW_MODEL OUT [METRICS] [NAME…]

Run it with a Python that has xllamacpp; it starts the server in a process of its own, once per recording. With names
it makes those recordings alone; "-" for METRICS makes no metrics.

OUT/*.jsonl: the first line tells the server's settings, each further one a step of ../conversations.py with what came
back: `output` (the IDs generated), `cached` (timings.cache_n), `prompt` (the prompt's tokens), `at` (id_slot)
and `late` (it ran beside the step before it and ended after that one).
METRICS/llamacpp-metrics-{before,after}.txt: GET /metrics around the first recording.
"""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import conversations  # noqa: E402

SERVER = """
import json, signal, sys
import xllamacpp as x
p = x.CommonParams()
p.model.path = sys.argv[1]
p.cpuparams.n_threads = 1
p.endpoint_slots = p.endpoint_metrics = p.endpoint_props = True
for k, v in json.loads(sys.argv[2]).items():
    setattr(p, k, v)
server = x.Server(p)
print(server.listening_address, flush=True)
signal.pause()
"""
MIB = 1 << 20
# settings are attributes of xllamacpp.CommonParams; n_ctx is of all slots together
RECORDINGS = [
    # as servertest starts it: idle slots are copied to RAM
    {"name": "slots", "seed": 11, "count": 200, "longest": 900, "named": 3, "settings": {"n_parallel": 3, "n_ctx": 3072}},
    # as llama-server starts by itself: four slots that share one context and are emptied when idle
    {"name": "unified", "seed": 12, "count": 200, "longest": 900, "named": 0, "settings": {"n_parallel": 4, "n_ctx": 4096, "kv_unified": True}},
    # no RAM
    {"name": "bare", "seed": 13, "count": 120, "longest": 900, "named": 2, "settings": {"n_parallel": 2, "n_ctx": 2048, "cache_ram_mib": 0}},
    # RAM for some 700 tokens; slots are copied only when they are taken
    {"name": "tight", "seed": 14, "count": 80, "longest": 900, "named": 2, "settings": {"n_parallel": 2, "n_ctx": 2048, "cache_ram_mib": 16, "cache_idle_slots": False}},
    # RAM for some 350 tokens, idle slots are copied
    {"name": "tighter", "seed": 15, "count": 80, "longest": 900, "named": 0, "settings": {"n_parallel": 4, "n_ctx": 4096, "cache_ram_mib": 8}},
    # one slot, chunks moved
    {"name": "reuse", "seed": 16, "count": 80, "longest": 900, "named": 0, "cuts": True, "settings": {"n_parallel": 1, "n_ctx": 1024, "cache_ram_mib": 0, "n_cache_reuse": 8}},
    # a shared context that gets full
    {"name": "crowded", "seed": 17, "count": 60, "longest": 500, "named": 4, "settings": {"n_parallel": 4, "n_ctx": 1024, "kv_unified": True, "cache_ram_mib": 0}},
    # a window of 512 tokens in most layers
    {"name": "window", "seed": 18, "count": 60, "longest": 2600, "long": 8, "named": 0, "window": True, "settings": {"n_parallel": 2, "n_ctx": 6144}},
    {"name": "window-unified", "seed": 19, "count": 40, "longest": 2600, "long": 8, "named": 0, "window": True, "settings": {"n_parallel": 3, "n_ctx": 4096, "kv_unified": True, "n_ctx_checkpoints": 3}},
]


def get(url):
    with urllib.request.urlopen(url) as r:
        return r.read().decode()


def complete(url, step, prompt):
    body = {"prompt": prompt, "n_predict": step["max"], "temperature": 0, "ignore_eos": not step.get("eos"), "return_tokens": True,
            "cache_prompt": not step.get("bypass"), "id_slot": step.get("slot", 0) - 1}
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as r:
        answer = json.load(r)
    return answer["tokens"], answer["timings"]["cache_n"], answer["id_slot"]


def running(url):
    """Whether a request runs that has generated a token."""
    for slot in json.loads(get(url + "/slots")):
        if slot["is_processing"] and any(t["n_decoded"] > 0 for t in slot["next_token"]):
            return True
    return False


def send(url, steps, i, done):
    """Sends step i, and the one that runs beside it; returns their answers."""
    step = steps[i]
    prompt = conversations.prompt(step, done)
    if i + 1 == len(steps) or not steps[i + 1].get("beside"):
        return [(step, prompt, *complete(url, step, prompt))]
    guest = steps[i + 1]
    step.pop("slot", 0)
    guest.pop("slot", 0)
    found = []
    t = threading.Thread(target=lambda: found.append(complete(url, step, prompt)))
    t.start()
    while not running(url) and t.is_alive():
        time.sleep(0.002)
    guest_prompt = conversations.prompt(guest, done)
    guest["beside"] = t.is_alive()
    answer = complete(url, guest, guest_prompt)
    guest["late"] = not t.is_alive()
    t.join()
    return [(step, prompt, *found[0]), (guest, guest_prompt, *answer)]


def record(url, o, out):
    steps = conversations.steps(o["seed"], o["count"], o["longest"], bypass=True, slots=o["named"], long=o.get("long", 1),
                                cuts=o.get("cuts", False))
    done = []
    config = {k: v for k, v in o.items()} | {"engine": "llama.cpp b11549"}
    with open(os.path.join(out, o["name"] + ".jsonl"), "w") as f:
        print(json.dumps(config, separators=(",", ":")), file=f)
        while len(done) < len(steps):
            for step, prompt, output, cached, at in send(url, steps, len(done), done):
                line = step | {"output": output, "prompt": len(prompt), "cached": cached, "at": at}
                print(json.dumps(line, separators=(",", ":")), file=f)
                done.append((prompt, output))


def main():
    model, window_model, out, *rest = sys.argv[1:]
    metrics, names = (rest + ["-"])[0], rest[1:]
    for number, o in enumerate(RECORDINGS):
        if names and o["name"] not in names:
            continue
        settings = json.dumps({"port": 0} | o["settings"])
        server = subprocess.Popen([sys.executable, "-c", SERVER, window_model if o.get("window") else model, settings],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
        try:
            url = server.stdout.readline().strip()
            if not url.startswith("http"):
                sys.exit("llama.cpp's server did not start")
            keep = number == 0 and metrics != "-"
            if keep:
                open(os.path.join(metrics, "llamacpp-metrics-before.txt"), "w").write(get(url + "/metrics"))
            record(url, o, out)
            if keep:
                open(os.path.join(metrics, "llamacpp-metrics-after.txt"), "w").write(get(url + "/metrics"))
        finally:
            server.kill()
            server.wait()


main()
