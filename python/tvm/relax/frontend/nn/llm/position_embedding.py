"""Rotary position embeddings (Su et al., "RoFormer", 2021), halves of a head as pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import error, te, tir

from ..kernel_ops import tensor_expr_op
from ..tensor import Tensor

__all__ = ["llama_rope", "llama_rope_with_position_map", "rope_freq", "rotated"]


def rope_freq(
    s: tir.PrimExpr, d: tir.PrimExpr, d_range: int, theta: float, dtype: str
) -> tuple[tir.PrimExpr, tir.PrimExpr]:
    """Cosine and sine of the angle at a position.

    Parameters
    ----------
    s : the position.
    d : which of the `d_range` elements of a head; elements that are half of them apart share one
        angle, ``s / theta ** (2 * d / d_range)``.
    dtype : of the results, which are computed in float32.
    """
    exponent = tir.floormod(d * 2, d_range).astype("float32") / tir.const(d_range, "float32")
    angle = s.astype("float32") / tir.power(tir.const(theta, "float32"), exponent)
    return tir.cos(angle).astype(dtype), tir.sin(angle).astype(dtype)


def rotated(
    load: Callable[[Any], tir.PrimExpr],
    i: tir.PrimExpr,
    d_range: int,
    cosine: tir.PrimExpr,
    sine: tir.PrimExpr,
) -> tir.PrimExpr:
    """Element `i` of a head whose elements `load` gives, turned by an angle."""
    half = d_range // 2
    partner = tir.if_then_else(i < half, -load(i + half), load(i - half))
    return cosine * load(i) + sine * partner


def _check_head(who: str, head_dim: int) -> None:
    if head_dim % 2:
        raise error.ValueError(f"{who}: pairs of elements are turned, a head has {head_dim}")


def llama_rope(
    qkv: Tensor,
    total_seq_len: tir.Var,
    theta: float,
    num_q_heads: int,
    num_kv_heads: int,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values out of one tensor, the first two turned by their positions.

    Parameters
    ----------
    qkv : shape (batch, tokens, num_q_heads + 2 * num_kv_heads, size of a head); its tokens are the
        last ones of a sequence.
    total_seq_len : tokens of the sequence, those before included.
    theta : base of the frequencies.
    scale : factor of the positions.

    Returns
    -------
    Shapes (batch, tokens, heads, size of a head).

    Raises
    ------
    ValueError : there is another number of heads, or a head has an odd size.
    """
    batch, seq_len, fused_heads, head_dim = qkv.shape
    if fused_heads != num_q_heads + 2 * num_kv_heads:
        raise error.ValueError(
            f"llama_rope: {num_q_heads} heads of queries and {num_kv_heads} of keys and values are "
            f"{num_q_heads + 2 * num_kv_heads}, the tensor has {fused_heads}"
        )
    _check_head("llama_rope", int(head_dim))
    offset = total_seq_len - seq_len

    def part(name: str, first: int, heads: int, turned: bool) -> Tensor:
        def compute(x: te.Tensor, offset: Any) -> te.Tensor:
            def element(b: Any, s: Any, h: Any, d: Any) -> tir.PrimExpr:
                if not turned:
                    return x[b, s, first + h, d]
                position = (offset + s).astype("float32") * tir.const(scale, "float32")
                angle = rope_freq(position, d, int(head_dim), theta, str(x.dtype))
                return rotated(lambda i: x[b, s, first + h, i], d, int(head_dim), *angle)

            return te.compute((batch, seq_len, heads, head_dim), element, name=name)

        return tensor_expr_op(compute, f"llama_rope_{name}", [qkv, offset])

    return (
        part("q", 0, num_q_heads, True),
        part("k", num_q_heads, num_kv_heads, True),
        part("v", num_q_heads + num_kv_heads, num_kv_heads, False),
    )


def llama_rope_with_position_map(
    theta: float,
    scale: float,
    head_dim: int,
    num_q_heads: int,
    num_kv_heads: int,
    dtype: str,
    rotary_dim: int | None = None,
) -> tir.PrimFunc:
    """A kernel that splits a tensor and turns queries and keys, each token by its own position.

    Parameters
    ----------
    theta, scale : as of :func:`llama_rope`.
    rotary_dim : how many of the first elements of a head are turned; all by default.

    Returns
    -------
    ``f(qkv, position_map, q, k, v, apply_rope)``: qkv is (tokens, num_q_heads + 2 * num_kv_heads,
    head_dim), position_map (tokens,) int32, the results are (tokens, heads, head_dim); with an
    `apply_rope` of 0 nothing is turned.
    """
    turned = head_dim if rotary_dim is None else rotary_dim
    _check_head("llama_rope_with_position_map", turned)
    tokens = tir.Var("seq_len", "int64")
    fused = num_q_heads + 2 * num_kv_heads
    qkv = tir.decl_buffer((tokens, fused, head_dim), dtype, "qkv")
    position_map = tir.decl_buffer((tokens,), "int32", "position_map")
    outputs = [
        tir.decl_buffer((tokens, heads, head_dim), dtype, name)
        for name, heads in (("q", num_q_heads), ("k", num_kv_heads), ("v", num_kv_heads))
    ]
    apply_rope = tir.Var("apply_rope", "int64")

    ib = tir.ir_builder.create()
    source, positions = ib.buffer_ptr(qkv), ib.buffer_ptr(position_map)
    with ib.for_range(0, tokens, name="s", kind="parallel") as s:
        first = 0
        for output in outputs:
            heads = int(output.shape[1])
            target = ib.buffer_ptr(output)
            with (
                ib.for_range(0, heads, name="h", dtype="int64") as h,
                ib.for_range(0, head_dim, name="d", dtype="int64") as d,
            ):
                head = first + h
                value = source[s, head, d]

                def load(i: Any, head: tir.PrimExpr = head) -> tir.PrimExpr:
                    return source[s, head, i]

                if output is not outputs[2]:
                    position = positions[s].astype("float32") * tir.const(scale, "float32")
                    angle = rope_freq(position, d, turned, theta, dtype)
                    value = tir.if_then_else(
                        tir.all(apply_rope > 0, d < turned),
                        rotated(load, d, turned, *angle),
                        value,
                    )
                target[s, h, d] = value
            first += heads
    handles = [tir.Var(f"var_{b.name}", "handle") for b in (qkv, position_map, *outputs)]
    buffers = dict(zip(handles, (qkv, position_map, *outputs)))
    func = tir.PrimFunc([*handles, apply_rope], ib.get(), buffer_map=buffers)
    return func.with_attr({"op_pattern": 8, "tir.noalias": True})
