"""Products and convolutions with weights that are mostly zero, as those of sparse matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm import error
from tvm.ir import Op, RelayExpr
from tvm.ir.transform import Pass

from ..analysis.sparse_weights import weight_rows
from ..analysis.variables import free_vars
from ..expr import Call, Constant, Function, Var, exact_const, var
from ..expr_functor import PostOrderMutator
from ..op import nn
from ..op.registry import settings_of
from .base import expression_pass

__all__ = ["Conv2dToSparse", "Conv2dToSparse2", "DenseToSparse", "SimplifyFCTranspose"]


def _is_call(expr: RelayExpr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) == name


def _name_of(expr: RelayExpr) -> str:
    return str(expr.name_hint) if isinstance(expr, Var) else ""


class _Sparse(PostOrderMutator):
    """A function whose weights of some names are three parameters each."""

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self._shapes = shapes
        self._parts: dict[str, list[Var]] = {}

    def parts(self, weight: RelayExpr) -> list[Var] | None:
        """Data, indices and indptr of a weight; None for one that stays."""
        name = _name_of(weight)
        if name not in self._shapes:
            return None
        if name not in self._parts:
            *data, indices, indptr = (int(extent) for extent in self._shapes[name])
            dtype = str(weight.type_annotation.dtype)
            self._parts[name] = [
                var(f"{name}.data", shape=tuple(data), dtype=dtype),
                var(f"{name}.indices", shape=(indices,), dtype="int32"),
                var(f"{name}.indptr", shape=(indptr,), dtype="int32"),
            ]
        return self._parts[name]

    def function(self, func: Function) -> Function:
        """The function, with new parameters in the place of those that nobody reads any more."""
        body = self.visit(func.body)
        read = set(free_vars(body))
        params: list[Var] = []
        for param in func.params:
            made = self._parts.get(_name_of(param))
            if made is None or param in read:
                params.append(param)
            params += made or []
        return Function(params, body, None, func.type_params, func.attrs)


def _shapes_of(names: Sequence[Any], shapes: Sequence[Sequence[Any]], where: str) -> dict[str, Any]:
    if len(names) != len(shapes):
        raise error.ValueError(f"{where}: {len(names)} names, but {len(shapes)} shapes")
    return {str(name): [int(e) for e in shape] for name, shape in zip(names, shapes)}


class _SparseDense(_Sparse):
    def visit_call(self, call: Call) -> RelayExpr:
        parts = self.parts(call.args[1]) if _is_call(call, "nn.dense") else None
        if parts is None:
            return super().visit_call(call)
        return nn.sparse_dense(self.visit(call.args[0]), parts)


def DenseToSparse(weight_name: Sequence[str], weight_shape: Sequence[Sequence[int]]) -> Pass:
    """``nn.dense`` with weights of these names as ``nn.sparse_dense``.

    Parameters
    ----------
    weight_shape : for each weight the extents of the data, the number of indices and that of
        indptr, which `relay.analysis.sparse_dense.process_params` gives: a parameter ``w`` becomes
        ``w.data``, ``w.indices`` and ``w.indptr``.

    Raises
    ------
    ValueError : as many shapes as names are needed.
    """
    shapes = _shapes_of(weight_name, weight_shape, "DenseToSparse")
    return expression_pass(lambda f, mod: _SparseDense(shapes).function(f), 0, "DenseToSparse")


def _keeps_size(s: Mapping[str, Any], size: int, layout: str) -> bool:
    """Whether a convolution is one that `nn.sparse_conv2d` computes."""
    border = size // 2
    padding = [int(p) for p in s["padding"]]
    kernel = [int(k) for k in s["kernel_size"] or ()]
    return (
        str(s["data_layout"]) == layout
        and (str(s["out_layout"]) or layout) == layout
        and kernel == [size, size]
        and all(p == border for p in padding)
        and [int(x) for x in (*s["strides"], *s["dilation"])] == [1, 1, 1, 1]
        and int(s["groups"]) == 1
    )


class _SparseConv(_Sparse):
    def __init__(self, shapes: Mapping[str, Sequence[int]], layout: str, size: int) -> None:
        super().__init__(shapes)
        self._layout, self._size = layout, size

    def visit_call(self, call: Call) -> RelayExpr:
        fits = _is_call(call, "nn.conv2d") and _keeps_size(
            settings_of(call), self._size, self._layout
        )
        parts = self.parts(call.args[1]) if fits else None
        if parts is None:
            return super().visit_call(call)
        return nn.sparse_conv2d(self.visit(call.args[0]), parts, self._layout, self._size)


def Conv2dToSparse(
    weight_name: Sequence[str],
    weight_shape: Sequence[Sequence[int]],
    layout: str,
    kernel_size: int,
) -> Pass:
    """``nn.conv2d`` with weights of these names as ``nn.sparse_conv2d``, as `DenseToSparse`.

    Parameters
    ----------
    layout : "NHWC" or "NCHW". kernel_size : of the convolutions; those of another size, with
        strides, gaps or groups, or that give another size than they take, stay.

    Raises
    ------
    ValueError : as many shapes as names are needed.
    """
    shapes = _shapes_of(weight_name, weight_shape, "Conv2dToSparse")
    return expression_pass(
        lambda f, mod: _SparseConv(shapes, layout, kernel_size).function(f), 0, "Conv2dToSparse"
    )


class _ConstantSparse(PostOrderMutator):
    def __init__(self, layout: str, size: int, block: tuple[int, int], least: float) -> None:
        super().__init__()
        self._layout, self._size = layout, size
        self._block, self._least = block, least

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        if not _is_call(call, "nn.conv2d") or not isinstance(call.args[1], Constant):
            return new
        s = settings_of(call)
        weight = call.args[1].data.numpy()
        sparsity = 1.0 - np.count_nonzero(weight) / weight.size
        rows = weight_rows(weight, str(s["kernel_layout"]))
        whole = all(extent % block == 0 for extent, block in zip(rows.shape, self._block))
        if sparsity < self._least or not whole or not _keeps_size(s, self._size, self._layout):
            return new
        from scipy.sparse import bsr_matrix

        stored = bsr_matrix(rows, blocksize=self._block)
        parts = [exact_const(np.asarray(p)) for p in (stored.data, stored.indices, stored.indptr)]
        return nn.sparse_conv2d(new.args[0], parts, self._layout, self._size)


def Conv2dToSparse2(
    layout: str, kernel_size: int, blocksize: tuple[int, int], sparsity_threshold: float
) -> Pass:
    """:func:`Conv2dToSparse` for weights that are constants.

    Parameters
    ----------
    blocksize : rows and columns of blocks, of the weight as (out channels, places * in channels).
    sparsity_threshold : the least share of zeros.
    """
    return expression_pass(
        lambda f, mod: _ConstantSparse(layout, kernel_size, blocksize, sparsity_threshold).visit(f),
        0,
        "Conv2dToSparse2",
    )


class _Transposed(_Sparse):
    """Weights that are transposed before they are used, as parameters stored the other way."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(names, ()))

    def visit_call(self, call: Call) -> RelayExpr:
        if not _is_call(call, "nn.dense") or not _is_call(call.args[1], "transpose"):
            return super().visit_call(call)
        weight = call.args[1].args[0]
        name = _name_of(weight)
        if name not in self._shapes:
            return super().visit_call(call)
        if name not in self._parts:
            shape = tuple(reversed(weight.type_annotation.shape))
            dtype = str(weight.type_annotation.dtype)
            self._parts[name] = [var(f"{name}.T", shape=shape, dtype=dtype)]
        return Call(call.op, [self.visit(call.args[0]), self._parts[name][0]], call.attrs)


def SimplifyFCTranspose(target_weight_name: Sequence[str]) -> Pass:
    """``nn.dense(x, transpose(w))`` with weights of these names as ``nn.dense(x, w.T)``.

    ``w.T`` is a parameter in the place of ``w``, which holds its transpose.
    """
    names = [str(name) for name in target_weight_name]
    return expression_pass(lambda f, mod: _Transposed(names).function(f), 0, "SimplifyFCTranspose")
