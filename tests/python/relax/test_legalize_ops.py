"""Operators as calls of kernels: what is called, and that it computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, tir, topi
from tvm.ir import IRModule
from tvm.relax import op
from tvm.relax.transform import LegalizeOps
from tvm.relax.transform.legalize_ops.common import register_legalize


def _module(make: Any, *shapes: tuple[Any, ...]) -> IRModule:
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(shape, "float32"))
        for i, shape in enumerate(shapes)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(make(*params))
        builder.emit_func_output(result)
    return builder.get()


def _called(mod: IRModule) -> list[str]:
    return [
        str(binding.value.args[0].name_hint)
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call) and str(binding.value.op.name) == "relax.call_tir"
    ]


def _kernel(mod: IRModule, name: str, inputs: list[np.ndarray]) -> np.ndarray:
    function = mod[name].with_attr("global_symbol", name)
    out = function.buffer_map[function.params[len(inputs)]]
    arrays = [tvm.nd.array(array) for array in inputs]
    arrays.append(tvm.nd.empty([int(n) for n in out.shape], str(out.dtype)))
    tvm.build(IRModule({name: function}), target="llvm")(*arrays)
    return arrays[-1].numpy()


CASES: list[tuple[str, Any, Any, list[tuple[int, ...]]]] = [
    ("add", op.add, np.add, [(1, 2, 3), (4, 3, 2, 1)]),
    ("cast", lambda x: op.astype(x, "int32"), lambda x: x.astype("int32"), [(5,)]),
    ("concatenate", lambda x, y: op.concat([x, y], 1), lambda x, y: np.concatenate([x, y], 1),
     [(2, 3), (2, 4)]),
    ("transpose", lambda x: op.permute_dims(x, [1, 0]), lambda x: x.T, [(3, 5)]),
    ("mean", lambda x: op.mean(x, 1, True), lambda x: x.mean(1, keepdims=True), [(3, 5)]),
    ("std", lambda x: op.std(x, 0), lambda x: x.std(0), [(3, 5)]),
    ("tir_square", op.square, np.square, [(7,)]),
    ("repeat", lambda x: op.repeat(x, 2, 0), lambda x: np.repeat(x, 2, 0), [(3, 2)]),
    ("full", lambda x: op.full_like(x, relax.const(3.0)), lambda x: np.full_like(x, 3.0),
     [(2, 2)]),
    ("ones", op.ones_like, np.ones_like, [(2, 3)]),
    ("collapse_sum", lambda x: op.collapse_sum_to(x, (1, 3)), lambda x: x.sum(0, keepdims=True),
     [(2, 3)]),
    ("ewise_fma", op.ewise_fma, lambda a, b, c: a * b + c, [(4,), (4,), (4,)]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_kernels_compute_the_operator(case: tuple[str, Any, Any, list[tuple[int, ...]]]) -> None:
    name, make, reference, shapes = case
    mod = LegalizeOps()(_module(make, *shapes))
    assert _called(mod) == [name]
    rng = np.random.default_rng(0)
    inputs = [rng.random(shape, dtype=np.float32) for shape in shapes]
    np.testing.assert_allclose(
        _kernel(mod, name, inputs[: len(mod[name].params) - 1]), reference(*inputs), rtol=1e-5
    )


def test_a_module_of_calls_runs() -> None:
    mod = _module(lambda x: op.nn.relu(op.subtract(x, relax.const(0.5))), (3, 4))
    x = np.random.default_rng(1).random((3, 4), dtype=np.float32)
    machine = relax.VirtualMachine(relax.build(LegalizeOps()(mod), "llvm"), tvm.cpu())
    np.testing.assert_allclose(machine["main"](tvm.nd.array(x)).numpy(), np.maximum(x - 0.5, 0))


def test_equal_kernels_are_one_and_symbolic_extents_stay() -> None:
    n = tir.Var("n", "int64")
    mod = LegalizeOps()(_module(lambda x: op.exp(op.exp(x)), (n, 4)))
    assert _called(mod) == ["tir_exp", "tir_exp"] and len(mod.functions) == 2
    assert isinstance(mod["tir_exp"].buffer_map[mod["tir_exp"].params[0]].shape[0], tir.Var)


def test_what_is_not_known_stays() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(ndim=2, dtype="float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(op.exp(x)))
    assert _called(LegalizeOps()(builder.get())) == []


def test_legalisations_of_ones_own_go_first() -> None:
    def swapped(builder: relax.BlockBuilder, call: relax.Call) -> Any:
        return builder.call_te(topi.subtract, call.args[1], call.args[0])

    mod = _module(op.subtract, (3,), (3,))
    ours = LegalizeOps({"relax.subtract": swapped})(mod)
    a, b = np.ones(3, "float32"), np.full(3, 5.0, "float32")
    main = ours["main"].body.blocks[0].bindings[0].value
    assert [str(arg.name_hint) for arg in main.args[1].fields] == ["x1", "x0"]
    np.testing.assert_array_equal(_kernel(ours, "subtract", [b, a]), b - a)
    assert register_legalize("relax.no_such_operator")(swapped) is swapped


def test_values_known_at_once_become_constants() -> None:
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        numbers = builder.emit(op.arange(1, 10, 2))
        half = builder.emit(op.astype(relax.const(1.5), "int32"))
        builder.emit_func_output(relax.Tuple([numbers, half]))
    mod = LegalizeOps()(builder.get())
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    np.testing.assert_array_equal(values[0].values(), [1, 3, 5, 7, 9])
    assert int(values[1].values()) == 1 and len(mod.functions) == 1


def test_what_needs_a_shape_only_reads_no_tensor() -> None:
    mod = LegalizeOps()(_module(lambda x: op.ones_like(x, "int8"), (2, 3)))
    assert [len(f.params) for f in mod.functions.values() if isinstance(f, tir.PrimFunc)] == [1]


def test_a_warning_names_what_has_no_kernel():
    x = relax.Var("x", relax.TensorStructInfo(None, "float32", ndim=2))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.reshape(x, (4,))))
    mod = builder.get()
    with pytest.warns(UserWarning, match="no legalization of relax.reshape"):
        relax.transform.LegalizeOps(enable_warning=True)(mod)
    assert relax.transform.FuseOps(fuse_opt_level=0)(mod).same_as(mod)


def test_several_new_axes_are_one_kernel_without_buffers_between():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.expand_dims(x, [-1, 1, 2])))
    mod = relax.transform.LegalizeOps()(builder.get())
    assert not len(mod["expand_dims"].body.block.alloc_buffers)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    data = np.arange(6, dtype="float32").reshape(2, 3)
    found = machine["main"](tvm.nd.array(data)).numpy()
    np.testing.assert_array_equal(found, np.expand_dims(data, (-1, 1, 2)))


def test_slices_with_limits_from_tensors():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 5), "float32"))
    limits = [relax.Var(name, relax.TensorStructInfo((2,), "int64")) for name in "bes"]
    with builder.function("main", [x, *limits]):
        part = builder.emit(relax.op.dynamic_strided_slice(x, *limits))
        builder.emit_func_output(builder.emit(relax.op.exp(part)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    data = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
    for begin, end, strides in (([0, 1], [3, 5], [1, 2]), ([3, -1], [0, -4], [-1, -1])):
        given = [tvm.nd.array(np.array(v, "int64")) for v in (begin, end, strides)]
        found = machine["main"](tvm.nd.array(data), *given).numpy()
        wanted = np.exp(data[tuple(map(slice, begin, end, strides))])
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_operators_read_results_whose_size_depends_on_data():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((6,), "int64"))
    with builder.function("main", [x]):
        found = builder.emit(relax.op.unique(x))
        builder.emit_func_output(builder.emit(relax.op.multiply(found, found)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    data = np.array([3, 1, 3, 2, 1, 5])
    result = machine["main"](tvm.nd.array(data)).numpy()
    np.testing.assert_array_equal(result, np.unique(data) ** 2)


@pytest.mark.parametrize(
    ("value", "kind", "dtype", "operands", "answer"),
    [
        (3.5, "float32", "int32", 0, 3),
        (3.5, "float32", None, 0, 3.5),
        (True, "bool", "float32", 0, 1.0),
        (2, "int32", "bool", 0, True),
        # What the type has no number for is cast when the kernel runs.
        (300, "int32", "int8", 1, 44),
    ],
)
def test_a_constant_that_fills_a_tensor_is_part_of_the_kernel(value, kind, dtype, operands, answer):
    def fill(x):
        n = x.struct_info.shape.values[0]
        return op.full((2, n), relax.const(value, kind), dtype=dtype)

    n = tir.Var("n", "int64")
    legal = LegalizeOps()(_module(fill, (n,)))
    assert len(legal["full"].params) == 1 + operands
    machine = relax.VirtualMachine(relax.build(legal), tvm.cpu())
    made = machine["main"](tvm.nd.array(np.zeros(3, "float32"))).numpy()
    np.testing.assert_array_equal(made, np.full((2, 3), answer, dtype or kind))
