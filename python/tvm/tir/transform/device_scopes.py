"""What devices are told of a function, and what a function tells of itself."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import error
from tvm.ir.transform import Pass

from .. import analysis, expr, stmt
from ..function import PrimFunc
from ..functor import StmtExprMutator
from ..op import call_intrin
from .function_pass import prim_func_pass

__all__ = [
    "CombineContextCall",
    "DecorateDeviceScope",
    "LowerDeviceStorageAccessInfo",
    "VerifySSA",
    "VerifyVTCMLimit",
]


def DecorateDeviceScope() -> Pass:
    """Mark all of a function's body as the device's, by an attribute ``device_scope`` around it."""

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        node = tvm.tir.const(0)
        return func.with_body(stmt.AttrStmt(node, "device_scope", 0, func.body))

    return prim_func_pass(run, opt_level=0, name="tir.DecorateDeviceScope")


class _Contexts(StmtExprMutator):
    """Contexts of threads, made once where the body of a loop over threads or a function begins."""

    def __init__(self) -> None:
        self._made: list[tuple[expr.Var, expr.Call]] = []

    def visit_call_(self, op: expr.Call) -> Any:
        if getattr(op.op, "name", "") != "tir.tvm_thread_context":
            return self._visit_below(op)
        context = op.args[0]
        for var, known in self._made:
            if tvm.ir.structural_equal(known, context):
                return var
        var = expr.Var("ctx_cache_", context.dtype)
        self._made.append((var, context))
        return var

    def _around(self, body: stmt.Stmt) -> stmt.Stmt:
        outer, self._made = self._made, []
        body = self.visit(body)
        made, self._made = self._made, outer
        for var, context in reversed(made):
            body = stmt.LetStmt(var, context, body)
        return body

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> Any:
        # Every thread has contexts of its own.
        if op.attr_key not in ("thread_extent", "coproc_uop_scope"):
            return self._visit_below(op)
        return stmt.AttrStmt(op.node, op.attr_key, op.value, self._around(op.body))

    def visit_for_(self, op: stmt.For) -> Any:
        if op.kind != stmt.ForKind.PARALLEL:
            return self._visit_below(op)
        return stmt.For(
            op.loop_var,
            op.min,
            op.extent,
            op.kind,
            self._around(op.body),
            op.thread_binding,
            op.annotations,
        )

    def function(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(self._around(func.body))


def CombineContextCall() -> Pass:
    """Ask for each context of a thread (``tvm_thread_context``) once.

    The call is made where the work of a thread begins: the body of the function, of a launch, or
    of a loop that runs in parallel.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        return _Contexts().function(func)

    return prim_func_pass(run, opt_level=0, name="tir.CombineContextCall")


def _constant(extent: Any) -> int:
    if not isinstance(extent, tvm.tir.IntImm):
        raise error.ValueError(
            f"LowerDeviceStorageAccessInfo: an allocation has the extent {extent}; memory with a "
            "name of its own needs constant ones"
        )
    return int(extent.value)


def _memory_info(scope: str) -> Any:
    """What the target says of a memory with a name of its own, or None."""
    rank, _, tag = scope.partition(".")
    if not tag or tag == "dyn" or rank in ("wmma", "m16n8k8"):
        return None
    found = tvm.get_global_func(f"tvm.info.mem.{scope}", allow_missing=True)
    return None if found is None else found()


class _AccessInfo(StmtExprMutator):
    """Memory with a name of its own, at the address that the target gives it."""

    def __init__(self) -> None:
        self._info: dict[expr.Var, Any] = {}

    def visit_allocate_(self, op: stmt.Allocate) -> Any:
        scope = str(op.buffer_var.type_annotation.storage_scope)
        info = _memory_info(scope)
        if info is None:
            return self._visit_below(op)
        element = tvm.DataType(str(op.dtype))
        size = math.prod(map(_constant, op.extents)) * element.bits * element.lanes
        if size > int(info.max_num_bits):
            raise error.ValueError(
                f"LowerDeviceStorageAccessInfo: {op.buffer_var.name} takes {size} bits of the "
                f"memory {scope}, which has {int(info.max_num_bits)}"
            )
        self._info[op.buffer_var] = info
        body = self.visit(op.body)
        head = info.head_address
        return body if head is None else stmt.LetStmt(op.buffer_var, head, body)

    def visit_call_(self, op: expr.Call) -> Any:
        if getattr(op.op, "name", "") != "tir.tvm_access_ptr" or op.args[1] not in self._info:
            return self._visit_below(op)
        info = self._info[op.args[1]]
        if info.head_address is not None:
            return self._visit_below(op)
        # Memory without addresses: an access says the number of its unit.
        element = tvm.DataType(str(op.args[0].dtype))
        bits = self.visit(op.args[2]) * (element.bits * element.lanes)
        unit = tvm.tir.floordiv(bits, int(info.unit_bits)).astype("int64")
        return call_intrin(op.dtype, "tir.reinterpret", unit)


def LowerDeviceStorageAccessInfo() -> Pass:
    """Replace allocations of memories that the target describes by what it says of them.

    For scopes with a name of their own (``global.vtcm``, ``local.acc``) whose ``MemoryInfo`` the
    global function ``tvm.info.mem.<scope>`` tells. Allocations become names of the memory's
    first address. Other functions stay as they are.

    Raises
    ------
    ValueError : (when run) an allocation is larger than the memory.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        body = _AccessInfo().visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.LowerDeviceStorageAccessInfo")


def VerifySSA() -> Pass:
    """Raise ValueError naming the function in which a variable is bound more than once."""

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        if not analysis.verify_ssa(func):
            raise error.ValueError(
                f"VerifySSA: {_name(func)} binds a variable more than once; ConvertSSA gives each "
                "binding a variable of its own"
            )
        return func

    return prim_func_pass(run, opt_level=0, name="tir.VerifySSA")


def VerifyVTCMLimit(limit: int | None = None) -> Pass:
    """Raise ValueError when a function allocates more of the scope "global.vtcm" than there is.

    Parameters
    ----------
    limit : bytes; by default what the target of the function says as ``vtcm-capacity``, where
        nothing or zero is no limit.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        most = limit
        target = None if func.attrs is None else func.attrs.get("target")
        if most is None and target is not None:
            most = int(target.attrs.get("vtcm-capacity", 0))
        if not most:
            return func
        used = analysis.calculate_allocated_bytes(func)
        for scopes in used.values():
            taken = int(scopes.get("global.vtcm", 0))
            if taken > most:
                raise error.ValueError(
                    f"VerifyVTCMLimit: {_name(func)} allocates {taken} bytes of global.vtcm, and "
                    f"the limit is {most}"
                )
        return func

    return prim_func_pass(run, opt_level=0, name="tir.VerifyVTCMLimit")


def _name(func: PrimFunc) -> str:
    name = None if func.attrs is None else func.attrs.get("global_symbol")
    return "a function without a name" if name is None else f"function {name}"
