"""The program that a trace makes, with its tile sizes left as variables.

A trace is read once. Each `sample_perfect_tile` gives variables, `split` and `fuse` say which loops
have them as extents, and the accesses of the tiled block say how much data the loops from each
depth on touch. Times follow from that by a bound in the manner of `felix.bound`: operations, chains
of dependent additions, and what moves between caches. All of it is differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import tvm
from tvm import tir
from tvm.runtime import DataType
from tvm.target import Target
from tvm.tir.schedule import BlockRV, Instruction, Schedule, Trace

from ..sch_analysis import TILED, all_blocks

__all__ = ["Knob", "TraceProgram"]

# Bytes a cycle that a core takes from its first and second cache, the third, and memory.
_BYTES_PER_CYCLE = (48.0, 16.0, 6.0)
# Lanes that the postprocessor gives a vector at most, and how many registers a body needs besides.
_LONGEST, _OPERANDS = 64, 2
# A register tile has at most so many rows of one axis; so many tiles are tried.
_MOST_ROWS, _MOST_CANONICAL = 32, 2048
# What it costs, in powers of two, that rows which are not written out keep sums in memory.
_IN_MEMORY = 1.6
_LINE = 64.0
# How much of a cache a tile may fill before others push it out.
_FILL = 0.75
# Exponent of the norm that puts work together which overlaps.
_OVERLAP = 4.0


class Knob(NamedTuple):
    """A sampled tiling: the instruction, the loop's extent, and all its factors that are allowed.

    Attributes
    ----------
    tiles : int64, shape (n_tiles, n_factors).
    """

    inst: Instruction
    extent: int
    tiles: np.ndarray


class TraceProgram:
    """The tiled block of a traced schedule for a processor.

    Points are the binary logarithms of all factors of all knobs, in order: float64 of shape
    (n_points, width).

    Raises
    ------
    ValueError : the schedule has no tiled block, or its loops are not those of the axes.
    """

    n_features = 13

    def __init__(self, sch: Schedule, trace: Trace, target: Target) -> None:
        self.trace = trace
        self.knobs, columns = _read_knobs(trace)
        if not self.knobs:
            raise ValueError("TraceProgram: the trace samples no tiles")
        self.width = sum(knob.tiles.shape[1] for knob in self.knobs)
        self._lanes = max(1.0, target.vector_width / 32)
        # Multiply-adds take four cycles; vectors of less than 512 bits are issued two in a cycle.
        self._latency = 4.0 if target.vector_width >= 512 else 8.0
        self._registers = float(target.num_vector_registers)
        self._cores = max(1, int(target.num_cores))
        self._caches = [float(size) for size in target.cache_bytes]
        block = self._tiled_block(sch)
        self._read_loops(sch, block, _extents(sch, trace, columns))
        self._read_accesses(sch, block)
        # Where the results of a tile are kept matters, and is the same for all points.
        self._copies = sum(str(inst.kind.name) == "ReverseComputeAt" for inst in trace.insts)

    @staticmethod
    def _tiled_block(sch: Schedule) -> BlockRV:
        tiled = [block for block, node in all_blocks(sch) if TILED in node.annotations]
        if len(tiled) != 1:
            raise ValueError(f"TraceProgram: {len(tiled)} blocks are tiled, one is needed")
        return tiled[0]

    def _read_loops(
        self, sch: Schedule, block: BlockRV, extents: dict[tir.Var, tuple[float, list[int]]]
    ) -> None:
        node, values = sch.get(block), sch.get_iter_values(block)
        self._loops: list[tuple[float, list[int]]] = []
        self._axis_of: list[int] = []
        self._sums: list[bool] = []
        for loop in sch.get_loops(block):
            statement = sch.get(loop)
            users = [i for i, value in enumerate(values) if _uses(value, statement.loop_var)]
            if len(users) > 1:
                raise ValueError("TraceProgram: a loop moves several axes")
            if statement.loop_var in extents:
                self._loops.append(extents[statement.loop_var])
            else:
                self._loops.append((math.log2(int(statement.extent.value)), []))
            axis = users[0] if users else -1
            self._axis_of.append(axis)
            kind = -1 if axis < 0 else int(node.iter_vars[axis].iter_type)
            self._sums.append(kind == int(tir.IterVar.CommReduce))

    def _read_accesses(self, sch: Schedule, block: BlockRV) -> None:
        """Read off the block what `describe` multiplies with."""
        node = sch.get(block)
        axes = [axis.var for axis in node.iter_vars]
        steps, row_bytes, owners, users = [], [], [], []
        regions = [*node.reads, *node.writes]
        for number, region in enumerate(regions):
            size = (DataType(str(region.buffer.dtype)).bits + 7) // 8
            used: set[int] = set()
            for place, part in enumerate(region.region):
                steps.append(_steps(part.min, axes))
                row_bytes.append(size if place == len(region.region) - 1 else 0)
                owners.append(number)
                used |= {axis for axis, step in enumerate(steps[-1]) if step}
            users.append(used)
        depth, double = len(self._loops), torch.float64
        self._tile_begin = depth
        while self._tile_begin > 0 and not self._sums[self._tile_begin - 1]:
            self._tile_begin -= 1
        self._steps = torch.tensor(steps, dtype=double)
        self._row_bytes = torch.tensor(row_bytes, dtype=double)
        self._owns = torch.zeros(len(owners), len(regions), dtype=double)
        self._owns[torch.arange(len(owners)), torch.tensor(owners)] = 1.0
        self._moves = torch.zeros(depth, len(axes), dtype=double)
        for loop, axis in enumerate(self._axis_of):
            if axis >= 0:
                self._moves[loop, axis] = 1.0
        self._columns = torch.zeros(self.width, depth, dtype=double)
        for loop, (_, columns) in enumerate(self._loops):
            for column in columns:
                self._columns[column, loop] += 1.0
        owner = [i for i, knob in enumerate(self.knobs) for _ in range(knob.tiles.shape[1])]
        self._of_sum = [False] * len(self.knobs)
        for loop, (_, columns) in enumerate(self._loops):
            for column in columns:
                self._of_sum[owner[column]] |= self._sums[loop]
        innermost = self._loops[-1][1]
        self._vector_knob = owner[innermost[-1]] if innermost else -1
        self._fixed = torch.tensor([fix for fix, _ in self._loops], dtype=double)
        self._fetched_at = torch.tensor(
            [[self._fetch_depth(at, used) for used in users] for at in range(depth + 1)]
        )
        reads = users[: len(node.reads)]
        self._reads = torch.tensor(
            [[float(axis in used) for axis in range(len(axes))] for used in reads], dtype=double
        )
        # Neighbours in lanes are one vector where they lie side by side, else each is loaded.
        last = self._axis_of[-1]
        self._wide = torch.tensor(
            [
                float(last in used and _steps(region.region[-1].min, axes)[last] == 1)
                for region, used in zip(node.reads, reads)
            ],
            dtype=double,
        )

    def _fetch_depth(self, at: int, used: set[int]) -> int:
        # Loops directly around that do not move the buffer find it where it was.
        while at > 0 and self._axis_of[at - 1] not in used:
            at -= 1
        return at

    # Points

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Random tiles of each knob: indices of shape (count, n_knobs)."""
        return np.stack([rng.integers(len(knob.tiles), size=count) for knob in self.knobs], axis=1)

    def canonical(self) -> np.ndarray:
        """What a hand would write first: indices of shape (count, n_knobs).

        Register tiles that fit, of one to four vectors where the extent has such; levels between
        them and the outermost one are 1, sums whole or as blocks.
        """
        # For each knob, tiles by their index, and the registers that each one multiplies.
        vectors: list[dict[int, int]] = []
        for number, knob in enumerate(self.knobs):
            sizes = knob.tiles[:, -1]
            fits = (knob.tiles[:, 1:-1] == 1).all(axis=1)
            cost = np.ones_like(sizes)
            if self._of_sum[number]:
                fits &= sizes >= np.sort(sizes[fits])[-2:][0]
            elif number == self._vector_knob:
                lanes = int(self._lanes)
                short = fits & (sizes <= 4 * lanes)
                fits = short & (sizes % lanes == 0)
                if not fits.any():
                    fits = short & (sizes == sizes[short].max())
                cost = -(-sizes // lanes)
            else:
                fits &= sizes <= _MOST_ROWS
                cost = sizes
            vectors.append({int(index): int(cost[index]) for index in np.flatnonzero(fits)})
        rows: list[tuple[int, tuple[int, ...]]] = [(1, ())]
        for costs in vectors:
            rows = [
                (count * cost, (*row, index))
                for count, row in rows
                for index, cost in costs.items()
                if count * cost + _OPERANDS <= self._registers
            ]
            rows = sorted(rows, key=lambda entry: -entry[0])[:_MOST_CANONICAL]
        return np.array([row for _, row in rows], dtype=np.int64)

    def unrolled(self, indices: np.ndarray, depths: Sequence[int]) -> np.ndarray:
        """The least of the depths at which the rows of each tile are written out, else the most."""
        with torch.no_grad():
            extents = self.points(indices) @ self._columns + self._fixed
            tile = extents[:, self._tile_begin :].sum(-1)
            lanes = torch.clamp(extents[:, -1], max=math.log2(self._lanes))
            rows = torch.where(tile <= math.log2(_LONGEST), 0.0, tile - lanes).numpy()
        ordered = np.sort(np.asarray(depths))
        place = np.searchsorted(ordered, np.exp2(rows) - 1e-6)
        return ordered[np.minimum(place, len(ordered) - 1)]

    def points(self, indices: np.ndarray) -> torch.Tensor:
        """Points of tiles given by their index in each knob."""
        parts = [
            np.log2(knob.tiles[column]) for knob, column in zip(self.knobs, np.asarray(indices).T)
        ]
        return torch.tensor(np.concatenate(parts, axis=1), dtype=torch.float64)

    def relaxed(self, free: torch.Tensor) -> torch.Tensor:
        """Points of unbounded variables: the factors of a knob always multiply to its extent."""
        parts, begin = [], 0
        for knob in self.knobs:
            end = begin + knob.tiles.shape[1]
            parts.append(torch.softmax(free[:, begin:end], -1) * math.log2(knob.extent))
            begin = end
        return torch.cat(parts, -1)

    def free(self, points: torch.Tensor) -> torch.Tensor:
        """Variables of which `relaxed` gives nearly these points."""
        parts, begin = [], 0
        for knob in self.knobs:
            end = begin + knob.tiles.shape[1]
            scale = max(math.log2(knob.extent), 1.0)
            parts.append(torch.log(points[:, begin:end] / scale + 0.03))
            begin = end
        return torch.cat(parts, -1)

    def round(self, points: torch.Tensor) -> np.ndarray:
        """Indices of the tiles nearest to points."""
        found, begin = [], 0
        values = points.detach().numpy()
        for knob in self.knobs:
            end = begin + knob.tiles.shape[1]
            table = np.log2(knob.tiles)
            distance = ((values[:, None, begin:end] - table[None]) ** 2).sum(-1)
            found.append(distance.argmin(1))
            begin = end
        return np.stack(found, axis=1)

    def decided(self, trace: Trace, indices: np.ndarray) -> Trace:
        """The trace with the tiles of one point."""
        for knob, index in zip(self.knobs, indices):
            tile = [int(size) for size in knob.tiles[index]]
            trace = trace.with_decision(knob.inst, tile, remove_postproc=True)
        return trace

    # What is known of a point

    def describe(self, points: torch.Tensor, unrolled: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """Binary logarithm of the bound in cycles, and coordinates in which like programs are near.

        Parameters
        ----------
        unrolled : steps that are written out, shape (n_points,); a coordinate only, since whether
            writing out pays is for measurements to say.

        Returns
        -------
        Shapes (n_points,) and (n_points, n_features).
        """
        extents = points @ self._columns + self._fixed
        inner = self._tile_begin
        tile = extents[:, inner:].sum(-1)
        last = extents[:, -1]
        lanes = torch.clamp(last, max=math.log2(self._lanes))
        vectors = tile - lanes
        total = extents.sum(-1)
        # A slot is the time of one vector multiply-add.
        operations = total - lanes
        waiting = torch.relu(math.log2(self._latency) - vectors)
        # Sums that do not all fit in registers are kept in memory, all of them.
        excess = torch.relu(vectors - math.log2(max(self._registers - _OPERANDS, 1.0)))
        spilled = torch.clamp(8.0 * excess, max=1.0) + 0.25 * excess
        inner_sum, outer_sum, between = self._sum_extents(extents)
        in_memory, written = self._unrolling(tile, vectors, inner_sum, unrolled)
        inside = self._inside(extents)
        touched = self._touched(inside)
        fetched = touched + self._trips(extents)
        moved = [
            self._moved(touched, fetched, size) - math.log2(rate)
            for size, rate in zip(self._caches, _BYTES_PER_CYCLE)
        ]
        loads = self._loads(inside[:, inner], lanes) + total - tile - 1.0
        # Sums stay in registers over both levels of a reduction if nothing loops between them.
        run = inner_sum + outer_sum * torch.exp2(-4.0 * between)
        sums = operations + 1.0 - run
        work = operations + waiting + _IN_MEMORY * (spilled + in_memory) + 0.2 * written
        parts = torch.stack([work, loads, sums, *moved], -1)
        busy = _log_sum(parts * _OVERLAP) / _OVERLAP
        imbalance = self._imbalance(extents)
        coordinates = torch.stack(
            [
                *(part - total for part in parts.unbind(-1)),
                lanes,
                vectors,
                imbalance,
                spilled + in_memory,
                written,
                torch.log2(unrolled + 1.0) / 4,
                torch.full_like(last, float(self._copies)),
            ],
            -1,
        )
        return busy + imbalance, coordinates

    def _sum_extents(
        self, extents: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logarithms of the sum's inner loops, its outer ones, and what loops between them."""
        inner = self._tile_begin
        start = inner
        while start > 0 and self._sums[start - 1]:
            start -= 1
        outer = [loop for loop in range(start) if self._sums[loop]]
        first = outer[-1] + 1 if outer else start
        return (
            extents[:, start:inner].sum(-1),
            extents[:, outer].sum(-1),
            extents[:, first:start].sum(-1),
        )

    @staticmethod
    def _unrolling(
        tile: torch.Tensor,
        vectors: torch.Tensor,
        inner_sum: torch.Tensor,
        unrolled: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """How far the rows of the tile are from being written out, and how long a body with steps
        of the sum is."""
        # Tiles that fit in the longest vector are one statement, others one a register.
        longest = math.log2(_LONGEST)
        statements = vectors * torch.clamp(4.0 * torch.relu(tile - longest), max=1.0)
        limit = torch.log2(torch.clamp(unrolled, min=1.0))
        in_memory = torch.clamp(torch.relu(statements - limit), max=1.0)
        steps = torch.minimum(inner_sum, torch.relu(limit - statements))
        whole = torch.clamp(steps - inner_sum + 1.0, min=0.0)
        return in_memory, whole * torch.relu(steps + vectors - 5.0)

    def _inside(self, extents: torch.Tensor) -> torch.Tensor:
        """Logarithms of how far each axis moves from each depth on: (n, depths, axes)."""
        by_axis = extents[:, :, None] * self._moves
        outside_in = torch.flip(torch.cumsum(torch.flip(by_axis, [1]), 1), [1])
        return torch.cat([outside_in, torch.zeros_like(outside_in[:, :1])], 1)

    def _touched(self, inside: torch.Tensor) -> torch.Tensor:
        """Logarithms of the bytes of each buffer that the loops from each depth on touch."""
        spans = 1.0 + (torch.exp2(inside) - 1.0) @ self._steps.T
        # Caches hold lines, not elements.
        lines = torch.clamp(spans * self._row_bytes, min=_LINE)
        sizes = torch.where(self._row_bytes > 0, lines, spans)
        return torch.log2(sizes) @ self._owns

    def _trips(self, extents: torch.Tensor) -> torch.Tensor:
        """Logarithms of how often what each buffer has below each depth is fetched."""
        prefix = torch.cat([torch.zeros_like(extents[:, :1]), torch.cumsum(extents, 1)], 1)
        return prefix[:, self._fetched_at]

    @staticmethod
    def _moved(touched: torch.Tensor, fetched: torch.Tensor, capacity: float) -> torch.Tensor:
        """Logarithm of the bytes that come into a cache of `capacity` bytes."""
        excess = torch.relu(_log_sum(touched) - math.log2(_FILL * capacity))
        options = _log_sum(fetched) + 4.0 * excess
        # The best depth at which to hold a tile, smooth so that it can change on the way.
        return -torch.logsumexp(-options * 2.0, -1) / 2.0

    def _loads(self, tile: torch.Tensor, lanes: torch.Tensor) -> torch.Tensor:
        """Logarithm of the vectors that one body of the innermost tile reads."""
        elements = tile @ self._reads.T
        return torch.log2(torch.exp2(elements - lanes[:, None] * self._wide).sum(-1))

    def _imbalance(self, extents: torch.Tensor) -> torch.Tensor:
        """Logarithm of the cores that wait for others, on average."""
        outer = 0
        while outer < len(self._loops) and not self._sums[outer]:
            outer += 1
        jobs = torch.exp2(torch.clamp(extents[:, :outer].sum(-1), max=24.0))
        rounds = torch.ceil(jobs.detach() / self._cores - 1e-9)
        idle = torch.clamp(self._cores * rounds / jobs, max=float(self._cores))
        return torch.log2(torch.clamp(idle, min=1.0))


def _read_knobs(trace: Trace) -> tuple[list[Knob], dict[int, int]]:
    """The sampled tilings, and the column of each of their variables by its hash."""
    knobs: list[Knob] = []
    columns: dict[int, int] = {}
    for inst in trace.insts:
        if str(inst.kind.name) != "SamplePerfectTile":
            continue
        decision = [int(getattr(size, "value", size)) for size in trace.get_decision(inst)]
        extent = math.prod(decision)
        most = inst.arguments["max_innermost_factor"]
        limit = int(getattr(most, "value", most))
        for out in inst.outputs:
            columns[hash(out)] = len(columns)
        knobs.append(Knob(inst, extent, _factorizations(extent, len(decision), limit)))
    return knobs, columns


def _factorizations(extent: int, parts: int, limit: int) -> np.ndarray:
    """All ways to write an extent as a product of factors, the last of which is at most a limit."""
    found: list[list[int]] = [[]]
    rest = [extent]
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    for _ in range(parts - 1):
        grown, left = [], []
        for head, remaining in zip(found, rest):
            for d in divisors:
                if remaining % d == 0:
                    grown.append([*head, d])
                    left.append(remaining // d)
        found, rest = grown, left
    tiles = [[*head, last] for head, last in zip(found, rest) if limit <= 0 or last <= limit]
    return np.array(tiles, dtype=np.int64)


def _extents(
    sch: Schedule, trace: Trace, columns: dict[int, int]
) -> dict[tir.Var, tuple[float, list[int]]]:
    """The extents of loops as a constant and columns, in logarithms."""
    by_loop: dict[int, tuple[float, list[int]]] = {}
    found: dict[tir.Var, tuple[float, list[int]]] = {}
    for inst in trace.insts:
        kind = str(inst.kind.name)
        if kind == "Split":
            for loop, factor in zip(inst.outputs, inst.arguments["factors"]):
                if hash(factor) in columns and not isinstance(factor, int):
                    by_loop[hash(loop)] = (0.0, [columns[hash(factor)]])
        elif kind == "Fuse" and all(hash(loop) in by_loop for loop in inst.inputs):
            parts = [by_loop[hash(loop)] for loop in inst.inputs]
            fix = math.fsum(part[0] for part in parts)
            of = [column for part in parts for column in part[1]]
            by_loop[hash(inst.outputs[0])] = (fix, of)
        for loop in inst.outputs:
            if hash(loop) in by_loop:
                try:
                    found[sch.get(loop).loop_var] = by_loop[hash(loop)]
                except tir.ScheduleError:  # a later step took the loop away
                    continue
    return found


def _steps(index: Any, axes: list[tir.Var]) -> list[int]:
    """By how much an index moves with each axis; by one where that is not the same everywhere."""
    linear = tvm.arith.detect_linear_equation(index, axes)
    if not len(linear):
        return [int(_uses(index, axis)) for axis in axes]
    steps = list(linear)[: len(axes)]
    return [abs(int(step.value)) if isinstance(step, tir.IntImm) else 1 for step in steps]


def _log_sum(values: torch.Tensor) -> torch.Tensor:
    """Binary logarithm of the sum of powers of two."""
    return torch.logsumexp(values * math.log(2), -1) / math.log(2)


def _uses(expr: Any, var: tir.Var) -> bool:
    found = False

    def visit(node: Any) -> None:
        nonlocal found
        found = found or (isinstance(node, tir.Var) and node.same_as(var))

    tir.stmt_functor.post_order_visit(expr, visit)
    return found
