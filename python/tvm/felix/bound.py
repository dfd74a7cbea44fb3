"""How fast a program for processors can be at best, from its features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from tvm.target import Target

__all__ = ["ProcessorBound"]

# What operations of one element cost, in multiply-adds of one vector lane. Divisions and elementary
# functions are sequences of operations; the rest shares the ports of multiply-adds.
_OP_COSTS = {
    "float_mad": 1.0,
    "float_addsub": 1.0,
    "float_mul": 1.0,
    "float_divmod": 8.0,
    "float_cmp": 1.0,
    "float_math_func": 16.0,
    "float_other_func": 2.0,
    "int_addsub": 0.5,
    "int_mul": 0.5,
    "int_divmod": 8.0,
    "int_cmp": 0.5,
    "bool_op": 0.5,
    "select_op": 0.5,
}
# What crosses into L1, L2 and L3: bytes, and contiguous pieces, of which nothing fetches the first
# line ahead. From L2 it comes soon enough.
_TRAFFIC = (("l1_traffic", None), ("l2_traffic", "l2_pieces"), ("l3_traffic", "l3_pieces"))
# Vectors that cross while one vector multiply-add is issued, and bytes that cross in the time that
# the start of a piece takes.
_VECTORS_PER_SLOT = (0.5, 0.3, 0.08)
_BYTES_PER_PIECE = 64.0
# Instructions that are decoded while one multiply-add is issued, and those of a loop's own.
_DECODED_PER_SLOT = 2.5
_LOOP_INSTRUCTIONS = 3.0
# What it costs to give work to all cores and to wait for them.
_PARALLEL_SLOTS = 4000.0
# What a loop around a register tile costs once: its end is not foreseen, and the tile is read from
# memory and written back. A loop with so few multiply-adds overlaps with the next one.
_VISIT_SLOTS = 16.0
_SHORT_VISIT_SLOTS = 128.0
_LATENCY_CYCLES = 4.0
# The components of one store overlap, but not perfectly: their norm of this power is taken.
_OVERLAP = 4.0
# Columns that tell programs of equal bounds apart.
_SHAPE_COLUMNS = (
    "tile_rows",
    "vec_len",
    "vectors_loaded",
    "scalars_broadcast",
    "chunks_per_core",
    "parallel_len",
)

Column = Callable[[str], torch.Tensor]


class ProcessorBound:
    """The least time of a program: its ports, latencies, caches and cores, in multiply-add slots.

    A slot is the time in which a core issues one vector multiply-add. A core that does nothing else
    is at the machine's peak, so no program is predicted to be faster than that. After Williams et
    al., "Roofline", CACM 52(4), 2009, with a ceiling for each resource.

    Parameters
    ----------
    columns : names of the feature columns.
    target : the processor.
    lanes : elements of a vector.
    peak : FLOP a second of all cores; infinite if it is not known.
    """

    def __init__(self, columns: Sequence[str], target: Target, lanes: int, peak: float) -> None:
        self._column = {name: i for i, name in enumerate(columns)}
        self._cores = max(int(target.num_cores), 1)
        self._lanes = float(lanes)
        self._peak = peak
        self._vector_bytes = float(target.vector_width) / 8
        self._cache_bytes = [float(size) for size in target.cache_bytes]
        self._latency = _LATENCY_CYCLES * target.vector_units
        costs = torch.zeros(len(columns), dtype=torch.float64)
        for name, cost in _OP_COSTS.items():
            costs[self._column[name]] = cost
        self._costs = costs
        self._counted = (costs > 0).double()
        self._read_write = [
            i for name, i in self._column.items() if name.endswith(".acc_type.kReadWrite")
        ]

    def slots(self, features: torch.Tensor) -> torch.Tensor:
        """Slots of whole programs, all cores at work: (n, n_stores, n_columns) to (n,).

        Differentiable wherever the features are.
        """
        return self._of_stores(features)[0].sum(-1)

    def describe(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """ln of the slots, and coordinates in which like programs are near: (n,) and (n, n_coords).

        Coordinates are logarithms: the components of the bound, and the tile of the stores that do
        the work.
        """
        total, parts = self._of_stores(features)
        shares = parts[0] / parts[0].sum(-1, keepdim=True).clamp_min(1e-9)
        shape = [(shares * features[..., self._column[name]]).sum(-1) for name in _SHAPE_COLUMNS]
        components = [torch.log1p(part.sum(-1)) for part in parts]
        return total.sum(-1).log(), torch.stack([*components, *shape], -1)

    def _of_stores(self, features: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        values = torch.expm1(features.double().clamp(0.0, 60.0))

        def column(name: str) -> torch.Tensor:
            return values[..., self._column[name]]

        # A vector that is not full costs as much as a full one.
        vectors = column("vector_waste").clamp_min(1.0) / self._lanes
        stores = column("outer_prod") * vectors
        operations = (values * self._costs).sum(-1) * vectors
        tile = column("tile_vectors").clamp_min(1.0)
        # Where a window is unrolled, a body does several steps of the reduction.
        work = (values * self._counted).sum(-1) / column("outer_prod").clamp_min(1.0)
        steps = (column("vector_ops") / (tile * work.clamp_min(1e-3))).clamp_min(1.0)
        bodies = stores / (tile * steps)
        loads = column("tile_loads")
        update = values.new_zeros(values.shape[:-1])
        if self._read_write:
            update = features[..., self._read_write].double().amax(-1)
        visits = update * column("tile_visits")
        waiting = operations * self._waiting(tile, column) * _share_of_long(operations, visits)
        decoded = column("vector_ops") + loads + _LOOP_INSTRUCTIONS
        parts = [
            operations + waiting,
            bodies * loads,
            bodies * decoded / _DECODED_PER_SLOT,
            *(
                self._moved(column(traffic), column(pieces) if pieces else None, level)
                for level, (traffic, pieces) in enumerate(_TRAFFIC)
            ),
        ]
        scale = torch.stack(parts).amax(0).clamp_min(1.0)
        norm = sum((part / scale) ** _OVERLAP for part in parts) ** (1 / _OVERLAP) * scale
        begun = visits * _VISIT_SLOTS
        busy = (norm + begun) * column("core_imbalance").clamp_min(1.0) / self._cores
        starting = _PARALLEL_SLOTS * features[..., self._column["parallel_num"]].double().clamp(
            0, 1
        )
        return busy + starting / self._cores + 1.0, [*parts, begun]

    def _waiting(self, tile: torch.Tensor, column: Column) -> torch.Tensor:
        """Share of its own time that a register tile waits for its sums in long loops.

        It does with fewer accumulators than multiply-adds are under way; so does a last tile that
        is not full.
        """
        last, share = tile * column("last_tile_part"), column("last_tile_share").clamp(0.0, 1.0)
        taken = (1 - share) * tile.clamp_min(self._latency) + share * last.clamp_min(self._latency)
        return taken / ((1 - share) * tile + share * last) - 1.0

    def _moved(
        self, traffic: torch.Tensor, pieces: torch.Tensor | None, level: int
    ) -> torch.Tensor:
        """Slots for bytes that cross into a cache in pieces, of a program that runs repeatedly.

        What fits is still there from the run before, so only traffic beyond the cache's size counts
        in full.
        """
        beyond = traffic / (traffic + self._cache_bytes[level])
        cost = traffic if pieces is None else traffic + _BYTES_PER_PIECE * pieces
        return cost * beyond / (self._vector_bytes * _VECTORS_PER_SLOT[level])

    def seconds(self, slots: float) -> float:
        """Seconds of a number of slots; infinite where the machine's peak is not known."""
        if not math.isfinite(self._peak):
            return math.inf
        return slots * 2.0 * self._lanes / self._peak * self._cores


def _share_of_long(operations: torch.Tensor, visits: torch.Tensor) -> torch.Tensor:
    """How far loops around a tile are long enough for nothing to overlap with what follows."""
    short = visits * _SHORT_VISIT_SLOTS
    return torch.where(visits > 0, operations**2 / (operations**2 + short**2 + 1.0), 0.0)
