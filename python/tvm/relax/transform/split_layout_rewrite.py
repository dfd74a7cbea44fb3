"""Copies of weights into the layout of a kernel, as kernels of their own."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import error, tir
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..expr import Call, Function, Tuple, TupleGetItem
from ..expr_functor import PyExprMutator
from ..op import call_tir, get_op
from ..struct_info import TensorStructInfo
from .dead_code import DeadCodeElimination
from .graph_pass import graph_pass

__all__ = ["SplitLayoutRewritePreproc"]

_PREPROC = "meta_schedule.layout_rewrite_preproc"


@dataclass
class _Parts:
    """A kernel in two.

    Attributes
    ----------
    prepack : copies operands into other buffers. compute : takes these.
    moved : for each copy, the position of the operand and the buffer that it is copied to.
    """

    prepack: tir.PrimFunc
    compute: tir.PrimFunc
    moved: list[tuple[int, tir.Buffer]]


def _copies(stmt: tir.Stmt) -> list[tir.Block]:
    """Blocks of a statement that copy an operand; empty if one of its blocks does not."""
    copies: list[tir.Block] = []
    others = False

    def look(node: object) -> None:
        nonlocal others
        if isinstance(node, tir.Block):
            if int(node.annotations.get(_PREPROC, 0)):
                copies.append(node)
            else:
                others = True

    tir.stmt_functor.post_order_visit(stmt, look)
    if copies and others:
        raise error.ValueError(
            f"SplitLayoutRewritePreproc: copies with the annotation {_PREPROC} must not share a "
            f"loop with other blocks, as {copies[0].name_hint} does"
        )
    return copies


class _Plain(tir.stmt_functor.StmtExprMutator):
    """Copies without the annotation."""

    def visit_block_(self, op: tir.Block) -> tir.Stmt:
        kept = {k: v for k, v in op.annotations.items() if str(k) != _PREPROC}
        return tir.Block(
            op.iter_vars, op.reads, op.writes, op.name_hint, self.visit_stmt(op.body), op.init,
            op.alloc_buffers, op.match_buffers, kept,
        )  # fmt: skip


def _rooted(stmts: list[tir.Stmt], buffers: list[tir.Buffer]) -> tir.Stmt:
    body = stmts[0] if len(stmts) == 1 else tir.SeqStmt(stmts)
    root = tir.Block([], [], [], "root", body, alloc_buffers=buffers)
    return tir.BlockRealize([], tir.const(True, "bool"), root)


def _split(kernel: tir.PrimFunc) -> _Parts | None:
    """The two parts of a kernel; None if it has no annotated copies."""
    if not isinstance(kernel.body, tir.BlockRealize):
        return None
    root = kernel.body.block
    stmts = list(root.body.seq) if isinstance(root.body, tir.SeqStmt) else [root.body]
    first: list[tir.Stmt] = []
    rest: list[tir.Stmt] = []
    moved: list[tuple[int, tir.Buffer, tir.Buffer]] = []
    for stmt in stmts:
        copies = _copies(stmt)
        if not copies:
            rest.append(stmt)
            continue
        first.append(_Plain().visit_stmt(stmt))
        moved += [_operand_of(kernel, block) for block in copies]
    if not moved:
        return None
    moved.sort(key=lambda copy: copy[0])
    params = [tir.Var(str(b.name), "handle") for _, b, _ in moved]
    outputs = [tir.Var(str(b.name), "handle") for _, _, b in moved]
    buffers = dict(zip(params, (b for _, b, _ in moved)))
    buffers.update(zip(outputs, (b for _, _, b in moved)))
    kept = {k: v for k, v in (kernel.attrs or {}).items() if k != "layout_free_buffers"}

    def attrs(suffix: str) -> dict[str, object]:
        return {k: f"{v}{suffix}" if k == "global_symbol" else v for k, v in kept.items()}

    prepack = tir.PrimFunc(
        [*params, *outputs], _rooted(first, []), None, buffers, attrs("_weight_prepack")
    )
    new = {index: after for index, _, after in moved}
    scratch = [b for b in root.alloc_buffers if not any(b.same_as(a) for a in new.values())]
    compute_params = list(kernel.params)
    compute_buffers = dict(kernel.buffer_map.items())
    for index, after in new.items():
        del compute_buffers[compute_params[index]]
        compute_params[index] = tir.Var(str(after.name), "handle")
        compute_buffers[compute_params[index]] = after
    compute = tir.PrimFunc(
        compute_params, _rooted(rest, scratch), kernel.ret_type, compute_buffers,
        attrs("_prepacked"),
    )  # fmt: skip
    renew = tir.stmt_functor.renew_defs
    return _Parts(renew(prepack), renew(compute), [(i, b) for i, _, b in moved])


def _operand_of(kernel: tir.PrimFunc, copy: tir.Block) -> tuple[int, tir.Buffer, tir.Buffer]:
    before, after = copy.reads[0].buffer, copy.writes[0].buffer
    for index, param in enumerate(kernel.params):
        if kernel.buffer_map.get(param, None) is not None and kernel.buffer_map[param].same_as(
            before
        ):
            return index, before, after
    raise error.ValueError(
        f"SplitLayoutRewritePreproc: the block {copy.name_hint} copies {before.name}, which is no "
        "operand of its kernel"
    )


class _Splitter(PyExprMutator):
    def __init__(self, mod: IRModule, parts: dict[GlobalVar, _Parts]) -> None:
        super().__init__(mod)
        self._parts = parts

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not call.op.same_as(get_op("call_tir")) or call.args[0] not in self._parts:
            return call
        name, parts = str(call.args[0].name_hint), self._parts[call.args[0]]
        prepack = self.builder_.add_func(parts.prepack, f"{name}_weight_prepack")
        compute = self.builder_.add_func(parts.compute, f"{name}_prepacked")
        operands = list(call.args[1].fields)
        infos = [self._info(name, buffer) for _, buffer in parts.moved]
        given = Tuple([operands[index] for index, _ in parts.moved])
        packed = self.builder_.emit(call_tir(prepack, given, infos if len(infos) > 1 else infos[0]))
        for position, (index, _) in enumerate(parts.moved):
            single = len(infos) == 1
            field = packed if single else self.builder_.emit(TupleGetItem(packed, position))
            operands[index] = field
        return Call(
            call.op, [compute, Tuple(operands), *call.args[2:]], call.attrs, call.sinfo_args
        )

    @staticmethod
    def _info(name: str, buffer: tir.Buffer) -> TensorStructInfo:
        if not all(isinstance(extent, tir.IntImm) for extent in buffer.shape):
            raise error.ValueError(
                f"SplitLayoutRewritePreproc: {name} lays out {buffer.name} of symbolic extents anew"
            )
        return TensorStructInfo(list(buffer.shape), str(buffer.dtype))


@graph_pass("SplitLayoutRewritePreproc")
def SplitLayoutRewritePreproc(mod: IRModule) -> IRModule:
    """The module with copies of weights into another layout as kernels of their own.

    Kernels that MetaSchedule's ``RewriteLayout`` has written begin with blocks that have the
    annotation ``meta_schedule.layout_rewrite_preproc`` and copy an operand. A kernel ``f`` becomes
    ``f_weight_prepack``, which makes the copies, and ``f_prepacked``, which takes them; where the
    operands are weights, `LiftTransformParams` moves the calls of the first out of the network.

    Raises
    ------
    ValueError : such a block shares a loop with others or copies no operand, or its extents are
        symbolic.
    """
    parts = {
        gvar: found
        for gvar, func in mod.functions.items()
        if isinstance(func, tir.PrimFunc) and (found := _split(func)) is not None
    }
    if not parts:
        return mod
    splitter = _Splitter(mod, parts)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            splitter.builder_.update_func(gvar, splitter.visit_expr(func))
    return DeadCodeElimination()(splitter.builder_.finalize())
