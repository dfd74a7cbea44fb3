"""What each worker gets out of a collective operation, computed with NumPy on the host.

Arrays of other devices are copied to the host and back. Elements are taken in row-major order:
scatter and gather split and join the sequence of elements, whatever the shapes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tvm import error
from tvm.runtime.bfloat16 import patterns_to_float32, to_patterns
from tvm.runtime.data_type import DataType
from tvm.runtime.ndarray import NDArray

__all__ = ["REDUCE_OPS", "Part", "combine"]

REDUCE_OPS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "avg": np.add,
}

Shares = list["np.ndarray | None"]


@dataclass(frozen=True)
class Part:
    """What a worker brings: its source, and what it can receive into.

    Attributes
    ----------
    source : the elements (bfloat16 as 16-bit patterns); None where the worker sends nothing.
    target : shape it receives into; None where the worker receives nothing.
    dtype : element type of the source; of the target if there is no source.
    op : key of REDUCE_OPS, for allreduce.
    """

    source: np.ndarray | None
    target: tuple[int, ...] | None
    dtype: str
    op: str = ""

    @classmethod
    def of(cls, source: NDArray | None, target: NDArray | None, op: str = "") -> Part:
        """The part for a source and a target array of one element type.

        Raises
        ------
        ValueError : the two types differ.
        """
        types = [str(array.dtype) for array in (source, target) if array is not None]
        if len(set(types)) > 1:
            raise error.ValueError(f"the source has elements of {types[0]}, the target {types[1]}")
        return cls(
            None if source is None else source.numpy(),
            None if target is None else target.shape,
            types[0],
            op,
        )


def combine(kind: str, parts: Sequence[Part]) -> Shares:
    """The share of each worker in an operation, None for those that receive nothing.

    Raises
    ------
    ValueError : parts that do not fit each other; the message names the workers and the shapes.
    """
    for worker, part in enumerate(parts):
        if part.dtype != parts[0].dtype:
            raise error.ValueError(
                f"{kind}: worker {worker} has {part.dtype}, worker 0 {parts[0].dtype}"
            )
    return _OPERATIONS[kind](parts)


def _broadcast(parts: Sequence[Part]) -> Shares:
    source = _source(parts, 0)
    for worker, part in enumerate(parts):
        if part.target != source.shape:
            raise error.ValueError(
                f"broadcast_from_worker0: worker {worker} receives into shape {part.target}, but "
                f"worker 0 sends {source.shape}"
            )
    return [source] * len(parts)


def _scatter(parts: Sequence[Part]) -> Shares:
    source = _source(parts, 0)
    for worker, part in enumerate(parts):
        if _size(part.target) * len(parts) != source.size:
            raise error.ValueError(
                f"scatter_from_worker0: worker {worker} receives into shape {part.target}, but the "
                f"{source.size} elements of worker 0's shape {source.shape} give each of "
                f"{len(parts)} workers {source.size / len(parts):g}"
            )
    return list(source.reshape(len(parts), -1))


def _gather(parts: Sequence[Part]) -> Shares:
    return [_joined("gather_to_worker0", parts, receivers=1), *[None] * (len(parts) - 1)]


def _allgather(parts: Sequence[Part]) -> Shares:
    return [_joined("allgather", parts, receivers=len(parts))] * len(parts)


def _joined(kind: str, parts: Sequence[Part], receivers: int) -> np.ndarray:
    sources = [_source(parts, worker) for worker in range(len(parts))]
    _check_equal_shapes(kind, sources)
    for worker, part in enumerate(parts[:receivers]):
        if _size(part.target) != sources[0].size * len(parts):
            raise error.ValueError(
                f"{kind}: worker {worker} receives into shape {part.target}, but {len(parts)} "
                f"workers send {sources[0].shape} each"
            )
    return np.concatenate([source.reshape(-1) for source in sources])


def _allreduce(parts: Sequence[Part]) -> Shares:
    sources = [_source(parts, worker) for worker in range(len(parts))]
    _check_equal_shapes("allreduce", sources)
    ops = {part.op for part in parts}
    if len(ops) > 1:
        raise error.ValueError(f"allreduce: workers ask for different operations: {sorted(ops)}")
    for worker, part in enumerate(parts):
        if part.target != sources[0].shape:
            raise error.ValueError(
                f"allreduce: worker {worker} receives into shape {part.target}, but sends "
                f"{sources[0].shape}"
            )
    return [_reduced(sources, DataType(parts[0].dtype), ops.pop())] * len(parts)


def _reduced(sources: Sequence[np.ndarray], dtype: DataType, op: str) -> np.ndarray:
    if dtype.kind not in ("int", "uint", "float", "bfloat"):
        raise error.ValueError(f"allreduce: elements of {dtype} cannot be reduced")
    if op == "avg" and dtype.kind in ("int", "uint"):
        raise error.ValueError(f"allreduce: the average of {dtype} would be rounded; use sum")
    # Short floats are summed in float32, so that the error does not grow with the workers.
    if dtype == "bfloat16":
        wide: Sequence[np.ndarray] = [patterns_to_float32(source) for source in sources]
    else:
        wide = [s.astype("float32") if dtype == "float16" else s for s in sources]
    result = reduce(REDUCE_OPS[op], wide)
    if op == "avg":
        result = result / result.dtype.type(len(sources))
    return to_patterns(result) if dtype == "bfloat16" else result.astype(dtype.to_numpy())


def _source(parts: Sequence[Part], worker: int) -> np.ndarray:
    source = parts[worker].source
    assert source is not None, "the calls of the workers see to it"
    return source


def _check_equal_shapes(kind: str, sources: Sequence[np.ndarray]) -> None:
    for worker, source in enumerate(sources):
        if source.shape != sources[0].shape:
            raise error.ValueError(
                f"{kind}: worker {worker} sends shape {source.shape}, worker 0 {sources[0].shape}"
            )


def _size(shape: tuple[int, ...] | None) -> int:
    assert shape is not None, "the calls of the workers see to it"
    return int(np.prod(shape, dtype=np.int64))


_OPERATIONS: dict[str, Callable[[Sequence[Part]], Shares]] = {
    "broadcast_from_worker0": _broadcast,
    "scatter_from_worker0": _scatter,
    "gather_to_worker0": _gather,
    "allgather": _allgather,
    "allreduce": _allreduce,
}
