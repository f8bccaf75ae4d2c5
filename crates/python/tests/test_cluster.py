"""The same rows, bit by bit, on real local clusters; a worker that is killed loses nothing and nothing counts twice."""

import os
import signal
import threading
import time

import pytest

import fairlift
from fairlift._cluster import Bundle, Chunks, Ticket, make

#: Long enough that a worker can be killed on the way.
SEEDS = 10


@pytest.fixture
def alone(folder):
    """results.csv of one process."""
    fairlift.sweep("small.toml", output="alone", threads=1)
    return (folder / "alone" / "results.csv").read_bytes()


def runs(path):
    lines = (path / "results.log").read_text().splitlines()
    return [line.split("\t")[1] for line in lines if line.startswith(("R", "E"))]


@pytest.mark.parametrize("workers", [2, 4])
def test_dask_gives_the_same_rows(folder, alone, workers):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            fairlift.sweep("small.toml", output="dask", client=client, chunk_s=0.05)
    assert (folder / "dask" / "results.csv").read_bytes() == alone


def test_a_killed_dask_worker_loses_nothing_and_nothing_counts_twice(folder, alone):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            killed = threading.Event()

            def kill():
                log = folder / "dask" / "results.log"
                while not (log.exists() and len(log.read_text().splitlines()) > 8):
                    time.sleep(0.005)
                os.kill(pids[0], signal.SIGKILL)
                killed.set()

            thread = threading.Thread(target=kill)
            thread.start()
            fairlift.sweep("small.toml", output="dask", client=client, chunk_s=0.05)
            thread.join(timeout=60)
            assert killed.is_set()
    assert (folder / "dask" / "results.csv").read_bytes() == alone
    made = runs(folder / "dask")
    assert len(made) == len(set(made)) == 8 * SEEDS


@pytest.mark.parametrize("workers", [2, 4])
def test_ray_gives_the_same_rows(folder, alone, workers):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    try:
        fairlift.sweep("small.toml", output="ray", client=ray, chunk_s=0.05)
    finally:
        ray.shutdown()
    assert (folder / "ray" / "results.csv").read_bytes() == alone


def test_a_killed_ray_worker_loses_nothing_and_nothing_counts_twice(folder, alone):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    @ray.remote
    def pid():
        return os.getpid()

    try:
        pids = {ray.get(pid.remote()) for _ in range(4)}
        killed = threading.Event()

        def kill():
            log = folder / "ray" / "results.log"
            while not (log.exists() and len(log.read_text().splitlines()) > 8):
                time.sleep(0.005)
            for one in pids:
                try:
                    os.kill(one, signal.SIGKILL)
                    killed.set()
                except ProcessLookupError:
                    pass

        thread = threading.Thread(target=kill)
        thread.start()
        fairlift.sweep("small.toml", output="ray", client=ray, chunk_s=0.05)
        thread.join(timeout=60)
        assert killed.is_set()
    finally:
        ray.shutdown()
    assert (folder / "ray" / "results.csv").read_bytes() == alone
    made = runs(folder / "ray")
    assert len(made) == len(set(made)) == 8 * SEEDS


def test_halving_runs_on_a_cluster_too(folder):
    distributed = pytest.importorskip("distributed")
    text = (folder / "small.toml").read_text() + '[halving]\nby = "seeds"\nstart = 2\n'
    (folder / "small.toml").write_text(text)
    fairlift.sweep("small.toml", output="alone", threads=1)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            fairlift.sweep("small.toml", output="dask", client=client)
    assert (folder / "dask" / "results.csv").read_bytes() == (folder / "alone" / "results.csv").read_bytes()


def test_only_engines_are_clients(folder):
    with pytest.raises(TypeError, match="allowed: a distributed.Client, or the module ray"):
        fairlift.sweep("small.toml", output="x", client=object())


def test_workers_get_what_is_beside_the_sweep_file_only(folder):
    with pytest.raises(fairlift.Error, match="not beside"):
        Bundle("small.toml", [("../small.fio", "small.fio")])


def test_a_worker_of_another_version_refuses(folder):
    ticket = Bundle("small.toml", [("small.fio", "small.fio")]).ticket
    with pytest.raises(fairlift.Error, match="is installed on a worker"):
        make(Ticket(ticket.digest, "0.0.1"), lambda: None, [0])


def test_chunks_grow_with_what_runs_cost():
    chunks = Chunks(2.0)
    assert chunks.size() == 4
    chunks.measured("L\ta\nR\t1\t1000\t0\t1.0\nE\t2\t3000\tno space\n")
    assert chunks.size() == 1000
    chunks.measured("R\t3\t8000000\t0\t1.0\n")
    assert chunks.size() == 1
