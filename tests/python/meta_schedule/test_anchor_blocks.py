"""Schedules found for one program, for others that are about the same block."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import meta_schedule as ms
from tvm import relax, te, tir
from tvm.ir import IRModule
from tvm.meta_schedule.module_equality import equality_of
from tvm.meta_schedule.trace_apply import schedule_using_anchor_trace
from tvm.script import tir as T
from tvm.target import Target

CPU = Target("llvm -num-cores 2")
N = 32


def _product(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, N), name="k")
    return te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def _each(name: str, function: Callable[..., Any], *tensors: te.Tensor) -> te.Tensor:
    return te.compute((N, N), lambda i, j: function(*(t[i, j] for t in tensors)), name=name)


def _plain(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return _product(a, b)


def _relu(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return _each("relu", lambda x: te.max(x, tir.const(0.0, x.dtype)), _product(a, b))


def _two(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return _each("tanh", te.tanh, _each("add", lambda x, y: x + y, _product(a, b), a))


def _around(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    twice = _each("twice", lambda x: x * 2, a)
    return _each("one", lambda x: x + 1, _product(twice, b))


PROGRAMS = {"plain": _plain, "relu": _relu, "two": _two, "around": _around}
EXPECTED = {
    "plain": lambda a, b: a @ b,
    "relu": lambda a, b: np.maximum(a @ b, 0),
    "two": lambda a, b: np.tanh(a @ b + a),
    "around": lambda a, b: 2 * a @ b + 1,
}


def _module(name: str) -> IRModule:
    a, b = (te.placeholder((N, N), name=n) for n in "AB")
    return IRModule({"main": te.create_prim_func([a, b, PROGRAMS[name](a, b)])})


def _candidate(mod: IRModule, target: Target, seed: int) -> tir.Schedule:
    context = ms.TuneContext(
        mod, target=target, space_generator="post-order-apply", search_strategy="replay-trace",
        rand_state=seed,
    )  # fmt: skip
    context.pre_tuning(max_trials=1, num_trials_per_iter=1)
    found = context.generate_measure_candidates()
    context.post_tuning()
    assert found
    return found[0].sch


def _check(sch: tir.Schedule, name: str, target: Target) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(N, N)).astype("float32") for _ in range(2))
    device = tvm.device(target.kind.name, 0)
    arrays = [tvm.nd.array(x, device) for x in (a, b, np.zeros_like(a))]
    tvm.build(sch.mod, target=target)(*arrays)
    np.testing.assert_allclose(arrays[-1].numpy(), EXPECTED[name](a, b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("found", "other"), itertools.product(PROGRAMS, PROGRAMS))
def test_traces_serve_programs_with_other_blocks_around(found: str, other: str) -> None:
    for seed in range(3):
        trace = _candidate(_module(found), CPU, seed).trace
        sch = tir.Schedule(_module(other))
        schedule_using_anchor_trace(sch, trace, CPU)
        _check(sch, other, CPU)
        text = sch.mod.script()
        # The sum has the tiles of the trace, and no loop nest runs on one core alone.
        assert "SSRSRS" in text
        nests = text.split("\n    for ")[1:]
        assert all("T.parallel" in nest for nest in nests)


@pytest.mark.parametrize(("found", "other"), [("relu", "two"), ("plain", "relu"), ("two", "plain")])
def test_traces_of_graphics_processors_bind_what_they_do_not_know(found: str, other: str) -> None:
    target = tvm.target.emulated("cuda")
    trace = _candidate(_module(found), target, 1).trace
    sch = tir.Schedule(_module(other))
    schedule_using_anchor_trace(sch, trace, target)
    _check(sch, other, target)


def test_steps_for_another_anchor_are_refused() -> None:
    trace = _candidate(_module("plain"), CPU, 0).trace
    a = te.placeholder((7,), name="A")
    k = te.reduce_axis((0, 7), name="k")
    total = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="C")
    with pytest.raises(tir.ScheduleError):
        schedule_using_anchor_trace(tir.Schedule(te.create_prim_func([a, total])), trace, CPU)


@pytest.mark.parametrize("kind", ["memory", "json"])
def test_databases_answer_for_programs_of_the_same_anchor(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"module_equality": "anchor-block"}
    if kind == "json":
        options["work_dir"] = tmp_path
    database = ms.database.create(kind, **options)
    mod = _module("relu")
    workload = database.commit_workload(mod)
    trace = _candidate(mod, CPU, 0).trace
    database.commit_tuning_record(ms.database.TuningRecord(trace, workload, [1.0], CPU))
    if kind == "json":
        plain = ms.database.JSONDatabase(work_dir=tmp_path)
        assert plain.has_workload(mod) and not plain.has_workload(_module("two"))
        database = ms.database.JSONDatabase(**options)
    for name in PROGRAMS:
        assert database.has_workload(_module(name))
        sch = database.query_schedule(_module(name), CPU)
        assert sch is not None
        _check(sch, name, CPU)
    # Records made by hand are of workloads that are told apart by their structure.
    by_hand = ms.database.TuningRecord(trace, ms.database.Workload(mod), [0.5], CPU)
    database.commit_tuning_record(by_hand)
    assert database.query_tuning_record(_module("two"), CPU).run_secs == [0.5]


def _constant(values: list[float]) -> IRModule:
    @T.prim_func
    def main(c: T.handle):
        C = T.match_buffer(c, (4,))
        data = T.allocate_const(values, "float32", [4])
        constant = T.decl_buffer((4,), data=data)
        for i in range(4):
            C[i] = constant[i]

    return IRModule({"main": main})


def test_what_counts_of_a_module() -> None:
    a, b = _constant([1.0, 2.0, 3.0, 4.0]), _constant([1.0, 2.0, 3.0, 5.0])
    relu, two = _module("relu"), _module("two")
    for name, constants, anchors in (
        ("structural", False, False),
        ("ignore-ndarray", True, False),
        ("anchor-block", True, True),
    ):
        equality = equality_of(name)
        assert equality.equal(a, b) is constants
        assert (equality.hash(a) == equality.hash(b)) is constants
        assert equality.equal(relu, two) is anchors
        assert not equality.equal(a, relu) and equality.equal(relu, relu)
    with pytest.raises(ValueError, match="one of 'structural', 'ignore-ndarray', 'anchor-block'"):
        ms.database.create("memory", module_equality="names")


def test_tasks_of_one_anchor_are_one() -> None:
    a, b = (relax.Var(n, relax.TensorStructInfo((N, N), "float32")) for n in "ab")
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        with builder.dataflow():
            x = builder.emit(builder.call_te(_relu, a, b, primfunc_name_hint="first"))
            y = builder.emit_output(builder.call_te(_two, x, b, primfunc_name_hint="second"))
        builder.emit_func_output(y)
    mod = builder.get()
    assert len(ms.relax_integration.extract_tasks(mod, CPU)) == 2
    (task,) = ms.relax_integration.extract_tasks(mod, CPU, module_equality="anchor-block")
    assert task.weight == 2 and task.task_name == "first"

    database = ms.database.create("memory", module_equality="anchor-block")
    trace = _candidate(task.dispatched[0], CPU, 0).trace
    workload = database.commit_workload(task.dispatched[0])
    database.commit_tuning_record(ms.database.TuningRecord(trace, workload, [1.0], CPU))
    executable = ms.relax_integration.compile_relax(database, mod, CPU)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(N, N)).astype("float32") for _ in range(2)]
    found = relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tvm.nd.array, values)).numpy()
    inner = EXPECTED["relu"](*values)
    np.testing.assert_allclose(found, EXPECTED["two"](inner, values[1]), rtol=1e-4, atol=1e-4)
