"""What the plugin hot.c counted, by function."""
import bisect
import collections
import os
import re
import subprocess


class Symbols:
    """The guest's functions by address: (name, module), of the kernel itself "kernel"."""

    def __init__(self, path):
        with open(path) as file:
            rows = [line.split() for line in file]
        rows = sorted((int(at, 16), name, module) for at, kind, name, *module in rows if kind in "tTwW")
        self.starts = [at for at, _, _ in rows]
        plain = subprocess.run(["c++filt"], input="\n".join(name for _, name, _ in rows), capture_output=True, text=True, check=True)
        names = [re.sub(r"\[[0-9a-f]{16}\]", "", name) for name in plain.stdout.splitlines()]
        self.names = [(name, "".join(module).strip("[]") or "kernel") for name, (_, _, module) in zip(names, rows)]

    def find(self, at):
        if at < 1 << 63:
            return ("programs", "programs")
        index = bisect.bisect_right(self.starts, at) - 1
        return self.names[index] if index >= 0 else ("unknown", "kernel")


def counts(symbols, path):
    """Instructions so far by function."""
    found = collections.Counter()
    with open(path) as file:
        for line in file:
            at, instructions, times = line.split()
            found[symbols.find(int(at, 16))] += int(instructions) * int(times)
    return found


def costs(directory, requests):
    """{run: {(function, module): instructions a request}} of the runs that the file `profiled` names. Each wrote its counts three
    times: before it, after a short part and after one that is `requests` longer."""
    symbols = Symbols(os.path.join(directory, "kallsyms"))
    with open(os.path.join(directory, "profiled")) as file:
        runs = file.read().splitlines()
    found = {}
    for at, name in enumerate(runs):
        before, short, long = (counts(symbols, os.path.join(directory, f"hot.{3 * at + n}")) for n in range(3))
        found[name] = {what: (long[what] - 2 * short[what] + before[what]) / requests for what in long}
    return found
