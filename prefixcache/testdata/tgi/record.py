"""Records what text-generation-inference's own prefix cache does on random traces.

    python record.py RADIX_RS BUILD | gzip -9n > radix.jsonl.gz

RADIX_RS is backends/v3/src/radix.rs of text-generation-inference, as of commit
db931fcf (2026-01-08). BUILD is a folder for a crate that holds it, which cargo
builds with the version of slotmap that TGI pins. Its tracing is switched off.

driver.rs stands in for the rest: it asks for room as State::next_batch does
(queue.rs), which is for the prompt and max_new_tokens-1, and a prompt that is
found whole counts one token less.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "sglang"))
from traces import Trace, length, tokens  # noqa: E402

MANIFEST = """[package]
name = "record"
version = "0.0.0"
edition = "2021"

[[bin]]
name = "record"
path = "driver.rs"

[dependencies]
slotmap = "=1.0.7"
tracing = { version = "0.1", features = ["max_level_off", "release_max_level_off"] }
"""


@dataclasses.dataclass
class Options:
    page: int
    capacity: int
    output: int  # max_new_tokens


class Engine:
    def __init__(self, o, program):
        self.o = o
        self.process = subprocess.Popen(
            [program, str(o.page), str(o.capacity // o.page)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.alive, self.evicted, self.size = [], 0, 0
        self.unused = (o.capacity // o.page - 1) * o.page

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        found, *rest = map(int, self.process.stdout.readline().split())
        self.evicted, self.size, self.unused = (x * self.o.page for x in rest)
        return found

    def held(self):
        return self.size

    def free(self):
        return self.unused

    def begin(self, e):
        n = length(e["prompt"])
        op = "x" if e.get("bypass") else "a"
        words = [op, n + self.o.output - 1, *tokens(e["prompt"])]
        found = self.ask(" ".join(map(str, words)))
        if found < 0:
            return None, -1
        handle = object()
        self.alive.append(handle)
        return handle, found - (found == n)

    def fits(self, e, output):
        return output

    def end(self, handle, output):
        i = self.alive.index(handle)
        del self.alive[i]
        self.ask(f"f {i}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("radix_rs")
    parser.add_argument("build", type=pathlib.Path)
    args = parser.parse_args()
    args.build.mkdir(parents=True, exist_ok=True)
    (args.build / "Cargo.toml").write_text(MANIFEST)
    shutil.copy(args.radix_rs, args.build / "radix.rs")
    shutil.copy(HERE / "driver.rs", args.build)
    subprocess.run(["cargo", "build", "-q", "--release"], cwd=args.build, check=True)
    options = [
        Options(1, 300, 1),
        Options(1, 300, 20),
        Options(1, 700, 8),
        Options(64, 4096, 40),
        Options(64, 4160, 1),
        Options(256, 20000, 100),
        Options(1, 1 << 16, 1),
    ]
    for seed, o in enumerate(options):
        engine = Engine(o, args.build / "target/release/record")
        spare = o.output + o.page + 1
        events = Trace(100 + seed, o.capacity - spare, 200).run(engine)
        engine.process.stdin.close()
        line = {"tgi": "db931fcf", **dataclasses.asdict(o), "events": events}
        print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    main()
