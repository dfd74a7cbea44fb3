"""Loop states, and the schedule primitives on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import tvm._ffi
from tvm import te
from tvm.runtime import Object

from . import _ffi_api

__all__ = ["Iterator", "LoopPart", "Stage", "State", "StateObject"]

_THREADS = (
    "vthread",
    "blockIdx.x",
    "threadIdx.x",
    "blockIdx.y",
    "threadIdx.y",
    "blockIdx.z",
    "threadIdx.z",
)


@tvm._ffi.register_object("auto_scheduler.LoopPart")
class LoopPart(Object):
    """The slice of one axis that a loop walks: `axis`, `extent`, `stride`."""


@tvm._ffi.register_object("auto_scheduler.Iterator")
class Iterator(Object):
    """One loop of a stage: `name`, `range`, `iter_kind`, `annotation`, `parts`.

    `split_part` is its place among the parts of the split that made it, the outermost 0, else -1.
    """


@tvm._ffi.register_object("auto_scheduler.Stage")
class Stage(Object):
    """One operation with its loops: `op`, `iters`, `compute_at`.

    `id` is its identity, which stays when stages are added; `origin` says how it came to be (0
    original, 1 cache_read, 2 cache_write, 3 rfactor), `source` from which identity, and `scope` is
    the memory of a cache stage. `attach_stage` is the identity of the stage that it is computed at,
    `attach_iter` the position of the loop there, both -1 elsewhere. `split_steps` are the positions
    in the history of the steps that split its loops.
    """


class LoopId(int):
    """A position of a loop, step or stage: an int that is also its own `value`, as TVM's are."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


def _positions(field: int) -> Any:
    """A property with the positions in a field of a step's record."""

    def read(self: Object) -> list[LoopId]:
        return [LoopId(number) for number in _ffi_api.StepToRecord(self)[field]]

    return property(read)


@tvm._ffi.register_object("auto_scheduler.FuseStep")
class FuseStep(Object):
    """The loops `fused_ids` of the stage `stage_id`, outermost first, become one."""

    fused_ids = _positions(2)


@tvm._ffi.register_object("auto_scheduler.ReorderStep")
class ReorderStep(Object):
    """The loops of the stage `stage_id` take the order `after_ids`, given as present positions."""

    after_ids = _positions(2)


@tvm._ffi.register_object("auto_scheduler.FollowFusedSplitStep")
class FollowFusedSplitStep(Object):
    """A loop is split like the product of the splits made by the steps `src_step_ids`."""

    src_step_ids = _positions(3)


@tvm._ffi.register_object("auto_scheduler.CacheReadStep")
class CacheReadStep(Object):
    """The stages `reader_stage_ids` read `stage_id` through a stage in the memory `scope_name`."""

    reader_stage_ids = _positions(3)


@tvm._ffi.register_object("auto_scheduler.PackReadStep")
class PackReadStep(Object):
    """The same, where the copy has dimension `order[i]` of the result where i is."""

    reader_stage_ids = _positions(3)
    order = _positions(4)


@tvm._ffi.register_object("auto_scheduler.PadReadStep")
class PadReadStep(Object):
    """The stages `reader_stage_ids` read `stage_id` through a copy of the extents `shape`."""

    reader_stage_ids = _positions(2)


@tvm._ffi.register_object("auto_scheduler.State")
class StateObject(Object):
    """The immutable state: `stages`, `transform_steps`, `concrete`."""

    def __str__(self) -> str:
        return str(_ffi_api.StateToStr(self, True))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, State):
            other = other.state_object
        return isinstance(other, StateObject) and bool(_ffi_api.StateEqual(self, other))

    def __hash__(self) -> int:
        return int(_ffi_api.StateHash(self))


def state_object_of(state: State | StateObject) -> StateObject:
    """The immutable part of either form of a state."""
    return state.state_object if isinstance(state, State) else state


class State:
    """A state that schedule primitives change, each adding one step to its history.

    A stage is named by its id, its operation or one of its tensors. Loops that a primitive returns
    are valid until the next primitive on the same stage.

    Attributes
    ----------
    state_object : the present immutable state.
    compute_dag : the DAG it schedules.
    ANNOTATION_TRANS_TABLE : values of `Iterator.annotation` by what the loop is marked as.
    """

    # Values of the record format.
    ANNOTATION_TRANS_TABLE: ClassVar[dict[str, int]] = {
        name: value
        for value, name in enumerate(
            ("none", "unroll", "vectorize", "parallel", *_THREADS, "tensorize")
        )
    }

    def __init__(self, state_object: StateObject, dag: Object) -> None:
        self.state_object = state_object
        self.compute_dag = dag

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages; their positions here are what steps and records count."""
        return self.state_object.stages

    @property
    def transform_steps(self) -> Sequence[Object]:
        """The history."""
        return self.state_object.transform_steps

    @property
    def stage_ops(self) -> list[te.Operation]:
        """The operation of each stage."""
        return [stage.op for stage in self.stages]

    def copy(self) -> State:
        """A state that further primitives change independently."""
        return State(self.state_object, self.compute_dag)

    def bind(self, stage: Any, iterator: Iterator, thread_name: str) -> Iterator:
        """Bind a loop to a thread axis, such as "threadIdx.x"."""
        if thread_name not in _THREADS:
            raise ValueError(
                f"bind: {thread_name!r} is no thread axis; known are {sorted(_THREADS)}"
            )
        annotation = self.ANNOTATION_TRANS_TABLE[thread_name]
        return self._apply(_ffi_api.StateBind, stage, iterator, annotation)

    def parallel(self, stage: Any, iterator: Iterator) -> Iterator:
        """Run the trips of a loop on all cores."""
        return self._apply(_ffi_api.StateParallel, stage, iterator)

    def unroll(self, stage: Any, iterator: Iterator, max_unroll: int | None = None) -> Iterator:
        """Write a loop out, unless it has more than `max_unroll` trips."""
        return self._apply(
            _ffi_api.StateUnroll, stage, iterator, -1 if max_unroll is None else max_unroll
        )

    def vectorize(self, stage: Any, iterator: Iterator) -> Iterator:
        """Run the trips of a loop as lanes of vectors."""
        return self._apply(_ffi_api.StateVectorize, stage, iterator)

    def fuse(self, stage: Any, iters: Sequence[Iterator]) -> Iterator:
        """One loop in place of neighbouring ones, outermost first."""
        return self._apply(_ffi_api.StateFuse, stage, list(iters))

    def pragma(self, stage: Any, iterator: Iterator, pragma_type: str) -> None:
        """Add a pragma to a loop.

        Parameters
        ----------
        pragma_type : "auto_unroll_max_step$N"; "debug_skip_region"; or "read_ahead$OPERAND$TRIPS",
            which prefetches what the loop reads of that operand of the stage so many trips later.

        Raises
        ------
        ValueError : it is none of these.
        """
        self.state_object = _ffi_api.StatePragma(
            self.state_object, self._stage_id(stage), iterator, pragma_type
        )

    def reorder(self, stage: Any, order: Sequence[Iterator]) -> None:
        """Put all loops of a stage in the given order."""
        self.state_object = _ffi_api.StateReorder(
            self.state_object, self._stage_id(stage), list(order)
        )

    def split(
        self,
        stage: Any,
        iterator: Iterator,
        lengths: Sequence[Any],
        inner_to_outer: bool = True,
    ) -> list[Iterator]:
        """Split a loop into ``len(lengths) + 1``; a length of None is decided later.

        ``split(s, i, [4, 8])`` makes loops of ceil(n / 32), 4 and 8 trips; with
        ``inner_to_outer=False`` loops of 4, 8 and what remains.
        """
        return list(
            self._apply(_ffi_api.StateSplit, stage, iterator, list(lengths), inner_to_outer)
        )

    def follow_split(
        self, stage: Any, iterator: Iterator, src_step_id: int, n_split: int
    ) -> list[Iterator]:
        """Split into ``n_split + 1`` loops with the lengths of an earlier split step."""
        return list(self._apply(_ffi_api.StateFollowSplit, stage, iterator, src_step_id, n_split))

    def follow_fused_split(
        self,
        stage: Any,
        iterator: Iterator,
        src_step_ids: Sequence[int],
        level: int,
        factor_or_nparts: bool,
    ) -> list[Iterator]:
        """Split in two by the product of one level of several earlier split steps."""
        return list(
            self._apply(
                _ffi_api.StateFollowFusedSplit,
                stage,
                iterator,
                list(src_step_ids),
                level,
                factor_or_nparts,
            )
        )

    def storage_align(self, stage: Any, iterator: Iterator, factor: int, offset: int) -> None:
        """Pad the storage at a loop to a multiple of `factor` plus `offset` elements."""
        self.state_object = _ffi_api.StateStorageAlign(
            self.state_object, self._stage_id(stage), iterator, factor, offset
        )

    def compute_at(self, stage: Any, target_stage: Any, target_iter: Iterator) -> None:
        """Compute a stage inside a loop of its consumer."""
        self.state_object = _ffi_api.StateComputeAt(
            self.state_object, self._stage_id(stage), self._stage_id(target_stage), target_iter
        )

    def compute_inline(self, stage: Any) -> None:
        """Recompute a stage where it is read."""
        self.state_object = _ffi_api.StateComputeInline(self.state_object, self._stage_id(stage))

    def compute_root(self, stage: Any) -> None:
        """Compute a stage on its own."""
        self.state_object = _ffi_api.StateComputeRoot(self.state_object, self._stage_id(stage))

    def cache_read(
        self,
        stage: Any,
        scope_name: str,
        reader_stages: Sequence[Any],
        order: Sequence[int] | None = None,
    ) -> te.Operation:
        """Copy a stage's result to `scope_name` for some readers; returns the new operation.

        Parameters
        ----------
        order : dimension i of the copy is dimension order[i] of the result; as it is by default.
        """
        given = () if order is None else (list(order),)
        add = _ffi_api.StateCacheRead if order is None else _ffi_api.StatePackRead
        self.state_object, new_id = add(
            self.state_object,
            self._stage_id(stage),
            scope_name,
            [self._stage_id(reader) for reader in reader_stages],
            *given,
            self.compute_dag,
        )
        return self.stages[int(new_id)].op

    def pad_read(
        self, stage: Any, reader_stages: Sequence[Any], shape: Sequence[int]
    ) -> te.Operation:
        """Copy a stage's result for some readers, with zeros behind its ends; returns the new op.

        Parameters
        ----------
        shape : extents of the copy, none less than the result's.
        """
        self.state_object, new_id = _ffi_api.StatePadRead(
            self.state_object,
            self._stage_id(stage),
            [self._stage_id(reader) for reader in reader_stages],
            list(shape),
            self.compute_dag,
        )
        return self.stages[int(new_id)].op

    def pad_axes(self, stage: Any, extents: Sequence[int]) -> te.Operation:
        """Compute a sum of products over longer axes, then copy out; returns the new operation.

        Parameters
        ----------
        extents : of the axes of space, then of those that reduce. Operands have to be longer copies
            (`pad_read`) where more of them are read.
        """
        self.state_object, new_id = _ffi_api.StatePadAxes(
            self.state_object, self._stage_id(stage), list(extents), self.compute_dag
        )
        return self.stages[int(new_id)].op

    def cache_write(self, stage: Any, scope_name: str) -> te.Operation:
        """Compute a stage in `scope_name`, then copy out; returns the new operation."""
        self.state_object, new_id = _ffi_api.StateCacheWrite(
            self.state_object, self._stage_id(stage), scope_name, self.compute_dag
        )
        return self.stages[int(new_id)].op

    def rfactor(self, stage: Any, iterator: Iterator, factor_iter_id: int) -> te.Operation:
        """Turn a reduction loop into a space axis of partial results; returns the new op."""
        self.state_object, new_id = _ffi_api.StateRfactor(
            self.state_object, self._stage_id(stage), iterator, factor_iter_id, self.compute_dag
        )
        return self.stages[int(new_id)].op

    def _apply(self, primitive: Any, stage: Any, *args: Any) -> Any:
        self.state_object, result = primitive(self.state_object, self._stage_id(stage), *args)
        return result

    def _stage_id(self, stage: Any) -> int:
        if isinstance(stage, int):
            return stage
        op = stage.op if isinstance(stage, te.Tensor) else stage
        for stage_id, candidate in enumerate(self.stages):
            if candidate.op.same_as(op):
                return stage_id
        # Steps that add a stage rewrite operations; names stay, and the last of a name is the one
        # that still writes the result.
        same_name = [i for i, s in enumerate(self.stages) if s.op.name == op.name]
        if not same_name:
            raise ValueError(
                f"{op.name} is no stage of the state; its stages are "
                f"{[s.op.name for s in self.stages]}"
            )
        return same_name[-1]

    def __getitem__(self, stage: Any) -> Stage:
        return self.stages[self._stage_id(stage)]

    def __str__(self) -> str:
        return str(self.state_object)

    def __repr__(self) -> str:
        return str(self.state_object)

    def __eq__(self, other: object) -> bool:
        return self.state_object == other

    def __hash__(self) -> int:
        return hash(self.state_object)
