"""Traces from fsspec's file systems, and files that travel to each machine once."""

import multiprocessing
import os
import tempfile
import time

import pytest

import fairlift
from fairlift import _remote

SWEEP = """goal = "lowest mean"
seeds = 2
[fixed]
trace = "web.blkparse"
kernel = "6.12"
[over]
device = ["nvme", "sata-ssd"]
[vary]
scheduler = ["none", "mq-deadline", "kyber", "bfq"]
"""


@pytest.fixture
def own(folder, monkeypatch):
    """Nothing has been fetched on this machine."""
    place = folder / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return folder


def test_traces_come_from_file_systems(own):
    fsspec = pytest.importorskip("fsspec")
    data = (own / "t.blkparse").read_bytes()
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/t.blkparse", data)
    plain = fairlift.replay("t.blkparse", device="nvme").to_arrow()
    assert fairlift.replay("memory://bucket/t.blkparse", device="nvme").to_arrow() == plain
    assert fairlift.replay(f"file://{own}/t.blkparse", device="nvme").to_arrow() == plain
    assert fairlift.read_trace("memory://bucket/t.blkparse").shape[0] == 3
    memory.pipe("/bucket/t.blkparse", data + data.splitlines()[-1].replace(b"0.002", b"0.003") + b"\n")
    assert fairlift.read_trace("memory://bucket/t.blkparse").shape[0] == 4, "it has changed there"


def test_urls_that_lead_nowhere_are_errors(own):
    pytest.importorskip("fsspec")
    for url in ("memory://bucket/gone.bin", f"file://{own}/gone.bin", "nosuch://a/b"):
        with pytest.raises(fairlift.Error, match="cannot read"):
            fairlift.replay(url, device="nvme")


def _slowly(name, made):
    def make(place):
        time.sleep(0.2)
        (place / "x").write_text("x")
        with open(made, "a") as file:
            file.write("made\n")

    _remote.once(name, make)


def test_what_several_processes_want_is_made_once(own):
    made = own / "made"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_slowly, args=("thing", made)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert made.read_text() == "made\n"


def test_what_a_killed_process_left_is_made_again(own):
    part = _remote.folder() / "thing.part"
    part.mkdir()
    (part / "half").write_text("h")
    place = _remote.once("thing", lambda folder: (folder / "whole").write_text("w") and None)
    assert [path.name for path in place.iterdir()] == ["whole"]


def test_a_folder_of_somebody_else_is_refused(own):
    place = own / "tmp" / f"fairlift-{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(fairlift.Error, match="only this user"):
        _remote.folder()


def test_a_sweeps_trace_comes_from_storage_to_each_machine_once(own):
    distributed = pytest.importorskip("distributed")
    (own / "store").mkdir()
    (own / "store" / "web.blkparse").write_bytes((own / "t.blkparse").read_bytes())
    (own / "web.toml").write_text(SWEEP)
    url = f"file://{own}/store/web.blkparse"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            seen = []
            watch = lambda sweep: seen.append(sweep.rows.shape[0])  # noqa: E731
            fairlift.sweep("web.toml", output="dask", client=client, chunk_s=0.01, files={"web.blkparse": url}, watch=watch)
            asked = client.run(lambda: len(__import__("fairlift._cluster")._cluster.shipped))
    assert (own / "web.blkparse").read_bytes() == (own / "t.blkparse").read_bytes(), "the rows' commands run here"
    assert sum(asked.values()) == 1, "two workers of one machine ask for the files once"
    assert seen == sorted(seen) and len(seen) > 2 and seen[-1] == 16, "results come as they are made"
    fairlift.sweep("web.toml", output="alone", threads=1)
    assert (own / "dask" / "results.csv").read_bytes() == (own / "alone" / "results.csv").read_bytes()
    (own / "store" / "web.blkparse").write_bytes((own / "t.blkparse").read_bytes() * 2)
    (own / "web.toml").write_text(SWEEP.replace("seeds = 2", "seeds = 1"))
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            with pytest.raises(fairlift.Error, match="is not the file 'web.blkparse'"):
                fairlift.sweep("web.toml", output="changed", client=client, files={"web.blkparse": url})


def test_workers_of_one_process_read_memory(own):
    """``memory://`` is a process of its own, so the workers have to be in it."""
    distributed = pytest.importorskip("distributed")
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/store/web.blkparse", (own / "t.blkparse").read_bytes())
    (own / "web.toml").write_text(SWEEP)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        found = fairlift.sweep("web.toml", output="dask", client=client, files={"web.blkparse": "memory://store/web.blkparse"})
    assert found.rows.shape[0] == 16 and set(found.to_arrow()["error"].to_pylist()) == {None}
