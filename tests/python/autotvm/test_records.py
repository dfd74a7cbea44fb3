"""Record files: both protocols, damage, the best of many, and look-ups by context."""

from __future__ import annotations

import base64
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import tvm
from testing_templates import matmul, matmul_task
from tvm import autotvm
from tvm.autotvm import MeasureInput, MeasureResult
from tvm.autotvm.record import decode, encode, load_from_file, measure_str_key, pick_best


def _pair(index: int, seconds: float, n: int = 64) -> tuple[MeasureInput, MeasureResult]:
    task = matmul_task(n, n, n)
    assert task.config_space is not None
    point = task.config_space.get(index)
    return MeasureInput(task.target, task, point), MeasureResult((seconds,), 0, 0.1, 7.0)


@pytest.mark.parametrize("protocol", ["json", "pickle"])
def test_what_is_written_is_read(protocol: str) -> None:
    inp, result = _pair(9, 0.5)
    found = decode(encode(inp, result, protocol), protocol)
    assert found is not None
    assert measure_str_key(found[0]) == measure_str_key(inp) and found[1] == result
    assert found[0].task.workload == inp.task.workload


def test_the_format_is_that_of_autotvm() -> None:
    inp, result = _pair(9, 0.5)
    record = json.loads(encode(inp, result))
    assert record["input"][1:] == ["tests/matmul", [64, 64, 64], {}]
    assert record["config"]["entity"] == [["tile_y", "sp", [-1, 4]], ["tile_x", "sp", [-1, 2]]]
    assert record["result"] == [[0.5], 0, 0.1, 7.0] and record["version"] == 0.2


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return print, ("executed",)


def test_damaged_and_hostile_lines_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = encode(*_pair(1, 0.1))
    path = tmp_path / "log.json"
    for bad in (
        "{",
        "[]",
        "{}",
        good.replace("tests/matmul", "nobody/knows"),
        good.replace('"sp"', '"xx"'),
        good.replace("[[0.1], 0", "[[-1], 0"),
        good.replace("[[0.1], 0", "[[], 0"),
    ):
        path.write_text(good + "\n" + bad + "\n")
        if bad == "{}":
            assert len(list(load_from_file(path))) == 1
            continue
        with pytest.raises(ValueError, match=r"log\.json:2: "):
            list(load_from_file(path))
    row = "\t".join(base64.b64encode(pickle.dumps(_Evil())).decode() for _ in range(4))
    with pytest.raises(ValueError, match="no plain value"):
        decode(row, "pickle")
    assert "executed" not in capsys.readouterr().out
    with pytest.raises(ValueError, match="unknown protocol"):
        encode(*_pair(0, 1.0), protocol="xml")


def test_failures_are_written_and_never_win(tmp_path: Path) -> None:
    inp, result = _pair(3, 0.5)
    log = tmp_path / "log.json"
    failed = MeasureResult((RuntimeError("x"),), 4, 0.1, 7.0)
    autotvm.callback.log_to_file(log)(None, [_pair(4, 0.1)[0], inp], [failed, result])
    assert [int(r.error_no) for _, r in load_from_file(log)] == [4, 0]
    best = autotvm.apply_history_best(log)
    assert str(best.query(inp.target, inp.task.workload)) == str(inp.config)
    assert pick_best(log, tmp_path / "best.json") == 1
    assert len(list(load_from_file(tmp_path / "best.json"))) == 1


def test_the_best_is_found_in_anything_that_holds_records(tmp_path: Path) -> None:
    pairs = [_pair(i, s) for i, s in ((1, 0.3), (2, 0.1), (3, 0.2))]
    path = tmp_path / "a.log"
    path.write_text("".join(encode(*pair) + "\n" for pair in pairs))
    want = str(pairs[1][0].config)
    target, workload = pairs[0][0].target, pairs[0][0].task.workload
    for records in (
        path,
        str(path),
        [path, str(path)],
        io.StringIO(path.read_text()),
        pairs,
        iter(pairs),
        zip([path]),
        zip([iter(pairs[:1]), iter(pairs[1:])]),
    ):
        assert str(autotvm.apply_history_best(records).query(target, workload)) == want
    with pytest.raises(TypeError, match="expected files or pairs"):
        autotvm.apply_history_best(7)


def test_contexts_choose_what_a_template_is_run_with() -> None:
    assert isinstance(autotvm.DispatchContext.current, autotvm.FallbackContext)
    inp, result = _pair(10, 0.1, 32)
    rng = np.random.default_rng(0)
    a, b = (rng.random((32, 32), dtype="float32") for _ in range(2))
    with autotvm.apply_history_best([(inp, result)]) as best, tvm.target.Target("llvm"):
        assert autotvm.DispatchContext.current is best
        schedule, args = matmul(32, 32, 32)
        sizes = [int(v.dom.extent) for v in schedule[args[-1]].leaf_iter_vars if v.dom is not None]
        assert sizes
        assert "tile" not in str(tvm.lower(schedule, args))
        function = tvm.build(schedule, args)
        # Another size is unknown here and asked of the context around.
        matmul(16, 16, 16)
    assert isinstance(autotvm.DispatchContext.current, autotvm.FallbackContext)
    out = tvm.nd.empty((32, 32))
    function(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)
    with pytest.raises(RuntimeError, match="no current target"):
        autotvm.apply_history_best([(inp, result)]).query(None, inp.task.workload)


def test_tophub_reads_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inp, result = _pair(2, 0.1)
    (tmp_path / "llvm.log").write_text(encode(inp, result) + "\n")
    monkeypatch.setenv("AUTOTVM_TOPHUB_ROOT_PATH", str(tmp_path))
    with autotvm.tophub.context("llvm") as context:
        assert str(context.query(inp.target, inp.task.workload)) == str(inp.config)
    monkeypatch.setenv("AUTOTVM_TOPHUB_ROOT_PATH", "NONE")
    assert isinstance(autotvm.tophub.context("llvm"), autotvm.utils.EmptyContext)
