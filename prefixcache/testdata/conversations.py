"""Growing and branching conversations as token IDs, the same ones for every engine.

A step describes a prompt by an earlier one, so that a recording stays small and can be sent again to an engine whose
model answers otherwise: the prompt is the first `keep` tokens of the prompt and the output of the step `base` (both
together, cut to what there is), without the part that `cut` names by its start and length, and `new` after them.
"""

LONG = 48  # tokens that a step generates which another one runs beside


class Random:
    """The generator of 64 bits that Knuth gives in his MMIX; Python's own may change."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def ids(self, n, low=100, high=1000):
        return [low + self.below(high - low) for _ in range(n)]


def steps(seed, count, longest, salts=False, bypass=False, slots=0, together=True, long=1, cuts=False):
    """Returns the steps as dictionaries: `base`, `keep`, `new`, `max` (tokens to generate) and, where set, `eos` (the
    model may end the answer earlier), `salt`, `bypass` (the engine does not read its cache), `slot` (its number
    plus one), `cut` (see prompt) and `beside` (begins and ends while the step before it runs).

    longest bounds prompt and output, in tokens; long multiplies what a turn adds; with cuts some turns lack a part of what
    was before them, as when an application forgets old messages.
    """
    r = Random(seed)
    systems = [[1] + r.ids(n) for n in (23, 70, 150)]  # system prompts that conversations share
    conversations, where = [], []  # the steps of each conversation, the conversation of each step
    length = []  # of each step's prompt and output
    found = []
    for i in range(count):
        beside = i > 0 and found[-1].pop("guest", False)
        base, keep, new, room = -1, 0, [], longest - LONG
        kind = r.below(100)
        if conversations and kind < 85:
            # most turns go on with a conversation of late
            turns = conversations[max(0, len(conversations) - 1 - min(r.below(6), r.below(12)))]
            if kind < 58:
                base = turns[-1]
            else:
                base = turns[r.below(len(turns))]
            if kind < 42:  # grows
                keep, new = length[base], r.ids(long * (5 + r.below(60)))
            elif kind < 58:  # the last answer was made text and tokens again: its end differs
                keep, new = max(0, length[base] - 1 - r.below(3)), r.ids(4 + r.below(30))
            elif kind < 70:  # branches off in the middle
                keep, new = r.below(length[base] + 1), r.ids(long * (1 + r.below(90)))
            elif kind < 78:  # sent once more, but for the last tokens
                keep = max(1, length[base] - r.below(20))
            else:  # goes on from an earlier turn
                keep, new = length[base], r.ids(long * (1 + r.below(40)))
            if keep + len(new) > room or (beside and base == i - 1):
                base = -1
        if base < 0:
            keep, new = 0, (systems[r.below(len(systems))] if r.below(4) else [1]) + r.ids(long * (3 + r.below(120)))
        step = {"base": base, "keep": keep, "new": new, "max": 1 + r.below(12)}
        if base >= 0:
            where.append(where[base])
            if "salt" in found[base]:
                step["salt"] = found[base]["salt"]
        else:
            where.append(len(conversations))
            conversations.append([])
            if salts and r.below(5) == 0:
                step["salt"] = "tenant"
        conversations[where[i]].append(i)
        if cuts and keep > 60 and r.below(3) == 0:
            step["cut"] = [r.below(keep - 40), 1 + r.below(39)]
        if bypass and r.below(20) == 0:
            step["bypass"] = True
        if slots and r.below(5) == 0:
            step["slot"] = 1 + r.below(slots)
        if beside:
            step["beside"] = True
        elif together and i + 1 < count and r.below(4) == 0:
            step["guest"], step["max"] = True, LONG
        elif r.below(4) == 0:
            step["eos"] = True
        found.append(step)
        length.append(keep - step.get("cut", [0, 0])[1] + len(new) + step["max"])
    return found


def prompt(step, done):
    """The prompt's IDs. done are the (prompt, output) of the steps before."""
    before = []
    if step["base"] >= 0:
        p, o = done[step["base"]]
        before = (p + o)[: step["keep"]]
    if "cut" in step:
        at, n = step["cut"]
        before = before[:at] + before[at + n :]
    return before + step["new"]
