"""Checks that LiteLLM and the gateway work together, LiteLLM on either side.

usage: PYTHON litellm_check.py GATEWAY

GATEWAY is the address of a gateway in front of a server, such as http://127.0.0.1:8080. PYTHON is an interpreter that
has LiteLLM with its proxy: setup.sh makes one. LiteLLM is used as a library that asks the gateway, then as a proxy in
front of it. What comes must be what the gateway itself answers. Exits non-zero if something is not.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR")

PROMPT = "const userNa"
GREEDY = {"temperature": 0, "max_tokens": 8}
CHAT = [{"role": "user", "content": "Say hello."}]
CONTINUED = [{"role": "user", "content": "Write JavaScript."}, {"role": "assistant", "content": PROMPT}]
START = 180  # seconds that the proxy has to start

failures = 0


def check(name, got, want):
    global failures
    ok = got == want
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {got!r}" + ("" if ok else f", want {want!r}"), flush=True)


def post(base, path, body, stream=False):
    """Returns the status and the JSON of an answer, or the list of its events."""
    request = urllib.request.Request(
        base + path, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": "Bearer unused"}
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as err:
        status, text = err.code, err.read().decode()
    if not stream or status != 200:
        return status, json.loads(text)
    events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return status, [json.loads(e) for e in events if e != "[DONE]"]


def text_of(events):
    """Joins what the choices of a stream say, of texts and of chats."""
    return "".join(c.get("text") or c.get("delta", {}).get("content") or "" for e in events for c in e["choices"])


def behind(gateway, model, want, usage, chat, continued):
    """LiteLLM as a client of the gateway."""
    import litellm

    litellm.telemetry = False
    to = {"api_base": gateway + "/v1", "api_key": "unused", "num_retries": 0}
    text = {**GREEDY, **to, "model": "text-completion-openai/" + model, "prompt": PROMPT}
    whole = litellm.text_completion(**text)
    check("library, text", whole.choices[0].text, want)
    check("library, usage", (whole.usage.prompt_tokens, whole.usage.completion_tokens), usage)
    parts = [c.choices[0].text or "" for c in litellm.text_completion(**text, stream=True) if c.choices]
    check("library, text stream", "".join(parts), want)
    check("library, text stream in parts", len([p for p in parts if p]) > 2, True)
    talk = {**GREEDY, **to, "model": "openai/" + model}
    check("library, chat", litellm.completion(**talk, messages=CHAT).choices[0].message.content, chat)
    parts = [c.choices[0].delta.content or "" for c in litellm.completion(**talk, messages=CHAT, stream=True)]
    check("library, chat stream", "".join(parts), chat)
    answer = litellm.completion(**talk, messages=CONTINUED)
    check("library, message continued", answer.choices[0].message.content, continued)
    try:
        litellm.text_completion(**{**text, "prompt": "word " * 40_000})
        check("library, prompt too long", "no error", "an error")
    except litellm.BadRequestError as err:
        check("library, prompt too long", err.status_code, 400)


def start_proxy(gateway, model, folder):
    """Starts LiteLLM's proxy in front of the gateway; returns the process and its address."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    config = pathlib.Path(folder, "litellm.json")  # JSON is YAML
    to = {"api_base": gateway + "/v1", "api_key": "unused"}
    models = {"text": "text-completion-openai/", "chat": "openai/"}
    config.write_text(
        json.dumps(
            {
                "model_list": [{"model_name": n, "litellm_params": {**to, "model": p + model}} for n, p in models.items()],
                "litellm_settings": {"telemetry": False, "num_retries": 0},
            }
        )
    )
    command = [str(pathlib.Path(sys.executable).with_name("litellm")), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    log = pathlib.Path(folder, "log")
    with log.open("wb") as out:
        environment = {**os.environ, "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        proxy = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START
    while time.monotonic() < deadline and proxy.poll() is None:
        try:
            with urllib.request.urlopen(address + "/health/liveliness", timeout=5):
                return proxy, address
        except OSError:
            time.sleep(0.5)
    proxy.kill()
    sys.exit(f"litellm_check.py: LiteLLM's proxy did not start:\n{log.read_text()[-4000:]}")


def in_front(gateway, model, want, usage, chat, continued):
    """LiteLLM as a proxy in front of the gateway."""
    with tempfile.TemporaryDirectory() as folder:
        proxy, address = start_proxy(gateway, model, folder)
        try:
            text = {**GREEDY, "model": "text", "prompt": PROMPT}
            status, whole = post(address, "/v1/completions", text)
            check("proxy, text", (status, whole.get("choices", [{}])[0].get("text")), (200, want))
            told = whole.get("usage", {})
            check("proxy, usage", (told.get("prompt_tokens"), told.get("completion_tokens")), usage)
            status, events = post(address, "/v1/completions", {**text, "stream": True}, stream=True)
            check("proxy, text stream", (status, text_of(events)), (200, want))
            talk = {**GREEDY, "model": "chat"}
            status, whole = post(address, "/v1/chat/completions", {**talk, "messages": CHAT})
            check("proxy, chat", (status, whole["choices"][0]["message"]["content"]), (200, chat))
            status, events = post(address, "/v1/chat/completions", {**talk, "messages": CHAT, "stream": True}, stream=True)
            check("proxy, chat stream", (status, text_of(events)), (200, chat))
            status, whole = post(address, "/v1/chat/completions", {**talk, "messages": CONTINUED})
            check("proxy, message continued", (status, whole["choices"][0]["message"]["content"]), (200, continued))
            status, _ = post(address, "/v1/completions", {**text, "prompt": "word " * 40_000})
            check("proxy, prompt too long", status, 400)
        finally:
            proxy.terminate()
            proxy.wait(30)


def main():
    gateway = sys.argv[1].rstrip("/")
    with urllib.request.urlopen(gateway + "/v1/models", timeout=60) as answer:
        model = json.load(answer)["data"][0]["id"]
    status, own = post(gateway, "/v1/completions", {**GREEDY, "model": model, "prompt": PROMPT})
    check("gateway, healed", (status, own.get("unfray", {}).get("healing", {}).get("tokens_removed", 0) > 0), (200, True))
    want, usage = own["choices"][0]["text"], (own["usage"]["prompt_tokens"], own["usage"]["completion_tokens"])
    chats = []
    for messages in (CHAT, CONTINUED):
        _, answer = post(gateway, "/v1/chat/completions", {**GREEDY, "model": model, "messages": messages})
        chats.append(answer["choices"][0]["message"]["content"])
    behind(gateway, model, want, usage, *chats)
    in_front(gateway, model, want, usage, *chats)
    sys.exit(1 if failures else 0)


main()
