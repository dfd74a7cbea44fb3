"""Patterns that several libraries have in common."""

from __future__ import annotations

from collections.abc import Mapping

from ..dpl import DFPattern, is_op, make_fused_bias_activation_pattern, wildcard

__all__ = [
    "make_attention_pattern",
    "make_conv2d_pattern",
    "make_fused_bias_activation_pattern",
    "make_layer_norm_pattern",
    "make_matmul_pattern",
    "make_residual_block_pattern",
]

Parts = tuple[DFPattern, Mapping[str, DFPattern]]
"""A pattern and its named parts."""


def _finished(
    out: DFPattern, parts: dict[str, DFPattern], with_bias: bool, activation: str | None
) -> Parts:
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    if activation is not None:
        out = is_op(activation)(out)
    return out, parts


def make_matmul_pattern(
    with_bias: bool = False, activation: str | None = None, transposed_rhs: bool = False
) -> Parts:
    """A matrix product; its parts are "lhs", "rhs", "root" and "bias".

    Parameters
    ----------
    with_bias : whether something is added.
    activation : operator after that, for instance "relax.nn.relu".
    transposed_rhs : whether the right operand is transposed by a ``permute_dims`` of its own.
    """
    lhs, rhs = wildcard(), wildcard()
    root = is_op("relax.matmul")(lhs, is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs)
    return _finished(root, {"lhs": lhs, "rhs": rhs, "root": root}, with_bias, activation)


def make_conv2d_pattern(with_bias: bool = False, activation: str | None = None) -> Parts:
    """A convolution; its parts are "input", "weight", "root" and "bias"."""
    data, weight = wildcard(), wildcard()
    root = is_op("relax.nn.conv2d")(data, weight)
    return _finished(root, {"input": data, "weight": weight, "root": root}, with_bias, activation)


def make_attention_pattern(with_bias: bool = False) -> Parts:
    """Attention; its parts are "query", "key", "value" and "bias"."""
    parts: dict[str, DFPattern] = {name: wildcard() for name in ("query", "key", "value")}
    if with_bias:
        parts["bias"] = wildcard()
    name = "relax.nn.attention_bias" if with_bias else "relax.nn.attention"
    return is_op(name)(*parts.values()), parts


def make_layer_norm_pattern() -> Parts:
    """A layer normalisation, without named parts."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}


def make_residual_block_pattern(
    block: Parts | DFPattern, binary_op: str = "relax.add", activation: str | None = None
) -> Parts:
    """A pattern whose result is added to, or multiplied with, something of its shape.

    Parameters
    ----------
    block : the pattern, with its named parts or without; "residual" becomes one more.
    """
    out, known = (block, {}) if isinstance(block, DFPattern) else block
    residual = wildcard()
    whole = is_op(binary_op)(out, residual)
    result = whole if activation is None else is_op(activation)(whole)
    return result, {**known, "residual": residual}
