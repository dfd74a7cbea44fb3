"""Caches of keys and values that many sequences share, and attention over them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from tvm import error, tir
from tvm.runtime import Device
from tvm.target import Target

from .... import op as _op
from ....block_builder import BlockBuilder
from ....expr import PrimValue, ShapeExpr
from ....struct_info import ObjectStructInfo, TensorStructInfo
from ..tensor import IntExpr, Object, Tensor
from .paged_kernels import angles, append_kernel, attention_kernel

__all__ = ["PagedKVCache", "RopeMode", "TIRPagedKVCache"]


class RopeMode(enum.IntEnum):
    """Rotary embeddings: none, of keys when they are stored, or of keys when they are read."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


def _builder(what: str) -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise error.RuntimeError(f"nn.llm: {what} is only there while a network is traced")
    return builder


class PagedKVCache(Object):
    """A cache as methods get it (``nn.spec.Object(object_type=PagedKVCache)``).

    The program around the network runs it with functions of the registry:
    ``vm.builtin.kv_state_add_sequence``, ``kv_state_fork_sequence``, ``kv_state_popn``,
    ``kv_state_remove_sequence``, and around each call of the network ``kv_state_begin_forward``,
    which says how many tokens it takes of which sequences, and ``kv_state_end_forward``.
    """

    def attention_with_fused_qkv(
        self,
        layer_id: int,
        qkv: Tensor,
        num_qo_heads: int,
        attn_score_scaling_factor: float = 1.0,
        *,
        sm_scale: float | None = None,
    ) -> Tensor:
        """Add keys and values of the step's tokens to a layer, and attend to all of each sequence.

        Tokens of a sequence look at themselves and those before. Queries and keys are turned by
        their positions as the cache was made to.

        Parameters
        ----------
        qkv : shape (batch, tokens, num_qo_heads + 2 * heads of keys, size of a head); batch times
            tokens are those of the step, sequence by sequence.
        attn_score_scaling_factor : factor of the products beside one over the root of the size of
            a head.
        sm_scale : the whole factor instead.

        Returns
        -------
        Shape (batch, tokens, num_qo_heads, size of a head).
        """
        batch, tokens, _, head_dim = qkv.shape
        if sm_scale is None:
            sm_scale = attn_score_scaling_factor * float(head_dim) ** -0.5
        flat = qkv.reshape(batch * tokens, qkv.shape[2], head_dim)
        call = _op.call_dps_packed(
            "vm.builtin.attention_kv_cache_attention_with_fused_qkv",
            [self._expr, PrimValue(layer_id), PrimValue(float(sm_scale)), flat._expr],
            TensorStructInfo((batch * tokens, num_qo_heads, head_dim), qkv.dtype),
        )
        result = Tensor(_expr=_builder("attention").emit(call, "attention"))
        return result.reshape(batch, tokens, num_qo_heads, head_dim)

    def get_query_positions(self, total_length: IntExpr) -> Tensor:
        """Positions of the step's tokens in their sequences: int32, shape ``(total_length,)``."""
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_get_query_positions",
            self._expr,
            sinfo_args=[TensorStructInfo((total_length,), "int32")],
        )
        return Tensor(_expr=_builder("get_query_positions").emit(call, "query_positions"))


class TIRPagedKVCache(PagedKVCache):
    """Makes a cache whose kernels are part of the network, where it is traced.

    Parameters
    ----------
    max_batch_size : sequences that there may be.
    max_total_seq_len : tokens of all sequences.
    prefill_chunk_size : tokens of one step.
    page_size : tokens of a page.
    support_sliding_window : 1 if ``attention_kv_cache_enable_sliding_window_for_seq`` may let
        sequences look at their last tokens only, else 0.
    num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim : of the network.
    rope_mode : what is turned, see :class:`RopeMode`.
    rope_scale, rope_theta : factor of positions, and base of the frequencies.
    dtype : of keys and values.
    target : a processor.
    layer_partition, rope_scaling, rope_ext_factors, enable_disaggregation : None, empty or false
        mean what there is: one stage, and frequencies as they are.

    Raises
    ------
    ValueError : the target is no processor, heads do not fit, or an option asks for what is not
        there.
    """

    def __init__(
        self,
        max_batch_size: tir.Var,
        max_total_seq_len: tir.Var,
        prefill_chunk_size: tir.Var,
        page_size: tir.Var,
        support_sliding_window: IntExpr,
        num_hidden_layers: int,
        num_attention_heads: int,
        num_key_value_heads: int,
        head_dim: int,
        rope_mode: RopeMode,
        rope_scale: float,
        rope_theta: float,
        dtype: str,
        target: Target,
        name: str = "paged_kv_cache",
        *,
        layer_partition: ShapeExpr | None = None,
        rope_scaling: Mapping[str, Any] | None = None,
        rope_ext_factors: Any = None,
        enable_disaggregation: bool = False,
    ) -> None:
        who = "nn.llm.TIRPagedKVCache"
        target = Target(target)
        if target.get_target_device_type() != Device.kDLCPU:
            raise error.ValueError(
                f"{who}: there are kernels for processors, not for {target.kind.name}; use 'llvm'"
            )
        if num_attention_heads % num_key_value_heads or (rope_mode and head_dim % 2):
            raise error.ValueError(
                f"{who}: {num_attention_heads} heads over {num_key_value_heads} of keys, "
                f"of {head_dim} elements each"
            )
        kind = (rope_scaling or {}).get("rope_type", "default")
        if kind != "default":
            raise error.ValueError(f"{who}: rope_scaling of the kind {kind!r}; there is 'default'")
        factors = getattr(rope_ext_factors, "value", rope_ext_factors)
        if enable_disaggregation or (factors is not None and factors != 0):
            raise error.ValueError(
                f"{who}: enable_disaggregation and rope_ext_factors are not there; leave them out"
            )
        stages = [0, num_hidden_layers]
        if layer_partition is not None and list(map(int, layer_partition.values)) != stages:
            raise error.ValueError(f"{who}: one stage has all layers, layer_partition is {stages}")
        heads = (num_attention_heads, num_key_value_heads, head_dim, dtype)
        angle = None if rope_mode == RopeMode.NONE else angles(head_dim, rope_theta, rope_scale)
        inline = rope_mode == RopeMode.INLINE
        builder = _builder(name)
        kernels = [
            builder.add_func(append_kernel(*heads, angle, not inline), "kv_cache_append"),
            builder.add_func(
                attention_kernel(*heads, angle if inline else None), "kv_cache_attention"
            ),
        ]
        limits = [max_batch_size, max_total_seq_len, prefill_chunk_size, page_size]
        call = _op.call_pure_packed(
            "vm.builtin.paged_attention_kv_cache_create",
            ShapeExpr([*limits, support_sliding_window]),
            *map(PrimValue, (num_hidden_layers, num_attention_heads, num_key_value_heads)),
            PrimValue(head_dim),
            _op.zeros((), dtype),
            *kernels,
            sinfo_args=[ObjectStructInfo()],
        )
        super().__init__(_expr=call, _name=name)
