"""When two modules are one workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tvm
from tvm import tir
from tvm.ir import IRModule
from tvm.tir.analysis import find_anchor_block

__all__ = ["ModuleEquality", "equality_of"]


class ModuleEquality(NamedTuple):
    """A way to tell modules apart.

    Attributes
    ----------
    name : as options name it.
    hash : of a module; equal modules have equal ones.
    equal : whether two modules are the same workload.
    """

    name: str
    hash: Callable[[IRModule], int]
    equal: Callable[[IRModule, IRModule], bool]


def equality_of(name: str) -> ModuleEquality:
    """A way to tell modules apart by its name.

    Parameters
    ----------
    name : "structural", equal up to the names of variables; "ignore-ndarray", where the contents
        of constants do not count either; "anchor-block", where nothing counts but the block that
        a module is about, see `tvm.tir.analysis.find_anchor_block`. Modules without such a block
        are compared as by "ignore-ndarray".

    Raises
    ------
    ValueError : another name.
    """
    if name not in _EQUALITIES:
        raise ValueError(
            f"module_equality is one of {', '.join(map(repr, _EQUALITIES))}; got {name!r}"
        )
    return _EQUALITIES[name]


def _structural_hash(mod: IRModule) -> int:
    return int(tvm.ir.structural_hash(mod))


def _structural_equal(a: IRModule, b: IRModule) -> bool:
    return bool(tvm.ir.structural_equal(a, b))


class _Zeros(tir.stmt_functor.StmtExprMutator):
    """Constants with zeros in the place of their values."""

    def visit_allocate_const_(self, op: tir.AllocateConst) -> tir.Stmt:
        zeros = np.zeros(tuple(int(e) for e in op.extents), str(op.dtype))
        return tir.AllocateConst(
            op.buffer_var,
            str(op.dtype),
            op.extents,
            tvm.nd.array(zeros),
            self.visit(op.body),
            op.annotations,
        )


def _without_values(mod: IRModule) -> IRModule:
    functions = {
        var: _Zeros().visit(func) if isinstance(func, tir.PrimFunc) else func
        for var, func in mod.functions.items()
    }
    same = all(functions[var].same_as(func) for var, func in mod.functions.items())
    return mod if same else mod.with_functions(functions)


def _anchor_hash(mod: IRModule) -> int:
    anchor = find_anchor_block(mod)
    if anchor is None:
        return _structural_hash(_without_values(mod))
    return int(tvm.ir.structural_hash(anchor, map_free_vars=True))


def _anchor_equal(a: IRModule, b: IRModule) -> bool:
    anchors = find_anchor_block(a), find_anchor_block(b)
    if anchors[0] is not None and anchors[1] is not None:
        return bool(tvm.ir.structural_equal(*anchors, map_free_vars=True))
    return anchors == (None, None) and _structural_equal(_without_values(a), _without_values(b))


_EQUALITIES = {
    "structural": ModuleEquality("structural", _structural_hash, _structural_equal),
    "ignore-ndarray": ModuleEquality(
        "ignore-ndarray",
        lambda mod: _structural_hash(_without_values(mod)),
        lambda a, b: _structural_equal(_without_values(a), _without_values(b)),
    ),
    "anchor-block": ModuleEquality("anchor-block", _anchor_hash, _anchor_equal),
}
