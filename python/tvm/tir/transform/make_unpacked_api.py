"""Functions that plain C code calls."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule, PrimType
from tvm.ir.transform import Pass, module_pass

from .. import expr, stmt
from ..function import PrimFunc
from ..functor import StmtExprMutator
from ..op import ret

__all__ = ["MakeUnpackedAPI"]


class _Results(StmtExprMutator):
    """Calls of functions that give an error code have its type."""

    def __init__(self, changed: set[GlobalVar]) -> None:
        self._changed = changed

    def visit_call_(self, op: expr.Call) -> expr.PrimExpr:
        call = self._visit_below(op)
        if isinstance(call.op, GlobalVar) and call.op in self._changed:
            return expr.Call("int32", call.op, call.args)
        return call


def _is_exported(func: Any) -> bool:
    attrs = (func.attrs or {}) if isinstance(func, PrimFunc) else {}
    return "global_symbol" in attrs and int(attrs.get("calling_conv", 0)) == 0


def _unpacked(func: PrimFunc) -> PrimFunc:
    if "target" not in func.attrs:
        raise error.ValueError(
            f"MakeUnpackedAPI: function {func.attrs['global_symbol']} has no target; "
            "run BindTarget before"
        )
    target = func.attrs["target"]
    params = []
    buffers = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        params.append(param if buffer is None else buffer.data)
        if buffer is not None:
            buffers.append(buffer)
    body: stmt.Stmt = stmt.SeqStmt([func.body, stmt.Evaluate(ret(expr.IntImm("int32", 0)))])
    for buffer in reversed(buffers):
        body = stmt.DeclBuffer(buffer, body)
    if buffers:
        device = int(target.kind.device_type)
        for key, value in (("device_type", device), ("device_id", 0)):
            body = stmt.AttrStmt(expr.StringImm("default"), key, value, body)
    made = PrimFunc(params, body, PrimType("int32"), {}, func.attrs)
    return made if target.host is None else made.with_attr("target", target.host)


def MakeUnpackedAPI() -> Pass:
    """Functions that are called from outside take pointers and numbers, as functions of C do.

    A buffer becomes a parameter that points to its elements; shapes are not checked. The result is
    an error code, 0 for success, and the target that of the host. Functions without a global
    symbol and those with a calling convention stay.

    Raises
    ------
    ValueError : (when run) a function has no target.
    """

    def run(mod: IRModule, ctx: Any) -> IRModule:
        exported = {var for var, func in mod.functions.items() if _is_exported(func)}
        results = _Results(exported)
        functions = {}
        for var, func in mod.functions.items():
            made = _unpacked(func) if var in exported else func
            if isinstance(made, PrimFunc):
                body = results.visit(made.body)
                made = made if body.same_as(made.body) else made.with_body(body)
            functions[var] = made
        return mod.with_functions(functions)

    return module_pass(run, opt_level=0, name="tir.MakeUnpackedAPI")
