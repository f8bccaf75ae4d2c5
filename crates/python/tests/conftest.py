"""Files that tests run, and the command whose bytes the package must give."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

JOBS = """[global]
direct=1
ioengine=libaio
size=64m
time_based=1
runtime=100ms
[db]
rw=randread
bs=4k
iodepth=2
[batch]
rw=write
bs=128k
iodepth=8
"""

SWEEP = """goal = "p99 of db < 20 ms, then bandwidth of batch"
seeds = 10
[fixed]
jobs = "small.fio"
runtime = "30ms"
[over]
device = ["nvme", "sata-ssd"]
[vary]
scheduler = ["none", "mq-deadline", "kyber"]
"mq-deadline.fifo_batch" = [1, 16]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "small.fio").write_text(JOBS)
    (tmp_path / "small.toml").write_text(SWEEP)
    (tmp_path / "t.blkparse").write_text(
        "8,0 0 1 0.000000000 10 Q R 0 + 8 [a]\n8,0 0 2 0.001000000 10 Q R 800 + 8 [a]\n"
        "8,0 0 3 0.002000000 11 Q W 4000 + 64 [b]\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def command():
    path = os.environ.get("FAIRLIFT") or shutil.which("fairlift")
    if path is None:
        pytest.skip("the command fairlift is not here (FAIRLIFT names it)")
    path = str(Path(path).resolve())

    def run(*words):
        done = subprocess.run([path, *words], capture_output=True, check=True)
        return done.stdout.decode()

    return run
