"""Run json_repair for the benchmark: see ../contestants.go for the lines that are read and written."""

import base64
import json
import sys
import time

import json_repair


def answer(request):
    text = base64.b64decode(request["input"]).decode("utf-8", "replace")
    start = time.perf_counter()
    try:
        output = json_repair.repair_json(text, ensure_ascii=False)
    except BaseException as error:  # also RecursionError and MemoryError
        return {"seconds": time.perf_counter() - start, "error": f"{type(error).__name__}: {error}"[:200]}
    took = time.perf_counter() - start
    return {"seconds": took, "output": base64.b64encode(output.encode("utf-8", "surrogatepass")).decode()}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
