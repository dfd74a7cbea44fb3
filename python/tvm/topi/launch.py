"""Kernels of operators that are written as statements, for targets whose loops are threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm import te, tir
from tvm.target import Target

from .utils import Extent, as_int, is_constant, prod, unravel_index

__all__ = ["each", "is_for_gpu", "kernel", "one_thread", "threads_of"]

_THREADS = 256


def is_for_gpu() -> bool:
    """Whether what is being written is for the threads of a GPU: what the current target says."""
    target = Target.current(allow_none=True)
    return target is not None and "gpu" in [str(key) for key in target.keys]


def threads_of(ib: Any, blocks: Extent, threads: Extent) -> tuple[tir.Var, tir.Var]:
    """Opens a kernel that lasts to the end of the builder's block; its block and its thread."""
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    ib.scope_attr(block, "thread_extent", blocks)
    ib.scope_attr(thread, "thread_extent", threads)
    return block.var, thread.var


def kernel(extents: Sequence[Extent], body: Callable[..., tir.Stmt]) -> tir.Stmt:
    """A kernel with a thread for every index below the extents.

    Parameters
    ----------
    body : from one index for each extent to the statement of its thread.
    """
    total = prod(extents)
    ib = tir.ir_builder.create()
    with _threads_for(ib, total) as place:
        ib.emit(body(*unravel_index(place, extents)))
    return ib.get()


@contextmanager
def _threads_for(ib: Any, extent: Extent) -> Iterator[Any]:
    threads = min(max(as_int(extent), 1), _THREADS) if is_constant(extent) else _THREADS
    with ib.new_scope():
        block, thread = threads_of(ib, (extent + threads - 1) // threads, threads)
        place = block * threads + thread
        with ib.if_scope(tir.likely(place < extent)):
            yield place


@contextmanager
def each(ib: Any, extent: Extent, name: str) -> Iterator[Any]:
    """A loop in parallel whose body is emitted inside; a kernel for a GPU. Gives the index."""
    kind = (
        _threads_for(ib, extent) if is_for_gpu() else ib.for_range(0, extent, name, kind="parallel")
    )
    with kind as i:
        yield i


@contextmanager
def one_thread(ib: Any) -> Iterator[None]:
    """What is emitted inside runs in order; in a kernel of one thread for a GPU."""
    with ib.new_scope():
        if is_for_gpu():
            threads_of(ib, 1, 1)
        yield
