"""Random traces of requests for the scripts that record engines' prefix caches.

Tokens are written as runs [stream, start, length], token() says which ones they
are. An event with a prompt begins a request, which found so many tokens cached;
-1: it found no room. One with an output ends the running request of that index.
After each event stand the tokens evicted so far, held in the cache, and free.
"""

import random


def token(stream, i):
    return (stream * 7919 + i * 31 + i * i % 127) % 50021


def tokens(runs):
    return [token(s, i) for s, start, n in runs for i in range(start, start + n)]


def length(runs):
    return sum(n for _, _, n in runs)


class Trace:
    """A random trace: conversations that grow, branch and start again."""

    def __init__(self, seed, most, count):
        """most is the longest prompt that the cache holds; count is of events."""
        self.rng, self.most, self.count = random.Random(seed), most, count
        self.talks, self.stream = [], 10
        self.scale = most // 12

    def fresh(self, most):
        self.stream += 1
        return [self.stream, self.rng.randrange(3), 1 + self.rng.randrange(most)]

    def request(self):
        r = self.rng
        if not self.talks or r.random() < 0.25:
            system = [r.randrange(3), 0, 1 + r.randrange(self.scale)]
            e = {"prompt": [system, self.fresh(self.scale)]}
            for key, values in (("salt", "ab"), ("lora", "xy"), ("extra", "pq")):
                if r.random() < 0.1:
                    e[key] = r.choice(values)
        else:
            old = r.choice(self.talks[-8:])
            e = {k: v for k, v in old.items() if k in ("salt", "lora", "extra")}
            runs = [list(x) for x in old["prompt"]]
            if r.random() < 0.3:  # asked again from an earlier point
                runs = runs[: 1 + r.randrange(len(runs))]
                runs[-1][2] = 1 + r.randrange(runs[-1][2])
            if r.random() < 0.9:
                runs.append(self.fresh(self.scale))
            e["prompt"] = runs
        if length(e["prompt"]) > self.most:
            return self.request()
        if r.random() < 0.04:
            e["bypass"] = True
        if r.random() < 0.3:
            e["priority"] = r.randrange(4)
        if r.random() < 0.1:
            e["short"] = True
        return e

    def run(self, engine):
        r, running, events = self.rng, [], []
        while len(events) < self.count:
            if running and (len(running) > 3 or r.random() < 0.45):
                self.finish(engine, running, r.randrange(len(running)), events)
                continue
            e = self.request()
            req, cached = engine.begin(e)
            self.note(engine, events, dict(e, cached=cached))
            if req is None:
                if running:
                    self.finish(engine, running, 0, events)
                continue
            running.append((req, e))
            if e.get("short"):
                self.finish(engine, running, len(running) - 1, events)
        return events

    def finish(self, engine, running, i, events):
        req, e = running.pop(i)
        out = self.fresh(self.scale)
        out[2] = 1 if e.get("short") else engine.fits(e, out[2])
        engine.end(req, tokens([out]))
        e = dict(e, prompt=e["prompt"] + [out])
        self.talks.append(e)
        self.note(engine, events, {"end": i, "output": [out]})

    def note(self, engine, events, e):
        e["evicted"], e["held"] = engine.evicted, engine.held()
        e["free"] = engine.free()
        events.append(e)
