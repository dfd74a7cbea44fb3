"""Points are built and timed in processes of their own; failures are results."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from testing_templates import matmul_task
from tvm import auto_scheduler, autotvm, rpc, te
from tvm.autotvm import MeasureErrorNo, MeasureInput
from tvm.autotvm.task.topi_integration import get_workload


@autotvm.template("tests/picky")
def picky(n: int) -> Any:
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s, cfg = te.create_schedule(b.op), autotvm.get_config()
    cfg.define_knob("mode", ["fine", "refused", "broken"])
    if cfg["mode"].val == "refused":
        cfg.raise_error("this mode is refused")
    if cfg["mode"].val == "broken":
        raise RuntimeError("this mode is broken")
    return s, [a, b]


def _option() -> dict[str, Any]:
    return autotvm.measure_option(
        autotvm.LocalBuilder(n_parallel=2),
        autotvm.LocalRunner(number=1, repeat=2, cooldown_interval=0),
    )


def test_a_batch_has_one_result_a_point() -> None:
    task = autotvm.task.create("tests/picky", (64,), "llvm")
    assert task.flop == 64
    measure = autotvm.create_measure_batch(task, _option())
    inputs = [MeasureInput(task.target, task, point) for point in task.config_space]
    fine, refused, broken = measure(inputs)
    assert fine.error_no == MeasureErrorNo.NO_ERROR and len(fine.costs) == 2
    assert all(0 < cost < 1 for cost in fine.costs)
    assert refused.error_no == broken.error_no == MeasureErrorNo.INSTANTIATION_ERROR
    assert "this mode is refused" in str(refused.costs[0])
    assert "this mode is broken" in str(broken.costs[0])


@pytest.mark.parametrize(
    "tuner", ["RandomTuner", "GridSearchTuner", "GATuner", "XGBTuner", "FelixTuner"]
)
def test_a_template_is_tuned_and_the_best_applied(tuner: str, tmp_path: Path) -> None:
    if tuner == "XGBTuner":
        pytest.importorskip("xgboost")
    task = matmul_task(32, 32, 32)
    log = tmp_path / "matmul.log"
    search = getattr(autotvm.tuner, tuner)(task)
    search.tune(10, _option(), callbacks=[autotvm.callback.log_to_file(log)])
    assert len(log.read_text().splitlines()) == 10
    best = autotvm.apply_history_best(log).query(task.target, task.workload)
    schedule, args = task.instantiate(best)
    function = tvm.build(schedule, args, "llvm")
    rng = np.random.default_rng(0)
    a, b = (rng.random((32, 32), dtype="float32") for _ in range(2))
    out = tvm.nd.empty((32, 32))
    function(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)


def test_programs_are_libraries_for_runners_of_ones_own() -> None:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("linking needs a C compiler")
    task = matmul_task(16, 16, 16)
    point = MeasureInput(task.target, task, task.config_space.get(7))
    builder = autotvm.LocalBuilder(n_parallel=1)
    builder.set_task(task)
    [built] = builder.build([point])
    assert built.error is None and built.arg_info == [((16, 16), "float32")] * 3
    assert tvm.runtime.load_module(built.filename) is not None
    calls: list[str] = []

    def link(path: str, objects: Any, **options: Any) -> None:
        calls.append(path)
        tvm.contrib.cc.create_shared(path, objects, **options)

    linked = autotvm.LocalBuilder(n_parallel=1, build_func=link)
    linked.set_task(task)
    [built] = linked.build([point])
    assert calls == [built.filename] and built.error is None
    runner = autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0)
    runner.set_task(task)
    [result] = runner.run([point], [built])
    assert result.error_no == 0, result.costs


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="builder is 'local'"):
        autotvm.measure_option("remote", "local")
    with pytest.raises(ValueError, match="one runtime"):
        autotvm.LocalBuilder(runtime="crt")
    with pytest.raises(ValueError, match="build_func"):
        autotvm.LocalBuilder(build_func="ndk")
    with pytest.raises(ValueError, match="old name"):
        autotvm.LocalRunner(cooldown_interval=1, coldown_interval=1)
    with pytest.raises(ValueError, match="no template is called 'tests/nobody'"):
        autotvm.task.create("tests/nobody", (), "llvm")


@autotvm.register_topi_compute("tests/scale.cpu")
def scale(cfg: Any, a: te.Tensor, factor: float) -> te.Tensor:
    return te.compute(a.shape, lambda *i: a(*i) * factor, name="scaled")


@autotvm.register_topi_schedule("tests/scale.cpu")
def schedule_scale(cfg: Any, outs: Any) -> te.Schedule:
    [out] = outs
    s = te.create_schedule(out.op)
    anchor = next(
        op for op in [out.op, *(t.op for t in out.op.input_tensors)] if op.name == "scaled"
    )
    axis = anchor.axis[-1]
    cfg.define_split("tile", axis, num_outputs=2)
    cfg["tile"].apply(s, anchor.output(0), axis)
    return s


def test_a_computation_and_its_schedule_are_a_template() -> None:
    a = te.placeholder((4, 24), name="A")
    task = autotvm.task.create("tests/scale.cpu", (a, 2.0), "llvm")
    assert task.workload == ("tests/scale.cpu", ("TENSOR", (4, 24), "float32"), 2.0)
    assert len(task.config_space) == 8
    with tvm.target.Target("llvm"):
        b = scale(a, 2.0)
        # Elementwise work behind does not hide whose schedule it is.
        c = te.compute(b.shape, lambda *i: b(*i) + 1.0)
        assert get_workload([c]) == task.workload
        schedule = schedule_scale([c])
    function = tvm.build(schedule, [a, c], "llvm")
    data, out = np.ones((4, 24), "float32"), tvm.nd.empty((4, 24))
    function(tvm.nd.array(data), out)
    np.testing.assert_array_equal(out.numpy(), data * 2 + 1)
    with pytest.raises(RuntimeError, match="register_topi_compute"):
        schedule_scale([te.compute((2,), lambda i: 1.0)])


def test_points_are_timed_on_devices_of_a_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    task = matmul_task(32, 32, 32)
    tracker = rpc.Tracker(port=0, silent=True)
    address = (tracker.host, tracker.port)
    server = rpc.Server(port=0, key="board", tracker_addr=address, silent=True)
    entries = [autotvm.MeasureInput(task.target, task, task.config_space.get(0))] * 2
    builder = autotvm.LocalBuilder(n_parallel=1)
    seen: list[Any] = []

    def prepare(session: Any, built: Any) -> None:
        seen.append((session.get_function("rpc.test.addone")(1), built.filename))

    for loader in (None, autotvm.measure.default_module_loader(prepare)):
        runner = autotvm.RPCRunner(
            "board", *address, number=1, repeat=2, coldown_interval=0, module_loader=loader
        )
        runner.set_task(task)
        results = runner.run(entries, builder.build(entries))
        assert [result.error_no for result in results] == [0, 0], results[0].costs
        assert all(len(result.costs) == 2 for result in results)
    assert [value for value, _ in seen] == [2, 2]
    assert autotvm.measure.check_remote("llvm", "board", *address)
    assert not autotvm.measure.check_remote("llvm", "phone", *address, timeout=0.1)
    assert auto_scheduler.utils.check_remote("board", *address, priority=2, timeout=10)
    monkeypatch.setenv("TVM_TRACKER_HOST", address[0])
    monkeypatch.setenv("TVM_TRACKER_PORT", str(address[1]))
    with auto_scheduler.utils.request_remote("board") as remote:
        assert remote.get_function("rpc.test.addone")(1) == 2
    monkeypatch.delenv("TVM_TRACKER_PORT")
    with pytest.raises(ValueError, match=r"port \(none\) is no tracker; give host and port"):
        autotvm.measure.request_remote("board")
    with pytest.raises(ValueError, match="give cooldown_interval only"):
        autotvm.RPCRunner("board", *address, cooldown_interval=1, coldown_interval=1)
    server.terminate()
    tracker.terminate()
