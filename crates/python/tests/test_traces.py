"""Traces as Arrow, in and out: the same replay as of the file, and errors that say where."""

import pytest

import fairlift

WORDS = ["replay", "t.blkparse", "--kernel", "6.12", "--device", "nvme"]
OPTIONS = {"kernel": "6.12", "device": "nvme"}
NUMBERS = [
    "time_ns", "sector", "skew_bytes", "bytes", "pid", "cpu", "sequence", "error", "cgroup", "ioprio", "response_ns",
]


def rows_of(csv):
    """What must be the same, whatever the trace is called."""
    return [row for row in csv.splitlines() if not row.startswith("#")]


def test_a_trace_reads_as_a_table(folder):
    table = fairlift.read_trace("t.blkparse")
    rows = table.to_arrow().to_pylist()
    assert [row["action"] for row in rows] == ["queue"] * 3
    assert [row["time_ns"] for row in rows] == [0, 1_000_000, 2_000_000]
    assert rows[2]["op"] == "write" and rows[2]["sector"] == 4000 and rows[2]["bytes"] == 64 * 512
    assert rows[0]["response_ns"] is None and rows[0]["detail"] is None
    schema = table.to_arrow().schema
    assert all("int" in str(schema.field(name).type) for name in NUMBERS)
    assert table.to_polars()["sector"].to_list() == [0, 800, 4000]


@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas", "own"])
def test_a_table_replays_as_the_file_does(folder, command, kind):
    if kind == "pandas":
        pytest.importorskip("pandas")
    table = fairlift.read_trace("t.blkparse")
    table = table if kind == "own" else getattr(table, f"to_{kind}")()
    found = fairlift.replay(table, **OPTIONS)
    assert rows_of(found.csv) == rows_of(command(*WORDS, "--output-format", "csv"))


def test_columns_of_ones_own_and_dictionaries_replay(folder):
    import pyarrow as pa

    ops = pa.array(["read", "write", "read"]).dictionary_encode()
    short = pa.table({"time_ms": [0.0, 0.5, 1.25], "offset_bytes": pa.array([0, 4096, 1 << 20], pa.uint32()), "kib": [4, 8, 16], "op": ops})
    (folder / "same.csv").write_text("time_ms,offset_bytes,kib,op\n0,0,4,read\n0.5,4096,8,write\n1.25,1048576,16,read\n")
    assert rows_of(fairlift.replay(short, **OPTIONS).csv) == rows_of(fairlift.replay("same.csv", **OPTIONS).csv)


def test_batches_are_streamed(folder):
    import pyarrow as pa

    given = []

    def batches():
        for number in range(50):
            given.append(number)
            yield pa.record_batch({"time_us": [10 * number], "sector": [8 * number], "bytes": [4096], "op": ["read"]})

    first = next(batches())
    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    found = fairlift.replay(reader, **OPTIONS)
    assert "50 I/Os" in found.table and len(given) == 51


def test_what_the_block_layer_did_comes_out_and_goes_in_again(folder):
    fairlift.run("small.fio", device="nvme", runtime="20ms", trace_to="out.bin")
    table = fairlift.read_trace("out.bin")
    rows = table.to_arrow()
    assert {"queue", "issue", "complete"} <= set(rows["action"].to_pylist())
    fairlift.replay(table, **OPTIONS)
    for text, name in [("file", "out.bin"), ("table", table)]:
        fairlift.replay(name, **OPTIONS, timing="closed", trace_to=f"{text}.csv")
    names = sorted(path.name for path in folder.glob("file*.csv"))
    assert names
    for name in names:
        assert (folder / name).read_bytes() == (folder / name.replace("file", "table")).read_bytes()


def test_a_large_trace_has_several_batches_and_all_rows(folder):
    lines = ["time_us,sector,bytes,op", *(f"{n},{8 * (n % 1000)},4096,read" for n in range(150_000))]
    (folder / "large.csv").write_text("\n".join(lines) + "\n")
    table = fairlift.read_trace("large.csv")
    assert table.shape[0] == 150_000
    arrow = table.to_arrow()
    assert arrow["time_ns"].num_chunks == 3
    assert arrow["time_ns"].to_pylist() == [1000 * n for n in range(150_000)]


def test_wrong_tables_say_what_is_wrong(folder):
    import pyarrow as pa

    def replayed(**columns):
        with pytest.raises(fairlift.Error) as caught:
            fairlift.replay(pa.table(columns), **OPTIONS)
        return caught.value

    assert "time_ns" in str(replayed(when=[1], sector=[0], bytes=[512]))
    assert "column 'sector' is of type" in str(replayed(time_ns=[1], sector=[[0]], bytes=[512]))
    wrong = replayed(time_ns=[1, 2], sector=[0, 8], bytes=[512, 512], op=["read", "reed"])
    assert "reed" in str(wrong) and wrong.place.startswith("table:3"), "the line of the row, below the header"
    assert replayed(time_ns=[2, 1], sector=[0, 8], bytes=[512, 512]).place.startswith("table:3"), "time runs backwards"
    with pytest.raises(fairlift.Error, match="cannot|no such"):
        fairlift.read_trace("gone.bin")
    with pytest.raises(fairlift.Error, match="formt|format"):
        fairlift.read_trace("t.blkparse", format="blkprase")


def test_text_with_quotes_commas_and_line_ends_stays_one_cell(folder):
    import pyarrow as pa

    names = ['a "b", c', "d\ne", "ü\\x41"]
    table = pa.table({"time_ns": [0, 1, 2], "sector": [0, 8, 16], "bytes": [512] * 3, "op": ["read"] * 3, "comm": names, "pid": [1, 2, 3]})
    data = fairlift.replay(table, **OPTIONS).data
    assert {process["name"] for process in data["replay"]["processes"]} == {'a "b", c', "d\ne", "üA"}
