"""Random schedules of functions of blocks."""

from __future__ import annotations

import random

from testing_blocks import (
    best,
    blur,
    chain,
    concat,
    convolution,
    dilated,
    guarded,
    matmul,
    offset,
    pairs,
    reshaped,
    row_sums,
    softmax,
)
from tvm import tir

SCOPES = ("global", "local", "shared")


def blocks_of(sch):
    return sch.get_child_blocks(sch.get_block("root"))


def loop_of(sch, rng, block):
    """One of the loops around a block, which may have none."""
    loops = sch.get_loops(block)
    if not loops:
        raise tir.ScheduleError("no loops")
    return rng.choice(loops)


def random_loop(sch, rng):
    return loop_of(sch, rng, rng.choice(blocks_of(sch)))


def split(sch, rng):
    loop = random_loop(sch, rng)
    if rng.random() < 0.4:
        sch.split(loop, sch.sample_perfect_tile(loop, rng.choice([2, 3]), rng.choice([4, 16])))
    else:
        factors = [None, rng.choice([1, 2, 3, 4, 8])]
        rng.shuffle(factors)
        sch.split(loop, factors, preserve_unit_iters=rng.random() < 0.7)


def fuse(sch, rng):
    loops = sch.get_loops(rng.choice(blocks_of(sch)))
    start = rng.randrange(len(loops) or 1)
    sch.fuse(*loops[start : start + rng.choice([2, 2, 3])])


def reorder(sch, rng):
    loops = sch.get_loops(rng.choice(blocks_of(sch)))
    start = rng.randrange(len(loops) or 1)
    some = loops[start : start + 4]
    rng.shuffle(some)
    sch.reorder(*some)


def mark(sch, rng):
    getattr(sch, rng.choice(["parallel", "vectorize", "unroll"]))(random_loop(sch, rng))


def decompose(sch, rng):
    block = rng.choice(blocks_of(sch))
    sch.decompose_reduction(block, loop_of(sch, rng, block))


def rfactor(sch, rng):
    sch.rfactor(random_loop(sch, rng), rng.choice([0, -1, 1]))


def compute_at(sch, rng):
    block = rng.choice(blocks_of(sch))
    users = sch.get_consumers(block) or blocks_of(sch)
    loop = loop_of(sch, rng, rng.choice(users))
    sch.compute_at(block, loop, rng.random() < 0.3, rng.choice([-1, -1, -2]))


def reverse_compute_at(sch, rng):
    block = rng.choice(blocks_of(sch))
    makers = sch.get_producers(block) or blocks_of(sch)
    loop = loop_of(sch, rng, rng.choice(makers))
    sch.reverse_compute_at(block, loop, rng.random() < 0.3, rng.choice([-1, -1, -2]))


def inline(sch, rng):
    getattr(sch, rng.choice(["compute_inline", "reverse_compute_inline"]))(
        rng.choice(blocks_of(sch))
    )


def sample_location(sch, rng):
    block = rng.choice(blocks_of(sch))
    sch.compute_at(block, sch.sample_compute_location(block))


def cache(sch, rng):
    if rng.random() < 0.5:
        sch.cache_read(rng.choice(blocks_of(sch)), rng.choice([0, 0, 1]), rng.choice(SCOPES))
    else:
        sch.cache_write(rng.choice(blocks_of(sch)), 0, rng.choice(SCOPES))


def blockize(sch, rng):
    sch.blockize(random_loop(sch, rng), rng.random() < 0.5)


def layout(sch, rng):
    """Lay out a buffer of the function's own, or the variables of a block, in tiles."""
    block = rng.choice(blocks_of(sch))
    if not len(sch.get(block).iter_vars):
        raise tir.ScheduleError("no variables")
    tile = rng.choice([2, 3, 4])
    kind = rng.random()
    if kind < 0.3:
        sch.reindex(block, (rng.choice(["read", "write"]), 0))
    elif kind < 0.6:
        sch.transform_block_layout(block, lambda *v: [v[0] // tile, *v[1:], v[0] % tile])
    else:
        written = sch.get(block).writes[0].buffer
        if any(written.same_as(buffer) for buffer in sch.mod["main"].buffer_map.values()):
            raise tir.ScheduleError("the caller decides")
        sch.transform_layout(
            block, ("write", 0), lambda *v: [*v[1:], v[0] // tile, v[0] % tile], pad_value=0
        )


def storage(sch, rng):
    block = rng.choice(blocks_of(sch))
    if rng.random() < 0.5:
        sch.set_scope(block, 0, rng.choice(SCOPES))
    else:
        sch.storage_align(block, 0, rng.choice([0, -1]), rng.choice([4, 8]), rng.choice([0, 1]))


def bind(sch, rng):
    axis = rng.choice(["blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread.x", "blockIdx.y"])
    sch.bind(random_loop(sch, rng), axis)


def nests(sch, rng):
    """Make one nest of two, or several of one."""
    blocks = blocks_of(sch)
    if len(blocks) > 1 and rng.random() < 0.6:
        at = rng.randrange(len(blocks) - 1)
        one, other = (sch.get_loops(block) for block in blocks[at : at + 2])
        depth = rng.randrange(min(len(one), len(other)) or 1)
        if depth >= min(len(one), len(other)):
            raise tir.ScheduleError("no loops")
        sch.merge(one[depth], other[depth])
    else:
        sch.loop_partition(random_loop(sch, rng), rng.choice([[2], [1, None], [None, 3], [2, 2]]))


def padding(sch, rng):
    block = rng.choice(blocks_of(sch))
    if rng.random() < 0.5:
        sch.decompose_padding(block, loop_of(sch, rng, block))
    else:
        sch.pad_einsum(block, [rng.choice([1, 3, 4, 8]) for _ in sch.get(block).iter_vars])


def copy_at(sch, rng):
    block = rng.choice(blocks_of(sch))
    loop = loop_of(sch, rng, block)
    if rng.random() < 0.6:
        sch.read_at(loop, block, rng.choice([0, 0, 1]), rng.choice(SCOPES))
    else:
        sch.write_at(loop, block, 0, rng.choice(SCOPES))


def rolling(sch, rng):
    """Compute a block in a loop of its consumers, as much as the iteration before did not."""
    block = rng.choice(blocks_of(sch))
    loop = loop_of(sch, rng, rng.choice(sch.get_consumers(block) or blocks_of(sch)))
    factor = rng.choice([1, 2, 4])

    def apply(at):
        outer, _ = at.split(loop, [None, factor])
        at.compute_at(block, outer)
        at.rolling_buffer(block, 0)

    # All of the steps or none.
    apply(sch.copy())
    apply(sch)


def tables(sch, rng):
    sch.cache_index(rng.choice(blocks_of(sch)), rng.choice(SCOPES), rng.choice([0, 0, 2]))


STEPS = [
    *[split, reorder] * 3,
    *[fuse, mark, decompose, compute_at, reverse_compute_at] * 2,
    rfactor,
    inline,
    sample_location,
    *[cache, layout] * 2,
    *[nests, padding, copy_at, rolling, tables],
    blockize,
    storage,
]


GPU_STEPS = [
    *[split, reorder] * 3,
    *[fuse, compute_at, reverse_compute_at, cache] * 2,
    *[bind] * 6,
    *[copy_at, nests, padding],
    *[decompose, storage, inline, mark, rfactor],
]
# What no GPU can run is refused by name when it is built, or by the emulated GPU.
REFUSED = (
    "VerifyMemory",
    "SplitHostDevice",
    "LowerDeviceKernelLaunch",
    "LowerCrossThreadReduction",
    "stackvm",
    "ThreadSync",
    "UnifyThreadBinding",
)

PROGRAMS = {
    "matmul": lambda m, n, k: matmul(m, n, k),
    "matmul_epilogue": lambda m, n, k: matmul(m, n, k, epilogue=True),
    "chain": lambda m, n, k: chain(m, n),
    "blur": lambda m, n, k: blur(n + 2),
    "row_sums": lambda m, n, k: row_sums(m, n),
    "pairs": lambda m, n, k: pairs(m, n),
    "best": lambda m, n, k: best(m, n),
    "guarded": lambda m, n, k: guarded(n + 3),
    "concat": lambda m, n, k: concat(m, n, k),
    "dilated": lambda m, n, k: dilated(m, n),
    "reshaped": lambda m, n, k: reshaped(m, n, k % 5 + 1),
    "convolution": lambda m, n, k: convolution(m % 6 + 1, n % 4 + 1, k % 8 + 1),
    "softmax": lambda m, n, k: softmax(m, n),
    "offset": lambda m, n, k: offset(n + 3),
}


def random_schedule(func, seed, steps=8, table=STEPS):
    """A schedule of `func` after random steps; those that are refused change nothing."""
    rng = random.Random(seed)
    sch = tir.Schedule(func, seed=seed % 1000, debug_mask="all", error_render_level="fast")
    for _ in range(steps):
        before = sch.mod["main"] if rng.random() < 0.1 else None
        try:
            rng.choice(table)(sch, rng)
        except tir.ScheduleError:
            if before is not None:
                assert sch.mod["main"].script() == before.script()
    return sch


def bind_the_rest(sch, rng):
    """Bind a loop around every block that no thread runs yet; whether that was possible."""
    for block in blocks_of(sch):
        loops = sch.get_loops(block)
        if any(sch.get(loop).thread_binding is not None for loop in loops):
            continue
        for loop in loops:
            try:
                sch.bind(loop, rng.choice(["blockIdx.x", "threadIdx.x"]))
                break
            except tir.ScheduleError:
                continue
        else:
            return False
    return True


def backwards(func):
    """`func` with the iterations of its parallel loops one by one, the last one first."""

    def turn(loop):
        if loop.kind != tir.ForKind.PARALLEL:
            return None
        last = loop.min + loop.extent - 1
        body = tir.stmt_functor.substitute(
            loop.body, {loop.loop_var: loop.min + last - loop.loop_var}
        )
        return tir.For(loop.loop_var, loop.min, loop.extent, tir.ForKind.SERIAL, body)

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, turn, ["tir.For"]))
