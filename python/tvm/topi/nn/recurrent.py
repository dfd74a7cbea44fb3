"""Layers that go through a sequence step by step, each of them one kernel.

What the data adds to the gates waits for no step and is a matrix product over all of them, whose
result these kernels take. Long short-term memory: Hochreiter and Schmidhuber, Neural Computation
9(8), 1997; gated recurrent units: Cho et al., EMNLP 2014, in the form in which the reset gate acts
on the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm import te, tir
from tvm.target import Target

from ..utils import const_shape, get_const_tuple, is_constant, same_extent

__all__ = ["gru_steps", "lstm_steps", "rnn_steps"]

# Sums that are under way, by the registers of a processor; the others hold weights and states.
_MOST_SUMS = {16: 8, 32: 16}
_STEPS_WORTH_A_COPY = 4
_THREADS = 256

# From the sums of a unit's gates, memory, and the unit's place in it to the unit's new state.
_Unit = Callable[[list[Any], Any, Any], Any]
# Takes the first of neighbouring elements, and how many there are.
_Part = Callable[[Any, int], None]


def lstm_steps(
    gates: te.Tensor,
    weight: te.Tensor,
    hidden: te.Tensor,
    cell: te.Tensor,
    projection: te.Tensor | None = None,
    backwards: bool = False,
) -> list[te.Tensor]:
    """Long short-term memory over all steps of a sequence.

    Parameters
    ----------
    gates : what data and biases add to the gates: (steps, batch, 4 * units), float32 or float64;
        input, forget, cell and output gate behind each other.
    weight : (state, 4 * units), what the state adds to them.
    hidden : state before the first step, (batch, state).
    cell : cells before the first step, (batch, units).
    projection : (units, state), what makes a state of the units; None where they are the state.
    backwards : begin with the last step.

    Returns
    -------
    States of all steps, (steps, batch, state); the state and the cells after the step taken last,
    (batch, state) and (batch, units).

    Raises
    ------
    ValueError : shapes do not fit together, or elements of another type.
    """
    layer = _Layer("lstm_steps", gates, weight, hidden, 4, bool(backwards))
    layer.check("cell", cell, (layer.batch, layer.units))
    if projection is not None:
        layer.check("projection", projection, (layer.units, layer.state))
    elif layer.state != layer.units:
        raise ValueError(
            f"topi.nn.lstm_steps: {layer.units} units are no state of {layer.state} without a "
            "projection"
        )

    def unit(sums: list[Any], cells: Any, at: Any) -> Any:
        into, forget, candidate, out = sums
        cells[at] = tir.sigmoid(forget) * cells[at] + tir.sigmoid(into) * tir.tanh(candidate)
        return tir.sigmoid(out) * tir.tanh(cells[at])

    return layer.kernel(unit, cell=cell, projection=projection)


def gru_steps(
    gates: te.Tensor,
    weight: te.Tensor,
    hidden: te.Tensor,
    bias: te.Tensor,
    backwards: bool = False,
) -> list[te.Tensor]:
    """Gated recurrent units over all steps of a sequence.

    Parameters
    ----------
    gates : what data and biases add to the gates, (steps, batch, 3 * units): reset and update gate
        and the candidate, this without `bias`.
    weight : (units, 3 * units), what the state adds to them.
    hidden : state before the first step, (batch, units).
    bias : (units,), added to what the state gives the candidate, on which the reset gate acts.
    backwards : begin with the last step.

    Returns
    -------
    States of all steps, (steps, batch, units), and the one after the step taken last, (batch,
    units).

    Raises
    ------
    ValueError : shapes do not fit together, or elements of another type.
    """
    layer = _Layer("gru_steps", gates, weight, hidden, 3, bool(backwards))
    layer.check("hidden", hidden, (layer.batch, layer.units))
    layer.check("bias", bias, (layer.units,))

    def unit(sums: list[Any], states: Any, at: Any) -> Any:
        reset, update, from_state, from_data = sums
        candidate = tir.tanh(from_data + tir.sigmoid(reset) * from_state)
        return candidate + tir.sigmoid(update) * (states[at] - candidate)

    return layer.kernel(unit, bias=bias)


def rnn_steps(
    gates: te.Tensor,
    weight: te.Tensor,
    hidden: te.Tensor,
    activation: str = "tanh",
    backwards: bool = False,
) -> list[te.Tensor]:
    """States that are an activation of what data and the state before add up to.

    Parameters
    ----------
    gates : what data and biases add, (steps, batch, units).
    weight : (units, units), what the state adds.
    hidden : state before the first step, (batch, units).
    activation : "tanh" or "relu".
    backwards : begin with the last step.

    Returns
    -------
    As :func:`gru_steps`.

    Raises
    ------
    ValueError : shapes do not fit together, elements of another type, or another activation.
    """
    layer = _Layer("rnn_steps", gates, weight, hidden, 1, bool(backwards))
    layer.check("hidden", hidden, (layer.batch, layer.units))
    if activation not in ("tanh", "relu"):
        raise ValueError(f"topi.nn.rnn_steps: activation is tanh or relu, got {activation!r}")

    def unit(sums: list[Any], states: Any, at: Any) -> Any:
        (total,) = sums
        return (
            tir.tanh(total) if activation == "tanh" else tir.max(total, tir.const(0, layer.dtype))
        )

    return layer.kernel(unit)


class _Layer:
    """What a kernel knows of its layer.

    Attributes
    ----------
    steps, batch, units, state : extents.
    """

    def __init__(
        self,
        name: str,
        gates: te.Tensor,
        weight: te.Tensor,
        hidden: te.Tensor,
        count: int,
        backwards: bool,
    ) -> None:
        self._name = name
        self._gates, self._weight, self._hidden = gates, weight, hidden
        self._count = count
        self._backwards = backwards
        self.dtype = gates.dtype
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"topi.nn.{name}: gates are float32 or float64, got {self.dtype}")
        if len(gates.shape) != 3 or len(weight.shape) != 2:
            raise ValueError(
                f"topi.nn.{name}: gates are (steps, batch, {count} * units) and weights (state, "
                f"{count} * units), got {gates.shape} and {weight.shape}"
            )
        self.steps, self.batch, _ = get_const_tuple(gates.shape)
        self.state, columns = const_shape(weight.shape)
        self.units = columns // count
        self.check("gates", gates, (self.steps, self.batch, count * self.units))
        self.check("weight", weight, (self.state, count * self.units))
        self.check("hidden", hidden, (self.batch, self.state))

    def check(self, what: str, tensor: te.Tensor, shape: Sequence[Any]) -> None:
        """ValueError unless a tensor has a shape and the layer's element type."""
        found = get_const_tuple(tensor.shape)
        if len(found) != len(shape) or not all(map(same_extent, found, shape)):
            raise ValueError(
                f"topi.nn.{self._name}: {what} is of shape {list(shape)}, got {list(found)}"
            )
        if tensor.dtype != self.dtype:
            raise ValueError(
                f"topi.nn.{self._name}: {what} is {self.dtype} as the gates are, got {tensor.dtype}"
            )

    def kernel(
        self,
        unit: _Unit,
        cell: te.Tensor | None = None,
        projection: te.Tensor | None = None,
        bias: te.Tensor | None = None,
    ) -> list[te.Tensor]:
        """States of all steps, the last of them, and the last cells of layers that have some.

        Parameters
        ----------
        unit : gets the sums of a unit's gates, a row of cells (of states where there are none), and
            the unit's place there; of a layer with a bias the last gate's sum comes in two parts,
            from the state and from the data.
        """
        given = {"gates": self._gates, "weight": self._weight, "hidden": self._hidden}
        optional = {"cell": cell, "projection": projection, "bias": bias}
        given |= {name: tensor for name, tensor in optional.items() if tensor is not None}
        shapes = [(self.steps, self.batch, self.state), (self.batch, self.state)]
        if cell is not None:
            shapes.append((self.batch, self.units))

        def body(ins: Any, outs: Any) -> tir.Stmt:
            ib = tir.ir_builder.create()
            buffers = dict(
                zip([*given, "states", "last", "cells"], map(ib.buffer_ptr, (*ins, *outs)))
            )
            target = Target.current(allow_none=True) or Target("llvm")
            program = _Program(self, ib, buffers, unit)
            if "gpu" in target.keys:
                program.for_threads()
            else:
                program.for_vectors(target)
            return ib.get()

        types = [self.dtype] * len(shapes)
        return list(
            te.extern(shapes, list(given.values()), body, name=f"T_{self._name}", dtype=types)
        )

    @property
    def count(self) -> int:
        """Gates of a unit."""
        return self._count

    def time(self, step: Any) -> Any:
        """The place in the sequence of the step taken as the number `step`."""
        return self.steps - 1 - step if self._backwards else step


class _Program:
    """The statements of one kernel.

    Rows of the batch do not depend on each other; a block of them goes through all steps, with its
    state in memory of its own.
    """

    def __init__(self, layer: _Layer, ib: Any, buffers: dict[str, Any], unit: _Unit) -> None:
        self._layer = layer
        self._ib = ib
        self._buffers = buffers
        self._unit = unit
        # One more where the bias keeps the last gate's parts from the state and the data apart.
        self._sums = layer.count + ("bias" in buffers)
        self._panels: Any = None

    def for_vectors(self, target: Target) -> None:
        """Blocks of rows in parallel, and units in vectors."""
        layer, ib = self._layer, self._ib
        lanes = max(1, int(target.vector_width) // tir.const(0, layer.dtype).dtype.bits)

        def each(size: int, body: _Part) -> None:
            whole, rest = divmod(size, lanes)
            if whole:
                with ib.for_range(0, whole, "v") as v:
                    body(v * lanes, lanes)
            if rest:
                body(whole * lanes, rest)

        self._pack(lanes)
        registers = int(target.num_vector_registers)
        most = max((sums for least, sums in _MOST_SUMS.items() if registers >= least), default=4)
        # Of a batch of open size nobody knows how many rows there are behind the last block.
        rows, rest = 1, 0
        if is_constant(layer.batch):
            rows = max(1, min(most // self._sums, layer.batch))
            rest = layer.batch % rows
        with ib.for_range(0, layer.batch // rows, "block", kind="parallel") as block:
            self._all_steps(block * rows, rows, each, "global")
        if rest:
            self._all_steps(layer.batch - rest, rest, each, "global")

    def _pack(self, lanes: int) -> None:
        """Copy the weights of each vector of units to where every step reads them one by one.

        In the tensor they are pieces of one vector, a row apart.
        """
        layer, ib, count = self._layer, self._ib, self._layer.count
        whole = layer.units // lanes
        # The copy costs about as much as a step.
        if whole == 0 or (is_constant(layer.steps) and layer.steps < _STEPS_WORTH_A_COPY):
            return
        size = whole * layer.state * count * lanes
        self._panels = ib.allocate(layer.dtype, (size,), "panels", scope="global")
        with (
            ib.for_range(0, whole, "v", kind="parallel") as v,
            ib.for_range(0, layer.state, "k") as k,
        ):
            for gate in range(count):
                with self._lanes(lanes) as lane:
                    at = ((v * layer.state + k) * count + gate) * lanes + lane
                    weight = self._buffers["weight"]
                    self._panels[at] = weight[k, gate * layer.units + v * lanes + lane]

    def _weight(self, start: Any, lanes: int) -> Callable[[Any, int, Any], Any]:
        """Of a step of the sum, a gate and a lane, the weight of neighbouring units."""
        layer, panels = self._layer, self._panels
        state, count = layer.state, layer.count
        if panels is None or not isinstance(start, tir.PrimExpr):
            weight = self._buffers["weight"]
            return lambda k, gate, lane: weight[k, gate * layer.units + start + lane]
        return lambda k, gate, lane: panels[
            start * (state * count) + (k * count + gate) * lanes + lane
        ]

    def for_threads(self) -> None:
        """A block of threads for each row, and a thread for every so many units."""
        ib, layer = self._ib, self._layer
        row, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        threads = min(_THREADS, layer.units)
        ib.scope_attr(row, "thread_extent", layer.batch)
        ib.scope_attr(thread, "thread_extent", threads)

        def each(size: int, body: _Part) -> None:
            with ib.for_range(0, -(-size // threads), "part") as part:
                at = part * threads + thread
                with ib.if_scope(at < size):
                    body(at, 1)
            ib.emit(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared"))

        self._all_steps(row, 1, each, "shared")

    def _all_steps(
        self, first: Any, rows: int, each: Callable[[int, _Part], None], scope: str
    ) -> None:
        """The steps of `rows` rows of the batch.

        Parameters
        ----------
        each : runs a part for so many elements, in pieces of neighbours; behind it every thread
            sees what was written.
        scope : of the memory in which threads see it.
        """
        layer, ib, buffers = self._layer, self._ib, self._buffers
        units, state = layer.units, layer.state
        with ib.new_scope():
            before = ib.allocate(layer.dtype, (rows * state,), "before", scope=scope)
            made = ib.allocate(layer.dtype, (rows * units,), "made", scope=scope)
            cells = before
            if "cell" in buffers:
                cells = ib.allocate(layer.dtype, (rows * units,), "kept", scope=scope)

            def copied(size: int, copy: Callable[[int, Any], None]) -> None:
                def part(start: Any, lanes: int) -> None:
                    for r in range(rows):
                        with self._lanes(lanes) as lane:
                            copy(r, start + lane)

                each(size, part)

            def begin(r: int, at: Any) -> None:
                before[r * state + at] = buffers["hidden"][first + r, at]

            def begin_cell(r: int, at: Any) -> None:
                cells[r * units + at] = buffers["cell"][first + r, at]

            def end(r: int, at: Any) -> None:
                buffers["last"][first + r, at] = before[r * state + at]

            def end_cell(r: int, at: Any) -> None:
                buffers["cells"][first + r, at] = cells[r * units + at]

            copied(state, begin)
            if "cell" in buffers:
                copied(units, begin_cell)
            with ib.for_range(0, layer.steps, "step") as step:
                time = layer.time(step)

                def keep(r: int, at: Any, value: Any) -> None:
                    before[r * state + at] = value
                    buffers["states"][time, first + r, at] = value

                def new(start: Any, lanes: int) -> None:
                    sums = self._gates(time, first, rows, before, start, lanes)
                    for r in range(rows):
                        with self._lanes(lanes) as lane:
                            at = r * units + start + lane
                            made[at] = self._unit(sums(r, lane), cells, at)

                def projected(start: Any, lanes: int) -> None:
                    weight = buffers["projection"]
                    sums = self._products(
                        [[lambda _: tir.const(0, layer.dtype)]] * rows,
                        1,
                        lanes,
                        units,
                        lambda r, k: made[r * units + k],
                        lambda k, _, lane: weight[k, start + lane],
                    )
                    for r in range(rows):
                        with self._lanes(lanes) as lane:
                            keep(r, start + lane, sums(r, lane)[0])

                each(units, new)
                if "projection" in buffers:
                    each(state, projected)
                else:
                    copied(units, lambda r, at: keep(r, at, made[r * units + at]))
            copied(state, end)
            if "cell" in buffers:
                copied(units, end_cell)

    def _gates(
        self, time: Any, first: Any, rows: int, before: Any, start: Any, lanes: int
    ) -> Callable[[int, Any], list[Any]]:
        """The sums of neighbouring units: of a row and a lane, those of each gate."""
        layer, buffers = self._layer, self._buffers
        units, state = layer.units, layer.state

        def data(r: int, gate: int) -> Callable[[Any], Any]:
            return lambda lane: buffers["gates"][time, first + r, gate * units + start + lane]

        def initial(r: int) -> list[Callable[[Any], Any]]:
            gates = [data(r, gate) for gate in range(layer.count)]
            if "bias" in buffers:
                gates.insert(-1, lambda lane: buffers["bias"][start + lane])
            return gates

        return self._products(
            [initial(r) for r in range(rows)],
            layer.count,
            lanes,
            state,
            lambda r, k: before[r * state + k],
            self._weight(start, lanes),
        )

    def _products(
        self,
        initial: Sequence[Sequence[Callable[[Any], Any]]],
        count: int,
        lanes: int,
        depth: int,
        element: Callable[[int, Any], Any],
        weight: Callable[[Any, int, Any], Any],
    ) -> Callable[[int, Any], list[Any]]:
        """Sums over `depth` products of elements of rows and weights: of a row and a lane, all.

        Parameters
        ----------
        initial : for each row, from a lane to what each of its sums begins with.
        count : of how many sums, the first ones, there are products.
        element : of a row and a step of the sum.
        weight : of a step, a sum and a lane.
        """
        ib, n = self._ib, len(initial[0])
        sums = ib.allocate(self._layer.dtype, (len(initial) * n * lanes,), "sums", scope="local")
        for place, start in enumerate(start for row in initial for start in row):
            with self._lanes(lanes) as lane:
                sums[place * lanes + lane] = start(lane)
        with ib.for_range(0, depth, "k") as k:
            for r in range(len(initial)):
                for which in range(count):
                    with self._lanes(lanes) as lane:
                        at = (r * n + which) * lanes + lane
                        sums[at] = sums[at] + element(r, k) * weight(k, which, lane)
        return lambda r, lane: [sums[(r * n + which) * lanes + lane] for which in range(n)]

    @contextmanager
    def _lanes(self, count: int) -> Iterator[Any]:
        """The lanes of a vector; of one element there is no loop."""
        if count == 1:
            yield 0
            return
        with self._ib.for_range(0, count, "lane", kind="vectorize") as lane:
            yield lane
