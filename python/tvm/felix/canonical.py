"""Canonical points of a sketch: what an experienced hand would write down first.

Register tiles just under what the registers hold, of one to four vectors; reductions whole or in
blocks of a cache; everything between the register tile and the cores' chunks one, or one loop of
it more. The best of these equal most hand schedules, so a search that measures them first starts
there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from enum import Enum

from tvm import tir

from .sketch import Sketch

__all__ = ["KnobRole", "canonical_configs", "knob_roles", "split_groups"]

_VECTORIZED, _UNROLLED = 2, 1
_REDUCTION = 1
# Register tiles, reduction blocks and outer tiles of one sketch that are put together.
_MAX_TILES = 24
_MAX_REDUCTIONS = 6
_BLOCKS = (32, 64, 128, 256)
# A reduction axis of at most this many steps is a window's, which nobody cuts.
_WINDOW = 11
_MAX_VECTORS = 4
_MAX_UNROLLED = 32


class KnobRole(Enum):
    """What a tile size is for."""

    LANES = "lanes"
    """Of a vectorised loop."""
    ROWS = "rows"
    """Of an unrolled space loop: rows of the register tile."""
    WINDOW = "window"
    """Of an unrolled reduction loop."""
    REDUCTION = "reduction"
    """Of a reduction loop around the register tile."""
    OUTER = "outer"
    """Of any other loop."""


def knob_roles(sketch: Sketch) -> dict[str, KnobRole]:
    """What each knob of a sketch is for, by the loops whose extent it is."""
    knobs = {name for _, names in split_groups(sketch) for name in names}
    roles: dict[str, KnobRole] = {}
    for stage in sketch.state.stages:
        for loop in stage.iters:
            extent = None if loop.range is None else _variable_of(loop.range.extent)
            # What tiles leave of a loop is a variable, too.
            if extent is None or str(extent.name) not in knobs:
                continue
            is_reduction = int(loop.iter_kind) == _REDUCTION
            if int(loop.annotation) == _VECTORIZED:
                role = KnobRole.LANES
            elif int(loop.annotation) == _UNROLLED:
                role = KnobRole.WINDOW if is_reduction else KnobRole.ROWS
            else:
                role = KnobRole.REDUCTION if is_reduction else KnobRole.OUTER
            roles.setdefault(str(extent.name), role)
            if role in (KnobRole.LANES, KnobRole.ROWS):
                roles[str(extent.name)] = role
    return roles


def _variable_of(extent: tir.PrimExpr) -> tir.SizeVar | None:
    """The variable that an extent is, at most the loop's own where tiles need not divide it."""
    if isinstance(extent, tir.Min) and isinstance(extent.b, tir.IntImm):
        extent = extent.a
    return extent if isinstance(extent, tir.SizeVar) else None


def split_groups(sketch: Sketch) -> list[tuple[int, list[str]]]:
    """The number that the knobs of each split loop divide, and these knobs.

    It is the loop's extent, unless its tiles need not divide it.
    """
    return [
        (int(group.extent_expr), [str(knob.name) for knob in group.vars])
        for group in sketch.context.split_groups
    ]


def _divisors(extent: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(extent) + 1) if extent % d == 0]
    return sorted({*small, *(extent // d for d in small)})


def _lane_choices(extent: int, lanes: int) -> list[int]:
    """One to four whole vectors; where none divides the extent, what wastes least."""
    whole = [d for d in _divisors(extent) if d % lanes == 0 and d <= _MAX_VECTORS * lanes]
    if whole:
        return whole

    def used(length: int) -> tuple[float, int]:
        return length / (math.ceil(length / lanes) * lanes), length

    fitting = [d for d in _divisors(extent) if d <= _MAX_VECTORS * lanes]
    return sorted(fitting, key=used, reverse=True)[:2]


def _tiles(
    rows: Mapping[str, int], lane_knob: tuple[str, int] | None, lanes: int, registers: int
) -> list[dict[str, int]]:
    """Register tiles that fit, those first that do most for each vector and scalar they load."""
    lengths = [1] if lane_knob is None else _lane_choices(lane_knob[1], lanes)
    choices = [[d for d in _divisors(extent) if d <= _MAX_UNROLLED] for extent in rows.values()]
    found = []
    for length in lengths:
        vectors = math.ceil(length / lanes)
        for sizes in itertools.product(*choices):
            count = math.prod(sizes)
            if count * vectors + vectors + 1 > registers:
                continue
            tile = dict(zip(rows, sizes))
            if lane_knob is not None:
                tile[lane_knob[0]] = length
            found.append((count * vectors / (count + vectors) * min(length, lanes), tile))
    found.sort(key=lambda entry: -entry[0])
    return [tile for _, tile in found[:_MAX_TILES]]


def _reductions(axes: Mapping[str, int]) -> list[dict[str, int]]:
    """Whole reductions, and those in blocks of their longest axis."""
    whole = dict(axes)
    if not axes:
        return [whole]
    longest = max(axes, key=lambda name: axes[name])
    found = [whole]
    if axes[longest] > _WINDOW:
        for block in _BLOCKS:
            fitting = [d for d in _divisors(axes[longest]) if d <= block]
            for rest in (whole, dict.fromkeys(axes, 1)):
                found.append({**rest, longest: fitting[-1]})
    distinct = {tuple(sorted(entry.items())): entry for entry in found}
    return list(distinct.values())[:_MAX_REDUCTIONS]


def _outer(groups: Iterable[tuple[int, str]], whole: Mapping[str, int]) -> list[dict[str, int]]:
    """Nothing between register tile and chunk, or one loop of a few sizes; the same with `whole`,
    the loops that make chunks of a program without reuse contiguous."""
    found: list[dict[str, int]] = [{}]
    for extent, name in groups:
        sizes = [d for d in _divisors(extent) if d > 1]
        picked = {sizes[round(i * (len(sizes) - 1) / 3)] for i in range(4)} if sizes else set()
        found += [{name: size} for size in sorted(picked)]
    if whole:
        found += [{**middle, **whole} for middle in found if not middle.keys() & whole.keys()]
    return found


def canonical_configs(sketch: Sketch, lanes: int, registers: int) -> list[dict[str, int]]:
    """Configurations of a sketch that are worth measuring before anything is known.

    Parameters
    ----------
    lanes : elements of a vector of the target.
    registers : vector registers of the target.

    Returns
    -------
    Values of all knobs; constraints that look at more than register tiles are not checked.
    """
    roles = knob_roles(sketch)
    groups = split_groups(sketch)
    extents = {name: extent for extent, names in groups for name in names}
    base = dict.fromkeys(extents, 1)
    rows = {n: extents[n] for n in extents if roles.get(n) is KnobRole.ROWS and extents[n] > 1}
    lane_knobs = [n for n in extents if roles.get(n) is KnobRole.LANES]
    # The vectors of the stage with the unrolled rows are the register tile's; the others fill one.
    tile_groups = {n for _, names in groups if len(names) > 1 for n in names}
    of_tile = next((n for n in lane_knobs if n in tile_groups), None)
    others = {n: _lane_choices(extents[n], lanes) for n in lane_knobs if n != of_tile}
    base.update({name: choices[0] for name, choices in others.items()})
    for name in extents:
        if roles.get(name) is KnobRole.WINDOW:
            base[name] = extents[name]
    axes = {n: extents[n] for n in extents if roles.get(n) is KnobRole.REDUCTION and extents[n] > 1}
    lane_knob = None if of_tile is None else (of_tile, extents[of_tile])
    tiles = _tiles(rows, lane_knob, lanes, registers) or [{}]
    if of_tile is None and others:
        # Without a register tile, as in functions of rows, all stages have vectors of their own.
        most = max(map(len, others.values()))
        wider = [
            {name: choices[min(k, len(choices) - 1)] for name, choices in others.items()}
            for k in range(most)
        ]
        tiles = [{**tile, **widths} for tile in tiles for widths in wider]
    open_loops = [
        (extent, name)
        for extent, names in groups
        for name in names
        if roles.get(name, KnobRole.OUTER) is KnobRole.OUTER and extent > 1
    ]
    # The data of a reduction are used again wherever they lie; of windows that move over an image
    # every chunk is fetched anew, and best in whole rows of memory.
    mates = next((names for _, names in groups if of_tile in names), [])
    around = next(((extent, name) for extent, name in open_loops if name in mates), None)
    outer = _outer(open_loops, {} if axes or around is None else {around[1]: around[0]})
    found = []
    for tile, reduction, middle in itertools.product(tiles, _reductions(axes), outer):
        config = {**base, **tile, **reduction}
        for name, size in middle.items():
            # What the register tile took of the loop is not there any more.
            mates = next(names for _, names in groups if name in names)
            left = extents[name] // math.prod(config[mate] for mate in mates)
            config[name] = math.gcd(size, left)
        found.append(config)
    distinct = {tuple(config.values()): config for config in found}
    return list(distinct.values())
