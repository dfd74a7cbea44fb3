"""Passes over where values are: in place, in scratch memory, in fixed memory, in another layout."""

import numpy as np
import pytest

import tvm
from tvm import error, relax, tir
from tvm.relax.analysis import alias_analysis, inplace_opportunities, liveness_ranges
from tvm.relax.testing import transform as testing
from tvm.relax.transform import (
    AllocateWorkspace,
    DataflowUseInplaceCalls,
    OptimizeLayoutTransform,
    RewriteCUDAGraph,
    SplitLayoutRewritePreproc,
)
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def run(mod, *inputs):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return machine["main"](*map(tvm.nd.array, inputs)).numpy()


def random(*shape):
    return np.random.default_rng(0).random(shape, "float32")


def block_of(mod):
    return mod["main"].body.blocks[0]


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((1, 3), "float32")) -> R.Tensor(
        (2, 3), "float32"
    ):
        with R.dataflow():
            z = R.add(x, y)
            w = R.nn.silu(z)
            q = R.multiply(y, w)
            r = R.add(q, q)
            s = R.subtract(x, r)
            R.output(s)
        return s


def test_results_are_written_over_operands_of_the_last_reader():
    mod = DataflowUseInplaceCalls()(Chain)
    calls = [b.value for b in block_of(mod).bindings]
    assert str(calls[0].op.name) == "relax.add"
    assert [list(c.attrs["inplace_indices"]) for c in calls[1:]] == [[0], [1], [0], [1]]
    x, y = random(2, 3), random(1, 3)
    z = x + y
    q = y * z / (1 + np.exp(-z))
    np.testing.assert_allclose(run(mod, x, y), x - 2 * q, rtol=1e-5)
    assert {str(g.name_hint) for g, f in mod.functions.items() if isinstance(f, tir.PrimFunc)} == {
        "silu_inplace", "multiply_inplace", "add_inplace", "subtract_inplace",
    }  # fmt: skip


def test_nothing_is_written_over_that_somebody_reads_later():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((3, 2), "float32"):
            with R.dataflow():
                y = R.negative(x)
                view = R.reshape(y, (3, 2))
                z = R.exp(y)
                back = R.reshape(z, (3, 2))
                out = R.add(view, back)
                R.output(out)
            return out

    x = random(2, 3)
    mod = DataflowUseInplaceCalls()(Mod)
    names = [str(b.value.op.name) for b in block_of(mod).bindings]
    # `exp` must leave what `view` looks at; the sum may go over either view.
    assert names[2] == "relax.exp" and names[4] == "relax.call_tir_inplace"
    np.testing.assert_allclose(run(mod, x), (-x + np.exp(-x)).reshape(3, 2), rtol=1e-5)


def test_constants_and_what_functions_gave_are_not_written_over():
    c = relax.const(random(2, 3))

    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            with R.dataflow():
                y = c
                z = R.add(y, x)
                w = R.call_pure_packed("unknown", x, sinfo_args=R.Tensor((2, 3), "float32"))
                v = R.multiply(w, x)
                out = R.add(z, v)
                R.output(out)
            return out

    large, equal = inplace_opportunities(block_of(Mod))
    assert large == equal == [(4, [0, 1])]


def test_an_operand_of_as_many_elements_is_an_opportunity_of_size_only():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32"), y: R.Tensor((1, 1), "float32")):
            with R.dataflow():
                a = R.negative(x)
                b = R.add(a, y)
                c = R.reshape(b, (3,))
                R.output(c)
            return c

    large, equal = testing.dataflow_inplace_analysis(block_of(Mod), [], Mod)
    assert (large, equal) == ([(1, {0})], [])
    ranges = liveness_ranges(block_of(Mod))
    assert {str(v.name_hint): r for v, r in ranges.items()} == {
        "x": (-1, 3), "y": (-1, 3), "a": (0, 1), "b": (1, 2), "c": (2, 3),
    }  # fmt: skip
    places = {str(v.name_hint): p for v, p in alias_analysis(block_of(Mod)).places.items()}
    assert places["c"] == places["b"] != places["a"]


def test_fields_of_tuples_are_followed():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4, 2), "float32")):
            with R.dataflow():
                parts = R.split(x, 2)
                first = parts[0]
                second = parts[1]
                a = R.exp(first)
                pair = (a, second)
                again = pair[0]
                b = R.add(again, second)
                R.output(b)
            return b

    _, equal = inplace_opportunities(block_of(Mod))
    assert equal == [(3, [0]), (6, [0, 1])]


def test_single_calls_are_written_over_the_argument_named():
    call = block_of(Chain).bindings[0].value
    written, mod = testing.dataflow_single_inplace_call(Chain, call, [0])
    assert str(written.op.name) == "relax.call_tir_inplace"
    kernel = mod[str(written.args[0].name_hint)]
    assert len(kernel.params) == 2
    with pytest.raises(error.ValueError, match="1 results, got 2 indices"):
        testing.dataflow_single_inplace_call(Chain, call, [0, 1])


def kernels(config=True):
    """A chain of kernels over planned memory."""

    @I.ir_module
    class Mod:
        @T.prim_func
        def step(a: T.Buffer((2, 4), "float32"), b: T.Buffer((2, 4), "float32")):
            for i, j in T.grid(2, 4):
                with T.block("step"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    b[vi, vj] = a[vi, vj] * T.float32(0.5) + T.float32(1)

        @R.function(pure=False)
        def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
            cls = Mod
            a = R.call_tir(cls.step, (x,), R.Tensor((2, 4), "float32"))
            b = R.call_tir(cls.step, (a,), R.Tensor((2, 4), "float32"))
            c = R.call_tir(cls.step, (b,), R.Tensor((2, 4), "float32"))
            return R.call_tir(cls.step, (c,), R.Tensor((2, 4), "float32"))

    planned = tvm.transform.Sequential(
        [
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.StaticPlanBlockMemory(),
        ]
    )(Mod)
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": config}):
        return planned, RewriteCUDAGraph()(planned)


def test_kernels_over_fixed_memory_become_a_function():
    planned, mod = kernels()
    names = {str(g.name_hint) for g in mod.functions}
    assert names == {"step", "main", "cuda_graph_alloc", "main_cuda_graph_capture"}
    capture = mod["main_cuda_graph_capture"]
    calls = [b.value for block in capture.body.blocks for b in block.bindings]
    # The first kernel reads what the caller gives, the last one writes what it gets back.
    assert sum(getattr(c, "op", None) == mod.get_global_var("step") for c in calls) == 2
    assert bool(capture.attrs["relax.force_pure"])
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for seed in range(3):
        x = np.random.default_rng(seed).random((2, 4), "float32")
        expected = x
        for _ in range(4):
            expected = expected * np.float32(0.5) + 1
        given = machine["main"](tvm.nd.array(x)).numpy()
        np.testing.assert_allclose(given, expected, rtol=1e-6)


def test_fixed_memory_is_left_alone_unless_asked_for():
    planned, mod = kernels(config=False)
    assert tvm.ir.structural_equal(planned, mod)


def test_weights_are_fixed_and_functions_share_memory():
    @I.ir_module
    class Mod:
        @T.prim_func
        def step(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("step"):
                    vi = T.axis.spatial(8, i)
                    b[vi] = a[vi] + T.float32(1)

        @R.function
        def main(x: R.Tensor((8,), "float32"), w: R.Tensor((8,), "float32")):
            R.func_attr({"num_input": 1, "relax.force_pure": True})
            cls = Mod
            storage = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
            a = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
            cls.step(w, a)
            out = R.builtin.alloc_tensor(R.shape([8]), "float32", 0, "global")
            cls.step(a, out)
            return out

        @R.function
        def other(w: R.Tensor((8,), "float32")):
            R.func_attr({"num_input": 0, "relax.force_pure": True})
            cls = Mod
            storage = R.memory.alloc_storage(R.shape([64]), 0, "global", "float32")
            a = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
            cls.step(w, a)
            out = R.builtin.alloc_tensor(R.shape([8]), "float32", 0, "global")
            cls.step(a, out)
            return out

    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        mod = RewriteCUDAGraph()(Mod)
    (binding, *_) = mod["cuda_graph_alloc"].body.blocks[0].bindings
    assert int(binding.value.args[0].values[0]) == 64
    assert len(mod["main_cuda_graph_capture"].params) == 2
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = tvm.nd.array(random(8))
    np.testing.assert_allclose(machine["main"](x, x).numpy(), x.numpy() + 2, rtol=1e-6)
    np.testing.assert_allclose(machine["other"](x).numpy(), x.numpy() + 2, rtol=1e-6)


def test_scratch_memory_is_allocated_once_for_all_functions():
    @I.ir_module
    class Mod:
        @R.function
        def first(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Codegen": "own", "WorkspaceSize": 100, "global_symbol": "first"})

            @R.function
            def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                R.func_attr({"Composite": "own.exp", "WorkspaceSize": 100})
                return R.exp(y)

            return inner(x)

        @R.function
        def second(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Codegen": "own", "WorkspaceSize": 300, "global_symbol": "second"})
            return R.negative(x)

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Mod
            with R.dataflow():
                a = cls.first(x)
                b = cls.second(a)
                R.output(b)
            return b

    mod = AllocateWorkspace()(Mod)
    memory, *calls = block_of(mod).bindings
    assert [int(n) for n in memory.var.struct_info.shape.values] == [300]
    assert all(binding.value.args[1].same_as(memory.var) for binding in calls)
    for name in ("first", "second"):
        assert len(mod[name].params) == 2 and "WorkspaceSize" not in mod[name].attrs
    inner, call = mod["first"].body.blocks[0].bindings
    assert len(inner.value.params) == 2
    assert call.value.args[1].same_as(mod["first"].params[1])
    assert relax.analysis.well_formed(mod)


def test_changes_of_layout_that_undo_each_other_go_away():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = R.layout_transform(x, lambda i, j: (i * 4 + j,))
                b = R.layout_transform(a, lambda i: (i // 4, i % 4))
                c = R.layout_transform(b, lambda i, j: (j, i))
                d = R.layout_transform(c, lambda i, j: (i, j))
                out = R.exp(d)
                R.output(out)
            return out

    mod = OptimizeLayoutTransform()(Mod)
    names = [str(b.value.op.name) for b in block_of(mod).bindings]
    # The last two do not put elements back, although all shapes are equal.
    assert names == ["relax.layout_transform", "relax.layout_transform", "relax.exp"]
    x = random(4, 4)
    np.testing.assert_allclose(run(mod, x), np.exp(x.T), rtol=1e-5)


def test_padding_that_is_cut_off_and_added_again_goes_away():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def remove_pad(a: T.Buffer((16,), "float32"), b: T.Buffer((14,), "float32")):
            T.func_attr({"operator_name": "remove_pad"})
            for i in range(14):
                with T.block("cut"):
                    vi = T.axis.spatial(14, i)
                    b[vi] = a[vi]

        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            cls = Mod
            with R.dataflow():
                a = R.layout_transform(x, lambda i, j: (i * 4 + j,))
                b = R.call_tir(cls.remove_pad, (a,), R.Tensor((14,), "float32"))
                c = R.layout_transform(b, lambda i: (i // 4, i % 4))
                out = R.exp(c)
                R.output(out)
            return out

    assert len(block_of(OptimizeLayoutTransform()(Mod)).bindings) == 1


def test_copies_of_weights_become_kernels():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def product(
            x: T.Buffer((4, 8), "float32"), w: T.Buffer((8, 6), "float32"),
            out: T.Buffer((4, 6), "float32"),
        ):  # fmt: skip
            T.func_attr({"layout_free_buffers": [1]})
            packed = T.alloc_buffer((3, 8, 2), "float32")
            for i, j in T.grid(8, 6):
                with T.block("pack"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                    packed[vj // 2, vi, vj % 2] = w[vi, vj]
            for i, j, k in T.grid(4, 6, 8):
                with T.block("product"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        out[vi, vj] = T.float32(0)
                    out[vi, vj] += x[vi, vk] * packed[vj // 2, vk, vj % 2]

        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 6), "float32")):
            cls = Mod
            with R.dataflow():
                out = R.call_tir(cls.product, (x, w), R.Tensor((4, 6), "float32"))
                R.output(out)
            return out

    mod = SplitLayoutRewritePreproc()(Mod)
    pack, product = (b.value.args[0] for b in block_of(mod).bindings)
    assert str(pack.name_hint) == "product_weight_prepack"
    assert str(product.name_hint) == "product_prepacked"
    assert "product" not in {str(g.name_hint) for g in mod.functions}
    x, w = random(4, 8), random(8, 6)
    np.testing.assert_allclose(run(mod, x, w), x @ w, rtol=1e-5)
