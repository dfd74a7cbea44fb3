"""Layers that go through a sequence step by step, each of them one kernel.

What the data adds to the gates waits for no step and is a matrix product over all of them, whose
result these kernels take. Long short-term memory: Hochreiter and Schmidhuber, Neural Computation
9(8), 1997; gated recurrent units: Cho et al., EMNLP 2014, and the form in which the reset gate acts
on the product.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import te, tir
from tvm.target import Target

from .. import tag
from ..utils import const_shape, get_const_tuple, is_constant, same_extent
from .gate_quotients import GateFunctions, Quotient

__all__ = ["gru_steps", "lstm_steps", "rnn_steps"]

# Rows and vectors of a tile at most, and the rows that stand for an open batch.
_MOST_ROWS, _MOST_VECTORS = 14, 8
_TYPICAL_ROWS = 48
# Sums without which a processor waits for the products that it has begun.
_PRODUCTS_UNDER_WAY = 10
_THREADS = 256

# From the sums of a unit's gates, memory, and the unit's place in it to the unit's new state.
_Unit = Callable[[list[Any], Any, Any], Any]
# From the sums of all gates but the last, states, and the unit's place in them to what the last
# gate's weights are multiplied with, and what the unit has as its last sum.
_Held = Callable[[list[Any], Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class _Panel:
    """Neighbouring units, which are taken at a time.

    Attributes
    ----------
    index : of the panel.
    start : the first unit.
    width : how many units.
    """

    index: Any
    start: Any
    width: int


# Runs a part for so many units, panel by panel.
_EachPanel = Callable[[int, Callable[[_Panel], None]], None]


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
        kept = layer.of.sigmoid(forget) * Quotient(cells[at])
        cells[at] = (kept + layer.of.sigmoid(into) * layer.of.tanh(candidate)).value
        return (layer.of.sigmoid(out) * layer.of.tanh(cells[at])).value

    return layer.kernel(unit, cell=cell, projection=projection)


def gru_steps(
    gates: te.Tensor,
    weight: te.Tensor,
    hidden: te.Tensor,
    bias: te.Tensor,
    backwards: bool = False,
    reset_after: bool = True,
) -> list[te.Tensor]:
    """Gated recurrent units over all steps of a sequence.

    Parameters
    ----------
    gates : what data and biases add to the gates, (steps, batch, 3 * units): reset and update gate
        and the candidate, this without `bias`.
    weight : (units, 3 * units), what the state adds to them.
    hidden : state before the first step, (batch, units).
    bias : (units,), added to what the state gives the candidate.
    backwards : begin with the last step.
    reset_after : whether the reset gate acts on what state and `bias` give the candidate, or on the
        state before.

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
        candidate = from_data + (layer.of.sigmoid(reset) * Quotient(from_state)).value
        return mixed(update, states[at], candidate)

    def mixed(update: Any, state: Any, candidate: Any) -> Any:
        new = layer.of.one_minus_sigmoid(update) * layer.of.tanh(candidate)
        return (new + layer.of.sigmoid(update) * Quotient(state)).value

    def held(sums: list[Any], states: Any, at: Any) -> tuple[Any, Any]:
        reset, update = sums
        return (layer.of.sigmoid(reset) * Quotient(states[at])).value, update

    def unit_of_held(sums: list[Any], states: Any, at: Any) -> Any:
        from_state, from_data, update = sums
        return mixed(update, states[at], from_data + from_state)

    if reset_after:
        return layer.kernel(unit, bias=bias)
    return layer.kernel(unit_of_held, bias=bias, held=held)


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
        if activation == "tanh":
            return layer.of.tanh(total).value
        return tir.max(total, tir.const(0, layer.dtype))

    return layer.kernel(unit)


class _Layer:
    """What a kernel knows of its layer.

    Attributes
    ----------
    steps, batch, units, state : extents.
    of : the functions of its gates.
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
        self._target = Target.current(allow_none=True) or Target("llvm")
        self._has_threads = "gpu" in self._target.keys
        self._name = name
        self._gates, self._weight, self._hidden = gates, weight, hidden
        self._count = count
        self._backwards = backwards
        self.dtype = gates.dtype
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"topi.nn.{name}: gates are float32 or float64, got {self.dtype}")
        self.of = GateFunctions(self.dtype == "float32" and not self._has_threads)
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
        held: _Held | None = None,
    ) -> list[te.Tensor]:
        """States of all steps, the last of them, and the last cells of layers that have some.

        Parameters
        ----------
        unit : gets the sums of a unit's gates, a row of cells (of states where there are none), and
            the unit's place there; of a layer with a bias the last gate's sum comes in two parts,
            from the state and from the data.
        held : of a layer whose last gate has other products than with the state.
        """
        target, has_threads = self._target, self._has_threads
        rows = int(self.batch) if is_constant(self.batch) else _TYPICAL_ROWS
        if has_threads:
            tile = _Tile(1, self._count, 1, 1)
        else:
            gates = [g for g in range(1, self._count + 1) if self._count % g == 0]
            tile = _Tile.best(target, self, _rows_of_block(rows, target), [1] if held else gates)
        weight = self._weight if has_threads else self._panels(tile)
        given = {"gates": self._gates, "weight": weight, "hidden": self._hidden}
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
            program = _Program(self, ib, buffers, unit, held, tile)
            if has_threads:
                program.for_threads()
            else:
                program.for_vectors(target)
            return ib.get()

        types = [self.dtype] * len(shapes)
        return list(
            te.extern(shapes, list(given.values()), body, name=f"T_{self._name}", dtype=types)
        )

    def _panels(self, tile: _Tile) -> te.Tensor:
        """The weights in the order of their use, the gates of a tile beside each other.

        Panels of units, groups of gates, state, gates of the group, units of the panel. In the
        tensor the gates of a unit are a row's length apart.
        """
        units, count = self.units, self._count
        weight = self._weight

        def element(panel: Any, group: Any, k: Any, gate: Any, lane: Any) -> Any:
            unit = panel * tile.width + lane
            value = weight[k, (group * tile.gates + gate) * units + unit]
            if units % tile.width == 0:
                return value
            return tir.if_then_else(unit < units, value, tir.const(0, self.dtype))

        panels, groups = -(-units // tile.width), count // tile.gates
        shape = (panels, groups, self.state, tile.gates, tile.width)
        return te.compute(shape, element, name="panels", tag=tag.RECURRENT_PANELS)

    @property
    def count(self) -> int:
        """Gates of a unit."""
        return self._count

    def time(self, step: Any) -> Any:
        """The place in the sequence of the step taken as the number `step`."""
        return self.steps - 1 - step if self._backwards else step


def _rows_of_block(rows: int, target: Target) -> int:
    """Rows of the blocks that run in parallel, of which the last may have fewer.

    Each of them goes through all weights, so there are no more than cores.
    """
    return -(-rows // max(1, int(target.num_cores)))


@dataclass(frozen=True)
class _Tile:
    """What is summed up at a time: for some rows, some gates of some vectors of units.

    Attributes
    ----------
    rows : of the batch.
    gates : as many of them, a divisor of how many there are.
    lanes : elements of a vector.
    width : units, a multiple of `lanes`.
    """

    rows: int
    gates: int
    lanes: int
    width: int

    @classmethod
    def best(cls, target: Target, layer: _Layer, rows: int, gates: Sequence[int]) -> _Tile:
        """The one with which a step of `rows` rows takes the fewest cycles.

        A cycle begins two products, reads two vectors from the first cache, and one of weights from
        the second.

        Parameters
        ----------
        gates : how many may be taken at a time.
        """
        lanes = max(1, int(target.vector_width) // tir.const(0, layer.dtype).dtype.bits)
        registers = int(target.num_vector_registers)

        def cycles(of_rows: int, columns: int) -> float:
            products, reads = of_rows * columns, of_rows + columns
            return max(products / 2, reads / 2, columns, _PRODUCTS_UNDER_WAY / 2)

        def step(of_rows: int, of_gates: int, vectors: int) -> float:
            whole, rest = divmod(rows, of_rows)
            columns = of_gates * vectors
            total = whole * cycles(of_rows, columns) + (cycles(rest, columns) if rest else 0)
            return -(-layer.units // (vectors * lanes)) * (layer.count // of_gates) * total

        def fits(of_rows: int, of_gates: int, vectors: int) -> bool:
            columns = of_gates * vectors
            return of_rows * columns + min(of_rows, columns) + 1 <= registers

        choices = itertools.product(
            range(1, min(rows, _MOST_ROWS) + 1), gates, range(1, _MOST_VECTORS + 1)
        )
        fitting = [choice for choice in choices if fits(*choice)] or [(1, 1, 1)]
        of_rows, of_gates, vectors = min(fitting, key=lambda c: (step(*c), c[1] * c[2]))
        return cls(of_rows, of_gates, lanes, vectors * lanes)


class _Program:
    """The statements of one kernel.

    Rows of the batch do not depend on each other; a block of them goes through all steps, with its
    state in memory of its own. In a step, sums of all rows are formed of one panel of weights after
    the other, so that these are read from near.
    """

    def __init__(
        self,
        layer: _Layer,
        ib: Any,
        buffers: dict[str, Any],
        unit: _Unit,
        held: _Held | None,
        tile: _Tile,
    ) -> None:
        self._layer = layer
        self._ib = ib
        self._buffers = buffers
        self._unit = unit
        self._held = held
        self._tile = tile
        # Of the current block: rows, and sums of a panel's gates.
        self._rows = 0
        self._sums: Any = None

    def for_vectors(self, target: Target) -> None:
        """Blocks of rows in parallel, and units in vectors."""
        layer, ib, tile = self._layer, self._ib, self._tile

        def each(size: int, body: Callable[[_Panel], None]) -> None:
            panels, rest = divmod(size, tile.width)
            if panels:
                with ib.for_range(0, panels, "panel") as panel:
                    body(_Panel(panel, panel * tile.width, tile.width))
            if rest:
                body(_Panel(panels, panels * tile.width, rest))

        def steps(first: Any, rows: int) -> None:
            self._all_steps(first, rows, each, "global", "global")

        if not is_constant(layer.batch):
            rest = layer.batch % tile.rows
            with ib.for_range(0, layer.batch // tile.rows, "block", kind="parallel") as block:
                steps(block * tile.rows, tile.rows)
            with ib.for_range(0, rest, "row", kind="parallel") as row:
                steps(layer.batch - rest + row, 1)
            return
        batch = int(layer.batch)
        rows = _rows_of_block(batch, target)
        whole, rest = divmod(batch, rows)
        with ib.for_range(0, whole + (rest > 0), "block", kind="parallel") as block:
            if not rest:
                steps(block * rows, rows)
                return
            with ib.if_scope(block < whole):
                steps(block * rows, rows)
            with ib.else_scope():
                steps(whole * rows, rest)

    def for_threads(self) -> None:
        """A block of threads for each row, and a thread for every so many units."""
        ib, layer = self._ib, self._layer
        row, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        threads = min(_THREADS, layer.units)
        ib.scope_attr(row, "thread_extent", layer.batch)
        ib.scope_attr(thread, "thread_extent", threads)

        def each(size: int, body: Callable[[_Panel], None]) -> None:
            with ib.for_range(0, -(-size // threads), "part") as part:
                at = part * threads + thread
                with ib.if_scope(at < size):
                    body(_Panel(at, at, 1))
            ib.emit(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared"))

        self._all_steps(row, 1, each, "shared", "local")

    def _all_steps(
        self, first: Any, rows: int, each: _EachPanel, scope: str, sums_scope: str
    ) -> None:
        """The steps of `rows` rows of the batch.

        Parameters
        ----------
        each : as its type says; behind it every thread sees what was written.
        scope, sums_scope : of the memory in which threads see it, and of that of sums.
        """
        layer, ib, buffers = self._layer, self._ib, self._buffers
        units, state = layer.units, layer.state
        self._rows = rows

        def memory(size: int, name: str, where: str = scope) -> Any:
            return ib.allocate(layer.dtype, (rows * size,), name, scope=where)

        def every(size: int, do: Callable[[Any, Any], None]) -> None:
            each(size, lambda panel: self._elements(panel, do))

        with ib.new_scope():
            before, made = memory(state, "before"), memory(units, "made")
            cells = memory(units, "kept") if "cell" in buffers else before
            share = memory(units, "share") if self._held else before
            gate: Any = memory(units, "gate") if self._held else None
            self._sums = memory(layer.count * self._tile.width, "sums", sums_scope)

            def begin(row: Any, at: Any) -> None:
                before[row * state + at] = buffers["hidden"][first + row, at]

            def begin_cell(row: Any, at: Any) -> None:
                cells[row * units + at] = buffers["cell"][first + row, at]

            def end(row: Any, at: Any) -> None:
                buffers["last"][first + row, at] = before[row * state + at]

            def end_cell(row: Any, at: Any) -> None:
                buffers["cells"][first + row, at] = cells[row * units + at]

            every(state, begin)
            if "cell" in buffers:
                every(units, begin_cell)
            with ib.for_range(0, layer.steps, "step") as step:
                time = layer.time(step)

                def totals(panel: _Panel, which: Sequence[int], row: Any, at: Any) -> list[Any]:
                    """The gates of a unit: what the state adds, and what the data adds."""
                    data = [buffers["gates"][time, first + row, g * units + at] for g in which]
                    of_state = [self._sum(panel, g, row, at) for g in which]
                    if "bias" in buffers and which[-1] == layer.count - 1:
                        both = [a + b for a, b in zip(of_state[:-1], data)]
                        return [*both, of_state[-1] + buffers["bias"][at], data[-1]]
                    return [a + b for a, b in zip(of_state, data)]

                def hold(panel: _Panel) -> None:
                    which = range(layer.count - 1)

                    def element(row: Any, at: Any) -> None:
                        assert self._held is not None
                        where = row * units + at
                        found = self._held(totals(panel, which, row, at), before, where)
                        share[where], gate[where] = found

                    self._products_of_state(panel, which, before)
                    self._elements(panel, element)

                def new(panel: _Panel) -> None:
                    which = range(layer.count - 1 if self._held else 0, layer.count)

                    def element(row: Any, at: Any) -> None:
                        where = row * units + at
                        rest = [gate[where]] if self._held else []
                        gates = [*totals(panel, which, row, at), *rest]
                        made[where] = self._unit(gates, cells, where)

                    self._products_of_state(panel, which, share)
                    self._elements(panel, element)

                def keep(row: Any, at: Any, value: Any) -> None:
                    before[row * state + at] = value
                    buffers["states"][time, first + row, at] = value

                def projected(panel: _Panel) -> None:
                    weight = buffers["projection"]
                    self._products(
                        panel, [0], made, units, lambda k, _, lane: weight[k, panel.start + lane]
                    )
                    self._elements(
                        panel, lambda row, at: keep(row, at, self._sum(panel, 0, row, at))
                    )

                if self._held:
                    each(units, hold)
                each(units, new)
                if "projection" in buffers:
                    each(state, projected)
                else:
                    every(units, lambda row, at: keep(row, at, made[row * units + at]))
            every(state, end)
            if "cell" in buffers:
                every(units, end_cell)

    def _products_of_state(self, panel: _Panel, which: Sequence[int], states: Any) -> None:
        """Sums of some gates of a panel: products of weights and `states`, row by row."""
        units, weight = self._layer.units, self._buffers["weight"]
        of_tile = self._tile.gates

        def weight_of(k: Any, gate: Any, lane: Any) -> Any:
            if len(weight.asobject().shape) == 2:
                return weight[k, gate * units + panel.start + lane]
            return weight[panel.index, gate // of_tile, k, gate % of_tile, lane]

        self._products(panel, which, states, self._layer.state, weight_of)

    def _products(
        self,
        panel: _Panel,
        which: Sequence[int],
        rows: Any,
        depth: int,
        weight: Callable[[Any, int, Any], Any],
    ) -> None:
        """Sums over `depth` products of elements of rows and weights, for all rows and some gates.

        Parameters
        ----------
        rows : `depth` elements of each row.
        weight : of a step of the sum, a gate and a unit of the panel.
        """
        tile, ib = self._tile, self._ib
        whole, rest = divmod(self._rows, tile.rows)
        for first in range(0, len(which), tile.gates):
            gates = which[first : first + tile.gates]
            if whole:
                with ib.for_range(0, whole, "tile") as t:
                    self._tile_of(panel, gates, t * tile.rows, tile.rows, rows, depth, weight)
            if rest:
                start = whole * tile.rows
                self._tile_of(panel, gates, start, rest, rows, depth, weight)

    def _tile_of(
        self,
        panel: _Panel,
        gates: Sequence[int],
        first: Any,
        count: int,
        rows: Any,
        depth: int,
        weight: Callable[[Any, int, Any], Any],
    ) -> None:
        """The sums of `count` rows, in registers until they are complete."""
        ib, width = self._ib, panel.width
        size = len(gates) * count * width
        sums = ib.allocate(self._layer.dtype, (size,), "tile_sums", scope="local")

        columns = [(g, piece) for g in range(len(gates)) for piece in self._pieces(panel)]
        # Registers hold the vectors, or else the rows' elements, of a step of the sum: the fewer.
        parts = [(column, n) for n in range(count) for column in columns]
        if count < len(columns):
            parts.sort(key=lambda part: part[0])

        def each(do: Callable[[Any, int, Any, Any], None]) -> None:
            """For each row, gate and unit of the panel: its place in `sums`, and these."""
            for (g, (offset, lanes)), n in parts:
                with self._lanes(lanes) as lane:
                    at = (g * count + n) * width + offset + lane
                    do(at, gates[g], n, offset + lane)

        def begin(at: Any, gate: int, n: int, lane: Any) -> None:
            sums[at] = tir.const(0, self._layer.dtype)

        def end(at: Any, gate: int, n: int, lane: Any) -> None:
            self._sums[self._place(gate, first + n, lane)] = sums[at]

        each(begin)
        with ib.for_range(0, depth, "k") as k:

            def add(at: Any, gate: int, n: int, lane: Any) -> None:
                sums[at] = sums[at] + rows[(first + n) * depth + k] * weight(k, gate, lane)

            each(add)
        each(end)

    def _place(self, gate: int, row: Any, lane: Any) -> Any:
        """Where the sum of a panel's unit is kept."""
        return (gate * self._rows + row) * self._tile.width + lane

    def _sum(self, panel: _Panel, gate: int, row: Any, at: Any) -> Any:
        return self._sums[self._place(gate, row, at - panel.start)]

    def _elements(self, panel: _Panel, do: Callable[[Any, Any], None]) -> None:
        """Do something for each row and each unit of a panel."""
        with self._ib.for_range(0, self._rows, "row") as row:
            for offset, lanes in self._pieces(panel):
                with self._lanes(lanes) as lane:
                    do(row, panel.start + offset + lane)

    def _pieces(self, panel: _Panel) -> list[tuple[int, int]]:
        """First unit and length of each vector of a panel."""
        lanes = self._tile.lanes
        return [(at, min(lanes, panel.width - at)) for at in range(0, panel.width, lanes)]

    @contextmanager
    def _lanes(self, count: int) -> Iterator[Any]:
        """The lanes of a vector; of one element there is no loop."""
        if count == 1:
            yield 0
            return
        with self._ib.for_range(0, count, "lane", kind="vectorize") as lane:
            yield lane
