"""Measure ftfy.fix_text over files: prints name, seconds of CPU for one run (the least of three), characters out."""

import sys
import time

import ftfy

for path in sys.argv[1:]:
    with open(path, encoding="utf-8", newline="") as f:
        text = f.read()
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        fixed = ftfy.fix_text(text)
        best = min(best, time.process_time() - start)
    print(path, best, len(fixed))
