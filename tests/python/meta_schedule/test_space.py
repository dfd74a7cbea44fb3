"""Rules and postprocessors: every candidate of every space computes what the module does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from testing_traces import TARGET, matmul_module, outputs_of, shifted_matmul_module, sum_module
from tvm import meta_schedule as ms
from tvm import tir
from tvm.ir import IRModule
from tvm.script import tir as T
from tvm.target import Target

MODULES: dict[str, Callable[[], IRModule]] = {
    "matmul": matmul_module,
    "odd": lambda: matmul_module(7, 30, 49),
    "shifted": shifted_matmul_module,
    "sum": sum_module,
}


def _context(mod: IRModule, **options: Any) -> ms.TuneContext:
    options = {"space_generator": "post-order-apply", "rand_state": 7, **options}
    return ms.TuneContext(mod, target=TARGET, **options)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func"])
def test_candidates_are_right(name: str, strategy: str) -> None:
    mod = MODULES[name]()
    context = _context(mod, search_strategy=strategy)
    context.pre_tuning(max_trials=6, num_trials_per_iter=6)
    candidates = context.generate_measure_candidates()
    assert candidates is not None and len(candidates) == 6
    expected = outputs_of(mod)
    for candidate in candidates:
        np.testing.assert_array_equal(outputs_of(candidate.sch.mod), expected)
        assert [str(info) for info in candidate.args_info] == [
            str(info) for info in ms.ArgInfo.from_entry_func(mod)
        ]
    assert context.generate_measure_candidates() is None
    context.post_tuning()


def test_sketches_of_a_product() -> None:
    spaces = _context(matmul_module()).generate_design_space()
    texts = [str(sch.trace) for sch in spaces]
    # A buffer for the results of a tile at two levels, and none.
    assert len(texts) == 3 and sum("cache_write" in text for text in texts) == 2
    assert all(text.count("sample_perfect_tile") == 3 for text in texts)
    assert all('"meta_schedule.parallel", ann_val=32' in text for text in texts)


def test_inputs_are_inlined_and_the_reader_keeps_the_tile() -> None:
    spaces = _context(shifted_matmul_module()).generate_design_space()
    for sch in spaces:
        assert "shifted" not in str(sch.mod)
    assert any("reverse_compute_at" in str(sch.trace) for sch in spaces)


def test_long_sums_are_factored() -> None:
    spaces = _context(sum_module()).generate_design_space()
    assert sum("rfactor" in str(sch.trace) for sch in spaces) == 2


def test_marks_become_loops() -> None:
    context = _context(matmul_module(64, 64, 64), search_strategy="replay-trace")
    context.pre_tuning(max_trials=8, num_trials_per_iter=8)
    kinds: set[int] = set()
    for candidate in context.generate_measure_candidates() or []:
        assert "meta_schedule.parallel" not in str(candidate.sch.mod)

        def visit(node: Any) -> None:
            if isinstance(node, tir.For):
                kinds.add(int(node.kind))

        tir.stmt_functor.post_order_visit(candidate.sch.mod["main"].body, visit)
    assert {int(tir.ForKind.PARALLEL), int(tir.ForKind.VECTORIZED)} <= kinds


def test_marks_of_one_function_stay_in_it() -> None:
    functions = {"main": matmul_module()["main"], "other": matmul_module(16, 16, 16)["main"]}
    sch = tir.Schedule(IRModule(functions))
    for name in functions:
        sch.annotate(sch.get_block("root", func_name=name), "meta_schedule.parallel", 64)
    assert ms.postproc.RewriteParallelVectorizeUnroll().apply(sch)
    for name in functions:
        assert "T.parallel(" in str(IRModule({"main": sch.mod[name]}))


def test_loops_are_fused_until_there_are_more_jobs_than_the_limit() -> None:
    for limit, jobs in ((16, 32), (32, 32 * 32), (1000, 32 * 32)):
        sch = tir.Schedule(matmul_module(32, 32, 32))
        sch.annotate(sch.get_block("root"), "meta_schedule.parallel", limit)
        assert ms.postproc.RewriteParallelVectorizeUnroll().apply(sch)
        assert f"T.parallel({jobs})" in str(sch.mod)


def test_a_schedule_function_knows_the_name_asked_for() -> None:
    names = []

    def schedule(sch: tir.Schedule) -> bool:
        names.append(str(sch.mod.attrs["task_name"]))
        return True

    database = ms.database.create("schedule", schedule)
    assert database.query_schedule(matmul_module(), Target("llvm"), "dense") is not None
    assert names == ["dense"]


def test_partial_results_of_several_outputs() -> None:
    @T.prim_func
    def argmax(
        index: T.Buffer((4, 1024), "int32"),
        value: T.Buffer((4, 1024), "float32"),
        best: T.Buffer((4,), "int32"),
        most: T.Buffer((4,), "float32"),
    ) -> None:
        for i, k in T.grid(4, 1024):
            with T.block("most"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    best[vi] = -1
                    most[vi] = T.min_value("float32")
                old: T.int32 = T.Select(most[vi] >= value[vi, vk], best[vi], index[vi, vk])
                largest: T.float32 = T.Select(most[vi] >= value[vi, vk], most[vi], value[vi, vk])
                best[vi] = old
                most[vi] = largest

    rule = ms.schedule_rule.AddRFactor(max_jobs_per_core=16, max_innermost_factor=64)
    generator = ms.space_generator.PostOrderApply(sch_rules=[rule], postprocs=[], mutator_probs={})
    mod = IRModule({"main": argmax.with_attr("global_symbol", "main")})
    context = ms.TuneContext(mod, target=Target("llvm -num-cores=8"), space_generator=generator)
    assert len(context.generate_design_space()) == 3


def test_blocks_with_a_rule_of_their_own() -> None:
    @tvm.register_func("tests.split_in_two", override=True)
    def split(sch: tir.Schedule, block: Any) -> list[tir.Schedule]:
        sch.split(sch.get_loops(block)[0], factors=[2, None])
        sch.unannotate(block, "schedule_rule")
        sch.annotate(block, "schedule_rule", "None")
        return [sch]

    sch = tir.Schedule(matmul_module())
    sch.annotate(sch.get_block("C"), "schedule_rule", "tests.split_in_two")
    [after] = _context(sch.mod).generate_design_space()
    assert "tiling_structure" not in str(after.trace) and len(after.get_loops("C")) == 4
    sch = tir.Schedule(matmul_module())
    sch.annotate(sch.get_block("C"), "schedule_rule", "tests.nobody")
    with pytest.raises(ValueError, match="tests.nobody"):
        _context(sch.mod).generate_design_space()


def test_loops_of_unknown_length_are_refused() -> None:
    n = tir.Var("n", "int32")
    buffers = [tir.decl_buffer((n,), "float32", name=name) for name in "AB"]
    params = [tir.Var(f"p{name}", "handle") for name in "AB"]
    i = tir.Var("i", "int32")
    store = tir.BufferStore(buffers[1], tir.BufferLoad(buffers[0], [i]), [i])
    loop = tir.For(i, 0, n, tir.ForKind.SERIAL, store)
    function = tir.PrimFunc(params, loop, None, dict(zip(params, buffers)))
    rule = ms.postproc.DisallowDynamicLoop()
    assert not rule.apply(_ScheduleOf(IRModule({"main": function})))
    assert rule.apply(tir.Schedule(matmul_module()))


class _ScheduleOf:
    """As much of a schedule as the postprocessor looks at."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="no rules for 'opencl'"):
        ms.schedule_rule.create("opencl")
    with pytest.raises(ValueError, match="unknown kind 'grid'"):
        ms.space_generator.create("grid")
    with pytest.raises(ValueError, match="S and R"):
        ms.schedule_rule.MultiLevelTiling("SST")
    with pytest.raises(TypeError, match="None, a schedule or a list"):
        ms.space_generator.ScheduleFn(lambda sch: 1).generate_design_space(matmul_module())
