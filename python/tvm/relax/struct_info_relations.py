"""How kinds of struct info relate: which is more general, and what survives a scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import tvm
from tvm import arith, error, tir
from tvm.ir import PrimExpr, RelayExpr, Type, structural_equal

from .dtensor import DTensorStructInfo
from .expr import Call, ShapeExpr, Var
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

__all__ = [
    "BaseCheckResult",
    "definable_tir_vars_in_struct_info",
    "derive_call_ret_struct_info",
    "erase_to_well_defined",
    "extents_in_struct_info",
    "get_static_type",
    "narrower_struct_info",
    "struct_info_base_check",
    "struct_info_lca",
    "substitute_struct_info",
    "tir_vars_in_struct_info",
    "unify_struct_info",
]


class BaseCheckResult(IntEnum):
    """Whether one struct info is at least as general as another."""

    FAIL_L0 = 0
    """They have nothing in common."""
    FAIL_L1 = 1
    """They differ in what can be told without looking into shapes."""
    FAIL_L2 = 2
    """They may be the same when it runs; that has to be checked then."""
    PASS = 3
    """The first is at least as general."""


def get_static_type(info: StructInfo) -> Type:
    """The type that remains when shapes and values are left out."""
    return info.as_type()


def _prim_vars(expr: PrimExpr, found: dict[tir.Var, None]) -> None:
    if isinstance(expr, tir.Var):
        found.setdefault(expr)
    elif not isinstance(expr, tir.IntImm):
        for var in tvm.tir.analysis.undefined_vars(expr):
            found.setdefault(var)


def _extents_of(info: StructInfo) -> Iterable[PrimExpr]:
    if isinstance(info, TensorStructInfo):
        if isinstance(info.shape, ShapeExpr):
            yield from info.shape.values
    elif isinstance(info, DTensorStructInfo):
        yield from _extents_of(info.tensor_sinfo)
    elif isinstance(info, ShapeStructInfo):
        yield from info.values or ()
    elif isinstance(info, PrimStructInfo):
        if info.value is not None:
            yield info.value
    elif isinstance(info, TupleStructInfo):
        for field in info.fields:
            yield from _extents_of(field)
    elif isinstance(info, FuncStructInfo) and info.params is not None:
        for field in [*info.params, info.ret]:
            yield from _extents_of(field)


def extents_in_struct_info(info: StructInfo) -> list[PrimExpr]:
    """The extents of shapes and tensors in order; values of scalars are none."""
    if isinstance(info, PrimStructInfo):
        return []
    if isinstance(info, TupleStructInfo):
        return [extent for field in info.fields for extent in extents_in_struct_info(field)]
    return [] if isinstance(info, FuncStructInfo) else list(_extents_of(info))


def tir_vars_in_struct_info(info: StructInfo) -> list[tir.Var]:
    """The variables of symbolic extents, in order, once each."""
    found: dict[tir.Var, None] = {}
    for extent in _extents_of(info):
        _prim_vars(extent, found)
    return list(found)


def definable_tir_vars_in_struct_info(info: StructInfo) -> list[tir.Var]:
    """The variables that a value of this struct info would give a value to.

    These are the extents that are variables; an extent ``n + 1`` does not say what ``n`` is.
    """
    found: dict[tir.Var, None] = {}
    if not isinstance(info, FuncStructInfo):
        for extent in _extents_of(info):
            if isinstance(extent, tir.Var):
                found.setdefault(extent)
    return list(found)


def _map_extents(info: StructInfo, extent: Any, shape: Any, weaken: bool) -> StructInfo:
    """Struct info with extents replaced.

    Parameters
    ----------
    extent : from an extent to what replaces it, None if it is unknown then.
    shape : from a variable that holds a shape to what replaces it, None if it is unknown then.
    weaken : whether an unknown extent leaves only the rank.
    """

    def all_of(values: Sequence[PrimExpr]) -> list[PrimExpr] | None:
        new = [extent(v) for v in values]
        return None if any(v is None for v in new) else new

    if isinstance(info, PrimStructInfo):
        if info.value is None:
            return info
        value = extent(info.value)
        if value is not None and value.same_as(info.value):
            return info
        return PrimStructInfo(str(info.dtype), value)
    if isinstance(info, ShapeStructInfo):
        if info.values is None:
            return info
        values = all_of(info.values)
        if values is None:
            return ShapeStructInfo(ndim=info.ndim)
        same = all(a.same_as(b) for a, b in zip(values, info.values))
        return info if same else ShapeStructInfo(values)
    if isinstance(info, TensorStructInfo):
        if info.shape is None:
            return info
        if isinstance(info.shape, Var):
            new = shape(info.shape)
            if new is None:
                return TensorStructInfo(None, str(info.dtype), info.vdevice, info.ndim)
            return (
                info
                if new.same_as(info.shape)
                else TensorStructInfo(new, str(info.dtype), info.vdevice)
            )
        values = all_of(info.shape.values)
        if values is None:
            return TensorStructInfo(None, str(info.dtype), info.vdevice, info.ndim)
        if all(a.same_as(b) for a, b in zip(values, info.shape.values)):
            return info
        return TensorStructInfo(values, str(info.dtype), info.vdevice)
    if isinstance(info, DTensorStructInfo):
        tensor = _map_extents(info.tensor_sinfo, extent, shape, weaken)
        return info if tensor.same_as(info.tensor_sinfo) else info.with_tensor(tensor)
    if isinstance(info, TupleStructInfo):
        fields = [_map_extents(field, extent, shape, weaken) for field in info.fields]
        same = all(a.same_as(b) for a, b in zip(fields, info.fields))
        return info if same else TupleStructInfo(fields)
    if isinstance(info, FuncStructInfo) and info.params is not None and not weaken:
        params = [_map_extents(param, extent, shape, weaken) for param in info.params]
        return FuncStructInfo(params, _map_extents(info.ret, extent, shape, weaken), info.purity)
    # A function's own parameters define the extents in it, so nothing of it leaves a scope.
    return info


def substitute_struct_info(info: StructInfo, values: Mapping[tir.Var, PrimExpr]) -> StructInfo:
    """Struct info with expressions in place of symbolic extents."""
    if not values:
        return info
    analyzer = arith.Analyzer()

    def extent(expr: PrimExpr) -> PrimExpr:
        new = tir.stmt_functor.substitute(expr, dict(values))
        return expr if new.same_as(expr) else analyzer.simplify(new)

    return _map_extents(info, extent, lambda var: var, False)


def erase_to_well_defined(
    info: StructInfo,
    shape_var_map: Mapping[tir.Var, PrimExpr | int] | None = None,
    var_map: Mapping[Var, RelayExpr] | None = None,
) -> StructInfo:
    """What remains known outside of a scope.

    Parameters
    ----------
    shape_var_map : the symbolic extents that are visible there, with what stands for them there.
    var_map : the same for variables that hold shapes.
    """
    extents = {
        var: tir.const(value, var.dtype) if isinstance(value, int) else value
        for var, value in (shape_var_map or {}).items()
    }
    variables = dict(var_map or {})

    def extent(expr: PrimExpr) -> PrimExpr | None:
        found: dict[tir.Var, None] = {}
        _prim_vars(expr, found)
        if any(var not in extents for var in found):
            return None
        if all(extents[var].same_as(var) for var in found):
            return expr
        return arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, extents))

    return _map_extents(info, extent, lambda var: variables.get(var), True)


def _same_extents(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> BaseCheckResult:
    result = BaseCheckResult.PASS
    analyzer = arith.Analyzer()
    for x, y in zip(a, b):
        if x.same_as(y):
            continue
        gap = analyzer.simplify(x - y)
        if isinstance(gap, tir.IntImm):
            if gap.value != 0:
                return BaseCheckResult.FAIL_L1
        elif not analyzer.can_prove_equal(x, y):
            result = BaseCheckResult.FAIL_L2
    return result


def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """Whether `base` is at least as general as `derived`: all that holds for values of it."""
    ok, never, differs, maybe = (
        BaseCheckResult.PASS, BaseCheckResult.FAIL_L0, BaseCheckResult.FAIL_L1,
        BaseCheckResult.FAIL_L2,
    )  # fmt: skip
    if isinstance(base, ObjectStructInfo):
        return ok
    if isinstance(derived, ObjectStructInfo):
        return differs
    if type(base) is not type(derived):
        return never
    if isinstance(base, PrimStructInfo):
        if str(base.dtype) != str(derived.dtype):
            return never
        if base.value is None:
            return ok
        return maybe if derived.value is None else _same_extents([base.value], [derived.value])
    if isinstance(base, ShapeStructInfo):
        return _shape_check(base.ndim, derived.ndim, base.values, derived.values)
    if isinstance(base, TensorStructInfo):
        return _tensor_check(base, derived)
    if isinstance(base, DTensorStructInfo):
        if not _lie_alike(base, derived):
            return never
        return _tensor_check(base.tensor_sinfo, derived.tensor_sinfo)
    if isinstance(base, TupleStructInfo):
        if len(base.fields) != len(derived.fields):
            return never
        results = [struct_info_base_check(a, b) for a, b in zip(base.fields, derived.fields)]
        return min(results, default=ok)
    return _func_check(base, derived)


def narrower_struct_info(declared: StructInfo, known: StructInfo | None) -> StructInfo:
    """What holds of a value that is declared to be something, and known to be something else.

    That is what is known, where the declaration is as general, and otherwise what is declared.
    """
    if known is None or struct_info_base_check(declared, known) != BaseCheckResult.PASS:
        return declared
    return declared if structural_equal(declared, known) else known


def _lie_alike(a: DTensorStructInfo, b: DTensorStructInfo) -> bool:
    return structural_equal(a.device_mesh, b.device_mesh) and structural_equal(
        a.placement, b.placement
    )


def _shape_check(
    base_rank: int,
    rank: int,
    base_values: Sequence[PrimExpr] | None,
    values: Sequence[PrimExpr] | None,
) -> BaseCheckResult:
    if base_rank != rank:
        if base_rank == -1:
            return BaseCheckResult.PASS
        return BaseCheckResult.FAIL_L1 if rank == -1 else BaseCheckResult.FAIL_L0
    if base_values is None:
        return BaseCheckResult.PASS
    if values is None:
        return BaseCheckResult.FAIL_L2
    result = _same_extents(base_values, values)
    return BaseCheckResult.FAIL_L0 if result == BaseCheckResult.FAIL_L1 else result


def _tensor_check(base: TensorStructInfo, derived: TensorStructInfo) -> BaseCheckResult:
    results = [BaseCheckResult.PASS]
    kinds = str(base.dtype), str(derived.dtype)
    if kinds[0] != kinds[1] and kinds[0] != "void":
        if kinds[1] != "void":
            return BaseCheckResult.FAIL_L0
        results.append(BaseCheckResult.FAIL_L1)
    if base.vdevice is not None and base.vdevice != derived.vdevice:
        if derived.vdevice is not None:
            return BaseCheckResult.FAIL_L0
        results.append(BaseCheckResult.FAIL_L1)
    if isinstance(base.shape, Var):
        if derived.shape is not None and base.shape.same_as(derived.shape):
            return min(results)
        results.append(_shape_check(base.ndim, derived.ndim, None, None))
        if results[-1] == BaseCheckResult.PASS:
            results.append(BaseCheckResult.FAIL_L2)
        return min(results)
    known = [None if t.shape is None else t.shape.struct_info.values for t in (base, derived)]
    results.append(_shape_check(base.ndim, derived.ndim, *known))
    return min(results)


def _func_check(base: FuncStructInfo, derived: FuncStructInfo) -> BaseCheckResult:
    if base.purity and not derived.purity:
        return BaseCheckResult.FAIL_L0
    if base.params is None:
        if base.derive_func is not None:
            same = base.derive_func == derived.derive_func
            return BaseCheckResult.PASS if same else BaseCheckResult.FAIL_L2
        return struct_info_base_check(base.ret, derived.ret)
    if derived.params is None:
        return BaseCheckResult.FAIL_L2
    if len(base.params) != len(derived.params):
        return BaseCheckResult.FAIL_L0
    if tvm.ir.structural_equal(base, derived):
        return BaseCheckResult.PASS
    # Parameters are contravariant; extents are bound in the function that is more general.
    results = [struct_info_base_check(b, a) for a, b in zip(base.params, derived.params)]
    return min([struct_info_base_check(base.ret, derived.ret), *results])


def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """The least general struct info that holds for both."""
    if lhs.same_as(rhs) or isinstance(lhs, ObjectStructInfo):
        return lhs
    if type(lhs) is not type(rhs):
        return ObjectStructInfo()
    if isinstance(lhs, PrimStructInfo):
        if str(lhs.dtype) != str(rhs.dtype):
            return ObjectStructInfo()
        same = struct_info_base_check(lhs, rhs) == BaseCheckResult.PASS
        return lhs if same else PrimStructInfo(str(lhs.dtype))
    if isinstance(lhs, ShapeStructInfo):
        if lhs.ndim != rhs.ndim:
            return ShapeStructInfo(ndim=-1)
        same = lhs.values is None or struct_info_base_check(lhs, rhs) == BaseCheckResult.PASS
        return lhs if same else ShapeStructInfo(ndim=lhs.ndim)
    if isinstance(lhs, TensorStructInfo):
        dtype = str(lhs.dtype) if str(lhs.dtype) == str(rhs.dtype) else "void"
        rank = lhs.ndim if lhs.ndim == rhs.ndim else -1
        vdevice = lhs.vdevice if lhs.vdevice == rhs.vdevice else None
        if rank == -1 or lhs.shape is None or rhs.shape is None:
            return TensorStructInfo(None, dtype, vdevice, rank)
        if not lhs.shape.same_as(rhs.shape):
            values = [t.shape.struct_info.values for t in (lhs, rhs)]
            if None in values or _same_extents(*values) != BaseCheckResult.PASS:
                return TensorStructInfo(None, dtype, vdevice, rank)
        return TensorStructInfo(lhs.shape, dtype, vdevice)
    if isinstance(lhs, DTensorStructInfo):
        if not _lie_alike(lhs, rhs):
            return ObjectStructInfo()
        return lhs.with_tensor(struct_info_lca(lhs.tensor_sinfo, rhs.tensor_sinfo))
    if isinstance(lhs, TupleStructInfo):
        if len(lhs.fields) != len(rhs.fields):
            return ObjectStructInfo()
        return TupleStructInfo([struct_info_lca(a, b) for a, b in zip(lhs.fields, rhs.fields)])
    return _func_lca(lhs, rhs)


def _func_lca(lhs: FuncStructInfo, rhs: FuncStructInfo) -> StructInfo:
    purity = lhs.purity and rhs.purity
    if tvm.ir.structural_equal(lhs, rhs):
        return lhs
    if lhs.params is None or rhs.params is None:
        return FuncStructInfo.opaque_func(ret=struct_info_lca(lhs.ret, rhs.ret), purity=purity)
    if len(lhs.params) != len(rhs.params):
        return FuncStructInfo.opaque_func(ret=struct_info_lca(lhs.ret, rhs.ret), purity=purity)
    params = []
    for a, b in zip(lhs.params, rhs.params):
        # A function of both takes what either of them takes.
        if struct_info_base_check(a, b) == BaseCheckResult.PASS:
            params.append(b)
        elif struct_info_base_check(b, a) == BaseCheckResult.PASS:
            params.append(a)
        else:
            ret = struct_info_lca(lhs.ret, rhs.ret)
            return FuncStructInfo.opaque_func(ret=ret, purity=purity)
    return FuncStructInfo(params, struct_info_lca(lhs.ret, rhs.ret), purity)


def unify_struct_info(param: StructInfo, arg: StructInfo, values: dict[tir.Var, PrimExpr]) -> None:
    """Find out what symbolic extents of a parameter stand for when an argument is given for it."""
    if isinstance(param, TupleStructInfo) and isinstance(arg, TupleStructInfo):
        for a, b in zip(param.fields, arg.fields):
            unify_struct_info(a, b, values)
        return
    if isinstance(param, DTensorStructInfo) and isinstance(arg, DTensorStructInfo):
        param, arg = param.tensor_sinfo, arg.tensor_sinfo
    pairs: list[tuple[Any, Any]] = []
    if isinstance(param, PrimStructInfo) and isinstance(arg, PrimStructInfo):
        pairs = [(param.value, arg.value)]
    elif isinstance(param, ShapeStructInfo) and isinstance(arg, ShapeStructInfo):
        pairs = list(zip(param.values or (), arg.values or ()))
    elif isinstance(param, TensorStructInfo) and isinstance(arg, TensorStructInfo):
        shapes = [None if t.shape is None else t.shape.struct_info.values for t in (param, arg)]
        pairs = list(zip(shapes[0] or (), shapes[1] or ()))
    for extent, value in pairs:
        if isinstance(extent, tir.Var) and value is not None:
            values.setdefault(extent, value)


def derive_call_ret_struct_info(
    func_sinfo: FuncStructInfo, call: Call, ctx: Any = None
) -> StructInfo:
    """What is known of the result of a call of a function value.

    Parameters
    ----------
    ctx : the BlockBuilder that functions which derive struct info are given.

    Raises
    ------
    ValueError : the number of arguments is wrong.
    TypeError : an argument cannot be what the function takes.
    """
    if func_sinfo.params is None:
        if func_sinfo.derive_func is not None:
            return tvm.get_global_func(func_sinfo.derive_func)(call, ctx)
        if len(call.sinfo_args) == 1:
            return call.sinfo_args[0]
        if len(call.sinfo_args):
            return TupleStructInfo(list(call.sinfo_args))
        return func_sinfo.ret
    if len(func_sinfo.params) != len(call.args):
        raise error.ValueError(
            f"relax: a call of {call.op} gives {len(call.args)} arguments; the function takes "
            f"{len(func_sinfo.params)}"
        )
    values: dict[tir.Var, PrimExpr] = {}
    for param, arg in zip(func_sinfo.params, call.args):
        unify_struct_info(param, arg.struct_info, values)
    for k, (param, arg) in enumerate(zip(func_sinfo.params, call.args)):
        known = substitute_struct_info(param, values)
        if struct_info_base_check(known, arg.struct_info) <= BaseCheckResult.FAIL_L0:
            raise error.TypeError(
                f"relax: argument {k} of a call of {call.op} must be {param}, got {arg.struct_info}"
            )
    scope = {var: var for value in values.values() for var in _vars_of(value)}
    return erase_to_well_defined(func_sinfo.ret, {**scope, **values}, {})


def _vars_of(expr: PrimExpr) -> list[tir.Var]:
    found: dict[tir.Var, None] = {}
    _prim_vars(expr, found)
    return list(found)
