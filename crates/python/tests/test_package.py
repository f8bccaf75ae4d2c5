"""Results are the command's own bytes, errors say where, tables read as Arrow, the lock is free."""

import threading
import time

import pytest

import fairlift

OPTIONS = {"device": "nvme", "scheduler": ["none", "mq-deadline"], "seed": 3}
WORDS = ["--device", "nvme", "--scheduler", "none,mq-deadline", "--seed", "3"]


def test_compare_gives_the_commands_bytes(folder, command):
    found = fairlift.compare("small.fio", **OPTIONS)
    assert found.table == command("compare", "small.fio", *WORDS)
    assert found.json == command("compare", "small.fio", *WORDS, "--output-format", "json")
    assert found.csv == command("compare", "small.fio", *WORDS, "--output-format", "csv")


def test_run_gives_fios_report(folder, command):
    found = fairlift.run("small.fio", device="hdd", set={"mq-deadline.fifo_batch": 1, "job.db.iodepth": 4})
    words = ["--device", "hdd", "--set", "mq-deadline.fifo_batch=1", "--set", "job.db.iodepth=4"]
    assert found.json == command("run", "small.fio", *words, "--output-format", "json")
    assert found.data["jobs"][0]["jobname"] == "db"


def test_replay_gives_the_commands_bytes(folder, command):
    found = fairlift.replay("t.blkparse", device="hdd", kernel="6.12", timing="closed")
    words = ["replay", "t.blkparse", "--timing", "closed", "--kernel", "6.12", "--device", "hdd"]
    assert found.table == command(*words)
    assert found.json == command(*words, "--output-format", "json")


def test_a_scenario_is_changed_and_runs(folder):
    base = fairlift.Scenario(jobs=["small.fio"], device=fairlift.Device("nvme"), runtime="30ms")
    shallow = base.with_(device=fairlift.Device("nvme").changed({"limits.queue_depth": 1}))
    rows = [scenario.run().to_arrow().to_pylist() for scenario in (base, shallow)]
    assert rows[0][0]["job"] == rows[1][0]["job"] == "db"
    assert rows[0][0]["clat_p99_ns"] < rows[1][0]["clat_p99_ns"], "a queue of one makes the database wait"
    assert "queue depth" in fairlift.Device("nvme").changed({"limits.queue_depth": 7}).describe()


def test_tables_read_as_arrow_and_polars(folder):
    found = fairlift.compare("small.fio", **OPTIONS)
    arrow, polars = found.to_arrow(), found.to_polars()
    assert arrow.num_rows == len(polars) == 4
    assert arrow.column_names == polars.columns
    assert arrow["clat_p99_ns"].to_pylist() == polars["clat_p99_ns"].to_list()
    assert str(arrow.schema.field("clat_p99_ns").type) == "double"
    rows = found.rows
    first, second = rows.to_arrow(), rows.to_arrow()
    address = [table["clat_p99_ns"].chunk(0).buffers()[1].address for table in (first, second)]
    assert address[0] == address[1], "two readers see the same memory: nothing was copied"


def test_tables_read_as_pandas(folder):
    pytest.importorskip("pandas")
    found = fairlift.compare("small.fio", **OPTIONS)
    arrow, pandas = found.to_arrow(), found.to_pandas()
    assert arrow.column_names == list(pandas.columns)
    assert arrow["clat_p99_ns"].to_pylist() == list(pandas["clat_p99_ns"])


def test_errors_have_file_and_line(folder):
    (folder / "wrong.fio").write_text("[a]\nrw=raed\nsize=1m\n")
    with pytest.raises(fairlift.Error) as caught:
        fairlift.compare("wrong.fio", device="nvme")
    assert (caught.value.file, caught.value.line) == ("wrong.fio", 2)
    assert "raed" in str(caught.value)
    with pytest.raises(fairlift.Error, match="did you mean 'nvme'|no device of that name"):
        fairlift.compare("small.fio", device="nvem")
    with pytest.raises(fairlift.Error, match="cannot read 'gone.fio'"):
        fairlift.run("gone.fio", device="nvme")


def test_a_notebook_shows_the_page(folder):
    html = fairlift.compare("small.fio", **OPTIONS)._repr_html_()
    assert html.startswith("<iframe") and "svg" in html and "mq-deadline" in html


def test_the_lock_is_free_while_it_runs(folder):
    counted = 0
    done = threading.Event()

    def work():
        fairlift.run("small.fio", device="nvme", runtime="4s")
        done.set()

    thread = threading.Thread(target=work)
    start = time.monotonic()
    thread.start()
    while not done.is_set() and time.monotonic() - start < 120:
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 10, "nobody else could run"


def test_a_sweep_gives_the_commands_bytes(folder, command):
    found = fairlift.sweep("small.toml", threads=2, output="here")
    command("sweep", "small.toml", "--output", "there")
    for name in ("results.csv", "results.parquet", "page.html"):
        assert (folder / "here" / name).read_bytes() == (folder / "there" / name).read_bytes(), name
    assert found.rows.shape[0] == 80
    assert [best.circumstance["device"] for best in found.best] == ["nvme", "sata-ssd"]
    import pyarrow.parquet

    parquet = pyarrow.parquet.read_table(folder / "here" / "results.parquet")
    assert parquet.to_pylist() == found.to_arrow().to_pylist()
