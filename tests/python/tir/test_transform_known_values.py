"""What passes know of values that were stored, and of conditions that were bound."""

import pytest

import tvm
import tvm.testing
from tvm import tir
from tvm.script import tir as T


def run(name, func, **options):
    with tvm.transform.PassContext(config={f"tir.{name}": options}):
        return getattr(tir.transform, name)()(tvm.IRModule({"main": func}))["main"]


def same(left, right):
    names = [func.with_attr("global_symbol", "main") for func in (left, right)]
    tvm.ir.assert_structural_equal(*names)


def test_overwritten_stores_go_on_request():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(4, 12):
            A[i] = 100
        for i in range(16):
            B[i] = 0
        for i in range(16):
            A[i] = 42

    @T.prim_func
    def expected(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            B[i] = 0
        for i in range(16):
            A[i] = 42

    same(run("RemoveNoOp", func), func)
    same(run("RemoveNoOp", func, use_dataflow_analysis=True), expected)


def test_stores_that_are_read_or_partly_overwritten_stay():
    @T.prim_func
    def read(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = 100
        for i in range(16):
            B[i] = A[15 - i]
        for i in range(16):
            A[i] = 42

    @T.prim_func
    def partly(A: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = 100
        for i in range(16):
            if i < 12:
                A[i] = 42

    @T.prim_func
    def while_it_runs(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            A[i] = 100
        for _ in range(n):
            for i in range(16):
                A[i] = 42

    for func in (read, partly, while_it_runs):
        same(run("RemoveNoOp", func, use_dataflow_analysis=True), func)


def test_a_value_that_is_there_is_not_stored_again():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            A[i] = i
        A[4] = 4
        A[5] = n

    @T.prim_func
    def expected(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            A[i] = i
        A[5] = n

    same(run("RemoveNoOp", func, use_dataflow_analysis=True), expected)


def test_conditions_are_decided_by_bound_conditions():
    @T.prim_func
    def func(A: T.Buffer((4,), "bool")):
        for i in range(4):
            condition = i < 3
            if condition or i >= 3:
                A[i] = condition

    @T.prim_func
    def expected(A: T.Buffer((4,), "bool")):
        for i in range(4):
            condition = i < 3
            A[i] = condition

    same(run("Simplify", func), expected)


def test_stored_values_decide_conditions_on_request():
    @T.prim_func
    def func(A: T.Buffer((2,), "int32"), n: T.int32):
        A[0] = n
        A[1] = 3
        if n == A[0]:
            A[1] = 42

    @T.prim_func
    def overwritten(A: T.Buffer((2,), "int32"), n: T.int32):
        A[0] = n
        A[n] = 3
        if n == A[0]:
            A[1] = 42

    @T.prim_func
    def written_by_the_loop(A: T.Buffer((2,), "int32"), n: T.int32):
        A[0] = n
        for _ in range(n):
            if n == A[0]:
                A[0] = A[0] + 1

    decided = run("Simplify", func, propagate_knowns_to_prove_conditional=True)
    assert isinstance(decided.body[2], tir.BufferStore)
    for unknown in (overwritten, written_by_the_loop):
        same(run("Simplify", unknown, propagate_knowns_to_prove_conditional=True), unknown)


def test_assumptions_hold_after_them_and_no_further():
    @T.prim_func
    def func(A: T.Buffer((1,), "int32"), n: T.int32, m: T.int32):
        if m == 0:
            T.evaluate(T.assume(n == 0))
            if n == 0:
                A[0] = 1
        if n == 0:
            A[0] = 2

    body = run("Simplify", func, propagate_knowns_to_prove_conditional=True).body
    assert isinstance(body[0].then_case[1], tir.BufferStore)
    assert isinstance(body[1], tir.IfThenElse)


def known_conditions(func):
    """How many tests of conditions are left where what is known decides them."""
    body = run("Simplify", func, propagate_knowns_to_prove_conditional=True).body
    left = []
    tir.stmt_functor.post_order_visit(
        body, lambda node: left.append(node) if isinstance(node, tir.IfThenElse) else None
    )
    return len(left)


def test_what_loops_store_is_known_behind_them():
    @T.prim_func
    def stored(A: T.Buffer((4, 4), "int32"), B: T.Buffer((16,), "int32")):
        for i, j in T.grid(4, 4):
            A[i, j] = i * 4 + j
        for i in range(16):
            if A[i // 4, i % 4] == i:
                B[i] = 1

    @T.prim_func
    def assumed(A: T.Buffer((16,), "int32")):
        for i in range(16):
            T.evaluate(T.assume(i >= 14 or A[i] == 0))
        for i in range(14):
            if A[i] == 0:
                A[i] = 41

    @T.prim_func
    def changed_as_it_goes(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = 0
        for i in range(16):
            if A[i] == 0:
                A[i] = 42
            if A[i] == 42:
                B[i] = 1

    @T.prim_func
    def one_element_differs(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for io, ii in T.grid(4, 4):
            A[io * 4 + ii] = 7
        A[3] = 8
        for i in range(4, 16):
            if A[i] == 7:
                B[i] = 0
        if A[3] == 8:
            B[3] = 9

    for func in (stored, assumed, changed_as_it_goes, one_element_differs):
        assert known_conditions(func) == 0, func


def test_what_other_trips_may_change_is_not_known():
    @T.prim_func
    def overlapping(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32")):
        for i in range(16):
            A[i] = 0
        for i in range(16):
            A[i + 1] = A[i] + 1
        for i in range(16):
            if A[i] == 0:
                B[i] = 1

    @T.prim_func
    def one_element(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            A[0] = i
        for i in range(n):
            A[i] = 3
        if A[0] == 3:
            A[1] = 4

    @T.prim_func
    def excepted(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = 7
        A[3] = 8
        for i in range(16):
            if A[i] == 7:
                B[i] = 0

    @T.prim_func
    def some_trips(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            if i < n:
                A[i] = 0
        for i in range(16):
            if A[i] == 0:
                B[i] = 1

    for func, left in ((overlapping, 1), (one_element, 1), (excepted, 1), (some_trips, 2)):
        assert known_conditions(func) == left, func


def test_elements_that_loops_stored_take_the_place_of_loads():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = 0
        for i in range(8):
            A[i] = i + 1
        for i in range(8, 16):
            B[i] = A[i]
        for i in range(8):
            B[i] = A[7 - i]

    @T.prim_func
    def expected(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = 0
        for i in range(8):
            A[i] = i + 1
        for i in range(8, 16):
            B[i] = 0
        for i in range(8):
            B[i] = 8 - i

    same(run("Simplify", func, propagate_knowns_to_simplify_expressions=True), expected)


def test_simplify_drops_what_other_conditions_imply_when_it_distributes():
    @T.prim_func
    def func(A: T.Buffer((1,), "bool"), i: T.int32, j: T.int32):
        A[0] = (i == 0 and j == 10) or (i == 0 and j == 30)

    @T.prim_func
    def expected(A: T.Buffer((1,), "bool"), i: T.int32, j: T.int32):
        A[0] = i == 0 and (j == 10 or j == 30)

    same(run("Simplify", func, convert_boolean_to_and_of_ors=True), expected)


def test_simplify_distributes_on_request():
    @T.prim_func
    def func(A: T.Buffer((3,), "bool")):
        T.evaluate(A[0] or (A[1] and A[2]))

    @T.prim_func
    def expected(A: T.Buffer((3,), "bool")):
        T.evaluate((A[0] or A[1]) and (A[0] or A[2]))

    same(run("Simplify", func, convert_boolean_to_and_of_ors=True), expected)


@pytest.mark.parametrize("name", ["Simplify", "RemoveNoOp"])
def test_unknown_options_are_named(name):
    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        A[0] = 1

    with pytest.raises(ValueError, match="has no option depth"):
        run(name, func, depth=True)


def test_hinted_loops_are_cut_where_conditions_change():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32")):
        for i in T.serial(16, annotations={"pragma_loop_partition_hint": 1}):
            if i == 3:
                A[i] = 1
            elif i < 8:
                A[i] = 2
            else:
                A[i] = 3

    body = tir.transform.Simplify()(tir.transform.LoopPartition()(tvm.IRModule({"main": func})))[
        "main"
    ].body
    assert [int(getattr(part, "extent", 1)) for part in body.seq] == [3, 1, 4, 8]
    seen = []
    tir.stmt_functor.post_order_visit(body, seen.append)
    assert not any(isinstance(node, tir.IfThenElse) for node in seen)


def test_a_predicate_of_block_variables_is_refused():
    i = tir.Var("vi", "int32")
    axis = tir.IterVar(tvm.ir.Range(0, 4), i, tir.IterVar.DataPar)
    block = tir.Block([axis], [], [], "b", tir.Evaluate(i))
    func = tir.PrimFunc([], tir.BlockRealize([0], i < 2, block))
    with pytest.raises(ValueError, match="which only the block knows"):
        tir.transform.ConvertBlocksToOpaque()(tvm.IRModule({"main": func}))
