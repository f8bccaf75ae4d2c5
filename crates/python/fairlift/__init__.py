"""Compare block I/O schedulers on fio jobs and traces, in a deterministic simulation.

The functions do what the command ``fairlift`` does, with the same bytes as results:

>>> import fairlift
>>> found = fairlift.compare("job.fio", device="nvme")     # doctest: +SKIP
>>> found.table                                            # doctest: +SKIP
>>> found.to_pandas()                                      # doctest: +SKIP

Wrong input raises :class:`Error` with ``file`` and ``line``. The interpreter's lock is free while a simulation runs, so threads help.
"""

from __future__ import annotations

import json as _json
import os as _os
import warnings as _warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Union

from . import _fairlift, _remote
from ._fairlift import Error, __version__
from ._tables import Shown, Table

__all__ = [
    "Best", "Comparison", "Device", "Error", "Scenario", "Sweep", "Table", "__version__",
    "compare", "read_trace", "replay", "run", "sweep",
]

StrPath = Union[str, "_os.PathLike[str]"]


@dataclass(frozen=True)
class Device:
    """A modelled device: a kind (``nvme``, ``hdd``), a preset, or a device file; with fields of it changed.

    >>> Device("nvme").changed({"limits.queue_depth": 8}).name
    'nvme:limits.queue_depth=8'
    """

    base: str
    changes: tuple[tuple[str, str], ...] = ()

    def changed(self, changes: Mapping[str, object]) -> Device:
        """The device with these fields (``SECTION.KEY``) changed."""
        return replace(self, changes=self.changes + tuple((key, _word(value)) for key, value in changes.items()))

    @property
    def name(self) -> str:
        """What was asked for."""
        return ":".join([self.base, *(f"{key}={value}" for key, value in self.changes)])

    def describe(self) -> str:
        """All its parameters, as ``fairlift devices NAME`` prints them."""
        return _fairlift.device(self.base, list(self.changes))[1]


@dataclass(frozen=True)
class Scenario:
    """What runs on what: fio job files or one scenario file, or fio's own options, or programs, with the command's options."""

    jobs: Sequence[StrPath] = ()
    #: fio's options (``["--name=r", "--rw=randread"]``) or programs, as behind ``--``.
    behind: Sequence[str] = ()
    device: Union[str, Device, None] = None
    scheduler: Union[str, Sequence[str], None] = None
    #: ``{"mq-deadline.fifo_batch": 4, "group./db.weight": 300, "job.db.iodepth": 8, "device.limits.queue_depth": 8}``
    set: Mapping[str, object] = field(default_factory=dict)
    seed: Union[int, None] = None
    runtime: Union[str, None] = None
    kernel: Union[str, None] = None
    filesystem: Union[str, None] = None
    mount: Union[str, None] = None
    case: Union[str, None] = None
    threads: Union[int, None] = None
    explain: bool = False
    #: Write what the block layer did to this file, as ``--trace``; :func:`read_trace` makes a table of it.
    trace_to: Union[StrPath, None] = None

    def with_(self, **changes: Any) -> Scenario:
        """The same with these fields changed; ``set`` is added to what is set."""
        if "set" in changes:
            changes["set"] = {**self.set, **changes["set"]}
        return replace(self, **changes)

    def words(self, command: str) -> list[str]:
        """The command line, behind ``fairlift``."""
        words = [command, *(_os.fspath(job) for job in self.jobs), *_options(self)]
        if self.behind:
            words += ["--", *self.behind]
        return words

    def compare(self) -> Comparison:
        """Under several schedulers, as ``fairlift compare``."""
        return Comparison._of(self.words("compare"))

    def run(self) -> Comparison:
        """Under one scheduler, as ``fairlift run``: its JSON is fio's."""
        return Comparison._of(self.words("run"))


class Comparison(Shown):
    """Results of ``compare``, ``run`` or ``replay``. In a notebook it shows as the report's tables and figures."""

    def __init__(self, native: _fairlift.Compared) -> None:
        self._native = native

    @classmethod
    def _of(cls, words: list[str]) -> Comparison:
        return cls._told(_fairlift.compared(words))

    @classmethod
    def _told(cls, native: _fairlift.Compared) -> Comparison:
        for text in native.warnings:
            _warnings.warn(text, stacklevel=5)
        return cls(native)

    @property
    def table(self) -> str:
        """What the command prints."""
        return self._native.table

    @property
    def json(self) -> str:
        """What it prints with ``--output-format json``."""
        return self._native.json

    @property
    def csv(self) -> str:
        """What it prints with ``--output-format csv``."""
        return self._native.csv

    @property
    def data(self) -> Any:
        """The JSON as Python's own objects."""
        return _json.loads(self.json)

    @property
    def rows(self) -> Table:
        """The CSV's rows, typed."""
        return Table(self._native.rows())

    def page(self) -> str:
        """The report as one HTML page."""
        return self._native.page()

    def __repr__(self) -> str:
        return self.table


@dataclass(frozen=True)
class Best:
    """The best settings of a sweep under one circumstance."""

    circumstance: dict[str, str]
    settings: dict[str, str]
    #: The command of its first run.
    command: str
    #: The goal's figures by column: means over the seeds.
    figures: dict[str, float]


class Sweep(Shown):
    """A sweep with the results that are there."""

    def __init__(self, native: _fairlift.Sweep, folder: Path) -> None:
        self._native = native
        #: Where its files are: results.csv, results.parquet, page.html.
        self.folder = folder

    @property
    def rows(self) -> Table:
        """A row for each run, with its settings, its command and its figures."""
        return Table(self._native.rows())

    @property
    def best(self) -> list[Best]:
        """The best settings of each circumstance."""
        parts = self._native.best()
        return [Best(dict(over), dict(settings), command, dict(figures)) for over, settings, command, figures in parts]

    def page(self) -> str:
        """Pareto fronts, what each setting is worth, the best to paste: one HTML page."""
        return self._native.page()

    def __repr__(self) -> str:
        return self._native.summary()


def compare(*jobs: StrPath, **options: Any) -> Comparison:
    """Run jobs under several schedulers: ``compare("job.fio", device="nvme", scheduler=["none", "bfq"])``.

    The options are the fields of :class:`Scenario`.
    """
    return Scenario(jobs=jobs, **options).compare()


def run(*jobs: StrPath, **options: Any) -> Comparison:
    """Run jobs under one scheduler; the options are the fields of :class:`Scenario`."""
    return Scenario(jobs=jobs, **options).run()


def replay(
    trace: Union[StrPath, Any],
    *,
    device: Union[str, Device, Sequence[str], None] = None,
    scheduler: Union[str, Sequence[str], None] = None,
    timing: Union[str, None] = None,
    only: Sequence[str] = (),
    set: Mapping[str, object] = {},  # noqa: B006 - never changed
    seed: Union[int, None] = None,
    kernel: Union[str, None] = None,
    explain: bool = False,
    threads: Union[int, None] = None,
    trace_to: Union[StrPath, None] = None,
) -> Comparison:
    """Replay a block trace under each scheduler, on each device, as ``fairlift replay``.

    The trace is a file of any format that docs/traces.md names, a URL for fsspec (``s3://bucket/trace.bin``), or a table that reads as
    Arrow (a ``pyarrow.Table``, a polars or pandas frame, what :func:`read_trace` gives), whose columns are those of the CSV format.
    """
    is_table = hasattr(trace, "__arrow_c_stream__")
    words = ["replay", "table" if is_table else _local(trace)]
    words += _named({"timing": timing, "only": ",".join(only) or None, "seed": seed, "kernel": kernel, "threads": threads})
    words += _of_device(device) + _named({"scheduler": _listed(scheduler), "trace": _path(trace_to)})
    words += _settings(set) + (["--explain"] if explain else [])
    if is_table:
        return Comparison._told(_fairlift.replayed(words, trace))
    return Comparison._of(words)


def read_trace(trace: StrPath, *, format: Union[str, None] = None, keep_going: bool = False, sort: Union[int, None] = None) -> Table:
    """The events of a block trace as a table, with the columns of the CSV format (docs/traces.md); a cell without a value is null.

    The trace is a file of any format that docs/traces.md names, or a URL for fsspec. ``format``, ``keep_going`` and ``sort`` are the
    options of ``fairlift inspect``.
    """
    words = [_local(trace), *_named({"format": format, "sort": sort})] + (["--keep-going"] if keep_going else [])
    return Table(_fairlift.read_trace(words))


def sweep(
    file: StrPath,
    *,
    output: Union[StrPath, None] = None,
    threads: Union[int, None] = None,
    client: Any = None,
    chunk_s: float = 2.0,
    files: Mapping[str, str] = {},  # noqa: B006 - never changed
    watch: Union[Callable[[Sweep], object], None] = None,
) -> Sweep:
    """Make all runs of a sweep file, or go on with it, as ``fairlift sweep``; see docs/sweep.md for the file.

    ``client`` is who runs them instead of this process: a ``distributed.Client``, or the module ``ray`` after ``ray.init()``. Runs
    travel in chunks of about ``chunk_s`` seconds, and the results are the same, whoever made them. ``watch`` is called with the sweep
    each time a chunk's results have come; its ``rows`` are those that are there.

    ``files`` has URLs for fsspec of files that the sweep file names: ``{"web.bin": "s3://bucket/web.bin"}``. One that does not lie
    beside the sweep file is put there; each machine of the cluster fetches it once.
    """
    file = _os.fspath(file)
    for name, url in files.items():
        _beside(Path(file).parent / name, url)
    folder = Path(_os.fspath(output)) if output is not None else Path(f"{Path(file).stem}-results")
    native = _fairlift.Sweep(file, folder)
    found = Sweep(native, folder)
    if client is None:
        if watch is not None:
            raise ValueError("watch needs a client: in this process all runs are made in one call")
        native.run(threads)
    else:
        from ._cluster import Bundle, run_on

        run_on(client, native, Bundle(file, native.files(), files), chunk_s, lambda: watch and watch(found))
    native.write()
    return found


# ---- files and URLs ------------------------------------------------------------------------------------------------------


def _local(name: StrPath) -> str:
    """A file on this machine."""
    return str(_remote.fetched(name)) if isinstance(name, str) and _remote.is_url(name) else _os.fspath(name)


def _path(name: Union[StrPath, None]) -> Union[str, None]:
    return None if name is None else _os.fspath(name)


def _beside(place: Path, url: str) -> None:
    """Fetch a file that is not there."""
    if not place.exists():
        import shutil

        part = place.with_name(place.name + ".part")
        shutil.copyfile(_remote.fetched(url), part)
        part.rename(place)


# ---- words of a command line ---------------------------------------------------------------------------------------------


def _options(scenario: Scenario) -> list[str]:
    words = _of_device(scenario.device)
    words += _named({
        "scheduler": _listed(scenario.scheduler),
        **{name.name: getattr(scenario, name.name) for name in fields(scenario)
           if name.name in ("seed", "runtime", "kernel", "filesystem", "mount", "case", "threads")},
        "trace": _path(scenario.trace_to),
    })
    return words + _settings(scenario.set) + (["--explain"] if scenario.explain else [])


def _named(options: Mapping[str, object]) -> list[str]:
    given = ((name, value) for name, value in options.items() if value is not None)
    return [word for name, value in given for word in (f"--{name}", _word(value))]


def _settings(settings: Mapping[str, object]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={_word(value)}")]


def _of_device(device: Union[str, Device, Sequence[str], None]) -> list[str]:
    if isinstance(device, Device):
        return ["--device", device.base] + _settings({f"device.{key}": value for key, value in device.changes})
    return _named({"device": _listed(device)})


def _listed(names: Union[str, Iterable[str], None]) -> Union[str, None]:
    return names if names is None or isinstance(names, str) else ",".join(names)


def _word(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
