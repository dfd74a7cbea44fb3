"""Derivatives of operators: what a gradient of the result says about each operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm import error
from tvm.ir import Op, RelayExpr

from ..expr import Call, Var, const
from ..struct_info import TensorStructInfo, TupleStructInfo
from . import binary, create, grad, linear_algebra, manipulate, selection, statistical, unary
from .nn import convolution
from .registry import get_op
from .rules import equal, known_shape, plain, setting

__all__ = ["gradient_of", "register_gradient", "te_gradients"]

Gradient: TypeAlias = Callable[[Var, Call, Var, Any], Sequence[RelayExpr]]
"""From the variable of a result, the call that gives it, the gradient of the result and the
BlockBuilder at work to an expression for each operand, `relax.op.grad.no_grad` where none flows."""

_gradients: dict[str, tuple[int, Gradient]] = {}
te_gradients: dict[str, Callable[..., RelayExpr]] = {}
"""What differentiates calls of `call_tir_with_grad`, by the name that they give."""


def register_gradient(op_name: str, fgradient: Gradient | None = None, level: int = 10) -> Any:
    """Say how to differentiate an operator, for `relax.transform.Gradient`; also a decorator.

    Parameters
    ----------
    fgradient : ``(orig_var, orig_call, output_grad, ctx) -> [gradient of each operand]``. `ctx` is
        the BlockBuilder that the result is emitted to.
    level : the registration of the highest level counts.

    Raises
    ------
    ValueError : there is no such operator, or it has a gradient of this level.

    Examples
    --------
    >>> @relax.op.register_gradient("relax.sin")
    ... def sin_grad(orig_var, orig_call, output_grad, ctx):
    ...     return [output_grad * relax.op.cos(orig_call.args[0])]
    """

    def register(function: Gradient) -> Gradient:
        get_op(op_name.removeprefix("relax."))
        known = _gradients.get(op_name)
        if known is not None and known[0] == level:
            raise error.ValueError(
                f"relax.op.register_gradient: {op_name} has a gradient of level {level}; give a "
                "higher level to replace it"
            )
        if known is None or known[0] < level:
            _gradients[op_name] = (level, function)
        return function

    return register if fgradient is None else register(fgradient)


def gradient_of(op: Op) -> Gradient:
    """The registered gradient of an operator.

    Raises
    ------
    NotImplementedError : there is none.
    """
    known = _gradients.get(str(op.name))
    if known is None:
        raise error.NotImplementedError(
            f"{op.name} has no gradient; register one by relax.op.register_gradient, or keep it "
            "out by relax.op.grad.no_grad"
        )
    return known[1]


# ---- what the formulas share ----


def _info(expr: RelayExpr) -> TensorStructInfo:
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo):
        raise error.TypeError(f"relax.op.gradients: a tensor is needed, got {info}")
    return info


def _like(number: float, expr: RelayExpr) -> RelayExpr:
    return const(number, str(_info(expr).dtype))


def _shape(expr: RelayExpr) -> RelayExpr:
    shape = _info(expr).shape
    if shape is None:
        raise error.ValueError(f"relax.op.gradients: the shape of {expr} must be known")
    return shape


def _fit(gradient: RelayExpr, operand: RelayExpr) -> RelayExpr:
    """The gradient summed over what the operand was broadcast along."""
    have, want = known_shape(_info(gradient)), known_shape(_info(operand))
    if have is None or want is None or len(have) != len(want):
        return manipulate.collapse_sum_to(gradient, _shape(operand))
    if all(equal(a, b) for a, b in zip(have, want)):
        return gradient
    return manipulate.collapse_sum_to(gradient, _shape(operand))


def _count(expr: RelayExpr, axes: Sequence[int] | None) -> int:
    sizes = [int(size) for size in _shape(expr).struct_info.values]
    return math.prod(sizes if axes is None else [sizes[axis] for axis in axes])


def _axes(call: Call) -> list[int] | None:
    axes = setting(call, "axis")
    return None if axes is None else list(axes) if isinstance(axes, tuple) else [axes]


def _spread(gradient: RelayExpr, call: Call) -> RelayExpr:
    """The gradient of a reduction with the axes that it lost, as extents of one."""
    axes = _axes(call)
    if axes and not setting(call, "keepdims", False):
        return manipulate.expand_dims(gradient, axes)
    return gradient


def _op(*names: str) -> Callable[[Gradient], Gradient]:
    def register(function: Gradient) -> Gradient:
        for name in names:
            register_gradient(f"relax.{name}", function)
        return function

    return register


# ---- operands of the same rank, element by element ----


@_op("add")
def _add(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [_fit(g, operand) for operand in call.args]


@_op("subtract")
def _subtract(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    a, b = call.args
    return [_fit(g, a), _fit(unary.negative(g), b)]


@_op("multiply")
def _multiply(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    a, b = call.args
    return [_fit(binary.multiply(g, b), a), _fit(binary.multiply(g, a), b)]


@_op("divide")
def _divide(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    a, b = call.args
    below = binary.divide(binary.multiply(unary.negative(g), y), b)
    return [_fit(binary.divide(g, b), a), _fit(below, b)]


@_op("power")
def _power(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    a, b = call.args
    less_one = binary.power(a, binary.subtract(b, _like(1, b)))
    return [
        _fit(binary.multiply(binary.multiply(g, b), less_one), a),
        _fit(binary.multiply(binary.multiply(g, y), unary.log(a)), b),
    ]


def _choice(first_wins: Callable[..., Call], second_wins: Callable[..., Call]) -> Gradient:
    def gradient(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
        a, b = call.args
        zero = _like(0, a)
        return [
            _fit(selection.where(second_wins(a, b), zero, g), a),
            _fit(selection.where(first_wins(a, b), zero, g), b),
        ]

    return gradient


_op("maximum")(_choice(first_wins=binary.greater_equal, second_wins=binary.less))
_op("minimum")(_choice(first_wins=binary.less, second_wins=binary.greater_equal))


@_op(
    "equal", "greater", "greater_equal", "less", "less_equal", "not_equal",
    "zeros", "ones", "full", "zeros_like", "ones_like", "full_like",
)  # fmt: skip
def _nothing(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [grad.no_grad(operand) for operand in call.args]


@_op("where")
def _where(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    condition, a, b = call.args
    return [
        grad.no_grad(condition),
        _fit(selection.where(condition, g, _like(0, a)), a),
        _fit(selection.where(condition, _like(0, b), g), b),
    ]


# ---- one operand ----


def _slope(slope: Callable[[RelayExpr, Var], RelayExpr]) -> Gradient:
    """The gradient of a function of one operand, from the operand and the result to its slope."""

    def gradient(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
        return [binary.multiply(g, slope(call.args[0], y))]

    return gradient


@_op("abs")
def _abs(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    return [selection.where(binary.less(x, _like(0, x)), unary.negative(g), g)]


@_op("cos")
def _cos(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [binary.multiply(unary.negative(g), unary.sin(call.args[0]))]


@_op("log")
def _log(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [binary.divide(g, call.args[0])]


@_op("negative")
def _negative(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [unary.negative(g)]


@_op("sigmoid")
def _sigmoid(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [binary.multiply(binary.multiply(g, y), binary.subtract(_like(1, y), y))]


@_op("sqrt")
def _sqrt(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [binary.divide(binary.multiply(_like(0.5, y), g), y)]


_op("exp")(_slope(lambda x, y: y))
_op("sin")(_slope(lambda x, y: unary.cos(x)))
_op("tanh")(_slope(lambda x, y: binary.subtract(_like(1, x), binary.multiply(y, y))))
_op("rsqrt")(_slope(lambda x, y: binary.multiply(_like(-0.5, x), binary.divide(y, x))))
_op("square")(_slope(lambda x, y: binary.multiply(_like(2, x), x)))


@_op("erf")
def _erf(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    bell = unary.exp(unary.negative(binary.multiply(x, x)))
    return [binary.multiply(g, binary.multiply(_like(2 / math.sqrt(math.pi), x), bell))]


@_op("clip")
def _clip(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    inside = binary.equal(x, y)
    return [selection.where(inside, g, _like(0, x)), *map(grad.no_grad, call.args[1:])]


@_op("astype")
def _astype(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [create.astype(g, str(_info(call.args[0]).dtype))]


@_op("triu")
def _triu(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [selection.triu(g, setting(call, "k", 0))]


@_op("tril")
def _tril(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [selection.tril(g, setting(call, "k", 0))]


# ---- sums ----


@_op("sum")
def _sum(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [manipulate.broadcast_to(_spread(g, call), _shape(call.args[0]))]


@_op("mean")
def _mean(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    share = binary.divide(g, _like(_count(x, _axes(call)), g))
    return [manipulate.broadcast_to(_spread(share, call), _shape(x))]


@_op("variance")
def _variance(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x, axes = call.args[0], _axes(call)
    count = _count(x, axes)
    own = binary.multiply(_like(2.0 / count, x), x)
    total = statistical.sum(x, axes, keepdims=True)
    mean = binary.multiply(_like(2.0 / count / count, x), total)
    return [binary.multiply(_spread(g, call), binary.subtract(own, mean))]


@_op("cumsum")
def _cumsum(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    # Each element has reached the sums behind it: all of them but those before.
    x, axis = call.args[0], setting(call, "axis")
    flat = g if axis is not None else manipulate.flatten(g)
    before = statistical.cumsum(g, axis)
    total = statistical.sum(g, axis, keepdims=True)
    result = binary.add(binary.subtract(total, before), flat)
    if axis is None:
        result = manipulate.reshape(result, _shape(x))
    if str(_info(x).dtype) != str(_info(g).dtype):
        result = create.astype(result, str(_info(x).dtype))
    return [result]


# ---- moves ----


@_op("permute_dims")
def _permute_dims(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    axes = setting(call, "axes")
    if axes is None:
        return [manipulate.permute_dims(g)]
    rank = len(axes)
    places = [axis % rank for axis in axes]
    return [manipulate.permute_dims(g, [places.index(k) for k in range(rank)])]


@_op("concat")
def _concat(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    info, axis = call.args[0].struct_info, setting(call, "axis")
    assert isinstance(info, TupleStructInfo)
    cuts: list[int] = []
    for part in info.fields[:-1]:
        shape = known_shape(part)
        if shape is None:
            raise error.ValueError(
                "relax.concat: its gradient needs to know the shapes of the parts"
            )
        cuts.append(int(shape[axis]) + (cuts[-1] if cuts else 0))
    return [manipulate.split(g, cuts, axis)]


@_op("split")
def _split(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [manipulate.concat(g, setting(call, "axis"))]


@_op("expand_dims")
def _expand_dims(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [manipulate.squeeze(g, list(setting(call, "axis")))]


@_op("reshape", "squeeze", "flatten")
def _reshape(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x, *shape = call.args
    return [manipulate.reshape(g, _shape(x)), *map(grad.no_grad, shape)]


@_op("broadcast_to")
def _broadcast_to(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x, shape = call.args
    return [manipulate.collapse_sum_to(g, _shape(x)), grad.no_grad(shape)]


@_op("take")
def _take(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x, indices = call.args
    return [grad.take_backward(g, x, indices, setting(call, "axis")), grad.no_grad(indices)]


# ---- products ----


@_op("matmul")
def _matmul(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    a, b = call.args
    rank_a, rank_b = _info(a).ndim, _info(b).ndim
    matmul = linear_algebra.matmul
    if rank_a == 1 and rank_b == 1:
        return [binary.multiply(g, b), binary.multiply(g, a)]
    if rank_a == 1:
        row = manipulate.expand_dims(g, -2)
        of_a = matmul(row, _transposed(b))
        of_b = matmul(manipulate.expand_dims(a, 1), row)
    elif rank_b == 1:
        column = manipulate.expand_dims(g, -1)
        of_a = matmul(column, manipulate.expand_dims(b, 0))
        of_b = manipulate.squeeze(matmul(_transposed(a), column), -1)
    else:
        of_a, of_b = matmul(g, _transposed(b)), matmul(_transposed(a), g)
    return [_fit(of_a, a), _fit(of_b, b)]


def _transposed(x: RelayExpr) -> RelayExpr:
    rank = _info(x).ndim
    return manipulate.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


@_op("nn.conv2d")
def _conv2d(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    data, weight = call.args
    names = [setting(call, name) for name in ("data_layout", "kernel_layout", "out_layout")]
    if names != ["NCHW", "OIHW", "NCHW"]:
        raise error.NotImplementedError(
            f"relax.nn.conv2d: gradients need the layouts NCHW and OIHW, got {', '.join(names)}; "
            "differentiate first and convert layouts then"
        )
    groups = setting(call, "groups", 1)
    strides, padding, dilation = (
        list(setting(call, name)) for name in ("strides", "padding", "dilation")
    )
    batch, channels, *space = (int(v) for v in known_shape(_info(data)) or ())
    filters, per_group, *taps = (int(v) for v in known_shape(_info(weight)) or ())
    results = [int(v) for v in known_shape(_info(y)) or ()][2:]
    around = [padding[k] + padding[k + 2] for k in range(2)]
    # What the last window did not reach has no gradient, but a place in the data.
    missed = [
        space[k] + around[k] - (results[k] - 1) * strides[k] - dilation[k] * (taps[k] - 1) - 1
        for k in range(2)
    ]
    of_data = convolution.conv2d_transpose(
        g, weight, strides, padding, missed, dilation, groups, "NCHW", "IOHW", "NCHW"
    )
    # A weight has met, at every tap, the data one dilation further: a convolution over the batch.
    swapped = manipulate.permute_dims
    if groups == 1:
        folded = swapped(data, [1, 0, 2, 3])
    else:
        split = manipulate.reshape(data, [batch, groups, per_group, *space])
        folded = manipulate.reshape(
            swapped(split, [2, 1, 0, 3, 4]), [per_group, groups * batch, *space]
        )
    by_tap = convolution.conv2d(
        folded, swapped(g, [1, 0, 2, 3]), dilation, padding, strides, groups
    )
    if any(missed):
        by_tap = selection.strided_slice(by_tap, [2, 3], [0, 0], taps)
    return [of_data, swapped(by_tap, [1, 0, 2, 3])]


# ---- activations, losses, pools ----


@_op("nn.relu")
def _relu(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    return [selection.where(binary.less(x, _like(0, x)), _like(0, x), g)]


@_op("nn.silu")
def _silu(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    s = ctx.emit(unary.sigmoid(x))
    slope = binary.add(s, binary.multiply(y, binary.subtract(_like(1, x), s)))
    return [binary.multiply(g, slope)]


@_op("nn.gelu")
def _gelu(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    x = call.args[0]
    below = binary.add(_like(1, x), unary.erf(binary.multiply(x, _like(math.sqrt(0.5), x))))
    bell = unary.exp(binary.multiply(_like(-0.5, x), binary.multiply(x, x)))
    density = binary.multiply(_like(1 / math.sqrt(2 * math.pi), x), bell)
    slope = binary.add(binary.multiply(_like(0.5, x), below), binary.multiply(x, density))
    return [binary.multiply(g, slope)]


@_op("nn.softmax")
def _softmax(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    mean = statistical.sum(binary.multiply(g, y), setting(call, "axis", -1), True)
    return [binary.multiply(binary.subtract(g, mean), y)]


@_op("nn.log_softmax")
def _log_softmax(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    total = statistical.sum(g, setting(call, "axis", -1), True)
    return [binary.subtract(g, binary.multiply(total, unary.exp(y)))]


@_op("nn.cross_entropy_with_logits")
def _cross_entropy(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    predictions, labels = call.args
    share: RelayExpr = g
    if _info(predictions).ndim > 1:
        share = binary.divide(g, _like(_count(predictions, [0]), g))
    minus = unary.negative(share)
    return [binary.multiply(minus, labels), binary.multiply(minus, predictions)]


@_op("nn.nll_loss")
def _nll_loss(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    predictions, targets, *weights = call.args
    backward = grad.nll_loss_backward(
        g, predictions, targets, weights[0] if weights else None,
        reduction=setting(call, "reduction", "mean"),
        ignore_index=setting(call, "ignore_index", -100),
    )  # fmt: skip
    return [backward, grad.no_grad(targets), *map(grad.no_grad, weights)]


def _pool(backward: Callable[..., Call]) -> Gradient:
    def gradient(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
        settings = {str(name): plain(value) for name, value in call.attrs.items()}
        return [backward(g, call.args[0], **settings)]

    return gradient


_op("nn.max_pool2d")(_pool(grad.max_pool2d_backward))
_op("nn.avg_pool2d")(_pool(grad.avg_pool2d_backward))


@_op("grad.no_grad")
def _no_grad(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    return [grad.no_grad(call.args[0])]
