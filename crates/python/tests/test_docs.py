"""The examples of docs/python.md run as they stand there: each block of the page is a test; what needs a cluster of somebody's is read."""

import ast
from pathlib import Path

import pytest

import fairlift

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
SWEEP = """goal = "lowest p99 of db"
[fixed]
jobs = "job.fio"
device = "nvme"
[vary]
scheduler = ["none", "mq-deadline"]
"""
#: Blocks that need what no test has.
NEEDS = ("tcp://scheduler", "SLURMCluster", "s3://")


def blocks():
    parts = PAGE.read_text().split("```python\n")[1:]
    return [part.split("```")[0] for part in parts]


@pytest.fixture
def here(folder):
    (folder / "job.fio").write_text((folder / "small.fio").read_text())
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "t.blkparse").rename(folder / "sda.bin")
    return folder


def test_the_page_has_examples():
    assert len(blocks()) > 4


def test_examples_run_one_after_the_other(here):
    for library in ("optuna", "scipy", "pandas"):
        pytest.importorskip(library)
    names = {"fairlift": fairlift}
    run = 0
    for block in blocks():
        ast.parse(block)
        if any(need in block for need in NEEDS):
            continue
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
        run += 1
    assert run > 3
    assert names["study"].best_value > 0 and names["lowest"].fun > 0


def test_examples_name_what_there_is():
    """Blocks that are not run name functions and options that exist."""
    for block in blocks():
        for call in (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)):
            of = call.func
            if isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name) and of.value.id == "fairlift":
                function = getattr(fairlift, of.attr)
                if of.attr in ("sweep", "replay", "read_trace"):
                    import inspect

                    allowed = inspect.signature(function).parameters
                    assert all(word.arg in allowed for word in call.keywords), ast.unparse(call)
