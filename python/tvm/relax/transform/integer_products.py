"""Quantised networks in integers: what surrounds a product becomes part of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm.ir import IRModule, RelayExpr
from tvm.topi.utils import as_padding

from .. import op
from ..expr import Call, Constant, Function, Tuple, Var, const
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import TensorStructInfo, open_shape
from .graph_pass import graph_pass

__all__ = ["IntegerProducts"]

_BYTES = ("int8", "uint8")
# What lies between the ranges of signed and unsigned bytes.
_SHIFT = 128
# Products of bytes that processors sum up at once.
_DEPTH = 4
# Operators that take elements to other places, whatever these are.
_MOVES = (
    "reshape",
    "flatten",
    "squeeze",
    "expand_dims",
    "permute_dims",
    "strided_slice",
    "nn.max_pool2d",
)

Parameter = np.ndarray | RelayExpr


@dataclass(frozen=True)
class _Bytes:
    """A value as unsigned bytes: (data - zero) * scale, or data - zero without a scale.

    Attributes
    ----------
    scale, zero : of the tensor, or of each row along the last dimension; arrays where known.
    """

    data: RelayExpr
    scale: Parameter | None
    zero: Parameter


@dataclass(frozen=True)
class _Weights:
    """Constant weights as signed bytes without a zero point.

    Attributes
    ----------
    data : int8.
    scale : float64 of the rank of `data`, with an extent of 1 where it does not vary.
    """

    data: np.ndarray
    scale: np.ndarray | None

    def transposed(self, order: tuple[int, ...]) -> _Weights:
        scale = None if self.scale is None else self.scale.transpose(order)
        return _Weights(self.data.transpose(order), scale)


def _narrow_weights(values: np.ndarray) -> _Weights | None:
    """Constants that an importer has widened to int32 already, where they are signed bytes."""
    bytes_ = values.astype("int8")
    return _Weights(bytes_, None) if (bytes_ == values).all() else None


def _name(value: RelayExpr) -> str:
    if not isinstance(value, Call) or not op.has_op(value.op):
        return ""
    return str(value.op.name).removeprefix("relax.")


def _dtype(expr: RelayExpr) -> str:
    info = expr.struct_info
    return str(info.dtype) if isinstance(info, TensorStructInfo) else ""


def _shape(expr: RelayExpr) -> tuple[int, ...]:
    return open_shape(expr.struct_info)


def _array(expr: RelayExpr) -> np.ndarray | None:
    return expr.values() if isinstance(expr, Constant) else None


def _same(a: Parameter | None, b: Parameter | None) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.size == b.size and bool((a.reshape(-1) == b.reshape(-1)).all())
    return isinstance(a, RelayExpr) and isinstance(b, RelayExpr) and a.same_as(b)


class _Rewriter(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        self._bytes: dict[Var, _Bytes] = {}
        self._weights: dict[Var, _Weights] = {}
        # Unsigned bytes that are 128 more than a variable of signed ones.
        self._unsigned: dict[Var, Var] = {}

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        name = _name(value)
        if name == "quantize":
            return self._quantize(value)
        if name == "dequantize":
            return self._dequantize(value)
        if name == "astype":
            return self._astype(value)
        if name == "subtract":
            return self._subtract(value)
        if name == "nn.conv2d":
            return self._conv2d(value) or value
        if name in ("nn.dense", "matmul"):
            return self._product(value, turned=name == "matmul") or value
        if name == "concat":
            return self._concat(value) or value
        if name in _MOVES:
            return self._move(value, name)
        return value

    def _of(self, expr: RelayExpr) -> _Bytes | None:
        return self._bytes.get(expr) if isinstance(expr, Var) else None

    def _as_bytes(self, value: RelayExpr, form: _Bytes) -> Var:
        bound = self.emit(value)
        self._bytes[bound] = form
        return bound

    # From and to real numbers.

    def _parameters(self, call: Call) -> tuple[Parameter, Parameter] | None:
        """Scale and zero point, if they are of the tensor or of rows of it."""
        data, *parameters = call.args
        rank = len(_shape(data))
        found: list[Parameter] = []
        for parameter in parameters:
            shape = _shape(parameter)
            whole = all(extent == 1 for extent in shape)
            if not whole and (len(shape) != rank or shape[-1] != 1):
                return None
            known = _array(parameter)
            if known is not None:
                found.append(known.reshape(()) if whole else known)
            elif whole and shape:
                found.append(self.emit(op.reshape(parameter, ())))
            else:
                found.append(parameter)
        return found[0], found[1]

    def _operand(self, parameter: Parameter, dtype: str) -> RelayExpr:
        if isinstance(parameter, np.ndarray):
            return const(parameter, dtype)
        return parameter if _dtype(parameter) == dtype else self.emit(op.astype(parameter, dtype))

    def _shifted(self, zero: Parameter) -> Parameter:
        if isinstance(zero, np.ndarray):
            return np.asarray(zero.astype("int32") + _SHIFT)
        return self.emit(op.add(self._operand(zero, "int32"), const(_SHIFT, "int32")))

    def _to_signed(self, data: Var) -> Var:
        wide = self.emit(op.astype(data, "int32"))
        less = self.emit(op.subtract(wide, const(_SHIFT, "int32")))
        signed = self.emit(op.astype(less, "int8"))
        self._unsigned[signed] = data
        return signed

    def _to_unsigned(self, data: RelayExpr, zero: Parameter) -> tuple[RelayExpr, Parameter]:
        if _dtype(data) == "uint8":
            return data, zero
        if isinstance(data, Var) and data in self._unsigned:
            return self._unsigned[data], self._shifted(zero)
        wide = self.emit(op.astype(data, "int32"))
        more = self.emit(op.add(wide, const(_SHIFT, "int32")))
        return self.emit(op.astype(more, "uint8")), self._shifted(zero)

    def _quantize(self, call: Call) -> RelayExpr:
        data = call.args[0]
        dtype = str(op.attrs_of(call)["out_dtype"])
        parameters = self._parameters(call)
        if dtype not in _BYTES or parameters is None or _dtype(data) != "float32":
            return call
        scale, zero = parameters
        if dtype == "int8":
            zero = self._shifted(zero)
        known = self._of(data)
        if known is not None and _same(known.scale, scale) and _same(known.zero, zero):
            result = known.data
        elif isinstance(scale, np.ndarray) and isinstance(zero, np.ndarray) and not scale.shape:
            steps = self.emit(op.multiply(data, const(1 / float(scale), "float32")))
            whole = self.emit(op.round(steps))
            if zero.any():
                whole = self.emit(op.add(whole, const(zero, "float32")))
            result = self.emit(op.astype(self.emit(op.clip(whole, 0, 255)), "uint8"))
        else:
            operands = self._operand(scale, "float32"), self._operand(zero, "int32")
            result = self.emit(op.quantize(data, *operands, out_dtype="uint8"))
        return result if dtype == "uint8" else self._to_signed(result)

    def _dequantize(self, call: Call) -> RelayExpr:
        data = call.args[0]
        if _dtype(data) not in _BYTES or op.attrs_of(call)["out_dtype"] != "float32":
            return call
        if isinstance(data, Constant):
            return self._constant(call, data)
        parameters = self._parameters(call)
        if parameters is None:
            return call
        scale, zero = parameters
        data, zero = self._to_unsigned(data, zero)
        value = op.dequantize(data, self._operand(scale, "float32"), self._operand(zero, "int32"))
        return self._as_bytes(value, _Bytes(data, scale, zero))

    def _constant(self, call: Call, data: Constant) -> RelayExpr:
        values, scale, zero = (_array(arg) for arg in call.args)
        if values is None or scale is None or zero is None:
            return call
        rank, axis = values.ndim, int(op.attrs_of(call)["axis"])

        def along(parameter: np.ndarray) -> np.ndarray:
            if parameter.size == 1:
                return parameter.reshape([1] * rank)
            if parameter.ndim == rank and rank > 1:
                return parameter
            return parameter.reshape([-1 if k == axis % rank else 1 for k in range(rank)])

        weights = _signed_weights(values, along(scale).astype("float64"), along(zero))
        if weights is None:
            return call
        bound = self.emit(call)
        self._weights[bound] = weights
        return bound

    # Integers that are not scaled: operators that leave that to others.

    def _astype(self, call: Call) -> RelayExpr:
        (data,) = call.args
        if op.attrs_of(call)["dtype"] != "int32" or _dtype(data) not in _BYTES:
            return call
        if isinstance(data, Constant):
            weights = _signed_weights(data.values(), None, np.zeros((), "int32"))
            if weights is None:
                return call
            bound = self.emit(call)
            self._weights[bound] = weights
            return bound
        unsigned, zero = self._to_unsigned(data, np.zeros((), "int32"))
        return self._as_bytes(call, _Bytes(unsigned, None, zero))

    def _subtract(self, call: Call) -> RelayExpr:
        left, right = call.args
        known = _array(right)
        if isinstance(left, Var) and left in self._weights:
            is_nothing = known is not None and not known.any()
            return left if is_nothing else call
        if isinstance(left, Constant) and known is not None and _dtype(left) == "int32":
            weights = _narrow_weights(left.values() - known)
            if weights is None:
                return call
            bound = self.emit(call)
            self._weights[bound] = weights
            return bound
        form = self._of(left)
        if form is None or form.scale is not None or _dtype(right) != "int32":
            return call
        shape = _shape(right)
        rows = len(shape) == len(_shape(left)) and shape[-1] == 1
        if not isinstance(form.zero, np.ndarray) or not (rows or np.prod(shape) == 1):
            return call
        zero: Parameter = right
        if known is not None:
            zero = np.asarray(form.zero + (known if rows else known.reshape(())))
        elif form.zero.any():
            zero = self.emit(op.add(right, const(form.zero, "int32")))
        return self._as_bytes(call, _Bytes(form.data, None, zero))

    # Products.

    def _conv2d(self, call: Call) -> RelayExpr | None:
        settings = op.attrs_of(call)
        data, weight = call.args
        form = self._of(data)
        weights = self._weights.get(weight) if isinstance(weight, Var) else None
        if form is None or weights is None or (form.scale is None) != (weights.scale is None):
            return None
        layouts = (settings["data_layout"], settings["kernel_layout"], settings["out_layout"])
        if layouts != ("NCHW", "OIHW", "NCHW") or not isinstance(form.zero, np.ndarray):
            return None
        if form.zero.shape or (weights.scale is not None and weights.scale.size not in
                               (1, len(weights.data))):  # fmt: skip
            return None
        values, given = weights.data, form.data
        top, left, bottom, right = as_padding(settings["padding"])
        # Zeros in front of and behind the channels meet weights that are zero.
        more = -values.shape[1] % _DEPTH if settings["groups"] == 1 else 0
        borders = (top, left, bottom, right) if form.zero.any() else (0, 0, 0, 0)
        if more or any(borders):
            values = np.pad(values, ((0, 0), (0, more), (0, 0), (0, 0)))
            widths = ((0, 0), (0, more), borders[::2], borders[1::2])
            given = self.emit(op.nn.pad(given, widths, pad_value=int(form.zero)))
        if any(borders):
            settings["padding"] = (0, 0, 0, 0)
        settings["out_dtype"] = "int32"
        total = self.emit(op.nn.conv2d(given, const(values, "int8"), **settings))
        if form.zero.any():
            surplus = int(form.zero) * values.sum((1, 2, 3), dtype="int32")
            total = self.emit(op.subtract(total, const(surplus.reshape(1, -1, 1, 1), "int32")))
        if weights.scale is None:
            return total
        return self._scaled(total, form.scale, weights.scale.reshape(1, -1, 1, 1))

    def _product(self, call: Call, turned: bool) -> RelayExpr | None:
        data, weight = call.args
        form = self._of(data)
        if isinstance(weight, Constant) and _dtype(weight) == "int32":
            weights = _narrow_weights(weight.values())
        else:
            weights = self._weights.get(weight) if isinstance(weight, Var) else None
        if form is None or weights is None or weights.data.ndim != 2:
            return None
        if (form.scale is None) != (weights.scale is None):
            return None
        if turned:
            weights = weights.transposed((1, 0))
        values, scale = weights.data, weights.scale
        if scale is not None and scale.shape[1] != 1:
            return None
        given, rank = form.data, len(_shape(data))
        more = -values.shape[1] % _DEPTH
        if more:
            values = np.pad(values, ((0, 0), (0, more)))
            given = self.emit(op.nn.pad(given, [(0, 0)] * (rank - 1) + [(0, more)]))
        total = self.emit(op.make_call("nn.dense", given, const(values, "int8"), out_dtype="int32"))
        sums = values.sum(1, dtype="int32")
        if isinstance(form.zero, np.ndarray):
            if form.zero.any():
                total = self.emit(op.subtract(total, const(form.zero * sums, "int32")))
        else:
            zero = self._operand(form.zero, "int32")
            total = self.emit(op.subtract(total, self.emit(op.multiply(const(sums), zero))))
        if scale is None:
            return total
        return self._scaled(total, form.scale, scale.reshape(-1))

    def _scaled(self, total: Var, scale: Parameter | None, factors: np.ndarray) -> RelayExpr:
        real = self.emit(op.astype(total, "float32"))
        if isinstance(scale, np.ndarray):
            factors = factors * scale.astype("float64")
        elif scale is not None:
            real = self.emit(op.multiply(real, self._operand(scale, "float32")))
        if factors.size == 1:
            factors = factors.reshape(())
        return op.multiply(real, const(factors, "float32"))

    # What moves elements.

    def _move(self, call: Call, name: str) -> RelayExpr:
        data = call.args[0]
        if isinstance(data, Constant) and name == "reshape":
            return data.rearranged(lambda array: array.reshape(_shape(call)))
        if name == "permute_dims":
            rank = len(_shape(data))
            axes = op.attrs_of(call).get("axes")
            order = tuple(range(rank))[::-1] if axes is None else tuple(a % rank for a in axes)
            if isinstance(data, Constant):
                return data.rearranged(lambda array: array.transpose(order))
            if isinstance(data, Var) and data in self._weights:
                bound = self.emit(call)
                self._weights[bound] = self._weights[data].transposed(order)
                return bound
        form = self._of(data)
        if form is None or not self._is_of_tensor(form):
            return call
        moved = self.emit(op.make_call(name, form.data, *call.args[1:], **op.attrs_of(call)))
        result = _Bytes(moved, form.scale, form.zero)
        return self._as_bytes(call, result) if form.scale is None else self._again(result)

    def _is_of_tensor(self, form: _Bytes) -> bool:
        """Whether a scale, if there is one, and a zero point hold for all elements."""
        return all(
            parameter.ndim == 0 if isinstance(parameter, np.ndarray) else not _shape(parameter)
            for parameter in (form.scale, form.zero)
            if parameter is not None
        )

    def _again(self, form: _Bytes) -> Var:
        assert form.scale is not None
        operands = self._operand(form.scale, "float32"), self._operand(form.zero, "int32")
        return self._as_bytes(op.dequantize(form.data, *operands), form)

    def _concat(self, call: Call) -> RelayExpr | None:
        fields = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
        forms = [self._of(field) for field in fields]
        if not forms or None in forms:
            return None
        found = [form for form in forms if form is not None]
        first = found[0]
        if not self._is_of_tensor(first) or not all(
            _same(form.scale, first.scale) and _same(form.zero, first.zero) for form in found
        ):
            return None
        joined = op.concat([form.data for form in found], op.attrs_of(call)["axis"])
        return self._again(_Bytes(self.emit(joined), first.scale, first.zero))


def _signed_weights(
    values: np.ndarray, scale: np.ndarray | None, zero: np.ndarray
) -> _Weights | None:
    """Weights as signed bytes around zero; None where their zero point is another."""
    if values.dtype == np.uint8:
        values, zero = (values.astype("int16") - _SHIFT).astype("int8"), zero - np.int32(_SHIFT)
    return None if zero.any() else _Weights(values, scale)


@graph_pass("IntegerProducts")
def IntegerProducts(mod: IRModule) -> IRModule:
    """The module with convolutions and matrix products of quantised operands in integers.

    A product of dequantised unsigned or signed bytes with dequantised constant weights of zero
    point 0 (one scale for all, or one for each output channel) becomes a product of unsigned and
    signed bytes summed up in int32, and a factor. So do products of bytes converted to int32.
    Scales and zero points of the left side may be values of the network, of the tensor or of its
    rows; those of a convolution must be constants. Maximum pooling, concatenations and operators
    that only move elements work on the bytes. Quantising again with the same parameters is
    dropped; constant scales are multiplied with, as reciprocals.
    """
    return map_functions(mod, lambda func: _Rewriter(func).run())
