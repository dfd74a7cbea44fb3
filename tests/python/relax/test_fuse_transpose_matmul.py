"""Products with transposed matrices as kernels that read them as they are."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R


def _names(mod):
    return sorted(str(gvar.name_hint) for gvar in mod.functions)


def _run(mod, *values):
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(value) for value in values]).numpy()


def _product(a, w, axes, out_dtype=None):
    x, weight = (relax.Var(n, relax.TensorStructInfo(v.shape, str(v.dtype))) for n, v in
                 (("x", a), ("w", w)))  # fmt: skip
    builder = relax.BlockBuilder()
    with builder.function("main", [x, weight]):
        with builder.dataflow():
            turned = builder.emit(relax.op.permute_dims(weight, axes))
            product = builder.emit_output(relax.op.matmul(x, turned, out_dtype))
        builder.emit_func_output(product)
    return builder.get()


@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((5, 7), (3, 7), None),
        ((2, 5, 7), (3, 7), [1, 0]),
        ((2, 1, 5, 7), (4, 3, 7), [0, 2, 1]),
        ((7,), (3, 7), [-1, 0]),
        ((7,), (2, 3, 7), [0, 2, 1]),
    ],
)
def test_transposes_become_part_of_the_kernel(left, right, axes):
    rng = np.random.default_rng(0)
    a, w = (rng.normal(size=shape).astype("float32") for shape in (left, right))
    mod = _product(a, w, axes)
    fused = relax.transform.FuseTransposeMatmul()(mod)
    assert _names(fused) == ["NT_matmul", "main"]
    assert "permute_dims" not in fused.script()
    assert relax.analysis.well_formed(fused)
    np.testing.assert_allclose(_run(fused, a, w), a @ w.swapaxes(-1, -2), rtol=1e-5, atol=1e-5)


def test_sums_are_of_the_type_of_the_result():
    rng = np.random.default_rng(0)
    a, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((4, 300), (3, 300)))
    fused = relax.transform.FuseTransposeMatmul()(_product(a, w, None, "int32"))
    np.testing.assert_array_equal(_run(fused, a, w), a.astype("int32") @ w.T.astype("int32"))


def test_other_orders_of_dimensions_are_left_alone():
    mod = _product(np.zeros((5, 7), "float32"), np.zeros((3, 7, 2), "float32"), [2, 1, 0])
    assert relax.transform.FuseTransposeMatmul()(mod).script() == mod.script()


def test_extents_may_be_open_and_transposes_read_twice():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((6, 8), "float32")) -> R.Tensor(
            ("n", 6), "float32"
        ):
            with R.dataflow():
                turned = R.permute_dims(w, [1, 0])
                first = R.matmul(x, turned)
                second = R.sum(turned, axis=[0])
                result = R.add(first, second)
                R.output(result)
            return result

    fused = relax.transform.FuseTransposeMatmul()(Module)
    assert "NT_matmul" in _names(fused) and "permute_dims" in fused.script()
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype("float32") for shape in ((5, 8), (6, 8)))
    np.testing.assert_allclose(_run(fused, x, w), x @ w.T + w.sum(1), rtol=1e-5, atol=1e-5)
