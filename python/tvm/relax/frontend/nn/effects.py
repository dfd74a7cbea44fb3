"""Effects: what is printed, and caches of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error, tir
from tvm.ir import RelayExpr

from ... import op as _op
from ...block_builder import BlockBuilder
from ...expr import PrimValue, ShapeExpr, Var
from ...struct_info import ObjectStructInfo, TensorStructInfo
from .core import Effect
from .tensor import Tensor, get_default_dtype

__all__ = ["IOEffect", "KVCache"]


def _builder(what: str) -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise error.RuntimeError(f"nn.{what}: only while a network is traced")
    return builder


class IOEffect(Effect):
    """Keeps debugging calls in order."""

    def __init__(self) -> None:
        self.effect: RelayExpr | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        return [builder.emit(_op.null_value(), f"{name_hint}.io")]

    def create(self, name_hint: str) -> list[Var]:
        return [Var(f"{name_hint}.io", ObjectStructInfo())]

    def set_state(self, state_vars: list[Var]) -> None:
        (self.effect,) = state_vars

    def finalize(self) -> list[RelayExpr]:
        assert self.effect is not None
        result, self.effect = self.effect, None
        return [result]


class KVCache(Effect):
    """Rows that methods append, kept between calls.

    Parameters
    ----------
    init_seq_len : rows that there is room for at first; the cache grows.
    unit_shape : shape of a row, such as (heads, size of a head).
    dtype : element type, the default one of parameters unless given.
    """

    def __init__(
        self, init_seq_len: int, unit_shape: Sequence[int], dtype: str | None = None
    ) -> None:
        self.init_seq_len = init_seq_len
        self.unit_shape = [int(extent) for extent in unit_shape]
        self.dtype = get_default_dtype() if dtype is None else dtype
        self.cache: RelayExpr | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        shape = ShapeExpr([self.init_seq_len, *self.unit_shape])
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_create",
            _op.zeros(shape, self.dtype),
            shape,
            PrimValue(0),
            sinfo_args=[ObjectStructInfo()],
        )
        return [builder.emit(call, name_hint)]

    def create(self, name_hint: str) -> list[Var]:
        return [Var(name_hint, ObjectStructInfo())]

    def set_state(self, state_vars: list[Var]) -> None:
        (self.cache,) = state_vars

    def finalize(self) -> list[RelayExpr]:
        assert self.cache is not None
        result, self.cache = self.cache, None
        return [result]

    def to(self, dtype: str | None = None) -> None:
        if dtype is not None:
            self.dtype = dtype

    def view(self, seq_len: tir.Var) -> Tensor:
        """The first `seq_len` rows: shape ``(seq_len, *unit_shape)``."""
        assert self.cache is not None
        shape = ShapeExpr([seq_len, *self.unit_shape])
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_view",
            self.cache,
            shape,
            sinfo_args=[TensorStructInfo(shape, self.dtype)],
        )
        return Tensor(_expr=_builder("KVCache.view").emit(call))

    def append(self, new_element: Tensor) -> None:
        """Add rows: a tensor of shape ``(rows, *unit_shape)``.

        Raises
        ------
        TypeError : its elements are of another type.
        """
        if new_element.dtype != self.dtype:
            raise error.TypeError(
                f'KVCache has been set to use dtype "{self.dtype}", but got "{new_element.dtype}"'
            )
        assert self.cache is not None
        call = _op.call_inplace_packed(
            "vm.builtin.attention_kv_cache_append",
            self.cache,
            new_element._expr,
            inplace_indices=[0],
            sinfo_args=[ObjectStructInfo()],
        )
        self.cache = _builder("KVCache.append").emit(call)
