"""Tensor programs of networks are found, searched, and compiled with what was found."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import meta_schedule as ms
from tvm import relax
from tvm.target import Target

TARGET = Target("llvm -num-cores=2")


def network() -> tvm.IRModule:
    """Two products of one shape, and a third of another, with weights as parameters."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((8, 16), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((16, 16), "float32"))
    v = relax.Var("v", relax.TensorStructInfo((16, 4), "float32"))
    with builder.function("main", [x, w, v]):
        with builder.dataflow():
            first = builder.emit(relax.op.matmul(x, w))
            second = builder.emit(relax.op.matmul(first, w))
            result = builder.emit_output(relax.op.matmul(second, v))
        builder.emit_func_output(result)
    return relax.transform.LegalizeOps()(builder.get())


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "w": rng.standard_normal((16, 16)).astype("float32"),
        "v": rng.standard_normal((16, 4)).astype("float32"),
    }


def run(executable: relax.Executable, *inputs: np.ndarray) -> np.ndarray:
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return machine["main"](*[tvm.nd.array(x) for x in inputs]).numpy()


def test_programs_that_are_alike_are_one_task():
    tasks = ms.relax_integration.extract_tasks(network(), TARGET)
    assert [task.weight for task in tasks] == [2, 1]
    assert all(list(task.dispatched[0].functions)[0].name_hint == "main" for task in tasks)
    contexts, counts = ms.relax_integration.extracted_tasks_to_tune_contexts(tasks, ".", seed=1)
    assert [c.task_name for c in contexts] == [t.task_name for t in tasks]
    assert counts == [2.0, 1.0]


def test_what_was_found_is_compiled(tmp_path: Path):
    mod, params = network(), weights()
    database = ms.relax_integration.tune_relax(
        mod,
        params,
        TARGET,
        str(tmp_path),
        max_trials_global=4,
        num_trials_per_iter=2,
        cost_model="random",
        strategy="replay-trace",
        seed=3,
    )
    assert len(database) == 4
    with TARGET:
        applied = relax.transform.MetaScheduleApplyDatabase(str(tmp_path))(mod)
    programs = [f for f in applied.functions.values() if isinstance(f, tvm.tir.PrimFunc)]
    assert programs
    assert all(f.attrs["tir.is_scheduled"] for f in programs)
    executable = ms.relax_integration.compile_relax(database, mod, TARGET, params)
    x = np.random.default_rng(1).standard_normal((8, 16)).astype("float32")
    wanted = x @ params["w"] @ params["w"] @ params["v"]
    np.testing.assert_allclose(run(executable, x), wanted, rtol=1e-4, atol=1e-4)


def test_programs_without_a_record_stay(caplog: pytest.LogCaptureFixture):
    mod = network()
    with TARGET, ms.database.MemoryDatabase(), caplog.at_level(logging.WARNING):
        applied = relax.transform.MetaScheduleApplyDatabase(enable_warning=True)(mod)
    tvm.ir.assert_structural_equal(applied, mod)
    assert "no record of matmul" in caplog.text


def test_passes_ask_for_what_they_need(tmp_path: Path):
    with pytest.raises(ValueError, match="no target"):
        relax.transform.MetaScheduleApplyDatabase()(network())
    with TARGET, pytest.raises(ValueError, match="no database"):
        relax.transform.MetaScheduleApplyDatabase()(network())
    tune = relax.transform.MetaScheduleTuneIRMod({}, str(tmp_path), 1, op_names=["conv"])
    with TARGET, pytest.raises(ValueError, match="LegalizeOps"):
        tune(network())


@pytest.mark.parametrize("benchmark", [False, True])
def test_a_few_attempts_give_schedules_that_compute_the_same(benchmark: bool):
    mod, params = network(), weights()
    with TARGET:
        after = relax.transform.FewShotTuning(valid_count=2, benchmark=benchmark)(mod)
    programs = [f for f in after.functions.values() if isinstance(f, tvm.tir.PrimFunc)]
    assert programs and all(f.attrs["tir.is_scheduled"] for f in programs)
    x = np.random.default_rng(1).standard_normal((8, 16)).astype("float32")
    bound = relax.transform.BindParams("main", params)(after)
    wanted = x @ params["w"] @ params["w"] @ params["v"]
    np.testing.assert_allclose(run(relax.build(bound, TARGET), x), wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="no target"):
        relax.transform.FewShotTuning()(mod)


def graph() -> tvm.IRModule:
    """A product, a sum and a maximum, as operators."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((8, 16), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((16, 16), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, w))
            result = builder.emit_output(relax.op.nn.relu(relax.op.add(product, x)))
        builder.emit_func_output(result)
    return builder.get()


def check_graph(mod: tvm.IRModule) -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((8, 16), (16, 16)))
    vm = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
    result = vm["main"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
    np.testing.assert_allclose(result, np.maximum(x @ w + x, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_graphs_are_lowered_to_be_searched(fused: bool, tmp_path: Path) -> None:
    mod = relax.get_pipeline("zero")(graph()) if fused else graph()
    with TARGET:
        searched = relax.transform.MetaScheduleTuneTIR(str(tmp_path), 3)(mod)
        tvm.ir.assert_structural_equal(searched, mod)
        applied = relax.transform.MetaScheduleApplyDatabase(str(tmp_path))(mod)
    programs = [f for f in applied.functions.values() if isinstance(f, tvm.tir.PrimFunc)]
    assert len(programs) == (1 if fused else 3)
    assert any("tir.is_scheduled" in f.attrs for f in programs)
    check_graph(applied)


def test_a_pipeline_searches_and_applies(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    pipeline = relax.get_pipeline(
        "static_shape_tuning", target=str(TARGET), total_trials=2, work_dir=str(folder)
    )
    mod = pipeline(graph())
    assert len(ms.database.JSONDatabase(work_dir=str(folder)))
    assert any(isinstance(f, tvm.tir.PrimFunc) for f in mod.functions.values())
    check_graph(mod)
