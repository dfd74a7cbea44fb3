"""Patterns that several libraries have in common."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import error

from ..dpl import (
    DFPattern,
    GlobalVarPattern,
    TuplePattern,
    is_const,
    is_op,
    is_tuple_get_item,
    make_fused_bias_activation_pattern,
    wildcard,
)

__all__ = [
    "make_attention_pattern",
    "make_conv2d_pattern",
    "make_fused_bias_activation_pattern",
    "make_layer_norm_pattern",
    "make_matmul_dequantize_pattern",
    "make_matmul_multiply_pattern",
    "make_matmul_pattern",
    "make_residual_block_pattern",
    "make_rms_norm_pattern",
    "make_stacked_attention_pattern",
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


def make_rms_norm_pattern() -> Parts:
    """A call of a kernel with two operands, as `LegalizeOps` calls that of an RMS normalisation.

    Its parts are "gv", "inp" and "rms_norm"; which kernel it is, whoever matches looks up by "gv".
    """
    kernel, data, weight = GlobalVarPattern(), wildcard(), wildcard()
    out = is_op("relax.call_tir")(kernel, TuplePattern([data, weight]))
    return out, {"gv": kernel, "inp": data, "rms_norm": out}


def make_matmul_dequantize_pattern(transposed_rhs: bool = False) -> Parts:
    """A product that constants dequantise; parts are "lhs", "rhs", "root", "scale" and "zp"."""
    root, parts = make_matmul_pattern(transposed_rhs=transposed_rhs)
    scale, zero_point = is_const(), is_const()
    out = is_op("relax.dequantize")(root, scale, zero_point)
    return out, {**parts, "scale": scale, "zp": zero_point}


def make_matmul_multiply_pattern(transposed_rhs: bool = False) -> Parts:
    """A product times that of two scales of shape (1,), cast.

    Its parts are "lhs", "rhs", "root", "scaleA" and "scaleB".
    """
    root, parts = make_matmul_pattern(transposed_rhs=transposed_rhs)
    left, right = wildcard(), wildcard()
    scale = is_op("relax.multiply")(left.has_shape((1,)), right.has_shape((1,)))
    out = is_op("relax.astype")(is_op("relax.multiply")(root, scale))
    return out, {**parts, "scaleA": left, "scaleB": right}


def make_stacked_attention_pattern(
    start_op: str, with_bias: bool = False, layout: str = "BS3NH"
) -> Parts:
    """Attention whose query, key and value are pieces of one tensor.

    Its parts are "stacked_qkv", the shapes "query_reshape_list", "key_reshape_list" and
    "value_reshape_list" for "BS3NH", "q_transpose", "k_transpose" and "v_transpose" for "SBN3H",
    "split" or "strided_slice_query", "strided_slice_key" and "strided_slice_value", and "bias".

    Parameters
    ----------
    start_op : "split" or "strided_slice", which takes the tensor apart.
    layout : "BS3NH", whose pieces are reshaped, or "SBN3H", whose pieces and result are transposed.

    Raises
    ------
    ValueError : there is no such operator or layout.
    """
    stacked = wildcard()
    parts: dict[str, DFPattern] = {"stacked_qkv": stacked}
    names = ("query", "key", "value")
    if start_op == "split":
        parts["split"] = is_op("relax.split")(stacked)
        pieces: list[DFPattern] = [is_tuple_get_item(parts["split"], i) for i in range(3)]
    elif start_op == "strided_slice":
        pieces = [is_op("relax.strided_slice")(stacked, varg_default_wildcard=True) for _ in names]
        parts.update({f"strided_slice_{name}": piece for name, piece in zip(names, pieces)})
    else:
        raise error.ValueError(
            f"make_stacked_attention_pattern: start_op is split or strided_slice, not {start_op}"
        )
    if layout == "BS3NH":
        shapes = {f"{name}_reshape_list": wildcard() for name in names}
        parts.update(shapes)
        heads = [is_op("relax.reshape")(*pair) for pair in zip(pieces, shapes.values())]
    elif layout == "SBN3H":
        heads = [is_op("relax.permute_dims")(piece) for piece in pieces]
        parts.update({f"{name[0]}_transpose": head for name, head in zip(names, heads)})
    else:
        raise error.ValueError(
            f'make_stacked_attention_pattern: layout is "BS3NH" or "SBN3H", not {layout}'
        )
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.nn.attention_bias")(*heads, parts["bias"])
    else:
        out = is_op("relax.nn.attention")(*heads)
    return (is_op("relax.permute_dims")(out) if layout == "SBN3H" else out), parts


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
