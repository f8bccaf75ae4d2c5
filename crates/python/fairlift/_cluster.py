"""A sweep's runs on many machines, by an engine that people run: Dask's ``distributed`` or Ray.

The engine moves the work and notices machines that die. All that is here: cut the runs into chunks of about the same time, keep a few
chunks per worker under way, and write down what comes back. A run that comes back twice counts once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from . import _fairlift

#: The name that a sweep file has where it runs.
_SWEEP = "sweep.toml"
#: Chunks under way for each worker: one that runs and one that waits.
_AHEAD = 2
#: Runs of the first chunks, before any cost is known.
_FIRST_RUNS = 4
#: Runs of a chunk at most: what is lost when a worker dies.
_RUNS_MAX = 10_000

#: Chunks that an engine may give up, one after the other, before the sweep does.
_FAILURES_MAX = 10

_workers: dict[str, _fairlift.Worker] = {}
_lock = threading.Lock()


class Bundle:
    """The files that runs need, by their names beside the sweep file. It goes to each worker once."""

    def __init__(self, file: str, named: list[tuple[str, str]]) -> None:
        self.files = {_SWEEP: Path(file).read_bytes()}
        for name, path in named:
            if os.path.isabs(name) or ".." in PurePosixPath(name).parts:
                raise _fairlift.Error(f"'{name}' is not beside the sweep file, and workers get what is beside it")
            self.files[name] = Path(path).read_bytes()
        digest = hashlib.sha256()
        for name, data in sorted(self.files.items()):
            digest.update(f"{len(name)} {name} {len(data)} ".encode() + data)
        self.digest = digest.hexdigest()

    def worker(self) -> _fairlift.Worker:
        """The worker of this process, made at its first chunk."""
        with _lock:
            if self.digest not in _workers:
                _workers[self.digest] = self._unpacked()
            return _workers[self.digest]

    def _unpacked(self) -> _fairlift.Worker:
        # Runs read their job files when they start, so the folder stays as long as the process; the system cleans its temporary files.
        folder = tempfile.mkdtemp(prefix="fairlift-")
        for name, data in self.files.items():
            place = Path(folder) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        return _fairlift.Worker(str(Path(folder) / _SWEEP))


def make(bundle: Bundle, numbers: list[int]) -> str:
    """A chunk's runs, where the worker is."""
    return bundle.worker().run(numbers)


class Engine(Protocol):
    """What is needed of an engine."""

    def workers(self) -> int:
        """How many chunks can run at a time."""

    def submit(self, numbers: list[int]) -> None:
        """Have a chunk run somewhere."""

    def next(self) -> str:
        """The next chunk that is done, whichever."""


class Dask:
    """``distributed``: the scheduler runs a chunk again whose worker has died."""

    def __init__(self, client: Any, bundle: Bundle) -> None:
        from distributed import as_completed

        self._client = client
        self._bundle = bundle
        self._there: Any = None
        self._done = as_completed()
        self._under_way: dict[str, list[int]] = {}
        self._failed = 0

    def workers(self) -> int:
        return sum(self._client.nthreads().values())

    def submit(self, numbers: list[int]) -> None:
        if self._there is None:
            self._there = self._client.scatter(self._bundle, broadcast=True, hash=False)
        future = self._client.submit(make, self._there, numbers, pure=False)
        self._under_way[future.key] = numbers
        self._done.add(future)

    def next(self) -> str:
        while True:
            future = next(self._done)
            numbers = self._under_way.pop(future.key)
            if future.status == "finished":
                self._failed = 0
                made: str = future.result()
                return made
            # The files went with the last worker that had them, or a chunk was there when too many workers died.
            self._failed += 1
            if self._failed > _FAILURES_MAX:
                future.result()
                raise RuntimeError(f"the cluster gave up a chunk {self._failed} times: {future.status}")
            self._there = None
            self.submit(numbers)


class Ray:
    """Ray: a task whose worker has died runs again."""

    def __init__(self, ray: Any, bundle: Bundle) -> None:
        self._ray = ray
        self._bundle = ray.put(bundle)
        self._make = ray.remote(num_cpus=1, max_retries=-1)(make)
        self._under_way: list[Any] = []

    def workers(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, numbers: list[int]) -> None:
        self._under_way.append(self._make.remote(self._bundle, numbers))

    def next(self) -> str:
        [done], self._under_way = self._ray.wait(self._under_way, num_returns=1)
        made: str = self._ray.get(done)
        return made


def engine_of(client: Any, bundle: Bundle) -> Engine:
    """The engine behind what the caller gave."""
    module = type(client).__module__.split(".")[0]
    if module == "distributed":
        return Dask(client, bundle)
    if getattr(client, "__name__", "") == "ray":
        return Ray(client, bundle)
    raise TypeError(f"client is a {type(client).__qualname__} (allowed: a distributed.Client, or the module ray)")


class Chunks:
    """Cuts runs into chunks that take about ``chunk_s`` each, by what runs have cost so far."""

    def __init__(self, chunk_s: float) -> None:
        self._chunk_us = chunk_s * 1e6
        self._runs = 0
        self._cost_us = 0

    def measured(self, made: str) -> None:
        """Learn what the runs of a chunk have cost."""
        for line in made.splitlines():
            words = line.split("\t", 3)
            if words[0] in ("R", "E"):
                self._runs += 1
                self._cost_us += int(words[2])

    def size(self) -> int:
        """Runs of the next chunk."""
        if not self._runs:
            return _FIRST_RUNS
        mean_us = max(1.0, self._cost_us / self._runs)
        return min(_RUNS_MAX, max(1, round(self._chunk_us / mean_us)))


def run_on(client: Any, sweep: _fairlift.Sweep, file: str, chunk_s: float) -> None:
    """Make all runs of a sweep on an engine's workers, rung by rung."""
    engine = engine_of(client, Bundle(file, sweep.files()))
    chunks = Chunks(chunk_s)
    while True:
        _rung(engine, sweep, chunks)
        if not sweep.advance():
            return


def _rung(engine: Engine, sweep: _fairlift.Sweep, chunks: Chunks) -> None:
    numbers = sweep.pending()
    # The last chunks get smaller: nobody waits long for the last worker.
    pending, left = iter(numbers), len(numbers)
    under_way = 0
    while True:
        workers = engine.workers()
        while under_way < _AHEAD * max(1, workers):
            share = max(1, left // (_AHEAD * max(1, workers)))
            chunk = [number for _, number in zip(range(min(chunks.size(), share)), pending)]
            if not chunk:
                break
            left -= len(chunk)
            engine.submit(chunk)
            under_way += 1
        if not under_way:
            return
        made = engine.next()
        under_way -= 1
        chunks.measured(made)
        sweep.record(made)
