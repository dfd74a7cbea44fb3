"""Layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tvm import error

from . import op
from .module import Module, ModuleList
from .tensor import Parameter, Tensor

__all__ = [
    "GELU",
    "Attention",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Embedding",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "MultiLinear",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "TimestepEmbedding",
    "Timesteps",
]

Size = int | Sequence[int]


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        return op.relu(x)


class SiLU(Module):
    """x * sigmoid(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return op.silu(x)


class GELU(Module):
    """x times the normal distribution function of x."""

    def forward(self, x: Tensor) -> Tensor:
        return op.gelu(x)


class Identity(Module):
    """Its input, for places where a layer is left out."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class _Products(Module):
    """Matrix products with a weight of (outputs, inputs)."""

    def __init__(
        self, in_features: int, rows: int, bias: bool, dtype: str | None, out_dtype: str | None
    ) -> None:
        self.in_features = in_features
        self.out_dtype = out_dtype
        self.weight = Parameter((rows, in_features), dtype)
        self.bias = Parameter((rows,), dtype if out_dtype is None else out_dtype) if bias else None

    def _product(self, x: Tensor) -> Tensor:
        y = op.matmul(x, op.permute_dims(self.weight), out_dtype=self.out_dtype)
        return y if self.bias is None else y + self.bias

    def to(self, dtype: str | None = None) -> None:
        """Change the element type of the weight, and of the bias unless `out_dtype` says it."""
        self.weight.to(dtype=dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype=dtype)


class Linear(_Products):
    """x @ weight.T + bias; the weight is (out_features, in_features).

    Parameters
    ----------
    out_dtype : element type of products and bias, that of the weight by default.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: str | None = None,
        out_dtype: str | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype, out_dtype)
        self.out_features = out_features

    def forward(self, x: Tensor) -> Tensor:
        return self._product(x)


class MultiLinear(_Products):
    """Several products of one input by one weight, a tuple of results."""

    def __init__(
        self,
        in_features: int,
        out_features: Sequence[int],
        bias: bool = True,
        dtype: str | None = None,
        out_dtype: str | None = None,
    ) -> None:
        if not out_features:
            raise error.ValueError("nn.MultiLinear: out_features is empty")
        super().__init__(in_features, sum(out_features), bias, dtype, out_dtype)
        self.out_features = list(out_features)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        cuts = list(accumulate(self.out_features))[:-1]
        return op.split(self._product(x), cuts, axis=-1)


class _Convolution(Module):
    """What convolutions of all dimensions hold."""

    def __init__(
        self,
        weight_shape: Sequence[int],
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Size,
        dilation: Size,
        groups: int,
        bias: bool,
        dtype: str | None,
    ) -> None:
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self.weight = Parameter(weight_shape, dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None


def _window(kernel_size: Size, n: int) -> list[int]:
    return [kernel_size] * n if isinstance(kernel_size, int) else list(kernel_size)


class Conv1D(_Convolution):
    """Convolution of (batch, channels, width); weight (filters, channels / groups, window)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        shape = [out_channels, in_channels // groups, *_window(kernel_size, 1)]
        super().__init__(
            shape, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            dtype,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return op.conv1d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class Conv2D(_Convolution):
    """Convolution of images; weight (filters, channels / groups, height, width)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
        data_layout: str = "NCHW",
    ) -> None:
        shape = [out_channels, in_channels // groups, *_window(kernel_size, 2)]
        super().__init__(
            shape, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            dtype,
        )  # fmt: skip
        self.data_layout = data_layout

    def forward(self, x: Tensor) -> Tensor:
        return op.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.data_layout,
        )  # fmt: skip


class Conv3D(_Convolution):
    """Convolution of volumes; weight (filters, channels / groups, depth, height, width)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
        data_layout: str = "NCDHW",
    ) -> None:
        shape = [out_channels, in_channels // groups, *_window(kernel_size, 3)]
        super().__init__(
            shape, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            dtype,
        )  # fmt: skip
        self.data_layout = data_layout

    def forward(self, x: Tensor) -> Tensor:
        return op.conv3d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.data_layout,
        )  # fmt: skip


class ConvTranspose1D(_Convolution):
    """Transposed convolution of (batch, channels, width); weight (channels, filters, window)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        shape = [in_channels, out_channels // groups, *_window(kernel_size, 1)]
        super().__init__(
            shape, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            dtype,
        )  # fmt: skip
        self.output_padding = output_padding

    def forward(self, x: Tensor) -> Tensor:
        return op.conv1d_transpose(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.dilation, self.groups,
        )  # fmt: skip


class LayerNorm(Module):
    """Layer normalisation over the last dimension, or the last of a shape."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.weight = Parameter(shape, dtype) if elementwise_affine else None
        self.bias = Parameter(shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x over the root of its mean square along axes, times weights, plus a bias."""

    def __init__(
        self,
        hidden_size: int,
        axes: int | Sequence[int],
        epsilon: float = 1e-5,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.axes = axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        y = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return y if self.bias is None else op.add(y, self.bias)


class GroupNorm(Module):
    """Normalisation of groups of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(
        self, x: Tensor, channel_axis: int = 1, axes: Sequence[int] | None = None
    ) -> Tensor:
        return op.group_norm(
            x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes
        )


class Embedding(Module):
    """Rows of a table of (num, dim) by index; symbolic numbers of rows are allowed."""

    def __init__(self, num: Any, dim: Any, dtype: str | None = None) -> None:
        self.num = num
        self.dim = dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        rows = op.take(self.weight, op.reshape(x, [-1]), axis=0)
        return op.reshape(rows, [*x.shape, self.dim])


class TimestepEmbedding(Module):
    """Two products with an activation between, of embedded time steps.

    Parameters
    ----------
    act_fn, post_act_fn : "silu"; the latter may be None.
    out_dim : columns of the result, `time_embed_dim` by default.
    cond_proj_dim : columns of a condition that is added first.
    """

    def __init__(
        self,
        in_channels: int,
        time_embed_dim: int,
        act_fn: str = "silu",
        out_dim: int | None = None,
        post_act_fn: str | None = None,
        cond_proj_dim: int | None = None,
    ) -> None:
        for what in (act_fn, post_act_fn):
            if what not in ("silu", None):
                raise error.ValueError(f"nn.TimestepEmbedding: activations are 'silu', got {what}")
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = (
            None if cond_proj_dim is None else Linear(cond_proj_dim, in_channels, bias=False)
        )
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, time_embed_dim if out_dim is None else out_dim)
        self.post_act = None if post_act_fn is None else SiLU()

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Tensor:
        if condition is not None:
            if self.cond_proj is None:
                raise error.ValueError("nn.TimestepEmbedding: a condition needs cond_proj_dim")
            sample = sample + self.cond_proj(condition)
        sample = self.linear_2(self.act(self.linear_1(sample)))
        return sample if self.post_act is None else self.post_act(sample)


class Timesteps(Module):
    """:func:`op.get_timestep_embedding` as a layer."""

    def __init__(
        self, num_channels: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1
    ) -> None:
        self.num_channels = num_channels
        self.flip_sin_to_cos = flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x: Tensor) -> Tensor:
        return op.get_timestep_embedding(
            x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift
        )


class Attention(Module):
    """Attention of rows to themselves or to other rows, with its four products.

    Parameters
    ----------
    query_dim : columns of the rows.
    cross_attention_dim : columns of the other rows, `query_dim` by default.
    heads, dim_head : number of heads, and columns of each.
    bias, out_bias : whether the first three products, and the last one, have a bias.
    norm_num_groups : normalise groups of columns first.
    scale_qk : divide scores by the root of `dim_head`.
    """

    def __init__(
        self,
        query_dim: int,
        cross_attention_dim: int | None = None,
        heads: int = 8,
        dim_head: int = 64,
        bias: bool = False,
        norm_num_groups: int | None = None,
        out_bias: bool = True,
        scale_qk: bool = True,
    ) -> None:
        self.query_dim = query_dim
        self.cross_attention_dim = cross_attention_dim or query_dim
        self.heads = heads
        self.dim_head = dim_head
        self.bias = bias
        self.norm_num_groups = norm_num_groups
        self.out_bias = out_bias
        self.scale_qk = scale_qk
        self.scale = dim_head**-0.5 if scale_qk else 1.0
        self.inner_dim = dim_head * heads
        self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
        self.to_k = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.to_v = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.group_norm = None if norm_num_groups is None else GroupNorm(norm_num_groups, query_dim)
        self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

    def forward(
        self,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        others = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        products = (self.to_q(hidden_states), self.to_k(others), self.to_v(others))
        query, key, value = (
            op.reshape(product, [0, -1, self.heads, self.dim_head]) for product in products
        )
        # The default scale of attention is that of the size of a head.
        attended = op.scaled_dot_product_attention(
            query, key, value, attention_mask, scale=None if self.scale_qk else self.scale
        )
        return self.to_out[0](op.reshape(attended, [0, -1, self.inner_dim]))
