"""Graphs of relax, which importers make of other formats, as relay functions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm import error, relax
from tvm.ir import RelayExpr, TensorType
from tvm.relax.op import attrs_of, has_op, op_spec
from tvm.relax.struct_info import static_shape

from .. import op
from ..expr import Call, Constant, Function, Tuple, TupleGetItem, TupleWrapper, Var, const
from ..op.registry import find_row, make, type_of_info

__all__ = ["from_relax"]


class Settings(Mapping[str, Any]):
    """Settings of a call, which remember what was asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def in_the_result(self) -> None:
        """Say that what is known of the result tells what all settings are."""
        self._asked.update(self._values)

    def left_out(self, defaults: Mapping[str, Any]) -> list[str]:
        """Names of settings that nobody asked for, and that are not what they are by default."""
        return [
            name
            for name, value in self._values.items()
            if name not in self._asked and value != defaults.get(name, value)
        ]


# From the relax call, relay's operands and the settings to what relay writes for it.
_Writer = Callable[[relax.Call, list[Any], Settings], Any]
_WRITERS: dict[str, _Writer] = {}


def _writer(*names: str) -> Callable[[_Writer], _Writer]:
    def add(function: _Writer) -> _Writer:
        for name in names:
            _WRITERS[name] = function
        return function

    return add


def _defaults(call: relax.Call) -> dict[str, Any]:
    """Settings of an operator as they are if a call says nothing."""
    if not has_op(call.op):
        return {}
    parameters = inspect.signature(op_spec(call.op).compute).parameters
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty
    }


def _shape(expr: RelayExpr) -> tuple[int, ...]:
    return static_shape(expr.struct_info)


def _extents(expr: RelayExpr) -> list[int]:
    return [int(extent) for extent in expr.values]


def _number(expr: RelayExpr) -> Any:
    """The number that a scalar operand is."""
    return expr.value.value if isinstance(expr, relax.PrimValue) else expr.values().item()


@_writer("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv_transpose")
def _convolution(call: relax.Call, args: list[Any], s: Settings) -> Any:
    rank = len(s["strides"])
    transposed = str(call.op.name).endswith("transpose")
    function = getattr(op.nn, f"conv{rank}d_transpose" if transposed else f"conv{rank}d")
    order = s["kernel_layout"]
    weight = dict(zip(order, _shape(call.args[1])))
    given = {key: value for key, value in s.items() if key not in ("out_layout", "out_dtype")}
    return function(
        *args,
        **given,
        channels=weight["O"] * (s["groups"] if transposed else 1),
        kernel_size=[weight[axis] for axis in order if axis not in "OI"],
        out_layout="" if s.get("out_layout", "") == s["data_layout"] else s.get("out_layout", ""),
        out_dtype=s.get("out_dtype") or "",
    )


@_writer("nn.dense")
def _dense(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return make("nn.dense", args, units=_shape(call.args[1])[0], out_dtype=s.get("out_dtype") or "")


@_writer("matmul")
def _matmul(call: relax.Call, args: list[Any], s: Settings) -> Any:
    out_dtype = s.get("out_dtype") or ""
    shapes = [_shape(arg) for arg in call.args]
    if all(len(shape) == 2 for shape in shapes):
        return op.nn.matmul(args[0], args[1], out_dtype=out_dtype)
    *lead, rows, columns = _shape(call)
    matrices = []
    for arg, shape in zip(args, shapes):
        if len(shape) < 2:
            raise error.ValueError("relay.frontend: a product of vectors is no operator of relay")
        if list(shape[:-2]) != lead:
            arg = op.broadcast_to(arg, (*lead, *shape[-2:]))
        matrices.append(arg if len(lead) == 1 else op.reshape(arg, (-1, *shape[-2:])))
    left, right = matrices
    out = op.nn.batch_matmul(left, right, out_dtype=out_dtype, transpose_b=False)
    return out if len(lead) == 1 else op.reshape(out, (*lead, rows, columns))


@_writer("nn.batch_norm")
def _batch_norm(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.nn.batch_norm(
        *args, **{key: s[key] for key in ("axis", "epsilon", "center", "scale")}
    )


@_writer("nn.layer_norm")
def _layer_norm(call: relax.Call, args: list[Any], s: Settings) -> Any:
    if len(s["axes"]) != 1 or len(args) != 3:
        return None
    settings = {key: s[key] for key in ("epsilon", "center", "scale")}
    return make("nn.layer_norm", args, axis=s["axes"][0], **settings)


@_writer("nn.group_norm")
def _group_norm(call: relax.Call, args: list[Any], s: Settings) -> Any:
    if len(args) != 3:
        return None
    return op.nn.group_norm(
        args[0], args[1], args[2], s["num_groups"], axis=s["channel_axis"], epsilon=s["epsilon"]
    )


@_writer("quantize", "dequantize")
def _quantization(call: relax.Call, args: list[Any], s: Settings) -> Any:
    data, scale, zero = args
    name = str(call.op.name).removeprefix("relax.")
    if str(call.args[2].struct_info.dtype) != "int32":
        zero = op.cast(zero, "int32")
    return make(f"qnn.{name}", [data, scale, zero], axis=s["axis"], out_dtype=s["out_dtype"])


@_writer("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
@_writer("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def _pool(call: relax.Call, args: list[Any], s: Settings) -> Any:
    name = str(call.op.name).removeprefix("relax.")
    if s.get("out_layout") not in (None, "", s["layout"]):
        return None
    kept = ["pool_size", "strides", "dilation", "padding", "layout", "ceil_mode"]
    kept += ["count_include_pad"] if "avg" in name else []
    return make(name, args, **{key: s[key] for key in kept})


@_writer("nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d")
def _adaptive_pool(call: relax.Call, args: list[Any], s: Settings) -> Any:
    name = str(call.op.name).removeprefix("relax.")
    return make(name, args, output_size=s.get("output_size"), layout=s["layout"])


@_writer("nn.gelu")
def _gelu(call: relax.Call, args: list[Any], s: Settings) -> Any:
    (x,), dtype = args, str(call.struct_info.dtype)
    inner = op.erf(op.multiply(x, const(math.sqrt(0.5), dtype)))
    half = op.add(const(0.5, dtype), op.multiply(inner, const(0.5, dtype)))
    return op.multiply(x, half)


@_writer("nn.silu")
def _silu(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.multiply(args[0], op.sigmoid(args[0]))


@_writer("nn.softmax", "nn.log_softmax")
def _softmax(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return make(str(call.op.name).removeprefix("relax."), args, axis=s["axis"])


@_writer("nn.relu")
def _relu(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.nn.relu(*args)


@_writer("nn.leakyrelu")
def _leaky_relu(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.nn.leaky_relu(args[0], alpha=s["alpha"])


@_writer("clip")
def _clip(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.clip(args[0], _number(call.args[1]), _number(call.args[2]))


@_writer("astype")
def _astype(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.cast(args[0], s["dtype"])


@_writer("reshape", "flatten", "squeeze", "expand_dims")
def _reshape(call: relax.Call, args: list[Any], s: Settings) -> Any:
    s.in_the_result()
    return op.reshape(args[0], _shape(call))


@_writer("broadcast_to")
def _broadcast_to(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.broadcast_to(args[0], _shape(call))


@_writer("permute_dims")
def _permute(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.transpose(args[0], s.get("axes"))


@_writer("concat")
def _concat(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.concatenate(args[0], s["axis"])


@_writer("split")
def _split(call: relax.Call, args: list[Any], s: Settings) -> Any:
    parts = s["indices_or_sections"]
    if isinstance(parts, int) and _shape(call.args[0])[s["axis"]] % parts:
        size = -(-_shape(call.args[0])[s["axis"]] // parts)
        parts = [size * k for k in range(1, parts)]
    return op.split(args[0], parts, s["axis"])


@_writer("strided_slice")
def _strided_slice(call: relax.Call, args: list[Any], s: Settings) -> Any:
    axes, extents = s["axes"], _shape(call.args[0])
    strides = s.get("strides") or (1,) * len(axes)
    # Before the first element is where a slice that goes backwards ends, and -1 is the last one.
    ends = [
        end - extents[axis] if stride < 0 and end < 0 else end
        for axis, end, stride in zip(axes, s["end"], strides)
    ]
    return op.strided_slice(args[0], s["begin"], ends, strides, axes)


@_writer("take")
def _take(call: relax.Call, args: list[Any], s: Settings) -> Any:
    if s.get("batch_dims") or s.get("mode", "fast") not in ("fast", "clip", "wrap"):
        return None
    return op.take(args[0], args[1], axis=s.get("axis"), mode=s.get("mode", "fast"))


@_writer("variance")
def _variance(call: relax.Call, args: list[Any], s: Settings) -> Any:
    if s["correction"] not in (0, 1):
        return None
    axis = s.get("axis")
    axes = None if axis is None else list(axis)
    return op.variance(args[0], axes, bool(s["keepdims"]), unbiased=s["correction"] == 1)


@_writer("mean", "sum", "max", "min", "prod")
def _reduction(call: relax.Call, args: list[Any], s: Settings) -> Any:
    function = getattr(op, str(call.op.name).removeprefix("relax."))
    axis = s.get("axis")
    keepdims = bool(s.get("keepdims", False))
    return function(args[0], axis=None if axis is None else list(axis), keepdims=keepdims)


@_writer("nn.pad")
def _pad(call: relax.Call, args: list[Any], s: Settings) -> Any:
    if s.get("pad_mode", "constant") != "constant":
        return None
    width = s["pad_width"]
    pairs = width if isinstance(width[0], Sequence) else list(zip(width[::2], width[1::2]))
    return op.nn.pad(args[0], pairs, s.get("pad_value", 0))


@_writer("argmax", "argmin")
def _position(call: relax.Call, args: list[Any], s: Settings) -> Any:
    function = getattr(op, str(call.op.name).removeprefix("relax."))
    place = function(args[0], axis=s.get("axis"), keepdims=bool(s["keepdims"]))
    return op.cast(place, s["dtype"])


@_writer("topk")
def _topk(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.topk(args[0], s["k"], s["axis"], s["ret_type"], not s["largest"], s["dtype"])


@_writer("sort")
def _sort(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.sort(args[0], s["axis"], not s["descending"])


@_writer("argsort")
def _argsort(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.argsort(args[0], s["axis"], not s["descending"], s["dtype"])


@_writer("cumsum", "cumprod")
def _running(call: relax.Call, args: list[Any], s: Settings) -> Any:
    function = getattr(op, str(call.op.name).removeprefix("relax."))
    return function(args[0], s.get("axis"), s.get("dtype"), s.get("exclusive"))


@_writer("gather_elements")
def _gather(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.gather(args[0], s["axis"], args[1])


@_writer("scatter_elements")
def _scatter(call: relax.Call, args: list[Any], s: Settings) -> Any:
    data, indices, updates = args
    return op.scatter_elements(data, indices, updates, s["axis"], s["reduction"])


@_writer("tril", "triu")
def _triangle(call: relax.Call, args: list[Any], s: Settings) -> Any:
    if s.get("fill", 0):
        return None
    return op.trilu(args[0], s["k"], upper=str(call.op.name) == "relax.triu")


@_writer("where")
def _where(call: relax.Call, args: list[Any], s: Settings) -> Any:
    return op.where(*args)


@_writer("arange")
def _arange(call: relax.Call, args: list[Any], s: Settings) -> Any:
    start, stop, step = (_number(arg) for arg in call.args)
    dtype = str(call.struct_info.dtype)
    return op.arange(const(start, dtype), const(stop, dtype), const(step, dtype), dtype)


@_writer("full", "zeros", "ones")
def _full(call: relax.Call, args: list[Any], s: Settings) -> Any:
    s.in_the_result()
    dtype, name = str(call.struct_info.dtype), str(call.op.name).removeprefix("relax.")
    value = args[1] if name == "full" else const(float(name == "ones"), dtype)
    return op.full(value, _shape(call), dtype)


@_writer("image.resize2d")
def _resize2d(call: relax.Call, args: list[Any], s: Settings) -> Any:
    kept = (
        "layout", "method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha",
        "cubic_exclude", "extrapolation_value",
    )  # fmt: skip
    settings = {key: s[key] for key in kept if key in s}
    return op.image.resize2d(args[0], _extents(call.args[1]), **settings)


def _same_name(call: relax.Call, args: list[Any], s: Settings) -> Any:
    """An operator of one meaning and name in both, without settings; None where there is none."""
    name = str(call.op.name).removeprefix("relax.")
    try:
        row = find_row(op.get(name))
    except ValueError:
        return None
    return None if row is None or row.settings or s else make(name, args)


def _own(call: relax.Call, args: list[Any], s: Settings) -> Any:
    """The call of an operator that only relax has."""
    name = str(call.op.name)
    row = find_row(call.op)
    if row is None or any(isinstance(arg, relax.ShapeExpr) for arg in call.args):
        raise error.ValueError(
            f"relay.frontend: {name} cannot be written in relay; import the network with "
            "tvm.relax.frontend, or compile it with felix.compile"
        )
    return make(name, args, **s)


class _Writing:
    """Writes one function, binding by binding."""

    def __init__(self, names: Sequence[str], func: relax.Function) -> None:
        self._values: dict[Any, Any] = {}
        self.params: list[Var] = []
        for name, param in zip(names, func.params, strict=True):
            self.params.append(Var(name, type_of_info(param.struct_info)))
            self._values[param] = self.params[-1]
        for block in func.body.blocks:
            for binding in block.bindings:
                self._values[binding.var] = self._written(binding.value)
        self.result = self._written(func.body.body)

    def _written(self, value: RelayExpr, like: str | None = None) -> Any:
        if isinstance(value, relax.Var):
            return self._values[value]
        if isinstance(value, relax.Constant):
            return Constant(value.data)
        if isinstance(value, relax.PrimValue):
            return const(_number(value), like)
        if isinstance(value, relax.ShapeExpr):
            return _extents(value)
        if isinstance(value, relax.Tuple):
            return Tuple([self._plain(field) for field in value.fields])
        if isinstance(value, relax.TupleGetItem):
            fields = self._written(value.tuple_value)
            if isinstance(fields, Tuple):
                return fields.fields[value.index]
            return TupleGetItem(self._of(fields), value.index)
        assert isinstance(value, relax.Call), type(value)
        return self._call(value)

    def _plain(self, value: RelayExpr) -> RelayExpr:
        return self._of(self._written(value))

    @staticmethod
    def _of(value: Any) -> RelayExpr:
        return value.astuple() if isinstance(value, TupleWrapper) else value

    def _call(self, call: relax.Call) -> Any:
        dtype = next(
            (
                str(arg.struct_info.dtype)
                for arg in call.args
                if isinstance(arg.struct_info, relax.TensorStructInfo)
            ),
            str(getattr(call.struct_info, "dtype", "float32")),
        )
        args = [
            self._of(self._written(arg, dtype)) if not isinstance(arg, relax.ShapeExpr) else None
            for arg in call.args
        ]
        bias = self._bias_add(call, args)
        if bias is not None:
            return bias
        settings = Settings(attrs_of(call))
        name = str(call.op.name).removeprefix("relax.")
        written = _WRITERS.get(name, _same_name)(call, args, settings)
        # What relay's operator cannot say makes it another one.
        if written is None or settings.left_out(_defaults(call)):
            return _own(call, args, settings)
        return written

    def _bias_add(self, call: relax.Call, args: list[Any]) -> Call | None:
        """The sum of a convolution and one number a channel, which relay has an operator for."""
        if str(call.op.name) != "relax.add" or len(args) != 2:
            return None
        data, bias = args
        if not (isinstance(data, Call) and str(data.op.name).startswith("nn.conv")):
            return None
        shape = _shape(call.args[1])
        if data.attrs["data_layout"][:2] != "NC" or len(shape) != len(_shape(call)):
            return None
        if any(extent != 1 for k, extent in enumerate(shape) if k != 1):
            return None
        if isinstance(bias, Constant):
            vector: RelayExpr = const(bias.data.numpy().reshape(-1), str(bias.data.dtype))
        elif isinstance(bias, Call) and str(bias.op.name) == "reshape":
            vector = bias.args[0]
            kind = vector.type_annotation if isinstance(vector, Var) else None
            if not isinstance(kind, TensorType) or len(kind.shape) != 1:
                return None
        else:
            return None
        return op.nn.bias_add(data, vector)


def from_relax(func: relax.Function, names: Sequence[str]) -> Function:
    """A relay function of what an importer made.

    Operators that relay does not have appear under relax's names, such as "relax.nn.rms_norm".

    Parameters
    ----------
    func : one graph of tensors of fixed shape.
    names : of its parameters.

    Raises
    ------
    ValueError : it has an operator whose operands are no tensors, and that relay does not have.
    """
    writing = _Writing(names, func)
    result = writing.result
    return Function(
        writing.params, result.astuple() if isinstance(result, TupleWrapper) else result
    )
