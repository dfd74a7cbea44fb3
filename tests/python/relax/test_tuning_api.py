"""relax.transform.tuning_api: choices that are measured, and traces of what was decided."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.ir.transform import PassContext
from tvm.relax.transform import tuning_api as api
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Sum:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y


@tvm.register_func("test.tuning.tag", override=True)
def tag(mod, value):
    mod["main"] = mod["main"].with_attr("tags", tags(mod) + value)
    return mod


@tvm.register_func("test.tuning.is_short", override=True)
def is_short(mod, limit):
    return len(tags(mod)) < limit


def tags(mod):
    return str(mod["main"].attrs.get("tags", ""))


def letters(*values, limit=9):
    choices = {
        v: api.Choice("test.tuning.tag", [v], "test.tuning.is_short", [limit]) for v in values
    }
    return api.Knob("letters", choices)


def seconds(mod, target):
    """Made-up measurements: "b" is fast."""
    return [1.0 / (1 + tags(mod).count("b")) + 0.01 * len(tags(mod))]


def tuning_pass(knob, eval_passes=()):
    @tvm.transform.module_pass(opt_level=0, name="Tuning", traceable=True)
    def run(mod, ctx):
        candidates = api.default_generate_candidate([knob], ctx.pop_trace(), eval_passes)
        api.default_evaluate(candidates, "llvm", ctx, measure=seconds)
        best = api.select_best_candidate(candidates)
        ctx.push_trace(best)
        return best.out_mod

    return run


@tvm.transform.module_pass(opt_level=0, name="room.Plain")
def plain(mod, ctx):
    return tag(mod.clone(), "p")


# Choices, knobs, traces


def test_a_choice_rewrites_a_copy_where_its_condition_holds():
    knob = letters("a", limit=1)
    once = knob.apply(Sum, "a")
    assert tags(once) == "a" and tags(Sum) == ""
    assert knob.apply(once, "a").same_as(once)
    assert api.Choice().apply_transform_func(Sum)["main"].same_as(Sum["main"])


def test_knobs_count_the_choices_of_a_list():
    knob = api.Knob("numbered", [api.Choice(), api.Choice("test.tuning.tag", ["z"])])
    assert knob.verify(1) and knob.verify("0") and not knob.verify(2)
    assert tags(knob.apply(Sum, 1)) == "z"
    with pytest.raises(ValueError, match="Knob numbered: there is no decision 5; there are 0, 1"):
        knob.apply(Sum, 5)


def test_a_trace_holds_decisions_and_what_came_out():
    trace = api.Trace(Sum, [letters("a", "b")], ["b"])
    trace.set_perf(0.5)
    other = trace.copy()
    assert tags(trace.add(letters("a"), "a")) == "ba"
    assert (trace.size, trace.perf, trace.decisions) == (2, -1, ["b", "a"])
    assert (other.size, other.perf, tags(other.out_mod)) == (1, 0.5, "b")
    assert tags(trace.in_mod) == "" and trace.verify()


def test_traces_are_saved_with_what_passes_did():
    node = tvm.tir.const(3, "int32")
    trace = api.Trace(Sum, [letters("a")], ["a"])
    trace.add_applied("Plain", plain(trace.out_mod))
    trace.set_perf(2.0)
    again = api.Trace.from_json(trace.as_json())
    assert str(again) == str(trace) and tags(again.out_mod) == "ap"
    choice = api.Choice("test.tuning.tag", [node, "text"])
    saved = api.Choice.from_json(choice.as_json()).transform_func_args
    assert tvm.ir.structural_equal(saved[0], node) and saved[1] == "text"


def test_traces_begin_with_modules_functions_and_traces():
    trace = api.Trace(Sum)
    assert api.get_trace(trace) is trace
    assert api.get_trace(Sum).in_mod.same_as(Sum)
    assert len(api.get_trace(Sum["main"]).in_mod.functions) == 1
    with pytest.raises(TypeError, match="takes a trace, module or function, got int"):
        api.get_trace(3)


# Contexts


def test_passes_are_recorded_in_the_trace_of_their_context():
    sequence = tvm.transform.Sequential([plain, relax.transform.Normalize(), plain])
    with PassContext(trace=api.Trace(Sum)) as context:
        sequence(Sum)
    with PassContext(trace=api.Trace(Sum)) as context:
        sequence(Sum)
        trace = context.get_current_trace()
    assert [knob.name for knob in trace.knobs] == ["room.Plain", "Normalize", "room.Plain"]
    assert tags(trace.out_mod) == "pp"


def test_only_the_passes_that_are_named_are_recorded():
    with PassContext(trace=api.Trace(Sum), make_traceable=["Plain"]):
        tvm.transform.Sequential([relax.transform.Normalize(), plain])(Sum)
        assert PassContext.current().get_current_trace().size == 1


def test_traces_of_a_context_are_a_stack():
    first, second = api.Trace(Sum), api.Trace(Sum)
    with PassContext(trace_stack=[first]) as context:
        context.push_trace(second)
        plain(Sum)
        assert context.get_trace_stack_size() == 2
        assert context.pop_trace(return_current=False) is first
        assert (first.size, second.size) == (0, 1)


def test_a_context_may_be_entered_again_through_current():
    with PassContext(), PassContext.current() as inner:
        assert inner.opt_level == 2


def test_contexts_without_a_trace_say_so():
    with PassContext() as context, pytest.raises(ValueError, match="it has no trace"):
        context.push_trace(api.Trace(Sum))
    with pytest.raises(ValueError, match="it has no trace"):
        context.inc_num_evals(1)


# Tuning


def test_candidates_are_all_combinations_whose_conditions_hold():
    some = api.default_generate_candidate(
        [letters("a", "b"), letters("c", limit=1)], api.Trace(Sum)
    )
    assert some == []
    some = api.default_generate_candidate([letters("a", "b")] * 2, api.Trace(Sum))
    assert sorted(tags(trace.out_mod) for trace in some) == ["aa", "ab", "ba", "bb"]


def test_a_tuning_pass_leaves_the_fastest_candidate():
    with PassContext(trace=api.Trace(Sum), make_traceable=["Plain"]) as context:
        result = tvm.transform.Sequential([tuning_pass(letters("a", "b")), plain])(Sum)
        assert tags(result) == "bp" and context.num_evals == 2
        assert context.get_current_trace().decisions == ["b", "Applied"]


def test_what_follows_is_considered_for_each_candidate():
    inner = tuning_pass(letters("b", "c"))
    with PassContext(trace=api.Trace(Sum), make_traceable=["Plain"]) as context:
        result = tuning_pass(letters("a", "b"), [inner, plain])(Sum)
        assert tags(result) == "bbp" and context.num_evals == 4 + 2


def test_the_best_of_none_is_an_error():
    with pytest.raises(ValueError, match="none of the candidates was measured"):
        api.select_best_candidate([api.Trace(Sum)])


def test_modules_are_built_and_run_by_default():
    traces = [api.Trace(Sum), api.Trace(tvm.IRModule({}))]
    with PassContext(trace=api.Trace(Sum)) as context:
        api.default_evaluate(traces, "llvm")
        assert context.num_evals == 2
        api.default_evaluate(traces, "llvm")
        assert context.num_evals == 2
    assert 0 < traces[0].perf < 1 and api.select_best_candidate(traces) is traces[0]


# Databases


def database(folder):
    return api.JSONDatabase(*(str(folder / n) for n in ("workloads", "tuned", "measured")))


def test_a_database_is_read_again(tmp_path):
    target = tvm.target.Target("llvm")
    data = database(tmp_path)
    workload = data.commit_workload(Sum)
    assert data.commit_workload(Sum.clone()) == workload and not data.has_workload(plain(Sum))
    assert data.get_measurement_record(workload, target) == []
    data.commit_measurement_record(workload, target, [1.0, 0.5])
    for value, decision in ((3.0, "a"), (1.0, "b"), (2.0, "a")):
        trace = api.Trace(Sum, [letters("a", "b")], [decision])
        data.commit_tuning_record(workload, target, api.TuningRecord(trace, [value]))
    for known in (data, database(tmp_path)):
        same = known.commit_workload(Sum)
        assert known.has_measurement_record(same, target)
        assert known.get_measurement_record(same, target) == [1.0, 0.5]
        best = known.get_top_k(same, target, 2)
        assert [record.run_secs for record in best] == [[1.0], [2.0]]
        assert tags(best[0].trace.out_mod) == "b"
        assert known.get_top_k(same, target, 0) == []
        assert not known.has_tuning_record(same, tvm.target.Target("cuda"))


def test_what_was_measured_is_not_run_again(tmp_path):
    runs = []

    def measure(mod, target):
        runs.append(mod)
        return [1.0]

    data = database(tmp_path)
    with PassContext(trace=api.Trace(Sum), tuning_api_database=data):
        for _ in range(2):
            some = api.default_generate_candidate([letters("a", "b")], api.Trace(Sum))
            api.default_evaluate(some, "llvm", measure=measure)
    assert len(runs) == 2
    assert len(data.get_top_k(data.commit_workload(Sum), tvm.target.Target("llvm"), 9)) == 4


@pytest.mark.parametrize("line", ["{", "[0]", '{"mod": 3}', '{"mod": "x"}'])
def test_damaged_files_are_refused_by_line(tmp_path, line):
    data = database(tmp_path)
    data.commit_workload(Sum)
    with open(tmp_path / "workloads", "a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match="workloads:2: the line is damaged"):
        database(tmp_path)


def test_records_of_a_module_that_is_not_there_are_refused(tmp_path):
    (tmp_path / "measured").write_text('[3, "llvm", [1.0]]\n')
    with pytest.raises(ValueError, match="a record is of module 3"):
        database(tmp_path)


def test_constants_are_folded_through_kernels():
    from tvm.script import tir as T

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def twice(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("y"):
                    v = T.axis.spatial(4, i)
                    y[v] = x[v] * T.float32(2)

        @R.function
        def main(w: R.Tensor((4,), "float32"), x: R.Tensor((4,), "float32")):
            cls = Module
            a = R.call_tir(cls.twice, (w,), R.Tensor((4,), "float32"))
            with R.dataflow():
                b = R.call_tir(cls.twice, (a,), R.Tensor((4,), "float32"))
                c = R.add(b, a)
                d = R.add(x, c)
                R.output(d)
            return d

    weights = np.arange(4, dtype="float32")
    mod = relax.transform.BindParams("main", {"w": weights})(Module)
    func = relax.transform.FoldConstant()(mod)["main"]
    (block,) = func.body.blocks
    (binding,) = block.bindings
    np.testing.assert_array_equal(binding.value.args[1].data.numpy(), 6 * weights)
