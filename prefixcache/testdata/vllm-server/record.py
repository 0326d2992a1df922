"""Records what a real vLLM server reports about its prefix cache. vLLM 0.32.0 on the CPU made the recordings.

usage: record.py VLLM OUT [EVENTS METRICS] [NAME…]

VLLM is the folder that scripts/vllm-install.sh made (with the model in VLLM/model). Run it with VLLM/bin/python, which
has pyzmq. It starts the server once per recording and ends it. With names it makes those recordings alone; "-" for
EVENTS makes neither events nor metrics.

OUT/*.jsonl: the first line tells the engine's settings, each further one a step of ../conversations.py with what came
back: `output` (the IDs generated), `cached` (usage.prompt_tokens_details.cached_tokens), `prompt` (the prompt's tokens)
and `late` (it ran beside the step before it and ended after that one).
EVENTS/vllm-events.jsonl: the frames of the KV events of the first requests of the first recording: `after` (the
steps so far) and `parts` (base64). The first is missing, as it left before the connection stood; at the end the
cache is reset, and lines with `replay` are what the replay socket gave for a request from that number on: the first ones
and the end.
METRICS/vllm-metrics-{before,after}.txt: GET /metrics, the families of requests and caches.
"""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import conversations  # noqa: E402

PORT, EVENT_PORT, REPLAY_PORT = 18571, 18572, 18573
EVENT_STEPS = 30  # whose events are kept
RECORDINGS = [
    # block 32 in few blocks: much is evicted
    {"name": "evicting", "seed": 1, "count": 200, "longest": 700, "block": 32, "blocks": 48, "salts": True, "bypass": True},
    # the CPU's own block size, room for everything
    {"name": "roomy", "seed": 2, "count": 80, "longest": 1500, "block": 128, "blocks": 0, "salts": True, "bypass": False},
]


def start(vllm, o):
    command = [os.path.join(vllm, "bin", "vllm"), "serve", os.path.join(vllm, "model"), "--served-model-name", "smollm2",
               "--host", "127.0.0.1", "--port", str(PORT), "--dtype", "float32", "--max-model-len", str(o["longest"] + 100),
               "--max-num-seqs", "4", "--enforce-eager", "--enable-prefix-caching", "--enable-prompt-tokens-details",
               "--block-size", str(o["block"]), "--prefix-caching-hash-algo", "sha256_cbor",
               "--kv-events-config", json.dumps({
                   "enable_kv_cache_events": True, "publisher": "zmq", "topic": "kv-events",
                   "endpoint": f"tcp://127.0.0.1:{EVENT_PORT}", "replay_endpoint": f"tcp://127.0.0.1:{REPLAY_PORT}"})]
    if o["blocks"]:
        command += ["--num-gpu-blocks-override", str(o["blocks"])]
    env = dict(os.environ, VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind", OMP_NUM_THREADS="1",
               HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", PYTHONHASHSEED="0", VLLM_SERVER_DEV_MODE="1")
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr, start_new_session=True)


def await_ready(server):
    for _ in range(600):
        time.sleep(0.5)
        if server.poll() is not None:
            sys.exit(f"vLLM ended with status {server.returncode} before it was ready")
        try:
            get("/health")
            return
        except OSError:
            pass
    sys.exit("vLLM is not ready in five minutes")


def get(path):
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}") as r:
        return r.read().decode()


def complete(step, prompt, first=None):
    """Sends a step; sets first once a token has come."""
    body = {"model": "smollm2", "prompt": prompt, "max_tokens": step["max"], "temperature": 0, "ignore_eos": not step.get("eos"),
            "return_token_ids": True}
    if step.get("salt"):
        body["cache_salt"] = step["salt"]
    if step.get("bypass"):
        body["prompt_logprobs"] = 0
    if first:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        body.pop("prompt_logprobs", 0)  # not while streaming
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as r:
        if not first:
            answer = json.load(r)
            return answer["choices"][0]["token_ids"], answer["usage"]
        output, usage = [], None
        for line in r:
            if not line.startswith(b"data: {"):
                continue
            answer = json.loads(line[6:])
            usage = answer.get("usage") or usage
            for choice in answer["choices"]:
                output += choice["token_ids"] or []
                if output:
                    first.set()
        return output, usage


def send(steps, i, done):
    """Sends step i, and the one that runs beside it; returns their answers."""
    step = steps[i]
    prompt = conversations.prompt(step, done)
    if i + 1 == len(steps) or not steps[i + 1].get("beside"):
        return [(step, prompt, *complete(step, prompt))]
    step.pop("bypass", None)
    first, answer = threading.Event(), []
    t = threading.Thread(target=lambda: answer.append(complete(step, prompt, first)))
    t.start()
    first.wait()
    guest = steps[i + 1]
    guest_prompt = conversations.prompt(guest, done)
    guest["beside"] = t.is_alive()
    guest_answer = complete(guest, guest_prompt)
    guest["late"] = not t.is_alive()
    t.join()
    return [(step, prompt, *answer[0]), (guest, guest_prompt, *guest_answer)]


def metrics(path):
    """The families that tell of requests, tokens and caches, without buckets of histograms and times of creation."""
    wanted = re.compile(r"vllm:(prefix_cache|external_prefix_cache|mm_cache|kv_cache|cache_config|prompt_tokens|generation_tokens|num_requests|num_preemptions|request_success)")
    with open(path, "w") as f:
        for line in get("/metrics").splitlines():
            if wanted.search(line) and not re.search(r"_bucket{|_created", line):
                print(line, file=f)


def frames(socket, wait):
    """The messages that have come, once none has for so many milliseconds."""
    found = []
    while socket.poll(wait):
        found.append([base64.b64encode(part).decode() for part in socket.recv_multipart()])
    return found


def record(o, out, socket, events):
    steps = conversations.steps(o["seed"], o["count"], o["longest"], salts=o["salts"], bypass=o["bypass"])
    done = []
    config = json.loads(json.dumps(o))
    pool = int(re.search(r'vllm:cache_config_info\{.*?num_gpu_blocks="(\d+)"', get("/metrics")).group(1))
    size = int(re.search(r'vllm:cache_config_info\{.*?[{,]block_size="(\d+)"', get("/metrics")).group(1))
    config |= {"engine": "vllm " + json.loads(get("/version"))["version"], "blocks": pool, "block": size}
    with open(os.path.join(out, o["name"] + ".jsonl"), "w") as f:
        print(json.dumps(config, separators=(",", ":")), file=f)
        while len(done) < len(steps):
            for step, prompt, output, usage in send(steps, len(done), done):
                line = step | {"output": output, "prompt": len(prompt), "cached": (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0)}
                print(json.dumps(line, separators=(",", ":")), file=f)
                done.append((prompt, output))
            if events and len(done) <= EVENT_STEPS + 1:
                for parts in frames(socket, 100):
                    print(json.dumps({"after": len(done), "parts": parts}, separators=(",", ":")), file=events)


def main():
    vllm, out, events, meters = (sys.argv[1:] + ["-", "-"])[:4]
    names = sys.argv[5:]
    import zmq
    for number, o in enumerate(RECORDINGS):
        if names and o["name"] not in names:
            continue
        socket = zmq.Context.instance().socket(zmq.SUB)
        socket.bind(f"tcp://127.0.0.1:{EVENT_PORT}")  # vLLM itself binds only addresses with a *
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        server = start(vllm, o)
        try:
            await_ready(server)
            first = number == 0 and events != "-"
            if first:
                metrics(os.path.join(meters, "vllm-metrics-before.txt"))
                with open(os.path.join(events, "vllm-events.jsonl"), "w") as f:
                    record(o, out, socket, f)
                    frames(socket, 200)  # those of the later steps
                    metrics(os.path.join(meters, "vllm-metrics-after.txt"))
                    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{PORT}/reset_prefix_cache", b"", method="POST")).read()
                    complete({"max": 1}, list(range(1000, 1040)))  # events leave with the next step
                    for parts in frames(socket, 500):
                        print(json.dumps({"after": o["count"] + 1, "parts": parts}, separators=(",", ":")), file=f)
                    ask = zmq.Context.instance().socket(zmq.DEALER)
                    ask.connect(f"tcp://127.0.0.1:{REPLAY_PORT}")
                    ask.send_multipart([b"", (0).to_bytes(8, "big")])
                    got = frames(ask, 1000)
                    for parts in got[:4] + got[-1:]:  # the last one ends the replay
                        print(json.dumps({"replay": 0, "parts": parts}, separators=(",", ":")), file=f)
                    ask.close()
            else:
                record(o, out, socket, None)
            socket.close()
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
            time.sleep(2)


main()
