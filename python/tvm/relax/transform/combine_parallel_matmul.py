"""Products of one operand with several others as one product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm import tir
from tvm.ir import IRModule, RelayExpr

from ..analysis import get_var2val, udchain
from ..analysis.dead_code import without_dead_code
from ..dpl.rewrite import with_values
from ..expr import Binding, Call, DataflowBlock, Function, SeqExpr, TupleGetItem, Var
from ..op import add, attrs_of, concat, get_op, matmul, split
from ..rewriter import map_functions
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["CombineParallelMatmul"]

Check = Callable[[Var, list[Var], list[Var], Mapping[Var, RelayExpr]], bool]

_ACTIVATIONS = ("nn.relu", "nn.gelu", "nn.silu")


def _extents(expr: RelayExpr) -> list[int | tir.PrimExpr] | None:
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        return None
    values = info.shape.struct_info.values
    if values is None:
        return None
    return [int(v) if isinstance(v, tir.IntImm) else v for v in values]


@dataclass
class _Branch:
    """A product, with the bias that is added and the activation that is applied to it alone.

    Attributes
    ----------
    result : the variable of the last of these.
    """

    right: Var
    bias: RelayExpr | None
    activation: str | None
    dtype: str
    result: Var

    def columns(self) -> int | None:
        extents = _extents(self.right)
        width = extents[-1] if extents and len(extents) >= 2 else None
        return width if isinstance(width, int) else None

    def kind(self) -> tuple[object, ...] | None:
        """Equal for branches that can be one product; None for one that cannot be combined."""
        extents = _extents(self.right)
        if extents is None or self.columns() is None:
            return None
        if not all(isinstance(extent, int) for extent in extents[:-2]):
            return None
        bias: object = None
        if self.bias is not None:
            shape = _extents(self.bias)
            # Joined along its last axis, a bias must be as wide there as its product.
            if shape is None or not shape or shape[-1] != self.columns():
                return None
            if not all(isinstance(extent, int) for extent in shape):
                return None
            bias = (tuple(shape[:-1]), str(self.bias.struct_info.dtype))
        depth = extents[-2] if isinstance(extents[-2], int) else str(extents[-2])
        dtype = str(self.right.struct_info.dtype)
        return tuple(extents[:-2]), depth, dtype, bias, self.activation, self.dtype


class _Block:
    """The branches of a dataflow block by the operand on the left that they share."""

    def __init__(self, block: DataflowBlock) -> None:
        self._readers = udchain(block)
        self._bindings: dict[Var, Binding] = {b.var: b for b in block.bindings}
        self.branches: dict[Var, list[_Branch]] = {}
        for binding in block.bindings:
            call = binding.value
            if not self._is_call(call, "matmul") or not all(isinstance(a, Var) for a in call.args):
                continue
            self.branches.setdefault(call.args[0], []).append(self._branch(binding.var, call))

    @staticmethod
    def _is_call(value: RelayExpr, *names: str) -> bool:
        return isinstance(value, Call) and any(value.op.same_as(get_op(n)) for n in names)

    def _only_reader(self, var: Var) -> Binding | None:
        readers = self._readers.get(var, [])
        return self._bindings.get(readers[0]) if len(readers) == 1 else None

    def _branch(self, var: Var, call: Call) -> _Branch:
        dtype = str(attrs_of(call).get("out_dtype") or "")
        branch = _Branch(call.args[1], None, None, dtype, var)
        reader = self._only_reader(branch.result)
        if reader is not None and self._is_call(reader.value, "add"):
            first, second = reader.value.args
            if first.same_as(branch.result) and not second.same_as(branch.result):
                branch.bias, branch.result = second, reader.var
                reader = self._only_reader(branch.result)
        if reader is not None:
            for name in _ACTIVATIONS:
                if self._is_call(reader.value, name):
                    branch.activation, branch.result = name, reader.var
        return branch


def _combined(left: Var, branches: list[_Branch]) -> dict[Var, RelayExpr]:
    """The results of branches as parts of one product."""
    rank = len(_extents(branches[0].right) or ())
    whole: RelayExpr = matmul(
        left, concat([b.right for b in branches], axis=rank - 1), branches[0].dtype or None
    )
    biases = [b.bias for b in branches if b.bias is not None]
    if biases:
        width = len(_extents(biases[0]) or ())
        whole = add(whole, concat(biases, axis=width - 1))
    if branches[0].activation is not None:
        whole = Call(get_op(branches[0].activation), [whole])
    places, end = [], 0
    for branch in branches[:-1]:
        end += branch.columns() or 0
        places.append(end)
    parts = split(whole, places, axis=max(len(_extents(left) or ()), rank) - 1)
    return {branch.result: TupleGetItem(parts, i) for i, branch in enumerate(branches)}


def _rewritten(func: Function, check: Check | None) -> Function:
    values = get_var2val(func)
    blocks = []
    for block in func.body.blocks:
        new = block
        for left, branches in _Block(block).branches.items() if _is_dataflow(block) else ():
            kinds: dict[tuple[object, ...], list[_Branch]] = {}
            for branch in branches:
                kind = branch.kind()
                if kind is not None and _extents(left) is not None:
                    kinds.setdefault(kind, []).append(branch)
            for alike in kinds.values():
                rights = [b.right for b in alike]
                biases = [b.bias for b in alike if b.bias is not None]
                if len(alike) < 2 or (check and not check(left, rights, biases, values)):
                    continue
                new = with_values(new, _combined(left, alike), [*func.params, *values])
        blocks.append(new)
    if all(a.same_as(b) for a, b in zip(blocks, func.body.blocks)):
        return func
    body = SeqExpr(blocks, func.body.body)
    return without_dead_code(
        Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
    )


def _is_dataflow(block: object) -> bool:
    return isinstance(block, DataflowBlock)


@graph_pass("CombineParallelMatmul")
def CombineParallelMatmul(mod: IRModule, check: Check | None = None) -> IRModule:
    """The module with products of one operand as one product whose columns are split afterwards.

    The operands on the right are joined along their columns; so are biases, where all products
    have one that nothing else is added to. A relu, gelu or silu of all of them is computed of the
    whole. Products with different batch dimensions, or with a number of columns that is not known,
    stay apart.

    Parameters
    ----------
    check : from the shared operand, the operands on the right, the biases, and what variables are
        bound to, to whether these products are combined; all are by default.
    """
    return map_functions(mod, lambda func: _rewritten(func, check))
