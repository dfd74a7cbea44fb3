"""Attention, however it is written, as one operator."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, DataflowVar, Function, Var, const
from ..rewriter import FunctionRewriter, map_functions, use_counts
from ..struct_info import TensorStructInfo, open_shape
from .forms import Forms
from .graph_pass import graph_pass

__all__ = ["FuseAttention"]

_HEADS_AND_TOKENS = (0, 2, 1, 3)
_VIEWS = ("reshape", "expand_dims", "squeeze", "flatten")
_SOFTMAXES = ("nn.softmax", "nn.masked_softmax")
# With fewer queries a head, turning its keys costs more than the kernel saves; keys whose size
# fills whole vectors, of this many elements, are read where they are.
_LEAST_QUERIES, _LANES = 8, 16
# What topi's kernel pads keys to.
_KEY_BLOCK = 16


@dataclass
class _Scores:
    """What stands between the product of queries and keys and the softmax.

    Attributes
    ----------
    product : the matrix product.
    shape : of the scores where they enter the softmax, as (batch, heads, queries, keys).
    biases : summands, with the shape of the scores that each was added to.
    scale : factor of the product.
    """

    product: Call
    shape: tuple[int, ...]
    biases: list[tuple[RelayExpr, tuple[int, ...]]] = field(default_factory=list)
    scale: float = 1.0
    causal: bool = False


def _is_op(value: RelayExpr | None, *names: str) -> TypeGuard[Call]:
    if not isinstance(value, Call) or not op.has_op(value.op):
        return False
    return str(value.op.name).removeprefix("relax.") in names


def _shape(expr: RelayExpr) -> tuple[int, ...]:
    return open_shape(expr.struct_info)


def _as_rank_4(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape with ones in front added or dropped; None where that does not give rank 4."""
    while len(shape) > 4 and shape[0] == 1:
        shape = shape[1:]
    return (1,) * (4 - len(shape)) + shape if len(shape) <= 4 else None


def _number(expr: RelayExpr) -> float | None:
    if isinstance(expr, Constant) and math.prod(expr.data.shape) == 1:
        return float(expr.values().reshape(()))
    return None


def _order(call: Call) -> tuple[int, ...]:
    rank = len(_shape(call))
    axes = op.attrs_of(call).get("axes")
    return tuple(range(rank))[::-1] if axes is None else tuple(int(a) % rank for a in axes)


class _AttentionFuser(FunctionRewriter):
    def __init__(self, func: Function, forms: Forms) -> None:
        super().__init__(func)
        self._uses = use_counts(func)
        self._forms = forms

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if _is_op(value, "matmul"):
            return self._fused(value) or value
        if _is_op(value, "permute_dims") and _order(value) == _HEADS_AND_TOKENS:
            return self._with_tokens_first(value) or value
        return value

    def _bound(self, expr: RelayExpr, private: bool = True) -> RelayExpr | None:
        """What a variable is bound to, by default if nobody else reads it."""
        if not isinstance(expr, Var):
            return None
        if private:
            old = self.origins.get(expr)
            if old is None or self._uses.get(old, 0) != 1 or not isinstance(expr, DataflowVar):
                return None
        return self.values.get(expr)

    def _fused(self, call: Call) -> RelayExpr | None:
        weights, value = call.args
        info = call.struct_info
        if not isinstance(info, TensorStructInfo) or info.dtype != "float32":
            return None
        inner = self._bound(weights)
        while _is_op(inner, *_VIEWS) and _shape(inner)[-1] == _shape(inner.args[0])[-1]:
            inner = self._bound(inner.args[0])
        if not _is_op(inner, *_SOFTMAXES):
            return None
        rank = len(_shape(inner))
        shape = _as_rank_4(_shape(inner))
        if int(op.attrs_of(inner).get("axis", -1)) % rank != rank - 1 or shape is None:
            return None
        scores = self._scores(inner.args[0], shape)
        return None if scores is None else self._attention(scores, value, call)

    def _scores(self, expr: RelayExpr, shape: tuple[int, ...]) -> _Scores | None:
        """The scores that a softmax is taken of, followed back to the product."""
        found = _Scores(None, shape)  # type: ignore[arg-type]
        while True:
            value = self._bound(expr)
            if not isinstance(value, Call) or _shape(value)[-1] != shape[-1]:
                return None
            if _is_op(value, "matmul"):
                found.product = value
                return found
            here = _shape(value)
            if _is_op(value, *_VIEWS):
                expr = value.args[0]
                continue
            if _as_rank_4(here) != shape:
                return None
            if _is_op(value, "add") and self._add(found, value):
                expr = next(a for a in value.args if _shape(a) == here and self._leads(a))
            elif found.scale != 1:
                return None
            elif _is_op(value, "multiply", "divide") and (_number(value.args[1]) or 0) > 0:
                factor = _number(value.args[1]) or 1.0
                found.scale = factor if _is_op(value, "multiply") else 1 / factor
                expr = value.args[0]
            elif _is_op(value, "tril") and _is_causal(value):
                found.causal = True
                expr = value.args[0]
            elif _is_op(value, "where") and _number(value.args[2]) == -math.inf:
                # A number has no type; an array of one does.
                zero = const(np.zeros(1), "float32")
                seen = op.make_call("where", value.args[0], zero, value.args[2])
                found.biases.append((self.emit(seen), here))
                expr = value.args[1]
            else:
                return None

    def _add(self, found: _Scores, value: Call) -> bool:
        """Take the summand that is no score as a bias; scaled sums stay as they are."""
        if found.scale != 1:
            return False
        here = _shape(value)
        for score, bias in (value.args, value.args[::-1]):
            if _shape(score) == here and self._leads(score):
                found.biases.append((bias, here))
                return True
        return False

    def _leads(self, expr: RelayExpr) -> bool:
        """Whether an expression is made of a product by what scores go through."""
        value = self._bound(expr)
        while _is_op(value, *_VIEWS, "multiply", "divide", "tril", "add", "where"):
            place = 1 if _is_op(value, "where") else 0
            if _is_op(value, "add") and self._leads(value.args[1]):
                return True
            value = self._bound(value.args[place])
        return _is_op(value, "matmul")

    def _attention(self, scores: _Scores, value: RelayExpr, call: Call) -> RelayExpr | None:
        query, turned = scores.product.args
        batch, heads, length, source = scores.shape
        *lead, rows, size = _shape(query)
        *key_lead, _, columns = _shape(turned)
        count = math.prod(lead)
        *value_lead, _, out_size = _shape(value)
        groups = count // batch
        if (
            [n for n in lead if n != 1] != [n for n in key_lead if n != 1]
            or math.prod(value_lead) != count
            or count % batch
            or not groups
            or heads % groups
            or columns != source
            or rows * groups != heads * length
            or (length < _LEAST_QUERIES and size % _LANES != 0)
        ):
            return None
        biases = [self._bias(bias, here, scores.shape) for bias, here in scores.biases]
        if any(bias is None for bias in biases):
            return None
        if not self._forms.rewrites("attention", batch, heads, length, source, size):
            return None
        scale = scores.scale
        factor, query = self._query(query, (batch, heads, length, size))
        rank = len(_shape(turned))
        key = self._permuted(turned, (*range(rank - 2), rank - 1, rank - 2))
        tokens_first, operands = "", []
        for letter, expr, shape in (
            ("q", query, (batch, heads, length, size)),
            ("k", key, (batch, groups, source, size)),
            ("v", value, (batch, groups, source, out_size)),
        ):
            plain = self._before_permutation(expr, shape)
            tokens_first += letter if plain is not None else ""
            operands.append(self._viewed(expr, shape) if plain is None else plain)
        attention = op.make_call(
            "nn.head_attention",
            *operands,
            *[bias for bias in biases if bias is not None],
            scale=scale * factor,
            causal=scores.causal,
            tokens_first=tokens_first,
        )
        if _shape(attention) == _shape(call):
            return attention
        return op.reshape(self.emit(attention), _shape(call))

    def _viewed(self, expr: RelayExpr, shape: tuple[int, ...]) -> RelayExpr:
        return expr if _shape(expr) == shape else self.emit(op.reshape(expr, shape))

    def _query(self, expr: RelayExpr, shape: tuple[int, ...]) -> tuple[float, RelayExpr]:
        """A factor, and the queries without it and without views around them."""
        factor = 1.0
        while True:
            value = self._bound(expr, private=False)
            if _is_op(value, *_VIEWS) and _shape(value.args[0]) == shape:
                expr = value.args[0]
            elif _is_op(value, "multiply") and _number(value.args[1]) is not None:
                if _shape(value.args[0]) != _shape(value):
                    return factor, expr
                factor *= _number(value.args[1]) or 0.0
                expr = value.args[0]
            else:
                return factor, expr

    def _permuted(self, expr: RelayExpr, order: tuple[int, ...]) -> RelayExpr:
        """The expression with its dimensions in another order, permuted once at most."""
        value = self._bound(expr, private=False)
        while _is_op(value, "permute_dims"):
            before = _order(value)
            order, expr = tuple(before[k] for k in order), value.args[0]
            value = self._bound(expr, private=False)
        if order == tuple(range(len(order))):
            return expr
        return self.emit(op.permute_dims(expr, order))

    def _before_permutation(self, expr: RelayExpr, shape: tuple[int, ...]) -> RelayExpr | None:
        value = self._bound(expr, private=False)
        if _shape(expr) != shape or not _is_op(value, "permute_dims"):
            return None
        return value.args[0] if _order(value) == _HEADS_AND_TOKENS else None

    def _bias(
        self, bias: RelayExpr, here: tuple[int, ...], shape: tuple[int, ...]
    ) -> RelayExpr | None:
        """A summand as one of rank 4 whose keys are padded like those of the kernel."""
        shape_here = _shape(bias)
        if bias.struct_info.dtype != "float32":
            return None
        own = _as_rank_4((1,) * (len(here) - len(shape_here)) + shape_here)
        if own is None or any(a not in (1, b) for a, b in zip(own, shape)):
            return None
        bias = self._viewed(bias, own)
        more = -own[3] % _KEY_BLOCK
        if own[3] == 1 or not more:
            return bias
        return self.emit(op.nn.pad(bias, ((0, 0), (0, 0), (0, 0), (0, more))))

    def _with_tokens_first(self, call: Call) -> RelayExpr | None:
        attention = self._bound(call.args[0])
        if not _is_op(attention, "nn.head_attention"):
            return None
        settings = op.attrs_of(attention)
        if "o" in settings["tokens_first"]:
            return None
        settings["tokens_first"] += "o"
        return op.make_call("nn.head_attention", *attention.args, **settings)


def _is_causal(call: Call) -> bool:
    settings = op.attrs_of(call)
    return settings.get("k", 0) == 0 and settings.get("fill", 0.0) == -math.inf


@graph_pass("FuseAttention")
def FuseAttention(mod: IRModule, forms: Forms | None = None) -> IRModule:
    """The module with softmax(queries @ keys + biases) @ values as calls of `nn.head_attention`.

    Taken are products in float32 whose scores nobody else reads, with any sum of biases, masks by
    condition, a causal mask, a factor, views between, and keys that several heads share. What
    turns operands between (tokens, heads) and (heads, tokens) is left to the operator.

    Parameters
    ----------
    forms : which attentions stay; they are "attention" with batch, heads, queries, keys and size of
        a head.
    """
    return map_functions(mod, lambda func: _AttentionFuser(func, forms or Forms()).run())
