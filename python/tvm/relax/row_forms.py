"""Groups of open sizes as functions of a number of rows.

Where sizes are open along the leading dimensions alone, and each row of a result is computed from
the same row of what is read, a kernel for some rows computes any number of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tvm import te, tir, topi
from tvm.ir import PrimExpr
from tvm.tir.functor import StmtExprVisitor

from .expr import DataflowBlock, Function, SeqExpr, ShapeExpr, Var, VarBinding
from .fused_group import FusedGroup
from .op import attrs_of, make_call, number_operands
from .struct_info import ShapeStructInfo, TensorStructInfo, open_shape, tensor_fields

__all__ = ["RowForm", "row_form"]

# Elements of a block of rows of work on single elements: calls take less than it, and it stays in
# the second-level cache.
_ELEMENTS = 16384
_MOST_ROWS = 1024
# Rows of a product's blocks: some that fill register tiles, and a few.
_PRODUCT_ROWS = (64, 8, 1)
# Results of a row of a convolution or pool, an image, from which on one at a time is enough.
_IMAGE_RANK = 4


@dataclass(frozen=True)
class RowForm:
    """A group by its rows.

    Attributes
    ----------
    leading : dimensions whose places are the rows.
    mask : bits of the arguments, results last, that have rows.
    functions : how many rows each takes, in falling order down to one, and the group's function of
        that many, in the last of the leading dimensions.
    """

    leading: int
    mask: int
    functions: tuple[tuple[int, Function], ...]


def row_form(group: FusedGroup) -> RowForm | None:
    """The group by its rows; None where rows depend on each other, or sizes inside are open."""
    params = [param.struct_info for param in _tensor_params(group.function)]
    results = tensor_fields(group.function.ret_struct_info)
    if not all(isinstance(info, TensorStructInfo) for info in params):
        return None
    shapes = [open_shape(info) for info in [*params, *results]]
    leading = max(map(_open_dimensions, shapes))
    lead = shapes[-1][:leading]
    has_rows = [_open_dimensions(shape) > 0 for shape in shapes]
    same = all(
        len(shape) >= leading and all(map(topi.utils.same_extent, shape[:leading], lead))
        for shape, open_ in zip(shapes, has_rows)
        if open_
    )
    if not leading or not all(has_rows[len(params) :]) or not same or len(shapes) > 62:
        return None
    if not _rows_are_apart(group, leading):
        return None
    functions = []
    for size in _sizes(group, shapes[-1][leading:]):
        function = _of_rows(group.function, has_rows, leading, size)
        if function is None:
            return None
        functions.append((size, function))
    mask = sum(1 << i for i, has in enumerate(has_rows) if has)
    return RowForm(leading, mask, tuple(functions))


def _tensor_params(function: Function) -> list[Var]:
    """Parameters but for the shape that names what sizes follow from: rows do not ask for it."""
    return [p for p in function.params if not isinstance(p.struct_info, ShapeStructInfo)]


def _open_dimensions(shape: tuple[Any, ...]) -> int:
    """Leading dimensions up to the last open one."""
    return max((k + 1 for k, e in enumerate(shape) if isinstance(e, PrimExpr)), default=0)


def _sizes(group: FusedGroup, row: tuple[int, ...]) -> tuple[int, ...]:
    anchor, _ = topi.schedule_registry.anchor_of(group.te.outputs)
    if "conv" in anchor or "pool" in anchor or "winograd" in anchor:
        return (1,)
    if anchor in (topi.tag.DENSE, topi.tag.MATMUL, topi.tag.BATCH_MATMUL):
        return _PRODUCT_ROWS if len(row) == 1 else (1,)
    most = min(_MOST_ROWS, _ELEMENTS // max(1, math.prod(row)))
    largest = 1 << max(0, most.bit_length() - 1)
    return tuple(dict.fromkeys((largest, max(1, largest // 16), 1)))


def _rows_are_apart(group: FusedGroup, leading: int) -> bool:
    """Whether every stage reads rows of tensors that have some at its own place in them."""
    operations = topi.schedule_registry.operations_of(group.te.outputs)
    made = [*group.te.outputs, *(t for o in operations for t in o.input_tensors)]
    if not all(isinstance(tensor.op, (te.ComputeOp, te.PlaceholderOp)) for tensor in made):
        # A program of its own, such as a scan, may read whatever it likes.
        return False
    for operation in operations:
        if not any(not topi.utils.is_constant(axis.dom.extent) for axis in operation.axis):
            continue
        own = [axis.var for axis in operation.axis[:leading]]
        inner = [axis.var for axis in [*operation.axis[leading:], *operation.reduce_axis]]
        if any(not topi.utils.is_constant(axis.dom.extent) for axis in operation.axis[leading:]):
            return False
        if any(not topi.utils.is_constant(axis.dom.extent) for axis in operation.reduce_axis):
            return False
        if not all(_reads_own_rows(value, own, inner) for value in operation.body):
            return False
    return True


def _reads_own_rows(value: tir.PrimExpr, own: list[tir.Var], inner: list[tir.Var]) -> bool:
    found = _Reads(own, inner)
    found.visit(value)
    return not found.elsewhere


class _Reads(StmtExprVisitor):
    """Where a stage reads rows.

    Attributes
    ----------
    elsewhere : whether it reads other rows than its own, or asks for its place in them or for their
        number, as what depends on a triangle does.
    """

    def __init__(self, own: list[tir.Var], inner: list[tir.Var]) -> None:
        self._own, self._inner = own, inner
        self.elsewhere = False

    def visit_producer_load_(self, op: tir.ProducerLoad) -> None:
        shape, indices = list(op.producer.shape), list(op.indices)
        if any(not topi.utils.is_constant(extent) for extent in shape):
            count = len(self._own)
            # A dimension of one place may be read at its number.
            self.elsewhere |= len(indices) < count or not all(
                index.same_as(var) or topi.utils.equal_const_int(extent, 1)
                for index, var, extent in zip(indices, self._own, shape)
            )
            indices = indices[count:]
        for index in indices:
            self.visit_expr(index)

    def visit_var_(self, op: tir.Var) -> None:
        self.elsewhere |= not any(op.same_as(var) for var in self._inner)

    visit_size_var_ = visit_var_


def _of_rows(function: Function, has_rows: list[bool], leading: int, rows: int) -> Function | None:
    """The group's function with one place in the leading dimensions, and `rows` in their last."""

    def fixed(info: TensorStructInfo) -> TensorStructInfo:
        rest = open_shape(info)[leading:]
        return TensorStructInfo([*[1] * (leading - 1), rows, *rest], info.dtype)

    replaced: dict[Any, Any] = {}
    params = []
    for param, has in zip(_tensor_params(function), has_rows):
        info = fixed(param.struct_info) if has else param.struct_info
        params.append(Var(str(param.name_hint), info))
        replaced[param] = params[-1]
    bindings = []
    for binding in function.body.blocks[0].bindings:
        call = binding.value
        if any(isinstance(arg, ShapeExpr) for arg in call.args):
            return None
        if not all(arg in replaced or n is not None for arg, n in
                   zip(call.args, number_operands(call.args))):  # fmt: skip
            return None
        settings = attrs_of(call)
        if any(_is_open(value) for value in settings.values()):
            return None
        args = [replaced.get(arg, arg) for arg in call.args]
        made = make_call(str(call.op.name).removeprefix("relax."), *args, **settings)
        wanted = call.struct_info
        if not isinstance(wanted, TensorStructInfo):
            return None
        expected = fixed(wanted) if _open_dimensions(open_shape(wanted)) else wanted
        if open_shape(made.struct_info) != open_shape(expected):
            return None
        kind = type(binding.var)
        var = kind(str(binding.var.name_hint), made.struct_info)
        replaced[binding.var] = var
        bindings.append(VarBinding(var, made))
    body = SeqExpr([DataflowBlock(bindings)], replaced[function.body.body])
    return Function(params, body, attrs={"Primitive": 1})


def _is_open(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_open, value))
    return isinstance(value, PrimExpr) and bool(tir.analysis.undefined_vars(value))
