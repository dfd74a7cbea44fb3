"""The schedule as a whole: modules in and out, blocks found, copies, seeds, errors."""

from __future__ import annotations

import pytest

import tvm
from testing_blocks import blur, chain, check, matmul
from tvm import te, tir
from tvm.ir import IRModule, structural_equal
from tvm.script import tir as T


def names(sch, blocks):
    return [str(sch.get(block).name_hint) for block in blocks]


def test_a_schedule_that_did_nothing_has_an_equal_module():
    func, _ = matmul()
    mod = IRModule({"main": func})
    assert structural_equal(tir.Schedule(mod).mod, mod)
    assert structural_equal(tir.Schedule(func).mod, mod)


def test_the_given_module_stays_as_it_is():
    func, _ = matmul()
    mod = IRModule({"main": func})
    before = str(mod)
    sch = tir.Schedule(mod)
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    assert str(mod) == before
    assert "T.parallel" in str(sch.mod)


def test_the_text_of_the_module_changes_with_every_primitive():
    sch = tir.Schedule(matmul()[0])
    seen = [str(sch.mod)]
    i, j, k = sch.get_loops(sch.get_block("C"))
    j_0, j_1 = sch.split(j, [None, 4])
    seen.append(str(sch.mod))
    sch.reorder(i, j_0, k, j_1)
    seen.append(str(sch.mod))
    sch.vectorize(j_1)
    seen.append(str(sch.mod))
    assert len(set(seen)) == 4


def test_an_unknown_block_is_refused_with_the_function():
    sch = tir.Schedule(matmul()[0])
    with pytest.raises(
        tir.ScheduleError,
        match="Cannot find a block with the name: X; the blocks are root, C",
    ) as e:
        sch.get_block("X")
    assert "for i, j, k in T.grid(12, 20, 18)" in str(e.value)
    assert isinstance(e.value, tvm.error.TVMError)
    with pytest.raises(tir.ScheduleError, match="no function other of blocks; it has main"):
        sch.get_block("C", func_name="other")


def test_functions_of_a_module_are_scheduled_by_name():
    (one, _), (two, _) = matmul(), chain()
    sch = tir.Schedule(IRModule({"one": one, "two": two}))
    sch.parallel(sch.get_loops(sch.get_block("C", "one"))[0])
    sch.work_on("two")
    assert sch.func_working_on == "two"
    i, j = sch.get_loops(sch.get_block("C"))
    sch.vectorize(j)
    assert 'func_name="two"' in str(sch.trace)
    assert "parallel" in str(sch.mod["one"])
    assert "vectorized" in str(sch.mod["two"])
    with pytest.raises(tir.ScheduleError, match="different functions"):
        sch.reorder(i, sch.get_loops(sch.get_block("C", "one"))[0])


def test_the_only_function_of_a_module_needs_no_name():
    func, _ = matmul()
    sch = tir.Schedule(IRModule({"product": func}))
    assert sch.func_working_on == "product"
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    assert "T.parallel" in str(sch.copy().mod["product"])
    assert [str(sch.get(b).name_hint) for b in sch.get_output_blocks("root")] == ["C"]
    both = tir.Schedule(IRModule({"product": func, "other": func}))
    assert both.func_working_on is None
    with pytest.raises(tir.ScheduleError, match="no function main of blocks"):
        both.get_block("C")


def test_producers_and_consumers_follow_the_buffers():
    sch = tir.Schedule(blur()[0])
    p = sch.get_block("P")
    assert names(sch, sch.get_producers(p)) == ["B"]
    assert names(sch, sch.get_consumers(p)) == ["S"]
    root = sch.get_block("root")
    assert names(sch, sch.get_child_blocks(root)) == ["B", "P", "S", "H"]
    assert names(sch, sch.get_output_blocks(root)) == ["H"]
    assert names(sch, sch.get_output_blocks("root")) == ["H"]
    i, _ = sch.get_loops(sch.get_block("S"))
    assert names(sch, sch.get_child_blocks(i)) == ["S"]


def test_a_block_may_be_given_by_its_name():
    sch = tir.Schedule(matmul()[0], error_render_level="fast")
    i, j, k = sch.get_loops("C")
    with pytest.raises(tir.ScheduleError, match="get_block: Cannot find a block with the name: D"):
        sch.get_loops("D")
    with pytest.raises(tir.ScheduleError, match="loop i is an ancestor of block"):
        sch.compute_at("C", i)
    assert len(sch.trace) == 2
    sch.decompose_reduction("C", k)
    assert 'b4 = sch.get_block(name="C", func_name="main")' in str(sch.trace)


def test_a_copy_goes_its_own_way():
    func, answer = matmul()
    sch = tir.Schedule(func, seed=1)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    sch.decompose_reduction(c, k)
    other = sch.copy()
    sch.parallel(i)
    other.reorder(*other.split(i, [None, 3]))
    assert "parallel" not in str(other.mod)
    assert len(sch.trace) == 4
    assert len(other.trace) == 5
    check(sch, func, answer)
    check(other, func, answer)


def test_equal_seeds_give_equal_samples():
    def tile(seed):
        sch = tir.Schedule(matmul(64, 64, 64)[0], seed=seed)
        loops = sch.get_loops(sch.get_block("C"))
        tiles = [sch.sample_perfect_tile(loop, 3) for loop in loops]
        return [[int(sch.get(size)) for size in sizes] for sizes in tiles]

    assert tile(5) == tile(5)
    assert len({str(tile(seed)) for seed in range(8)}) > 4
    assert tir.Schedule(matmul()[0], seed=2).fork_seed() == (
        tir.Schedule(matmul()[0], seed=2).fork_seed()
    )


def test_samples_are_variables_and_multiply_to_the_extent():
    sch = tir.Schedule(matmul(12, 128, 18)[0], seed=0)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    for _ in range(20):
        sizes = sch.sample_perfect_tile(j, n=2, max_innermost_factor=16)
        assert all(isinstance(size, tir.Var) for size in sizes)
        outer, inner = (int(sch.get(size)) for size in sizes)
        assert outer * inner == 128
        assert inner <= 16
        assert int(sch.get(sizes[0] * sizes[1])) == 128


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ([3, 4], "not 2 factors of the extent 20"),
        ([20], "not 2 factors"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(decision, message):
    sch = tir.Schedule(matmul()[0])
    _, j, _ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(tir.ScheduleError, match=message):
        sch.sample_perfect_tile(j, 2, decision=decision)


def test_a_decision_may_be_more_than_what_is_sampled():
    sch = tir.Schedule(matmul()[0])
    _, j, _ = sch.get_loops(sch.get_block("C"))
    sizes = sch.sample_perfect_tile(j, 2, max_innermost_factor=16, decision=[1, 20])
    assert [int(sch.get(size)) for size in sizes] == [1, 20]


def test_a_category_is_sampled_by_its_chance():
    sch = tir.Schedule(matmul()[0], seed=0)
    values = {int(sch.get(sch.sample_categorical([4, 8, 16], [0.5, 0.0, 0.5]))) for _ in range(30)}
    assert values == {4, 16}
    assert int(sch.get(sch.sample_categorical([4, 8], [1, 0], decision=1))) == 8
    with pytest.raises(ValueError, match="2 candidates with 1 probabilities"):
        sch.sample_categorical([1, 2], [1.0])
    with pytest.raises(ValueError, match="at least 0 and not all 0"):
        sch.sample_categorical([1, 2], [0.0, 0.0])


def test_errors_show_as_much_as_asked_for():
    def refusal(level):
        sch = tir.Schedule(matmul()[0], error_render_level=level)
        k = sch.get_loops(sch.get_block("C"))[2]
        with pytest.raises(tir.ScheduleError) as error:
            sch.parallel(k)
        return str(error.value)

    assert "T.grid" in refusal("detail")
    assert "T.grid" not in refusal("fast")
    assert "add to the same elements of block C" in refusal("fast")
    assert refusal("none") == "parallel: not legal here (not rendered)"
    with pytest.raises(ValueError, match="error_render_level is one of detail, fast, none"):
        refusal("loud")


def test_what_is_no_variable_of_the_schedule_is_refused():
    sch = tir.Schedule(matmul()[0])
    with pytest.raises(TypeError, match="expected a block of this schedule"):
        sch.get_loops(3)
    with pytest.raises(TypeError, match="expected a loop of this schedule"):
        sch.parallel(sch.get_block("C"))
    with pytest.raises(TypeError, match="expected a loop of this schedule"):
        other = tir.Schedule(matmul()[0])
        sch.parallel(other.get_loops(other.get_block("C"))[0])
    with pytest.raises(TypeError, match="expected an IRModule or a PrimFunc"):
        tir.Schedule(3)


def test_a_scheduled_module_can_be_scheduled_again():
    func, answer = matmul()
    sch = tir.Schedule(func)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    j_0, j_1 = sch.split(j, [None, 4])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(c, k)
    again = tir.Schedule(sch.mod)
    update = again.get_block("C_update")
    i, j_0, k, j_1 = again.get_loops(update)
    again.parallel(i)
    again.reorder(j_0, i)
    again.reorder(j_1, k)
    check(again, func, answer)


@tvm.script.ir_module
class MatmulModule:
    @T.prim_func
    def main(
        left: T.Buffer((48, 40), "float32"),
        right: T.Buffer((40, 64), "float32"),
        product: T.Buffer((48, 64), "float32"),
    ):
        for row, column, depth in T.grid(48, 64, 40):
            with T.block("sum"):
                r, c, d = T.axis.remap("SSR", [row, column, depth])
                with T.init():
                    product[r, c] = 0.0
                product[r, c] = product[r, c] + left[r, d] * right[d, c]


def test_a_module_written_as_script_is_scheduled_built_and_written_again():
    sch = tir.Schedule(MatmulModule, seed=3)
    block = sch.get_block("sum", "main")
    i, j, k = sch.get_loops(block=block)
    j_0, j_1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2))
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    assert structural_equal(tvm.script.from_source(sch.mod.script()), sch.mod)
    check(sch, MatmulModule["main"], lambda a, b: a @ b)


def test_values_of_axes_follow_the_loops():
    func, _ = matmul(16, 16, 8)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(i, [None, 4])
    values = sch.get_iter_values("C")
    variables = [sch.get(loop).loop_var for loop in (outer, inner, j, k)]
    assert tvm.ir.structural_equal(values[0], variables[0] * 4 + variables[1])
    assert [v.same_as(var) for v, var in zip(values[1:], variables[2:])] == [True, True]


def test_variables_may_be_removed():
    A = te.placeholder((8,), name="A")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")]))
    (i,) = sch.get_loops("B")
    outer, inner = sch.split(i, [None, 4])
    sch.remove_rv(outer)
    with pytest.raises(TypeError):
        sch.unroll(outer)
    sch.unroll(inner)
    with pytest.raises(tir.ScheduleError, match="removed already"):
        sch.remove_rv(outer)
    # What was done stays in the trace.
    again = tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")]))
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_steps_are_checked_whatever_is_asked_for():
    A = te.placeholder((8,), name="A")
    func = te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")])
    sch = tir.Schedule(func, enable_check=False)
    with pytest.raises(tir.ScheduleError):
        sch.compute_inline("B")
