"""Helpers that programs with tests of their own use: tvm.testing."""

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm import te, tir
from tvm.script import tir as T

i, j = te.var("i"), te.var("j")


class _Substituted(tvm.testing.CompareBeforeAfter):
    """Replaces the first parameter by 16; classes below take the pass over."""

    def transform(self):
        def apply(mod):
            func = mod["main"]
            body = tir.stmt_functor.substitute(func.body, {func.params[0]: 16})
            return tvm.IRModule.from_expr(tir.PrimFunc([], body))

        return apply


class TestProgramsAsText(_Substituted):
    def before(n: T.int32):
        for k in range(n):
            T.evaluate(k)

    def expected():
        for k in range(16):
            T.evaluate(k)


class TestErrorsAreExpected(tvm.testing.CompareBeforeAfter):
    def transform(self):
        def apply(mod):
            raise KeyError("no")

        return apply

    def before(n: T.int32):
        T.evaluate(n)

    expected = KeyError


class TestFixturesAndModules(tvm.testing.CompareBeforeAfter):
    @pytest.fixture
    def transform(self):
        return tvm.tir.transform.Simplify()

    class Before:
        def main(A: T.Buffer(1, "int32")):
            if 1 < 2:
                A[0] = 3

    class Expected:
        def main(A: T.Buffer(1, "int32")):
            A[0] = 3


def test_expressions_are_compared_by_proof():
    tvm.testing.assert_prim_expr_equal((i + 1) * 2, i * 2 + 2)
    with pytest.raises(ValueError, match="not known to be equal"):
        tvm.testing.assert_prim_expr_equal(i, j)


def test_conditions_are_run_for_all_values():
    ranges = {i: tvm.ir.Range(-4, 5), j: tvm.ir.Range(1, 4)}
    tvm.testing.check_bool_expr_is_true(tir.floormod(i, j) < j, ranges)
    tvm.testing.check_bool_expr_is_true(i > 0, ranges, cond=i * j > 0)
    with pytest.raises(AssertionError, match=r"does not hold for \{'i': -4"):
        tvm.testing.check_bool_expr_is_true(i > -4, ranges)


def test_ranges_that_depend_on_others_are_run_through():
    # j runs from i - 2 to i + 1, and the box around both is larger than what is asked about.
    ranges = {j: tvm.ir.Range(i - 2, i + 2), i: tvm.ir.Range(0, 4)}
    tvm.testing.check_bool_expr_is_true(tir.all(j - i >= -2, j - i <= 1), ranges)
    with pytest.raises(AssertionError, match="does not hold"):
        tvm.testing.check_bool_expr_is_true(j - i < 1, ranges)
    tvm.testing.check_bool_expr_is_true(i > j, {**ranges, j: tvm.ir.Range(i, i)})
    with pytest.raises(ValueError, match="no order in which"):
        tvm.testing.check_bool_expr_is_true(i > j, {i: tvm.ir.Range(j, 4), j: tvm.ir.Range(i, 4)})


def test_transforms_of_constraints_are_run_both_ways():
    ranges = {i: tvm.ir.Range(-5, 6), j: tvm.ir.Range(-5, 6)}
    for equations in ([tir.EQ(2 * i + 3 * j, 7)], [tir.EQ(2 * i, 3)], [i + j <= 2]):
        solved = tvm.arith.solve_linear_equations(equations, [i, j], ranges)
        tvm.testing.check_int_constraints_trans_consistency(solved)
    n = te.var("n")
    wrong = tvm.arith.IntConstraintsTransform(
        tvm.arith.IntConstraints([i], {i: tvm.ir.Range(0, 4)}, []),
        tvm.arith.IntConstraints([n], {n: tvm.ir.Range(0, 4)}, []),
        {i: n + 1},
        {n: i - 1},
    )
    with pytest.raises(AssertionError, match="does not hold"):
        tvm.testing.check_int_constraints_trans_consistency(wrong)


def test_gradients_are_compared_with_differences():
    value = np.array([0.5, 2.0])
    tvm.testing.check_numerical_grads(lambda x: (x**3).sum(), [value], [3 * value**2])
    tvm.testing.check_numerical_grads(lambda x: abs(x).sum(), {"x": value}, {"x": np.ones(2)})
    with pytest.raises(AssertionError, match="the gradient of 0 differs"):
        tvm.testing.check_numerical_grads(lambda x: (x**3).sum(), [value], [value])


def test_functions_of_the_registry_stand_in_programs():
    tvm.register_func("test.env_func", lambda x: x + 1, override=True)
    one, other = (tvm.ir.EnvFunc.get("test.env_func") for _ in range(2))
    assert one(2) == 3
    assert tvm.ir.structural_equal(one, other)
    assert tvm.ir.load_json(tvm.ir.save_json(one)).name == "test.env_func"
    with pytest.raises(ValueError, match="no global function"):
        tvm.ir.EnvFunc.get("test.no_such_function")


def test_modules_list_their_functions():
    module = tvm.build(tvm.IRModule({"twice": _twice.with_attr("global_symbol", "twice")}), "llvm")
    assert list(module["get_func_names"]()) == ["twice"]


@T.prim_func
def _twice(A: T.Buffer((4,), "float32")):
    for k in range(4):
        A[k] = A[k] * T.float32(2)


def test_specialised_functions_are_folded_and_may_share_memory():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, [n // 8], "int32")
        B = T.match_buffer(b, [n], "int32")
        for k in range(n - 1):
            B[k] = A[0] + (n + 1) * 42

    after = before.specialize({before.params[1]: tir.decl_buffer([16], "int32")})
    assert [int(e) for e in after.buffer_map[after.params[0]].shape] == [2]
    assert isinstance(after.body.extent, tir.IntImm)
    assert before.specialize({}).same_as(before)

    @T.prim_func
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for k in range(16):
            B[k] = A[k] * T.float32(2)

    first, second = add.params
    shared = add.specialize({second: add.buffer_map[first]})
    assert shared.buffer_map[second].data.same_as(shared.buffer_map[first].data)


def test_padding_is_told_by_the_highest_digit():
    back, outside = tir.IndexMap.from_func(
        lambda k: [(k + 5) // 32, ((k + 5) // 4) % 8, (k + 5) % 4], index_dtype="int32"
    ).non_surjective_inverse([116])
    a, b, c = back.initial_indices
    expected = tir.any(tir.all(tir.EQ(a, 0), b * 4 + c < 5), tir.all(tir.EQ(a, 3), b * 4 + c >= 25))
    simplify = tvm.arith.Analyzer().simplify
    assert tvm.ir.structural_equal(simplify(outside), simplify(expected))


def test_modules_say_what_can_be_done_with_them():
    mask = tvm.runtime.ModulePropertyMask
    func = _twice.with_attr("global_symbol", "twice")
    module = tvm.build(tvm.IRModule({"twice": func}), "llvm")
    assert module.is_runnable
    assert module.is_dso_exportable
    assert not module.is_device_module
    assert module.get_property_mask() == mask.RUNNABLE | mask.DSO_EXPORTABLE
    source = tvm.build(tvm.IRModule({"twice": func}), "c")
    assert source.get_property_mask() == mask.DSO_EXPORTABLE
    assert not source.is_binary_serializable
