"""Record lines from anywhere: read, or refused with a ValueError."""

from __future__ import annotations

import copy
import json
import random

import pytest

import testing_graphs as graphs_of
import tvm
from tvm import auto_scheduler
from tvm.auto_scheduler.measure_record import (
    dump_record_to_string,
    load_best_record,
    load_input,
    load_record_from_string,
    load_records,
)

RECORD = {
    "i": [
        [
            '["test_matmul", 256, 128, 64]',
            "llvm -keys=cpu",
            [8, 64, 64, 0, 0, 0, 0, 0],
            "",
            1,
            [],
        ],
        [
            [],
            [
                ["SP", 2, 0, 256, [16], 1],
                ["SP", 2, 2, 128, [16], 1],
                ["RE", 2, [0, 2, 4, 1, 3]],
                ["CHW", 2, "local"],
                ["CR", 3],
                ["FU", 3, [0, 1]],
                ["AN", 3, 0, 3],
                ["PR", 3, 0, "auto_unroll_max_step$64"],
            ],
        ],
    ],
    "r": [[0.000213], 0, 0.84, 1700000000],
    "v": "v0.6",
}
WRONG = [None, True, -1, 99, 2**40, 1.5, float("nan"), "", "x", [], [[]], {}, {"a": 1}, [1, "x"]]


def places(value, path=()):
    """Paths to all values inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        yield (*path, key)
        if isinstance(child, (dict, list)):
            yield from places(child, (*path, key))


def damaged_record(rng: random.Random) -> str:
    record = copy.deepcopy(RECORD)
    for _ in range(rng.randint(1, 2)):
        *path, last = rng.choice(list(places(record)))
        holder = record
        for key in path:
            holder = holder[key]
        if rng.randrange(4) == 0:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(rng.choice(WRONG))
    return json.dumps(record)


def test_record_of_the_example_is_read():
    measure_input, result = load_record_from_string(json.dumps(RECORD))
    assert json.loads(dump_record_to_string(measure_input, result))["i"][1] == RECORD["i"][1]


def test_a_file_that_holds_no_records_is_refused_in_one_line(tmp_path, caplog):
    path = tmp_path / "program.py"
    path.write_text("\nimport torch\nfrom torch import nn\n")
    for read in (load_records, auto_scheduler.RecordReader):
        with pytest.raises(
            ValueError, match=r"program\.py is no record file: it begins with 'import"
        ):
            list(read(path))
    assert not caplog.records
    # What a run leaves that was killed while it wrote its first record.
    path.write_text(json.dumps(RECORD)[:100])
    assert list(load_records(path)) == []


def test_damaged_records_are_refused_or_usable():
    rng = random.Random(3)
    refused = 0
    for _ in range(150):
        text = damaged_record(rng)
        try:
            measure_input, _ = load_record_from_string(text)
            repr(measure_input)
            str(measure_input.state)
        except ValueError as error:
            assert not isinstance(error, tvm.error.InternalError)
            refused += 1
    assert refused > 50


def test_damaged_text_of_a_record_is_refused_or_usable():
    rng = random.Random(4)
    text = json.dumps(RECORD)
    for _ in range(150):
        try:
            load_record_from_string(graphs_of.damaged_text(text, rng))
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r.update(r=[1, 2]), r'record: "r" must be a list \[costs, error_no, '),
        (lambda r: r["r"][0].__setitem__(0, "1"), r"costs\[0\] must be a finite number, got '1'"),
        (lambda r: r["r"].__setitem__(2, float("nan")), "all_cost must be a finite number"),
        (lambda r: r["r"].__setitem__(1, 10**30), "error_no must be an integer of 32 bits"),
        (lambda r: r.update(e=["x"]), '"e" must be a text'),
        (lambda r: r["i"][0].__setitem__(0, 5), "workload_key must be a text, got 5"),
        (lambda r: r["i"][0].__setitem__(0, "\ud800"), "workload_key must be a text"),
        (lambda r: r["i"][0].__setitem__(1, 7), "target must be a text"),
        (lambda r: r["i"][0][2].__setitem__(1, None), "hardware: vector_unit_bytes must be"),
        (lambda r: r["i"][0].append(1), r"the task must be a list \[workload_key, target, "),
        (lambda r: r["i"][0].__setitem__(5, {}), "task_inputs must be a list"),
        (lambda r: r["i"][1].__setitem__(1, 3), "steps must be a list, got 3"),
        (lambda r: r["i"][1][1].__setitem__(4, [2**70]), r"steps\[4\]: .* 64-bit"),
        (lambda r: r["i"][1][1].__setitem__(4, ["x" * 10**6]), r"steps\[4\]: (.|\n){,600}$"),
        (lambda r: r["i"][1][1].__setitem__(0, ["SP", 7, 0, 256, [16], 1]), "7"),
        (lambda r: r["i"][1][1].__setitem__(0, "SP"), r"steps\[0\] must be a list, got 'SP'"),
        (lambda r: r.update(i=None), r"the input must be a list \[task, state\], got None"),
    ],
)
def test_damaged_record_names_what_is_wrong(edit, message):
    record = copy.deepcopy(RECORD)
    edit(record)
    with pytest.raises(ValueError, match=message):
        load_record_from_string(json.dumps(record))


def test_damaged_line_is_named_with_its_file(tmp_path):
    path = tmp_path / "records.json"
    path.write_text(json.dumps(RECORD) + "\n" + json.dumps({**RECORD, "r": 3}) + "\n")
    with pytest.raises(ValueError, match=r"records\.json:2: "):
        list(load_records(path))
    with pytest.raises(ValueError, match=r"records\.json:2: "):
        load_best_record(path)


@pytest.mark.parametrize("line", ["{}", "[]", "null", "3"])
def test_what_looks_for_the_best_record_says_the_same_of_a_line(tmp_path, line):
    path = tmp_path / "records.json"
    path.write_text(f"{json.dumps(RECORD)}\n{line}\n")
    for read in (load_best_record, auto_scheduler.ApplyHistoryBest):
        with pytest.raises(
            ValueError, match='records.json:2: .*an object with the keys "i" and "r'
        ):
            read(str(path))


def test_deeply_nested_line_is_skipped_like_a_torn_one(tmp_path):
    path = tmp_path / "records.json"
    path.write_text("[" * 100_000 + "\n" + json.dumps(RECORD) + "\n")
    assert len(list(load_records(path))) == 1


def test_measure_input_of_another_shape_is_refused():
    for text in ("3", "[]", "[[], []]", "{}", '["a", "b"]'):
        with pytest.raises(ValueError, match="measure input"):
            load_input(text)


def test_steps_of_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="XX"):
        auto_scheduler.measure_record.steps_from_json([["XX", 1]])
