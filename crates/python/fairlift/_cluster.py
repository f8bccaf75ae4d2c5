"""A sweep's runs on many machines, by an engine that people run: Dask's ``distributed`` or Ray.

The engine moves the work and notices machines that die. All that is here: cut the runs into chunks of about the same time, keep a few
chunks per worker under way, and write down what comes back. A run that comes back twice counts once.

A chunk travels with a ticket, not with the files: the first process of a machine that has no files for the ticket asks the engine for
them and unpacks them, the others of that machine find them there.
"""

# `distributed` has no types for some of its calls.
# mypy: allow-untyped-calls

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from . import _fairlift, _remote

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


class Bundle:
    """The files that runs need, by their names beside the sweep file; of those that have a URL, where and what they are."""

    def __init__(self, file: str, named: list[tuple[str, str]], urls: Mapping[str, str] = {}) -> None:  # noqa: B006 - never changed
        self.files = {_SWEEP: Path(file).read_bytes()}
        self.urls: dict[str, tuple[str, str]] = {}
        for name, path in named:
            if os.path.isabs(name) or ".." in PurePosixPath(name).parts:
                raise _fairlift.Error(f"'{name}' is not beside the sweep file, and workers get what is beside it")
            if name in urls:
                self.urls[name] = (urls[name], _remote.sha256(Path(path)))
            else:
                self.files[name] = Path(path).read_bytes()
        parts = [(name, data) for name, data in self.files.items()]
        parts += [(name, "\n".join(place).encode()) for name, place in self.urls.items()]
        digest = hashlib.sha256()
        for name, data in sorted(parts):
            digest.update(f"{len(name)} {name} {len(data)} ".encode() + data)
        self.ticket = Ticket(digest.hexdigest(), _fairlift.__version__)

    def unpack(self, folder: Path) -> None:
        """Write the files; those that have a URL come from there."""
        for name, data in self.files.items():
            _place(folder, name).write_bytes(data)
        for name, (url, sha256) in self.urls.items():
            fetched = _remote.fetched(url)
            if _remote.sha256(fetched) != sha256:
                raise _fairlift.Error(f"'{url}' is not the file '{name}' that lies beside the sweep file")
            _place(folder, name).symlink_to(fetched)


def _place(folder: Path, name: str) -> Path:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


@dataclass(frozen=True)
class Ticket:
    """Names a bundle, and the fairlift that its runs are for."""

    digest: str
    version: str


_workers: dict[str, _fairlift.Worker] = {}
_lock = threading.Lock()
#: Bundles that this process has asked the engine for.
shipped: list[str] = []


def make(ticket: Ticket, bundle: Callable[[], Bundle], numbers: list[int]) -> str:
    """A chunk's runs, where the worker is; ``bundle`` asks the engine for the files."""
    with _lock:
        if ticket.digest not in _workers:
            _workers[ticket.digest] = _worker(ticket, bundle)
        worker = _workers[ticket.digest]
    return worker.run(numbers)


def _worker(ticket: Ticket, bundle: Callable[[], Bundle]) -> _fairlift.Worker:
    if ticket.version != _fairlift.__version__:
        raise _fairlift.Error(f"fairlift {_fairlift.__version__} is installed on a worker, and the sweep is of {ticket.version}")

    def unpack(folder: Path) -> None:
        shipped.append(ticket.digest)
        bundle().unpack(folder)

    return _fairlift.Worker(str(_remote.once(f"sweep-{ticket.digest}", unpack) / _SWEEP))


class Engine(Protocol):
    """Who runs chunks."""

    def workers(self) -> int:
        """How many chunks run at a time."""

    def submit(self, numbers: list[int]) -> None:
        """Have a chunk run somewhere."""

    def next(self) -> str:
        """The next chunk that is done, whichever."""

    def close(self) -> None:
        """Nothing more will be asked."""


@dataclass(frozen=True)
class DaskBundle:
    """Asks Dask for the bundle, within a task."""

    variable: str

    def __call__(self) -> Bundle:
        from distributed import Variable, get_client

        bundle: Bundle = Variable(self.variable, client=get_client()).get(timeout=60).result(timeout=600)
        return bundle


class Dask:
    """``distributed``: the scheduler runs a chunk again whose worker has died."""

    def __init__(self, client: Any, bundle: Bundle) -> None:
        from distributed import Variable, as_completed

        self._client = client
        self._bundle = bundle
        self._there: Any = None
        self._variable = Variable(f"fairlift-{bundle.ticket.digest}-{id(self)}", client=client)
        self._done = as_completed()
        self._under_way: dict[str, list[int]] = {}
        self._failed = 0

    def workers(self) -> int:
        return sum(self._client.nthreads().values())

    def submit(self, numbers: list[int]) -> None:
        if self._there is None:
            # To one worker: the others have it from there, or need none.
            self._there = self._client.scatter(self._bundle, hash=False)
            self._variable.set(self._there)
        future = self._client.submit(make, self._bundle.ticket, DaskBundle(self._variable.name), numbers, pure=False)
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
            # The files went with the worker that had them, or a chunk was there when too many workers died.
            self._failed += 1
            if self._failed > _FAILURES_MAX:
                future.result()
                raise RuntimeError(f"the cluster gave up a chunk {self._failed} times: {future.status}")
            self._there = None
            self.submit(numbers)

    def close(self) -> None:
        self._variable.delete()


@dataclass(frozen=True)
class RayBundle:
    """Asks Ray's store for the bundle, within a task. A reference in a list is fetched by nobody who does not ask."""

    reference: list[Any]

    def __call__(self) -> Bundle:
        import ray

        bundle: Bundle = ray.get(self.reference[0])
        return bundle


class Ray:
    """Ray: a task whose worker has died runs again."""

    def __init__(self, ray: Any, bundle: Bundle) -> None:
        self._ray = ray
        self._ticket = bundle.ticket
        self._bundle = RayBundle([ray.put(bundle)])
        self._make = ray.remote(num_cpus=1, max_retries=-1)(make)
        self._under_way: list[Any] = []

    def workers(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, numbers: list[int]) -> None:
        self._under_way.append(self._make.remote(self._ticket, self._bundle, numbers))

    def next(self) -> str:
        [done], self._under_way = self._ray.wait(self._under_way, num_returns=1)
        made: str = self._ray.get(done)
        return made

    def close(self) -> None:
        pass


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


def run_on(client: Any, sweep: _fairlift.Sweep, bundle: Bundle, chunk_s: float, watch: Callable[[], object]) -> None:
    """Make all runs of a sweep on an engine's workers, rung by rung; ``watch`` is called when results have come."""
    engine = engine_of(client, bundle)
    chunks = Chunks(chunk_s)
    try:
        while True:
            _rung(engine, sweep, chunks, watch)
            if not sweep.advance():
                return
    finally:
        engine.close()


def _rung(engine: Engine, sweep: _fairlift.Sweep, chunks: Chunks, watch: Callable[[], object]) -> None:
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
        watch()
