"""Choosing tokens by their probabilities."""

from __future__ import annotations

from typing import Any

from tvm import error, te, tir

from ... import op as _op
from .kernel_ops import tensor_expr_op
from .tensor import Tensor, wrap_nested

__all__ = [
    "multinomial_from_uniform",
    "renormalize_top_p_top_k_prob",
    "sample_top_p_top_k_from_sorted_prob",
]


def _rows(who: str, tensors: dict[str, Tensor], rows: str, dtypes: tuple[str, ...]) -> None:
    """Check that tensors are one column of `rows` elements of one of the types."""
    for name, tensor in tensors.items():
        shape = tensor.shape
        if len(shape) != 2 or shape[1] != 1 or tensor.dtype not in dtypes:
            raise error.ValueError(
                f"nn.{who}: {name} is {' or '.join(dtypes)} of shape ({rows}, 1), got {tensor}"
            )


def _sums(prob: Tensor) -> Tensor:
    return wrap_nested(_op.cumsum(prob._expr, axis=1, dtype="float32"), "cumsum")


def _kept(sums: Tensor, top_p: Tensor, top_k: Tensor) -> Tensor:
    """For each row how many of the greatest make up `top_p` of the probability, at most `top_k`."""

    def count(sums: te.Tensor, top_p: te.Tensor, top_k: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, sums.shape[1]), "j")

        def kept(i: Any, j: Any) -> tir.PrimExpr:
            before = sums[i, tir.max(j - 1, tir.const(0, str(j.dtype)))]
            within = tir.all(before < top_p[i, 0], j.astype("int64") < top_k[i, 0].astype("int64"))
            return tir.any(j == 0, within).astype("int32")

        return te.compute((sums.shape[0], 1), lambda i, _: te.sum(kept(i, j), axis=j), "kept")

    return tensor_expr_op(count, "count_kept", [sums, top_p, top_k])


def multinomial_from_uniform(
    prob: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
    dtype: str = "int64",
    name: str = "multinomial_from_uniform",
) -> Tensor:
    """Choices with the probabilities of rows.

    Parameters
    ----------
    prob : float32 of shape (rows, choices); each row sums up to one.
    uniform_sample : float32 of shape (samples, 1), from 0 on, below 1: a sample is the first choice
        whose sum of probabilities up to it exceeds its number.
    sample_indices : int64 of shape (samples, 1), the row of each sample; by default its own.
    dtype : of the result.

    Returns
    -------
    Shape (samples, 1).

    Raises
    ------
    ValueError : shapes or types are others.
    """
    _rows(name, {"uniform_sample": uniform_sample}, "samples", ("float32",))
    extra = [] if sample_indices is None else [sample_indices]
    for indices in extra:
        _rows(name, {"sample_indices": indices}, "samples", ("int64", "int32"))

    def choose(sums: te.Tensor, numbers: te.Tensor, *rows: te.Tensor) -> te.Tensor:
        choices = sums.shape[1]
        j = te.reduce_axis((0, choices), "j")

        def passed(i: Any) -> tir.PrimExpr:
            row = rows[0][i, 0] if rows else i
            return (sums[row, j] <= numbers[i, 0]).astype(dtype)

        shape = (numbers.shape[0], 1)
        count = te.compute(shape, lambda i, _: te.sum(passed(i), axis=j), "passed")
        # Sums of float32 may end below one.
        last = tir.Cast(dtype, choices - 1)
        return te.compute(shape, lambda *at: tir.min(count(*at), last), "choice")

    return tensor_expr_op(choose, name, [_sums(prob), uniform_sample, *extra])


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor,
    sorted_index: Tensor,
    top_p: Tensor,
    top_k: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
) -> Tensor:
    """Choices among the likeliest that make up `top_p` of the probability, at most `top_k`.

    Parameters
    ----------
    sorted_prob : float32 of shape (rows, choices), greatest first.
    sorted_index : the choice of each, of an integer type.
    top_p, top_k : float32 and integer of shape (rows, 1).
    uniform_sample, sample_indices : as of :func:`multinomial_from_uniform`.

    Returns
    -------
    Shape (samples, 1), of the type of `sorted_index`.

    Raises
    ------
    ValueError : shapes or types are others.
    """
    who = "sample_top_p_top_k_from_sorted_prob"
    integers = ("int64", "int32")
    _rows(who, {"top_p": top_p}, "rows", ("float32",))
    _rows(who, {"top_k": top_k}, "rows", integers)
    _rows(who, {"uniform_sample": uniform_sample}, "samples", ("float32",))
    extra = [] if sample_indices is None else [sample_indices]
    for indices in extra:
        _rows(who, {"sample_indices": indices}, "samples", integers)

    def choose(
        sums: te.Tensor,
        kept: te.Tensor,
        index: te.Tensor,
        numbers: te.Tensor,
        *rows: te.Tensor,
    ) -> te.Tensor:
        j = te.reduce_axis((0, sums.shape[1]), "j")
        shape = (numbers.shape[0], 1)

        def row(i: Any) -> Any:
            return rows[0][i, 0] if rows else i

        def passed(i: Any) -> tir.PrimExpr:
            whole = sums[row(i), kept[row(i), 0] - 1]
            return (sums[row(i), j] <= numbers[i, 0] * whole).astype("int32")

        count = te.compute(shape, lambda i, _: te.sum(passed(i), axis=j), "passed")
        return te.compute(
            shape,
            lambda i, k: index[row(i), tir.min(count[i, k], kept[row(i), 0] - 1)],
            "choice",
        )

    sums = _sums(sorted_prob)
    kept = _kept(sums, top_p, top_k)
    args = [sums, kept, sorted_index, uniform_sample, *extra]
    return tensor_expr_op(choose, "sample_from_kept", args)


def renormalize_top_p_top_k_prob(
    prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor
) -> Tensor:
    """Probabilities of the likeliest that make up `top_p`, at most `top_k`; the others are 0.

    Parameters
    ----------
    prob, sorted_prob : float32 of shape (rows, choices), the second with the greatest first.
    top_p, top_k : as of :func:`sample_top_p_top_k_from_sorted_prob`.

    Returns
    -------
    The shape of `prob`; rows sum up to one. Choices as likely as the last one kept are kept.

    Raises
    ------
    ValueError : shapes or types are others.
    """
    who = "renormalize_top_p_top_k_prob"
    _rows(who, {"top_p": top_p}, "rows", ("float32",))
    _rows(who, {"top_k": top_k}, "rows", ("int64", "int32"))

    def cut(prob: te.Tensor, in_order: te.Tensor, kept: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, prob.shape[1]), "j")

        def left(i: Any, k: Any) -> tir.PrimExpr:
            least = in_order[i, kept[i, 0] - 1]
            return tir.if_then_else(prob[i, k] >= least, prob[i, k], tir.const(0, "float32"))

        whole = te.compute((prob.shape[0],), lambda i: te.sum(left(i, j), axis=j), "whole")
        return te.compute(prob.shape, lambda i, k: left(i, k) / whole[i], "renormalized")

    kept = _kept(_sums(sorted_prob), top_p, top_k)
    return tensor_expr_op(cut, who, [prob, sorted_prob, kept])
