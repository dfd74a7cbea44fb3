"""Operators of networks found in computations: what a task computes, with its sizes by name.

Felix (ASPLOS 2024, section 4) describes tasks by builders of 17 kinds of operators. Here structure
is found without them (`SymbolicDAG`); they say what people call the parts of it. A builder reads
the sizes of a few operations off their shapes, builds the operator of these sizes with topi, and
knows the operations only if that is the same computation.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tvm import auto_scheduler, ir, te, tir, topi

from .rebuild import Body, Rebuilder

__all__ = ["RELAY_BUILDERS", "Operator", "OperatorBuilder", "operators_of"]

nn = topi.nn
Sizes = Mapping[str, int | str]


class Operator(NamedTuple):
    """An operator of a computation."""

    name: str
    """Of its builder, or "" where no builder knows the operations."""
    sizes: Sizes
    """Extents, strides and the like, and the layout where there are several."""
    operations: tuple[str, ...]
    """Names of the operations that compute it, in order."""

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{self.name or '+'.join(self.operations)}({sizes})"


class _Part(Rebuilder):
    """A few operations of a computation as a computation of its own.

    Attributes
    ----------
    inputs : what they read of others, in order of reading.
    """

    def __init__(self, operations: Sequence[te.Operation]) -> None:
        super().__init__()
        self.operations = list(operations)
        self.inputs: list[te.Tensor] = []
        for operation in self.operations:
            for tensor in operation.input_tensors:
                if tensor.op not in self._made:
                    shape = [int(extent) for extent in tensor.shape]
                    self._made[tensor.op] = te.placeholder(shape, str(tensor.dtype)).op
                    self.inputs.append(self._made[tensor.op].output(0))
            self._made[operation] = self._make(operation)

    @property
    def output(self) -> te.Tensor:
        """What the last operation computes."""
        return self._made[self.operations[-1]].output(0)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the inputs."""
        return [tuple(map(int, tensor.shape)) for tensor in self.inputs]

    @property
    def out_shape(self) -> tuple[int, ...]:
        """Of the output."""
        return tuple(map(int, self.output.shape))

    def reduced(self) -> list[list[int]]:
        """Extents of the reduction loops of each operation that has any."""
        extents = [[int(axis.dom.extent) for axis in op.reduce_axis] for op in self.operations]
        return [each for each in extents if each]

    def same(self, tensors: Sequence[te.Tensor]) -> bool:
        """Whether other tensors, inputs first, are the same computation up to names."""
        dag = auto_scheduler.ComputeDAG(tensors)
        built = [op for op in dag.ops if isinstance(op, te.ComputeOp)]
        if len(built) != len(self.operations):
            return False
        return ir.structural_equal(self.function, _Part(built).function)

    @cached_property
    def function(self) -> tir.PrimFunc:
        """The part as a function that is equal for equal parts, whatever their names."""
        return te.create_prim_func([*self.inputs, self.output])

    def extent(self, operation: te.Operation, kind: str, k: int, extent: Any) -> Any:
        return extent

    def body(self, operation: te.ComputeOp) -> Body:
        return Body(self.tensor)

    def attributes(self, operation: te.ComputeOp) -> Mapping[str, Any]:
        return {}


class OperatorBuilder(ABC):
    """Knows the operations of one kind of operator.

    Parameters
    ----------
    name : of the kind.
    counts : the numbers of operations that compute it.
    """

    def __init__(self, name: str, counts: Sequence[int]) -> None:
        self.name = name
        self.counts = tuple(counts)

    @abstractmethod
    def sizes(self, part: _Part) -> Sizes | None:
        """The operator's sizes if the part is one of this kind, else None."""

    def __repr__(self) -> str:
        return f"OperatorBuilder({self.name})"


class _Built(OperatorBuilder):
    """A kind that is known by building it again."""

    def __init__(
        self,
        name: str,
        counts: Sequence[int],
        read: Callable[[_Part], Iterator[Sizes]],
        build: Callable[..., te.Tensor],
    ) -> None:
        super().__init__(name, counts)
        self._read, self._build = read, build

    def build(self, inputs: Sequence[te.Tensor], **sizes: Any) -> te.Tensor:
        """The operator of these sizes on inputs."""
        return self._build(*inputs, **sizes)

    def sizes(self, part: _Part) -> Sizes | None:
        for sizes in self._read(part):
            inputs = [te.placeholder(t.shape, str(t.dtype)) for t in part.inputs]
            try:
                built = self.build(inputs, **sizes)
            except (ValueError, TypeError):  # the sizes do not fit together, so it is another one
                continue
            if part.same([*inputs, built]):
                return sizes
        return None


@dataclass(frozen=True)
class _Images:
    """Where a layout has its parts: positions of space and channels; batches come first."""

    layout: str

    @property
    def channels(self) -> int:
        return self.layout.index("C")

    @property
    def space(self) -> list[int]:
        return [k for k, letter in enumerate(self.layout) if letter not in "NC"]

    def names(self, prefix: str = "") -> list[str]:
        return [prefix + self.layout[k].lower() for k in self.space]


_LAYOUTS = {3: ("NWC", "NCW"), 4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}


def _windows(part: _Part, images: _Images, window: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Stride, padding in front and behind, and dilation that lead from input to output size."""
    data = part.shapes[0]
    padded = data
    first = part.operations[0]
    if not first.reduce_axis and len(part.operations) > 1 and len(first.input_tensors) == 1:
        padded = tuple(int(extent) for extent in first.output(0).shape)
    total = [padded[k] - data[k] for k in images.space]
    # Images are cut into patches by windows that are as wide as the steps.
    strides = dict.fromkeys((*range(1, 5), max(window)))
    for stride, dilation in itertools.product(strides, range(1, 5)):
        if dilation > 1 and max(window) == 1:
            continue
        fits = all(
            (padded[k] - (size - 1) * dilation - 1) // stride + 1 == part.out_shape[k]
            for k, size in zip(images.space, window)
        )
        if fits and len(set(total)) == 1 and total[0] >= 0:
            for front in dict.fromkeys((total[0] // 2, 0, total[0])):
                yield stride, front, total[0] - front, dilation


def _padding(layout: str, sizes: Mapping[str, Any]) -> list[int]:
    rank = len(layout) - 2
    return [sizes["pad_front"]] * rank + [sizes["pad_behind"]] * rank


def _conv_sizes(part: _Part, kind: str) -> Iterator[Sizes]:
    """Sizes of a convolution of any rank; `kind` is plain, depthwise or group."""
    if len(part.inputs) != 2 or len(part.shapes[0]) not in _LAYOUTS:
        return
    data, weight = part.shapes
    if len(weight) != len(data) or len(part.out_shape) != len(data):
        return
    for layout in _LAYOUTS[len(data)]:
        images = _Images(layout)
        last = layout.endswith("C")
        window = weight[: len(images.space)] if last else weight[2:]
        a, b = weight[-2:] if last else weight[:2]
        ci, co = data[images.channels], part.out_shape[images.channels]
        sizes: dict[str, int | str] = {"n": data[0]}
        sizes |= {name: data[k] for name, k in zip(images.names(), images.space)}
        sizes |= {"ci": ci, "co": co}
        sizes |= dict(zip(images.names("k"), window))
        if kind == "depthwise":
            if (a, a * b) != (ci, co):
                continue
        else:
            per_group, filters = (a, b) if last else (b, a)
            grouped = kind == "group"
            if filters != co or ci % per_group or (ci != per_group) != grouped:
                continue
            sizes |= {"groups": ci // per_group} if grouped else {}
        for stride, front, behind, dilation in _windows(part, images, window):
            yield {
                **sizes,
                "stride": stride,
                "pad_front": front,
                "pad_behind": behind,
                "dilation": dilation,
                "layout": layout,
            }


def _conv(data: te.Tensor, weight: te.Tensor, **sizes: Any) -> te.Tensor:
    layout = sizes["layout"]
    return nn.conv(
        data,
        weight,
        sizes["stride"],
        _padding(layout, sizes),
        sizes["dilation"],
        sizes.get("groups", 1),
        layout,
        "",
        sizes.get("out_dtype"),
    )


def _depthwise(data: te.Tensor, weight: te.Tensor, **sizes: Any) -> te.Tensor:
    layout = sizes["layout"]
    make = nn.depthwise_conv2d_nhwc if layout == "NHWC" else nn.depthwise_conv2d_nchw
    return make(data, weight, sizes["stride"], _padding(layout, sizes), sizes["dilation"])


def _on_tensor_cores(part: _Part) -> bool:
    """Whether `topi.cuda.conv2d_nhwc_tensorcore` takes a convolution."""
    if str(part.inputs[0].dtype) != "float16" or len(part.shapes[0]) != 4:
        return False
    extents = (part.shapes[0][0], part.shapes[0][-1], part.out_shape[-1])
    return all(extent % 16 == 0 for extent in extents)


def _plain_sizes(part: _Part) -> Iterator[Sizes]:
    if not (len(part.inputs) == 2 and _on_tensor_cores(part)):
        yield from _conv_sizes(part, "plain")


def _tensor_core_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) == 2 and _on_tensor_cores(part):
        for sizes in _conv_sizes(part, "plain"):
            if sizes["layout"] == "NHWC":
                yield {**sizes, "out_dtype": str(part.output.dtype)}


def _transposed_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) != 2 or any(len(shape) != 4 for shape in (*part.shapes, part.out_shape)):
        return
    data, weight = part.shapes
    for layout in _LAYOUTS[4]:
        images = _Images(layout)
        last = layout == "NHWC"
        window = weight[:2] if last else weight[2:]
        ci, co = data[images.channels], part.out_shape[images.channels]
        if sorted(weight[2:] if last else weight[:2]) != sorted((ci, co)):
            continue
        for stride, padding, extra in itertools.product(range(1, 5), range(4), range(2)):
            reached = (
                (data[k] - 1) * stride - 2 * padding + size + extra
                for k, size in zip(images.space, window)
            )
            if tuple(reached) == tuple(part.out_shape[k] for k in images.space):
                yield {
                    "n": data[0],
                    **{name: data[k] for name, k in zip(images.names(), images.space)},
                    "ci": ci,
                    "co": co,
                    **dict(zip(images.names("k"), window)),
                    "stride": stride,
                    "padding": padding,
                    "output_padding": extra,
                    "layout": layout,
                }


def _transposed(
    data: te.Tensor,
    weight: te.Tensor,
    *,
    stride: int,
    padding: int,
    output_padding: int,
    layout: str,
    **_: Any,
) -> te.Tensor:
    make = nn.conv2d_transpose_nhwc if layout == "NHWC" else nn.conv2d_transpose_nchw
    return make(data, weight, stride, padding, output_padding=output_padding)


def _winograd_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) != 2 or any(len(shape) != 4 for shape in (*part.shapes, part.out_shape)):
        return
    data, weight = part.shapes
    for tile, padding in itertools.product((2, 4, 6), range(4)):
        if data[1] + 2 * padding - weight[0] + 1 == part.out_shape[1]:
            yield {
                "n": data[0],
                "h": data[1],
                "w": data[2],
                "ci": data[3],
                "co": part.out_shape[3],
                "k": weight[0],
                "padding": padding,
                "tile": tile,
            }


def _winograd(
    data: te.Tensor, weight: te.Tensor, *, padding: int, tile: int, **_: Any
) -> te.Tensor:
    return nn.conv2d_winograd_nhwc(data, weight, 1, padding, tile_size=tile)


def _dense_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) == 2 and len(part.shapes[0]) >= 2 and len(part.shapes[1]) == 2:
        (*rows, k), (m, _) = part.shapes
        names = ["n"] if len(rows) == 1 else [f"n{i}" for i in range(len(rows))]
        yield {**dict(zip(names, rows)), "m": m, "k": k}


def _product_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) != 2 or len({len(s) for s in (*part.shapes, part.out_shape)}) != 1:
        return
    (reduced, *_), *more = part.reduced() or [[0]]
    if more or len(part.out_shape) < 3:
        return
    *batch, n, m = part.out_shape
    for a, b in itertools.product((0, 1), (1, 0)):
        yield {
            **{f"b{k}" if len(batch) > 1 else "b": extent for k, extent in enumerate(batch)},
            "n": n,
            "m": m,
            "k": reduced,
            "transpose_a": a,
            "transpose_b": b,
        }


def _product(
    left: te.Tensor, right: te.Tensor, *, transpose_a: int, transpose_b: int, **_: Any
) -> te.Tensor:
    return nn.batch_matmul(
        left, right, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b)
    )


def _pool_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) != 1 or len(part.shapes[0]) not in _LAYOUTS:
        return
    data = part.shapes[0]
    (window, *more) = part.reduced() or [[]]
    if more or len(window) != len(data) - 2 or len(part.out_shape) != len(data):
        return
    for layout in _LAYOUTS[len(data)]:
        images = _Images(layout)
        if data[images.channels] != part.out_shape[images.channels]:
            continue
        found = itertools.product(_windows(part, images, window), ("max", "avg"), (1, 0))
        for (stride, front, behind, dilation), kind, counted in found:
            if kind == "max" and not counted:
                continue
            yield {
                "n": data[0],
                **{name: data[k] for name, k in zip(images.names(), images.space)},
                "c": data[images.channels],
                **dict(zip(images.names("k"), window)),
                "stride": stride,
                "pad_front": front,
                "pad_behind": behind,
                "dilation": dilation,
                "kind": kind,
                "count_include_pad": counted,
                "layout": layout,
            }


def _pool(data: te.Tensor, **sizes: Any) -> te.Tensor:
    layout = sizes["layout"]
    rank = len(layout) - 2
    return (nn.pool1d, nn.pool2d, nn.pool3d)[rank - 1](
        data,
        [sizes[name] for name in _Images(layout).names("k")],
        [sizes["stride"]] * rank,
        [sizes["dilation"]] * rank,
        _padding(layout, sizes),
        sizes["kind"],
        layout=layout,
        count_include_pad=bool(sizes["count_include_pad"]),
    )


def _adaptive_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) != 1 or len(part.shapes[0]) != 4 or len(part.out_shape) != 4:
        return
    data, out = part.shapes[0], part.out_shape
    for layout in _LAYOUTS[4]:
        images = _Images(layout)
        if data[images.channels] == out[images.channels]:
            yield {
                "n": data[0],
                **{name: data[k] for name, k in zip(images.names(), images.space)},
                "c": data[images.channels],
                **{name: out[k] for name, k in zip(images.names("o"), images.space)},
                "layout": layout,
            }


def _adaptive(data: te.Tensor, *, oh: int, ow: int, layout: str, **_: Any) -> te.Tensor:
    return nn.adaptive_avg_pool2d(data, (oh, ow), layout)


def _along_one(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) == 1 and part.out_shape == part.shapes[0]:
        for axis in reversed(range(len(part.out_shape))):
            yield {**_extents(part.out_shape), "axis": axis}


def _mean_sizes(part: _Part) -> Iterator[Sizes]:
    if len(part.inputs) != 1 or len(part.reduced()) != 1:
        return
    data, (reduced,) = part.shapes[0], part.reduced()
    for axes in itertools.combinations(range(len(data)), len(reduced)):
        if [data[axis] for axis in axes] != reduced:
            continue
        for keepdims in (0, 1):
            yield {
                **_extents(data),
                **{f"axis{k}": axis for k, axis in enumerate(axes)},
                "keepdims": keepdims,
            }


def _mean(data: te.Tensor, *, keepdims: int, **sizes: int) -> te.Tensor:
    axes = [axis for name, axis in sizes.items() if name.startswith("axis")]
    return topi.mean(data, axes, bool(keepdims))


def _extents(shape: Sequence[int]) -> dict[str, int]:
    return {f"d{k}": extent for k, extent in enumerate(shape)}


# The indices of a read, each with the extent of the dimension that it walks.
_Read = list[tuple[Any, int]]


class _PointWise(OperatorBuilder):
    """One operation without reduction, told from others by the indices with which it reads.

    Parameters
    ----------
    fits : whether reads belong to this kind, given the extents of the loops by variable.
    """

    def __init__(self, name: str, fits: Callable[[list[_Read], dict[tir.Var, int]], bool]) -> None:
        super().__init__(name, [1])
        self._fits = fits

    def sizes(self, part: _Part) -> Sizes | None:
        (operation,) = part.operations
        if operation.reduce_axis or len(operation.body) != 1:
            return None
        reads: list[_Read] = []

        def visit(node: object) -> None:
            if isinstance(node, tir.ProducerLoad):
                reads.append(list(zip(node.indices, map(int, node.producer.shape))))

        tir.stmt_functor.post_order_visit(operation.body[0], visit)
        loops = {axis.var: int(axis.dom.extent) for axis in operation.axis}
        return _extents(part.out_shape) if self._fits(reads, loops) else None


def _walks(read: _Read, loops: Mapping[tir.Var, int]) -> list[tir.Var] | None:
    """The loops that walk whole dimensions of what is read, in order; None if anything else does.

    What has one cell in a dimension is read there by a number.
    """
    walking = [(index, extent) for index, extent in read if not isinstance(index, tir.IntImm)]
    whole = all(isinstance(i, tir.Var) and loops.get(i) == extent for i, extent in walking)
    return [index for index, _ in walking] if whole else None


def _is_constant(reads: list[_Read], loops: dict[tir.Var, int]) -> bool:
    return not reads and not loops


def _is_elementwise(reads: list[_Read], loops: dict[tir.Var, int]) -> bool:
    walked = [_walks(read, loops) for read in reads]
    return bool(reads) and all(loop_vars == list(loops) for loop_vars in walked)


def _is_broadcast(reads: list[_Read], loops: dict[tir.Var, int]) -> bool:
    order = {var: k for k, var in enumerate(loops)}
    walked = [_walks(read, loops) for read in reads]
    return bool(reads) and all(
        loop_vars is not None and sorted(loop_vars, key=order.__getitem__) == loop_vars
        for loop_vars in walked
    )


#: The kinds of operators, in the order in which they are tried; of several that would do, the one
#: of most operations is taken.
RELAY_BUILDERS: list[OperatorBuilder] = [
    _Built("Conv", [1, 2], _plain_sizes, _conv),
    _Built("DepthwiseConv2d", [1, 2], lambda part: _conv_sizes(part, "depthwise"), _depthwise),
    _Built("GroupConv2d", [1, 2], lambda part: _conv_sizes(part, "group"), _conv),
    _Built("TransposeConv2d", [1, 2, 3, 4], _transposed_sizes, _transposed),
    _Built("Conv2dTensorCore", [1, 2], _tensor_core_sizes, _conv),
    _Built("Conv2dWinograd", range(5, 11), _winograd_sizes, _winograd),
    _Built("Dense", [1], _dense_sizes, lambda data, weight, **_: nn.dense(data, weight)),
    _Built("BatchMatmul", [1], _product_sizes, _product),
    _Built("OnePool", [1], _pool_sizes, _pool),
    _Built("TwoOPsPool", [2], _pool_sizes, _pool),
    _Built("ThreeOPsPool", [3], _pool_sizes, _pool),
    _Built("AdaptiveAvgPool", [1, 2], _adaptive_sizes, _adaptive),
    _Built("Softmax", [3, 4], _along_one, lambda data, *, axis, **_: nn.softmax(data, axis)),
    _Built("Mean", [2], _mean_sizes, _mean),
    _PointWise("ConstScalar", _is_constant),
    _PointWise("Elemwise", _is_elementwise),
    _PointWise("Broadcast", _is_broadcast),
]


def operators_of(dag: auto_scheduler.ComputeDAG) -> list[Operator]:
    """The operators that a computation over numbers consists of, in order.

    Every operation belongs to one of them; those that no builder knows are operators of their own,
    without a name.
    """
    open_ = [op for op in dag.ops if isinstance(op, te.ComputeOp)]
    readers: dict[te.Operation, set[te.Operation]] = {op: set() for op in open_}
    for op in open_:
        for tensor in op.input_tensors:
            readers.setdefault(tensor.op, set()).add(op)
    results = {tensor.op for tensor in dag.tensors}
    found: list[Operator] = []
    while open_:
        operations, operator = _last_operator(open_, readers, results)
        found.append(operator)
        open_ = [op for op in open_ if op not in operations]
    return found[::-1]


def _last_operator(
    open_: Sequence[te.Operation],
    readers: Mapping[te.Operation, set[te.Operation]],
    results: set[te.Operation],
) -> tuple[set[te.Operation], Operator]:
    """What the last of some operations is the end of, of as many operations as can be."""
    last = open_[-1]
    groups = [[last]]
    for op in reversed(open_[:-1]):
        # What others read, too, is not a part of this operator alone.
        if op not in results and readers[op] and readers[op] <= set(groups[-1]):
            groups.append([op, *groups[-1]])
    for operations in reversed(groups):
        builders = [b for b in RELAY_BUILDERS if len(operations) in b.counts]
        if not builders:
            continue
        part = _Part(operations)
        for builder in builders:
            sizes = builder.sizes(part)
            if sizes is not None:
                names = tuple(str(op.name) for op in operations)
                return set(operations), Operator(builder.name, sizes, names)
    return {last}, Operator("", _extents(_Part([last]).out_shape), (str(last.name),))
