"""Networks that PyTorch quantised in eager mode, as programs that can be exported.

Their operators, ``quantized::conv2d`` and its kin, take weights packed for one library, which
``torch.export`` cannot follow. :class:`QuantizedProgram` runs the same network on real numbers
between ``quantize`` and ``dequantize``, which says the same in operators that it can.
"""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import torch.nn.functional as F

__all__ = ["QuantizedProgram", "has_packed_weights", "is_quantized_script", "signature_of"]

# Element type of the integers, the least and the greatest of them, by PyTorch's quantised type.
_INTEGERS = {
    torch.quint8: (torch.uint8, 0, 255),
    torch.qint8: (torch.int8, -128, 127),
    torch.qint32: (torch.int32, -(2**31), 2**31 - 1),
}
# PyTorch's numbers of these types in programs.
_TYPE_NUMBERS = {12: torch.qint8, 13: torch.quint8, 14: torch.qint32}
# Operators that move elements: integers move like what they stand for.
_MOVES = frozenset(
    (
        "clone",
        "contiguous",
        "detach",
        "expand",
        "flatten",
        "permute",
        "reshape",
        "select",
        "slice",
        "squeeze",
        "transpose",
        "unsqueeze",
        "view",
    )
)
# Results that have a scale and a zero point of their own, for 8 bits without a sign.
_FIXED = {"sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0), "tanh": (2 / 256, 128)}


@dataclass(frozen=True)
class _Quantized:
    """Integers that stand for (integer - zero point) * scale."""

    integers: torch.Tensor
    scale: float
    zero_point: int
    dtype: torch.dtype

    def real(self) -> torch.Tensor:
        integer, low, high = _INTEGERS[self.dtype]
        return torch.ops.quantized_decomposed.dequantize_per_tensor.default(
            self.integers, self.scale, self.zero_point, low, high, integer
        )

    def like(self, real: torch.Tensor) -> _Quantized:
        """Other numbers in the same integers."""
        return _quantize(real, self.scale, self.zero_point, self.dtype)


def _quantize(
    real: torch.Tensor, scale: float, zero_point: int, dtype: torch.dtype = torch.quint8
) -> _Quantized:
    integer, low, high = _INTEGERS[dtype]
    integers = torch.ops.quantized_decomposed.quantize_per_tensor.default(
        real, float(scale), int(zero_point), low, high, integer
    )
    return _Quantized(integers, float(scale), int(zero_point), dtype)


def _real(value: Any) -> Any:
    return value.real() if isinstance(value, _Quantized) else value


def signature_of(method: Any) -> inspect.Signature:
    """The parameters of a method of a script, by which an export names inputs.

    Inputs that a traced ``forward(*args)`` took have one name there, and numbers behind it here.
    """
    arguments = method.schema.arguments[1:]
    count = Counter(argument.name for argument in arguments)
    taken = set(count)
    return inspect.Signature(
        [
            inspect.Parameter(
                argument.name if count[argument.name] == 1 else _fresh(argument.name, taken),
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=argument.default_value
                if argument.has_default_value()
                else inspect.Parameter.empty,
            )
            for argument in arguments
        ]
    )


def _fresh(name: str, taken: set[str]) -> str:
    numbered = next(n for i in itertools.count() if (n := f"{name}_{i}") not in taken)
    taken.add(numbered)
    return numbered


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.nodes():
        yield node
        for block in node.blocks():
            yield from _nodes(block)


def is_quantized_script(model: torch.jit.ScriptModule) -> bool:
    """Whether a traced or scripted module has operators on quantised tensors."""
    return any(
        node.kind().startswith("quantized::") or node.kind() == "aten::quantize_per_tensor"
        for node in _nodes(model.inlined_graph)
    )


def has_packed_weights(model: torch.nn.Module) -> bool:
    """Whether a module, not yet traced, has parts that PyTorch's eager mode quantised."""
    packages = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized")
    return any(type(part).__module__.startswith(packages) for part in model.modules())


class _Weights(torch.nn.Module):
    """The weights of one operator: integers with a scale for all or for each channel."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __init__(self, packed: Any) -> None:
        super().__init__()
        weight, bias = packed.unpack()
        self.dtype = weight.dtype
        self.axis = (
            weight.q_per_channel_axis() if weight.qscheme() == torch.per_channel_affine else None
        )
        self.register_buffer("weight", weight.int_repr())
        self.register_buffer("bias", None if bias is None else bias.detach().clone())
        if self.axis is None:
            self.scale, self.zero_point = weight.q_scale(), weight.q_zero_point()
        else:
            self.register_buffer("scales", weight.q_per_channel_scales().float())
            self.register_buffer("zero_points", weight.q_per_channel_zero_points().int())

    def real(self) -> torch.Tensor:
        """The numbers that the weights stand for."""
        integer, low, high = _INTEGERS[self.dtype]
        if self.axis is None:
            return _Quantized(self.weight, self.scale, self.zero_point, self.dtype).real()
        return torch.ops.quantized_decomposed.dequantize_per_channel.default(
            self.weight, self.scales, self.zero_points, self.axis, low, high, integer
        )


class _ConvWeights(_Weights):
    """The weights of a convolution, with its settings."""

    def __init__(self, packed: Any) -> None:
        super().__init__(packed)
        self.settings = {
            "stride": list(packed.stride()),
            "padding": list(packed.padding()),
            "dilation": list(packed.dilation()),
            "groups": packed.groups(),
        }
        self.is_transposed = packed.transpose()
        self.output_padding = list(packed.output_padding())

    def apply(self, x: torch.Tensor, axes: int) -> torch.Tensor:  # type: ignore[override]
        """The convolution over the last `axes` dimensions."""
        # Lines are packed as images of one row, with settings for both axes.
        weight = self.real()
        if axes == 1:
            weight = weight.squeeze(2)
        settings = {
            name: value[-axes:] if isinstance(value, list) else value
            for name, value in self.settings.items()
        }
        if self.is_transposed:
            convolve = getattr(F, f"conv_transpose{axes}d")
            output_padding = self.output_padding[-axes:]
            return convolve(x, weight, self.bias, output_padding=output_padding, **settings)
        return getattr(F, f"conv{axes}d")(x, weight, self.bias, **settings)


def _product(x: torch.Tensor, weights: _Weights) -> torch.Tensor:
    return F.linear(x, weights.real(), weights.bias)


def _dynamic(x: torch.Tensor, reduce_range: bool) -> torch.Tensor:
    """Numbers rounded to what 8 bits hold of their range, which is known when they come."""
    high = 127 if reduce_range else 255
    ops = torch.ops.quantized_decomposed
    eps = float(torch.finfo(torch.float32).eps)
    scale, zero_point = ops.choose_qparams.tensor(x, 0, high, eps, torch.uint8)
    q = ops.quantize_per_tensor.tensor(x, scale, zero_point, 0, high, torch.uint8)
    return ops.dequantize_per_tensor.tensor(q, scale, zero_point, 0, high, torch.uint8)


def _rectified(op: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda *args: torch.relu(op(*args))


def _requantized(op: Callable[..., torch.Tensor]) -> Callable[..., _Quantized]:
    """An operator whose last two operands are the result's scale and zero point."""

    def run(x: Any, *rest: Any) -> _Quantized:
        *others, scale, zero = rest
        first = x[0] if isinstance(x, Sequence) else x
        operands = [_real(o) for o in others]
        whole = [item.real() for item in x] if isinstance(x, Sequence) else x.real()
        return _quantize(op(whole, *operands), scale, zero, first.dtype)

    return run


def _convolved(axes: int) -> Callable[..., torch.Tensor]:
    return lambda x, weights: weights.apply(x, axes)


def _leaky_relu(x: torch.Tensor, slope: float, inplace: bool) -> torch.Tensor:
    return F.leaky_relu(x, slope)


def _batch_norm(
    x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, eps: float
) -> torch.Tensor:
    return F.batch_norm(x, mean, variance, weight, bias, eps=eps)


def _mul_scalar(x: _Quantized, factor: float) -> _Quantized:
    _, low, high = _INTEGERS[x.dtype]
    if factor > 0:
        return _Quantized(x.integers, x.scale * factor, x.zero_point, x.dtype)
    if factor == 0:
        return _quantize(torch.zeros_like(x.real()), 1.0, 0, x.dtype)
    return _quantize(x.real() * factor, -factor * x.scale, low + high - x.zero_point, x.dtype)


def _add_scalar(x: _Quantized, summand: float) -> _Quantized:
    _, low, high = _INTEGERS[x.dtype]
    # PyTorch adds a whole number of steps.
    steps = round(summand / x.scale)
    moved = x.zero_point - steps
    if low <= moved <= high:
        return _Quantized(x.integers, x.scale, moved, x.dtype)
    # The zero lies outside of the integers, so the scale grows until it is the last one.
    edge = low if moved < low else high
    scale = (high - moved if moved < low else moved - low) / (high - low) * x.scale
    return _quantize(x.real() + steps * x.scale, scale, edge, x.dtype)


def _table() -> dict[str, Callable[..., Any]]:
    """What computes each operator of ``quantized``."""
    real: dict[str, Callable[..., torch.Tensor]] = {
        "add": torch.add,
        "batch_norm1d": _batch_norm,
        "batch_norm2d": _batch_norm,
        "batch_norm3d": _batch_norm,
        "cat": torch.cat,
        "hardswish": F.hardswish,
        "leaky_relu": _leaky_relu,
        "linear": _product,
        "matmul": torch.matmul,
        "mul": torch.mul,
        "sigmoid": torch.sigmoid,
        **{f"conv{axes}d": _convolved(axes) for axes in (1, 2, 3)},
        **{f"conv_transpose{axes}d": _convolved(axes) for axes in (1, 2, 3)},
    }
    joined = ["add", "batch_norm2d", "batch_norm3d", "cat", "linear", "mul"]
    joined += ["conv1d", "conv2d", "conv3d"]
    real |= {f"{name}_relu": _rectified(real[name]) for name in joined}
    return {name: _requantized(op) for name, op in real.items()} | {
        "add_scalar": _add_scalar,
        "mul_scalar": _mul_scalar,
        "relu6": lambda x, inplace: x.like(F.relu6(x.real())),
        "linear_dynamic": lambda x, w, reduce: _product(_dynamic(x, reduce), w),
        "linear_relu_dynamic": lambda x, w, reduce: torch.relu(_product(_dynamic(x, reduce), w)),
    }


_OPERATORS = _table()


class QuantizedProgram(torch.nn.Module):
    """A traced or scripted network of quantised tensors as one of ordinary operators.

    Parameters
    ----------
    scripted : in eval mode. Its weights stay integers, under the names of the layers:
        ``conv1.weight`` (int8), ``conv1.scales`` (float32, one for each channel), ``conv1.bias``.

    Its results differ from PyTorch's where real numbers are rounded to another neighbour: PyTorch
    adds biases as integers.

    Raises
    ------
    ValueError : the program branches or has operators that are unknown here; all are named.
    """

    def __init__(self, scripted: torch.jit.ScriptModule) -> None:
        super().__init__()
        frozen = torch.jit.freeze(scripted, optimize_numerics=False)
        # The first input of the graph is the module itself.
        self._inputs = [value.debugName() for value in frozen.graph.inputs()][1:]
        self._outputs = [value.debugName() for value in frozen.graph.outputs()]
        self._steps: list[tuple[list[str], list[str], Callable[..., Any]]] = []
        self._constants: dict[str, Any] = {}
        self._kept: dict[str, str] = {}
        unknown = set()
        for node in frozen.graph.nodes():
            if node.kind() == "prim::Constant":
                self._keep(node)
                continue
            step = self._step(node)
            if step is None:
                unknown.add(node.kind())
                continue
            names = [value.debugName() for value in node.inputs()]
            self._steps.append((names, [value.debugName() for value in node.outputs()], step))
        if unknown:
            raise ValueError(
                "relax.frontend.torch: these operators of quantised networks are not supported: "
                f"{', '.join(sorted(unknown))}; dequantise before them, and trace a network that "
                "branches (torch.jit.trace)"
            )
        method = scripted._c._get_method("forward")

        def forward(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return self._run(list(bound.arguments.values()))

        signature = signature_of(method)
        forward.__signature__ = signature  # type: ignore[attr-defined]
        self.forward = forward

    def _keep(self, node: Any) -> None:
        """A constant of the program: weights become buffers under the names of their layers."""
        output = node.output()
        name, kind = output.debugName(), str(output.type())
        if output.type().kind() == "NoneType":
            self._constants[name] = None
            return
        value = output.toIValue()
        path = name.removeprefix("self.").removesuffix("._packed_params")
        path = path.removesuffix("._packed_params").replace(".", "_")
        if "PackedParams" in kind:
            made = (_ConvWeights if "Conv" in kind else _Weights)(value)
            self.add_module(path, made)
            self._kept[name] = path
        elif isinstance(value, torch.Tensor):
            self.register_buffer(f"constant_{path}" if path[0].isdigit() else path, value.detach())
            self._kept[name] = f"constant_{path}" if path[0].isdigit() else path
        else:
            self._constants[name] = value

    def _step(self, node: Any) -> Callable[..., Any] | None:
        """What computes a node of its inputs; None if nothing here does."""
        space, _, name = node.kind().partition("::")
        if space == "quantized":
            return _OPERATORS.get(name)
        if space == "prim":
            return {
                "ListConstruct": lambda *items: list(items),
                "TupleConstruct": lambda *items: tuple(items),
                "DictConstruct": lambda *items: dict(zip(items[::2], items[1::2])),
                "ListUnpack": lambda items: tuple(items),
                "TupleUnpack": lambda items: tuple(items),
                "NumToTensor": lambda number: number,
            }.get(name)
        if space != "aten":
            return None
        if name == "quantize_per_tensor":
            return lambda x, scale, zero, number: _quantize(x, scale, zero, _TYPE_NUMBERS[number])
        if name == "dequantize":
            return _real
        if name == "Int":
            return int
        return _Ordinary(name, torch._C.parse_schema(node.schema()))

    def _run(self, inputs: Sequence[Any]) -> Any:
        values = dict(self._constants) | dict(zip(self._inputs, inputs))
        for name, path in self._kept.items():
            values[name] = getattr(self, path)
        for names, outputs, step in self._steps:
            result = step(*(values[name] for name in names))
            results = (result,) if len(outputs) == 1 else result
            values.update(zip(outputs, results))
        results = tuple(_real(values[name]) for name in self._outputs)
        return results[0] if len(results) == 1 else results


class _Ordinary:
    """An operator of PyTorch that takes quantised tensors like others.

    What it gives of a quantised tensor has the scale and zero point of this, as in PyTorch.
    """

    def __init__(self, name: str, schema: Any) -> None:
        # What works in place works on a copy here; `__getitem__` is a name of its own.
        self.name = name if name.endswith("__") else name.removesuffix("_")
        self.operator = getattr(
            getattr(torch.ops.aten, self.name), schema.overload_name or "default"
        )
        self.schema = schema

    def __call__(self, *args: Any) -> Any:
        arguments = self.schema.arguments
        plain = [a for a, argument in zip(args, arguments) if not argument.kwarg_only]
        named = {argument.name: a for a, argument in zip(args, arguments) if argument.kwarg_only}
        first = next((a for a in args if isinstance(a, _Quantized)), None)
        if first is None:
            return self.operator(*plain, **named)
        if self.name == "size":
            return self.operator(first.integers, *plain[1:])
        if self.name in _MOVES:
            moved = self.operator(first.integers, *plain[1:], **named)
            return _Quantized(moved, first.scale, first.zero_point, first.dtype)
        result = self.operator(*(_real(a) for a in plain), **named)
        if self.name in _FIXED and first.dtype == torch.quint8:
            return _quantize(result, *_FIXED[self.name])
        if isinstance(result, (list, tuple)):
            return [first.like(part) for part in result]
        return first.like(result)
