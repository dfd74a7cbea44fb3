"""The passes of lowering, in order."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import floats
from tvm import te, tir
from tvm.ir.instrument import pass_instrument

PHASES = [
    [],
    [
        "tir.InjectPrefetch",
        "tir.StorageFlatten",
        "tir.BF16Legalize",
        "tir.WidenIndex",
        "tir.NarrowDataType",
        "tir.Simplify",
    ],
    [
        "tir.LoopPartition",
        "tir.VectorizeLoop",
        *(["tir.InjectVirtualThread"] if hasattr(tir.transform, "InjectVirtualThread") else []),
        "tir.InjectDoubleBuffer",
        "tir.StorageRewrite",
        "tir.UnrollLoop",
    ],
    ["tir.Simplify", "tir.RemoveNoOp", "tir.RewriteUnsafeSelect", "tir.UnswitchLoops"],
]


def add_one():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), [A, B]


def trace(simple_mode=False, config=None, lowered=None):
    """Names of the passes that run while a vector addition is lowered."""
    names = []

    @pass_instrument
    class Recorder:
        def run_before_pass(self, mod, info):
            names.append(str(info.name))

    s, args = add_one()
    with tvm.transform.PassContext(instruments=[Recorder()], config=config or {}):
        tvm.lower(s, args, simple_mode=simple_mode)
    return [name for name in names if name.startswith(("tir.", "user."))]


def test_the_named_passes_run_in_their_order():
    assert trace() == sum(PHASES, [])


def test_simple_mode_leaves_out_loop_partition():
    assert trace(simple_mode=True) == [n for n in sum(PHASES, []) if n != "tir.LoopPartition"]


def test_bounds_are_checked_by_the_last_pass():
    with_checks = trace(config={"tir.instrument_bound_checkers": True})
    assert with_checks == [*trace(), "tir.InstrumentBoundCheckers"]


def test_added_passes_run_once_at_the_end_of_their_phase():
    added = []
    for phase in range(4):

        @tvm.transform.module_pass(opt_level=0, name=f"user.{phase}")
        def look(mod, ctx):
            return mod

        added.append((phase, look))
    expected = sum(([*names, f"user.{phase}"] for phase, names in enumerate(PHASES)), [])
    assert trace(config={"tir.add_lower_pass": added}) == expected


def test_phases_above_three_belong_to_the_last():
    @tvm.transform.module_pass(opt_level=0, name="user.late")
    def look(mod, ctx):
        return mod

    assert trace(config={"tir.add_lower_pass": [(7, look)]})[-1] == "user.late"


def test_an_unscheduled_vector_addition_is_one_loop():
    s, args = add_one()
    func = tvm.driver.form_irmodule(s, args, "add_one")["add_one"]
    assert isinstance(func.body, tir.For)
    assert func.body.extent.value == 10


def test_disabled_vectorisation_leaves_no_vectors():
    s, args = add_one()
    stage = s[args[1]]
    stage.vectorize(stage.op.axis[0])
    assert "T.ramp" in str(tvm.lower(s, args)).lower() or "Ramp" in str(tvm.lower(s, args))
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        assert "ramp" not in str(tvm.lower(s, args)).lower()


@pytest.mark.parametrize("noalias", [False, True])
def test_noalias_follows_its_option(noalias):
    s, args = add_one()
    with tvm.transform.PassContext(config={"tir.noalias": noalias}):
        assert bool(tvm.lower(s, args)["main"].attrs["tir.noalias"]) is noalias


@pytest.mark.parametrize("noalias", [False, True])
def test_a_lowered_function_keeps_its_own_word_about_aliases(noalias):
    func = te.create_prim_func(add_one()[1]).without_attr("tir.noalias")
    assert bool(tvm.lower(func)["main"].attrs["tir.noalias"])
    said = func.with_attr("tir.noalias", noalias)
    assert bool(tvm.lower(said)["main"].attrs["tir.noalias"]) is noalias


def test_sums_move_into_registers_when_the_program_is_built():
    k = te.reduce_axis((0, 8), name="k")
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    assert "B_acc" not in str(tvm.lower(s, [A, B]))
    assert "B_acc" in str(tvm.driver.prepare(s, [A, B], target="llvm"))


def test_disabled_assertions_leave_arguments_unchecked():
    s, args = add_one()
    assert "assert" in str(tvm.driver.prepare(s, args, target="llvm"))
    with tvm.transform.PassContext(config={"tir.disable_assert": True}):
        assert "assert" not in str(tvm.driver.prepare(s, args, target="llvm"))


def test_a_tensor_given_twice_has_one_buffer():
    _, (A, B) = add_one()
    table, buffers = tvm.driver.get_binds([A, B, A], compact=True)
    assert buffers[0].same_as(buffers[2])
    assert len(table) == 2


def test_a_buffer_that_need_not_be_compact_has_symbolic_strides():
    _, (A, _) = add_one()
    _, (buffer,) = tvm.driver.get_binds([A], compact=False)
    assert isinstance(buffer.strides[0], tir.Var)
    _, (compact,) = tvm.driver.get_binds([A], compact=True)
    assert len(compact.strides) == 0


def test_compact_buffers_are_told_from_padded_ones():
    A = te.placeholder((8, 8), name="A")
    T = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="T")
    B = te.compute((8, 8), lambda i, j: T[j, i], name="B")
    s = te.create_schedule(B.op)
    verify = tir.analysis.verify_compact_buffer
    assert verify(tvm.driver.form_irmodule(s, [A, B])["main"])
    s[T].storage_align(T.op.axis[0], 16, 4)
    assert not verify(tvm.driver.form_irmodule(s, [A, B])["main"])
    strided = tir.decl_buffer((8, 8), name="S", strides=[12, 1])
    assert not verify(
        tvm.driver.form_irmodule(te.create_schedule(T.op), [A, T], binds={T: strided})["main"]
    )


def test_old_option_names_set_the_options():
    s, args = add_one()
    with tvm.build_config(auto_unroll_max_step=16, unroll_explicit=True):
        text = str(tvm.lower(s, args))
    assert "for " not in text
    assert "for " in str(tvm.lower(s, args))
    assert tvm.BuildConfig.current() is not None
    with pytest.raises(ValueError, match="build_config: no option unroll; there are"):
        tvm.build_config(unroll=1)


def test_old_statement_passes_resolve_or_say_what_to_use():
    b = tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    nest = tir.For(i, 0, 8, tir.ForKind.VECTORIZED, tir.BufferStore(b, 1.0, [i]))
    assert tvm.ir_pass.SkipVectorize(nest).kind == tir.ForKind.SERIAL
    assert isinstance(tvm.ir_pass.VectorizeLoop(nest), tir.BufferStore)
    assert isinstance(tvm.ir_pass.UnrollLoop(tvm.ir_pass.SkipVectorize(nest), 16), tir.SeqStmt)
    n = tir.Var("n", "int32")
    assert tvm.ir_pass.Simplify(n + 0).same_as(n)
    assert tvm.ir_pass.CanonicalSimplify(n + 0).same_as(n)
    assert str(tvm.ir_pass.Substitute(n + 1, {n: 2})) == "2 + 1"
    assert tvm.ir_pass.VerifyCompactBuffer(nest)
    visited = []
    tvm.ir_pass.PostOrderVisit(n + 1, visited.append)
    assert [type(node).__name__ for node in visited] == ["Var", "IntImm", "Add"]
    assert tvm.ir_pass.Equal(n + 1, n + 1)
    with pytest.raises(AttributeError, match="MakePackedAPI"):
        _ = tvm.ir_pass.MakeAPI
    with pytest.raises(AttributeError, match="StorageRewrite"):
        _ = tir.usmp.create_memory_info


def test_passes_may_be_functions_and_classes():
    s, args = add_one()
    mod = tvm.lower(s, args)

    @tir.transform.prim_func_pass(opt_level=0)
    class Tag:
        def __init__(self, value):
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("tag", self.value)

    assert int(Tag(3)(mod)["main"].attrs["tag"]) == 3
    assert int(tir.transform.Apply(lambda f: f.with_attr("tag", 4))(mod)["main"].attrs["tag"]) == 4
    assert len(tir.transform.Filter(lambda f: False)(mod).functions) == 0


def test_lowered_programs_compute_the_same_in_both_modes():
    A = te.placeholder((23,), name="A")
    B = te.compute((23,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], 8)
    s[B].vectorize(inner)
    values = floats(23)
    for simple in (False, True):
        mod = tvm.lower(s, [A, B], simple_mode=simple)
        out = tvm.nd.empty((23,))
        tvm.build(mod, target="llvm")["main"](tvm.nd.array(values), out)
        np.testing.assert_allclose(out.numpy(), values * 2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"tir.add_lower_pass": [(1, lambda mod: mod)]},
            r"expected pairs \[phase, pass\], got \[int",
        ),
        ({"tir.add_lower_pass": [(-1, tir.transform.Simplify())]}, "a phase is 0 to 3"),
        (
            {"tir.UnrollLoop": {"auto_max_step": "x"}},
            "tir.UnrollLoop: auto_max_step must be of type",
        ),
        ({"tir.LoopPartition": {"partition_const_loop": "x"}}, "partition_const_loop must be"),
        ({"tir.InjectDoubleBuffer": {"split_loop": "x"}}, "split_loop must be of type int"),
    ],
)
def test_an_option_of_a_pass_is_refused_by_name(config, message):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with tvm.transform.PassContext(config=config), pytest.raises(TypeError, match=message):
        tvm.lower(te.create_schedule(B.op), [A, B])


def test_lower_takes_its_arguments_in_any_order():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    mod = tvm.lower(simple_mode=True, name="add", args=[A, B], inp=te.create_schedule(B.op))
    assert "add" in mod
    assert tvm.driver.build_module.lower is tvm.lower
    assert tvm.driver.build_module.build is tvm.build


def test_a_schedule_is_needed_for_a_loop_nest():
    with pytest.raises(TypeError, match="form_irmodule: expected a Schedule, got NoneType"):
        tvm.driver.form_irmodule(None, [])


def test_loops_of_one_trip_are_kept_on_request():
    A = te.placeholder((1, 4), name="A")
    B = te.compute((1, 4), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    plain = tvm.driver.schedule_to_module(s, [A, B])["main"]
    assert "range(1)" not in str(plain)
    with tvm.transform.PassContext(config={"tir.debug_keep_trivial_loop": True}):
        kept = tvm.driver.schedule_to_module(s, [A, B])["main"]
    assert "range(1)" in str(kept)


def test_memory_is_not_shared_on_request():
    A = te.placeholder((64,), name="A")
    stages = [te.compute((64,), lambda i: A[i] + 1.0, name="B")]
    for name in "CDE":
        before = stages[-1]
        # Neighbours are read, so that nothing is written in place.
        stages.append(te.compute((64,), lambda i, x=before: x[i] + x[63 - i], name=name))
    s = te.create_schedule(stages[-1].op)

    def allocations():
        return str(tvm.lower(s, [A, stages[-1]])).count("T.allocate(")

    assert allocations() == 2
    with tvm.transform.PassContext(config={"tir.disable_storage_rewrite": True}):
        assert allocations() == 3


def test_common_expressions_are_named_by_options():
    x, y, z = (tir.Var(name, "int32") for name in "xyz")
    B = tir.decl_buffer((4,), "int32", "B")
    body = tir.SeqStmt([tir.BufferStore(B, x + (y + z), [0]), tir.BufferStore(B, (x + y) + z, [1])])
    mod = tvm.IRModule({"main": tir.PrimFunc([B, x, y, z], body)})

    def named(**config):
        with tvm.transform.PassContext(config=config):
            return "cse_var" in str(tir.transform.CommonSubexprElimTIR()(mod))

    assert not named()
    assert named(**{"tir.enable_equiv_terms_in_cse_tir": True})
    assert not named(**{"tir.enable_equiv_terms_in_cse_tir": True, "tir.disable_cse_tir": True})
