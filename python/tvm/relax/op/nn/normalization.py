"""Normalisations by means and variances."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TensorStructInfo, TupleStructInfo
from ..base import make_call
from ..registry import register_rule
from ..rules import (
    axes_of,
    axis_of,
    differ,
    equal,
    is_float,
    known_shape,
    number,
    opaque_tensor,
    setting,
    tensor,
)

__all__ = ["batch_norm", "group_norm", "layer_norm", "rms_norm"]

Axes = int | Sequence[int]


def _listed(axes: Axes) -> list[int]:
    return [int(a) for a in axes] if isinstance(axes, Sequence) else [int(axes)]


def batch_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    moving_mean: RelayExpr,
    moving_var: RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
) -> Call:
    """Batch normalisation, after Ioffe and Szegedy, ICML 2015.

    The result is a tuple: the normalised data, then the moving mean and variance.

    Parameters
    ----------
    axis : the dimension of the channels.
    center, scale : whether beta is added and gamma multiplied.
    momentum : share of a new batch in the moving statistics when training; inference leaves them.
    """
    return make_call(
        "nn.batch_norm", data, gamma, beta, moving_mean, moving_var, axis=axis, epsilon=epsilon,
        center=center, scale=scale, momentum=momentum,
    )  # fmt: skip


def _agree(call: Call, info: TensorStructInfo, axes: Sequence[int], first: int) -> bool:
    """Check the parameters of a normalisation; whether their shapes are known to fit the data's.

    A parameter of which the shape is unknown is taken to fit.
    """
    others = [tensor(call, k) for k in range(first, len(call.args))]
    if not is_float(info.dtype):
        raise error.TypeError(f"{call.op.name}: takes floating-point tensors, got {info.dtype}")
    kinds = {str(i.dtype) for i in [info, *others]}
    if len(kinds) > 1:
        raise error.TypeError(f"{call.op.name}: operands of types {' and '.join(sorted(kinds))}")
    if info.ndim != -1:
        axes = axes_of(call, axes, info.ndim)
    shape = known_shape(info)
    wanted = None if shape is None else [shape[a] for a in axes]
    sure = True
    for other in others:
        if other.ndim not in (-1, len(axes)):
            raise error.ValueError(
                f"{call.op.name}: parameters have {len(axes)} dimensions, one has {other.ndim}"
            )
        own = known_shape(other)
        if own is None:
            continue
        if wanted is None:
            wanted = own
        if any(differ(a, b) for a, b in zip(wanted, own)):
            raise error.ValueError(
                f"{call.op.name}: a parameter is of shape {own} instead of {wanted}"
            )
        sure = sure and all(equal(a, b) for a, b in zip(wanted, own))
    return sure


def _data(info: TensorStructInfo, sure: bool) -> TensorStructInfo:
    return info if sure else opaque_tensor(info.dtype, info.ndim, info.vdevice)


def _batch_norm(call: Call) -> TupleStructInfo:
    info = tensor(call, 0)
    sure = _agree(call, info, [setting(call, "axis", 1)], 1)
    return TupleStructInfo([_data(i, sure) for i in (info, tensor(call, 3), tensor(call, 4))])


def layer_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    axes: Axes,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Layer normalisation over the given dimensions, after Ba et al., 2016."""
    return make_call(
        "nn.layer_norm", data, gamma, beta, axes=_listed(axes), epsilon=epsilon, center=center,
        scale=scale,
    )  # fmt: skip


def _layer_norm(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axes = setting(call, "axes", setting(call, "axis", -1))
    return _data(info, _agree(call, info, axes if isinstance(axes, tuple) else (axes,), 1))


def group_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    num_groups: int,
    channel_axis: int = 1,
    axes: Axes | None = None,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Normalisation of each group of channels, after Wu and He, ECCV 2018.

    Parameters
    ----------
    axes : dimensions that are averaged over beside those of a group's channels.
    """
    return make_call(
        "nn.group_norm", data, gamma, beta, num_groups=num_groups, channel_axis=channel_axis,
        axes=_listed(axes or ()), epsilon=epsilon, center=center, scale=scale,
    )  # fmt: skip


def _group_norm(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    channel = setting(call, "channel_axis", 1)
    axes = setting(call, "axes", ())
    groups = setting(call, "num_groups", 1)
    if info.ndim != -1:
        place = axis_of(call, channel, info.ndim)
        if place in axes_of(call, axes, info.ndim):
            raise error.ValueError(f"relax.nn.group_norm: the channel axis {channel} is in {axes}")
        shape = known_shape(info)
        count = None if shape is None else number(shape[place])
        if count is not None and count % groups:
            raise error.ValueError(
                f"relax.nn.group_norm: {count} channels do not divide into {groups} groups"
            )
    return _data(info, _agree(call, info, [channel], 1))


def rms_norm(data: RelayExpr, weight: RelayExpr, axes: Axes = -1, epsilon: float = 1e-5) -> Call:
    """data divided by the root of its mean square, after Zhang and Sennrich, NeurIPS 2019."""
    return make_call("nn.rms_norm", data, weight, axes=_listed(axes), epsilon=epsilon)


register_rule("nn.batch_norm", _batch_norm)
register_rule("nn.layer_norm", _layer_norm)
register_rule("nn.group_norm", _group_norm)
register_rule("nn.rms_norm", _layer_norm)
