"""What a converter sees of a node of the exported graph."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tvm import te
from tvm.ir import PrimExpr, RelayExpr
from tvm.relax import op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Constant, PrimValue, ShapeExpr, const
from tvm.relax.op.rules import equal
from tvm.relax.struct_info import TensorStructInfo, open_shape

from .sizes import Sizes, concrete

__all__ = [
    "COMPLEX_CONVERTERS",
    "CONVERTERS",
    "RANDOM",
    "REFUSED",
    "Arguments",
    "Complex",
    "Converter",
    "UnsupportedUse",
    "complex_converter",
    "converter",
    "draws_random_numbers",
    "dtype_name",
    "operator_name",
    "operators_table",
    "random_converter",
    "refuse",
    "same_shape",
    "supported_operators",
]

# A converter makes the value of a node; several outputs come as a list.
Converter = Callable[["Arguments"], Any]
# Extents: numbers, or expressions over the variables of sizes that are open.
Extents = tuple["int | PrimExpr", ...]
CONVERTERS: dict[str, Converter] = {}
# Those of operators that take or give complex numbers.
COMPLEX_CONVERTERS: dict[str, Converter] = {}
# Operators whose results are random; their converters may ask for the program's seed.
RANDOM: set[str] = set()
# Why operators that have a meaning in PyTorch have none here, by name.
REFUSED: dict[str, str] = {}


def same_shape(a: Sequence[int | PrimExpr], b: Sequence[int | PrimExpr]) -> bool:
    """Whether two shapes are known to be equal, whatever the open sizes in them are."""
    return len(a) == len(b) and all(map(equal, a, b))


class UnsupportedUse(Exception):
    """An operator is known, but not with these settings."""


@dataclass(frozen=True)
class Complex:
    """A tensor of complex numbers: two of real numbers, each of its shape."""

    real: RelayExpr
    imag: RelayExpr

    @property
    def struct_info(self) -> TensorStructInfo:
        """Shape of the tensor, and element type of its parts."""
        return self.real.struct_info


def converter(*names: str, namespace: str = "aten") -> Callable[[Converter], Converter]:
    """Decorator: the function converts the operators of these names, without their namespace."""

    def register(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[f"{namespace}.{name}"] = function
        return function

    return register


def complex_converter(*names: str) -> Callable[[Converter], Converter]:
    """As :func:`converter`, where an argument or a result holds complex numbers.

    Arguments that do are :class:`Complex`, numbers may be of Python's type ``complex``.
    """

    def register(function: Converter) -> Converter:
        for name in names:
            COMPLEX_CONVERTERS[f"aten.{name}"] = function
        return function

    return register


def random_converter(*names: str) -> Callable[[Converter], Converter]:
    """As :func:`converter`, for operators that draw random numbers."""
    RANDOM.update(f"aten.{name}" for name in names)
    return converter(*names)


def draws_random_numbers(graph: torch.fx.Graph) -> bool:
    """Whether an exported graph draws random numbers, so that its import takes a seed."""
    return any(
        node.op == "call_function"
        and isinstance(node.target, torch._ops.OpOverload)
        and operator_name(node.target) in RANDOM
        for node in graph.nodes
    )


def refuse(reason: str, *names: str, namespace: str = "aten") -> None:
    """Say why some operators, without their namespace, cannot be imported."""
    REFUSED.update({f"{namespace}.{name}": reason for name in names})


def operator_name(target: Any) -> str:
    """``aten.conv2d.default`` for an ATen overload, the plain name for a Python function.

    An in-place operator has the name of the one that returns a new tensor: ``aten.relu.default``
    for ``aten.relu_.default``.
    """
    if not isinstance(target, torch._ops.OpOverload):
        return target.__name__
    namespace, name, overload = str(target).split(".")
    if target._schema.is_mutable:
        name = name.removesuffix("_")
    return f"{namespace}.{name}.{overload}"


def supported_operators() -> list[str]:
    """Names of the operators that can be imported."""
    return sorted({*CONVERTERS, *COMPLEX_CONVERTERS})


def operators_table() -> dict[str, str | None]:
    """ATen operators by name: None for one that is imported, else why it is refused."""
    table = {**REFUSED, **dict.fromkeys(supported_operators())}
    return {name: reason for name, reason in table.items() if name.startswith("aten.")}


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``, and for the parts of ``torch.complex64``."""
    return str(dtype.to_real() if dtype.is_complex else dtype).removeprefix("torch.")


class Arguments:
    """The arguments of one node, by the names of the operator's schema, with graph values.

    Attributes
    ----------
    builder : where further bindings go.
    node : the node of the exported graph.
    sizes : values of the symbols in its shapes.
    """

    def __init__(
        self,
        builder: BlockBuilder,
        node: torch.fx.Node,
        lookup: Callable[[Any], Any],
        sizes: Sizes,
        draw: Callable[[], tuple[RelayExpr, int]],
    ) -> None:
        self._sizes = sizes
        self._draw = draw
        self.builder = builder
        self.node = node
        self._nodes: dict[str, Any] = {}
        if isinstance(node.target, torch._ops.OpOverload):
            for i, argument in enumerate(node.target._schema.arguments):
                if i < len(node.args):
                    value = node.args[i]
                elif argument.name in node.kwargs:
                    value = node.kwargs[argument.name]
                else:
                    value = argument.default_value
                self._nodes[argument.name] = value
        else:
            self._nodes = {str(i): value for i, value in enumerate(node.args)}
        self._values = {
            name: torch.fx.node.map_arg(value, lookup) for name, value in self._nodes.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    @property
    def values(self) -> dict[str, Any]:
        """All arguments, by name."""
        return dict(self._values)

    def replaced(self, values: Mapping[str, Any]) -> Arguments:
        """The same with other values for some arguments."""
        other = copy.copy(self)
        other._values = {**self._values, **values}
        return other

    def get(self, name: str, default: Any = None) -> Any:
        """The argument, or the default where the schema has no such name."""
        return self._values.get(name, default)

    @property
    def name(self) -> str:
        """The operator's name without namespace and overload, such as "conv2d"."""
        return operator_name(self.node.target).split(".")[1]

    def example(self, name: str) -> Any:
        """A tensor argument as the export saw it: with strides, without values."""
        return self._nodes[name].meta["val"]

    def source(self, name: str) -> torch.fx.Node | None:
        """The operator that makes an argument; None for inputs and constants."""
        node = self._nodes[name]
        return node if isinstance(node, torch.fx.Node) and node.op == "call_function" else None

    def next_stream(self) -> tuple[RelayExpr, int]:
        """The program's seed, and a stream of random numbers that nobody else reads."""
        return self._draw()

    def emit(self, expr: RelayExpr) -> RelayExpr:
        """Bind an intermediate value."""
        return self.builder.emit(expr)

    def call(self, name: str, *args: RelayExpr | float, **settings: Any) -> RelayExpr:
        """Bind a call of a graph operator."""
        return self.emit(op.make_call(name, *args, **settings))

    def shape(self, name: str) -> Any:
        """Shape of a tensor argument: numbers, and expressions where sizes are open."""
        return open_shape(self[name].struct_info)

    def extent(self, name: str, axis: int) -> int:
        """An extent of a tensor argument that must be a number.

        Raises
        ------
        UnsupportedUse : it is open.
        """
        extent = self.shape(name)[axis]
        self.refuse_unless(
            isinstance(extent, int), f"along dimension {axis} of '{name}', whose size is open"
        )
        return int(extent)

    def rank(self, name: str) -> int:
        """Number of dimensions of a tensor argument."""
        return int(self[name].struct_info.ndim)

    def axis(self, name: str = "dim", of: str = "self") -> int:
        """An argument that is a dimension of another, counted from the front."""
        # A scalar has dimension 0 for PyTorch.
        return int(self[name]) % max(self.rank(of), 1)

    def axes(self, name: str = "dim", of: str = "self") -> list[int] | None:
        """Dimensions counted from the front; None for all, which an empty list means too."""
        value = self.get(name)
        if value is None or value == []:
            return None
        rank = max(self.rank(of), 1)
        return [int(v) % rank for v in ([value] if isinstance(value, int) else value)]

    def dtype(self, name: str) -> str:
        """Element type of a tensor argument."""
        return str(self[name].struct_info.dtype)

    @property
    def _result(self) -> torch.Tensor:
        value = self.node.meta["val"]
        return value if isinstance(value, torch.Tensor) else value[0]

    @property
    def result_dtype(self) -> str:
        """Element type of the node's result, of the first if it has several."""
        return dtype_name(self._result.dtype)

    @property
    def result_is_complex(self) -> bool:
        """Whether the node's result, the first if it has several, holds complex numbers."""
        return self._result.is_complex()

    @property
    def result_shape(self) -> Any:
        """Shape of the node's result, of the first if it has several."""
        return self._shape_of(self._result)

    @property
    def result_shapes(self) -> list[Any]:
        """Shape of each of the node's results."""
        return [self._shape_of(value) for value in self.node.meta["val"]]

    def _shape_of(self, tensor: torch.Tensor) -> Extents:
        try:
            return tuple(concrete(extent, self._sizes) for extent in tensor.shape)
        except KeyError:
            raise UnsupportedUse("whose result has a size that depends on the data") from None

    def operand(self, name: str, dtype: str | None = None) -> RelayExpr:
        """A tensor or number as an operand of the result's element type, or of another."""
        return self.cast(self[name], dtype or self.result_dtype)

    def cast(self, value: Any, dtype: str) -> RelayExpr:
        """A tensor or number in an element type."""
        if isinstance(value, PrimExpr):
            return self._size(value, dtype)
        if not isinstance(value, RelayExpr):
            return const(value, dtype)
        if str(value.struct_info.dtype) == dtype:
            return value
        if isinstance(value, Constant):
            return value.astype(dtype)
        return self.emit(op.astype(value, dtype))

    def _size(self, value: PrimExpr, dtype: str) -> RelayExpr:
        """A number that follows from open sizes as a tensor of no dimensions."""
        if str(value.dtype) != "int64":

            def number(value: PrimExpr) -> te.Tensor:
                return te.compute((), lambda: value.astype(dtype), name="T_number")

            return self.emit(self.builder.call_te(number, PrimValue(value)))
        one = self.emit(op.arange(PrimValue(value), PrimValue(value + 1), 1, "int64"))
        return self.cast(self.emit(op.reshape(one, ())), dtype)

    def common_dtype(self, *names: str) -> str:
        """The type to which PyTorch promotes some arguments before it computes."""
        found = []
        for name in names:
            value = self._nodes[name]
            if isinstance(value, torch.fx.Node):
                value = value.meta["val"]
            found.append(value)
        if len(found) == 1:
            return dtype_name(found[0].dtype)
        return dtype_name(torch.result_type(*found))

    def tensor(self, value: RelayExpr | float, shape: Sequence[Any], dtype: str) -> RelayExpr:
        """A value repeated to a shape."""
        data = self.cast(value, dtype)
        if same_shape(open_shape(data.struct_info), shape) and not isinstance(value, (int, float)):
            return data
        if isinstance(data, Constant) and not data.struct_info.ndim:
            return self.emit(op.full(ShapeExpr(list(shape)), data, dtype))
        return self.emit(op.broadcast_to(data, list(shape)))

    def reads_result(self, index: int) -> bool:
        """Whether anything reads one of the node's results; of those that are a tuple."""
        return any(
            len(user.args) > 1 and user.args[1] == index and bool(user.users)
            for user in self.node.users
        )

    def refuse_unless(self, condition: bool, what: str) -> None:
        """Report settings that have no equivalent."""
        if not condition:
            raise UnsupportedUse(what)
