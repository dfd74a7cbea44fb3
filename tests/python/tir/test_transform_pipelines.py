"""Passes that only pipelines of one's own run."""

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm import tir
from tvm.script import tir as T
from tvm.tir.transform import HoistedConditionals, HoistedLetBindings


def applied(transform, func, **config):
    with tvm.transform.PassContext(config={f"tir.{key}": value for key, value in config.items()}):
        return transform(tvm.IRModule({"main": func}))["main"]


def same(left, right):
    names = [func.with_attr("global_symbol", "main") for func in (left, right)]
    tvm.ir.assert_structural_equal(*names)


@T.prim_func
def repeated(A: T.Buffer((8,), "int32"), x: T.int32, y: T.int32):
    A[0] = (x + y) * 2
    if x < 3:
        A[1] = (x + y) * 2
        A[2] = x * y + 1
        A[3] = x * y + 1


def test_common_expressions_are_named_where_all_uses_see_them():
    body = applied(tir.transform.CommonSubexprElimTIR(), repeated).body
    lets = []
    tir.stmt_functor.post_order_visit(
        body, lambda node: lets.append(node) if isinstance(node, tir.LetStmt) else None
    )
    # What only the branch computes is named in the branch.
    assert [str(let.value) for let in lets] == ["x * y + 1"]
    assert isinstance(body, tir.SeqStmt)


def test_common_expressions_keep_values():
    named = applied(tir.transform.CommonSubexprElimTIR(), repeated)
    results = []
    for func in (repeated, named):
        out = tvm.nd.array(np.zeros(8, "int32"))
        tvm.build(func, target="stackvm")(out, 2, 5)
        results.append(out.numpy())
    np.testing.assert_array_equal(*results)


@T.prim_func
def distributed(A: T.Buffer((8,), "int32"), x: T.int32, y: T.int32):
    A[0] = x * (y + 2)
    A[1] = x * y + x * 2
    A[2] = (x + y) + 3
    A[3] = x + (y + 3)


def test_equal_expressions_are_common_where_that_is_asked_for():
    one = applied(tir.transform.CommonSubexprElimTIR(), distributed)
    tvm.ir.assert_structural_equal(one, distributed)
    named = applied(tir.transform.CommonSubexprElimTIR(identify_equiv_terms=True), distributed)
    lets = []
    tir.stmt_functor.post_order_visit(
        named.body, lambda node: lets.append(node) if isinstance(node, tir.LetStmt) else None
    )
    assert len(lets) == 2
    out = tvm.nd.array(np.zeros(8, "int32"))
    tvm.build(named, target="stackvm")(out, 3, 5)
    np.testing.assert_array_equal(out.numpy()[:4], [21, 21, 11, 11])


class TestHoistSplitsAConjunction(tvm.testing.CompareBeforeAfter):
    """Each part of a condition is tested outside of the loops that do not change it."""

    transform = tir.transform.HoistExpression()

    def before(A: T.Buffer((4, 4), "float32")):
        for i in T.serial(4):
            for j in T.serial(4):
                if i == 3 and j == 1:
                    A[i, j] = 0.0

    def expected(A: T.Buffer((4, 4), "float32")):
        for i in T.serial(4):
            if i == 3:
                for j in T.serial(4):
                    if j == 1:
                        A[i, j] = 0.0


class TestHoistTakesBindingsAlong(tvm.testing.CompareBeforeAfter):
    """A condition that is bound to a name goes out together with its name."""

    transform = tir.transform.HoistExpression()

    def before(A: T.Buffer((4, 4), "float32")):
        for i in T.serial(4):
            for j in T.serial(4):
                condition = i == 3
                if condition:
                    A[i, j] = 0.0

    def expected(A: T.Buffer((4, 4), "float32")):
        for i in T.serial(4):
            condition = i == 3
            if condition:
                for j in T.serial(4):
                    A[i, j] = 0.0


def test_hoisting_can_be_limited():
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32"), n: T.int32):
        for i, j in T.grid(4, 4):
            if n != 0:
                A[i, j] = 0.0

    never = {
        "hoisted_conditionals": HoistedConditionals.Never.value,
        "hoisted_let_bindings": HoistedLetBindings.Never.value,
    }
    same(applied(tir.transform.HoistExpression(), func, HoistExpression=never), func)
    with pytest.raises(ValueError, match="has no option depth"):
        applied(tir.transform.HoistExpression(), func, HoistExpression={"depth": 1})


def test_indices_of_64_bits_become_32():
    @T.prim_func
    def wide(A: T.Buffer((T.int64(16),), "float32"), n: T.int64):
        for i in T.serial(T.int64(16)):
            A[i] = T.Cast("float32", i + n)

    @T.prim_func
    def narrow(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(16):
            A[i] = T.Cast("float32", i + n)

    same(applied(tir.transform.ForceNarrowIndexToInt32(), wide), narrow)


def test_buffers_of_64_bits_are_refused():
    @T.prim_func
    def func(A: T.Buffer((4,), "int64")):
        A[0] = T.int64(1)

    with pytest.raises(ValueError, match="buffer A holds int64"):
        applied(tir.transform.ForceNarrowIndexToInt32(), func)


def test_variables_of_two_functions_become_different():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = 0.0

    mod = tir.transform.ConvertSSA()(tvm.IRModule({"a": func, "b": func}))
    assert not mod["a"].body.loop_var.same_as(mod["b"].body.loop_var)
    tvm.ir.assert_structural_equal(mod["a"].body, mod["b"].body, map_free_vars=True)
    again = tir.transform.ConvertSSA()(mod)
    assert again.same_as(mod)


def test_profile_marks_stand_around_loops_beside_others():
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32")):
        for i in range(4):
            for j in range(4):
                A[i, j] = 0.0
        for i in range(4):
            for j in range(4):
                A[i, j] = A[i, j] + 1.0

    marked = applied(
        tir.transform.InstrumentProfileIntrinsics(),
        func,
        instrument_lwp=True,
        lwp_disable_func_prof=True,
        reset_start_id=True,
    )
    calls = [item.value for item in marked.body.seq if isinstance(item, tir.Evaluate)]
    assert [(call.op.name, int(call.args[0])) for call in calls] == [
        ("tir.start_profile_intrinsic", 1),
        ("tir.end_profile_intrinsic", 1),
        ("tir.start_profile_intrinsic", 3),
        ("tir.end_profile_intrinsic", 3),
    ]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_leading_zeros_are_counted(dtype):
    bits = int(dtype.lstrip("uint"))
    A, B = tir.decl_buffer((5,), dtype, "A"), tir.decl_buffer((5,), "int32", "B")
    i = tir.Var("i", "int32")
    body = tir.For(i, 0, 5, tir.ForKind.SERIAL, tir.BufferStore(B, tir.clz(A[i]), [i]))
    func = tir.PrimFunc([A, B], body).with_attr("global_symbol", "main")
    values = np.array([0, 1, 2, 100, 127], dtype)
    out = tvm.nd.array(np.zeros(5, "int32"))
    tvm.build(func, target="llvm")(tvm.nd.array(values), out)
    np.testing.assert_array_equal(out.numpy(), [bits - int(v).bit_length() for v in values])


@pytest.mark.parametrize(
    ("offset", "reason"), [(0, None), (1, None), (2, "number of dst indices touched")]
)
def test_loops_that_copy_memory_are_found(offset, reason):
    A, B = tir.decl_buffer((16,), name="A"), tir.decl_buffer((64,), name="B")
    i = tir.Var("i", "int32")
    index = i * 2 if offset == 2 else i + offset
    loop = tir.For(i, 0, 16, tir.ForKind.SERIAL, tir.BufferStore(B, A[i], [index]))
    found = tir.analysis.identify_memcpy(loop)
    if reason is None:
        tvm.ir.assert_structural_equal(list(found), [A[0:16], B[offset : offset + 16]])
    else:
        assert reason in found


def test_stores_of_undefined_values_go():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), n: T.int32):
        A[0] = 1 + T.undef(dtype="int32")
        A[1] = n

    @T.prim_func
    def expected(A: T.Buffer((4,), "int32"), n: T.int32):
        A[1] = n

    @T.prim_func
    def place(A: T.Buffer((4,), "int32")):
        A[T.undef(dtype="int32")] = 1

    same(applied(tir.transform.RemoveStoreUndef(), func), expected)
    with pytest.raises(ValueError, match="an undefined value is used"):
        applied(tir.transform.RemoveStoreUndef(), place)
