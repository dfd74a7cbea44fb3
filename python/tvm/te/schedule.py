"""Schedules, stages and the objects they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.ir import Range
from tvm.runtime import Object
from tvm.tir import IterVar, PrimExpr, PrimFunc, Stmt, convert

from . import _ffi_api
from .graph import CreateAttachPath, CreateReadGraph, PostDFSOrder, ScanGetBody
from .layout import transform_layout
from .tensor import Operation, Tensor
from .tensor_intrin import TensorIntrin

__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "CreateAttachPath",
    "CreateReadGraph",
    "Fuse",
    "InferBound",
    "InferTensorizeRegion",
    "IterVarAttr",
    "MatchTensorizeBody",
    "PostDFSOrder",
    "Rebase",
    "ScanGetBody",
    "Schedule",
    "ScheduleOps",
    "SchedulePostProcRewriteForTensorCore",
    "SchedulePostProcToPrimFunc",
    "Singleton",
    "Split",
    "Stage",
    "create_schedule",
]


@tvm._ffi.register_object("te.Split")
class Split(Object):
    """Loop ``parent`` made of ``outer`` and ``inner``."""


@tvm._ffi.register_object("te.Fuse")
class Fuse(Object):
    """Loops ``outer`` and ``inner`` joined to ``fused``."""


@tvm._ffi.register_object("te.Rebase")
class Rebase(Object):
    """Loop ``parent`` moved to start at zero."""


@tvm._ffi.register_object("te.Singleton")
class Singleton(Object):
    """A loop of one trip that stems from no axis."""


@tvm._ffi.register_object("te.IterVarAttr")
class IterVarAttr(Object):
    """What was asked for about one loop."""


def create_schedule(ops: Operation | Sequence[Operation]) -> Schedule:
    """Schedule with one stage per operation that ``ops``, the outputs, depend on.

    Parameters
    ----------
    ops : an operation such as ``C.op``, or several. With none the schedule is empty.

    With the option ``te.keep_schedule_record`` of the pass context the schedule keeps a copy of
    itself after each primitive, in ``schedule_record``, and the primitives' names in
    ``primitive_record``; the first of them is "vanilla", the schedule as it was made.
    """
    outputs = list(ops) if isinstance(ops, Iterable) else [ops]
    for op in outputs:
        if not isinstance(op, Operation):
            hint = "; pass its .op" if isinstance(op, Tensor) else ""
            raise TypeError(f"create_schedule: expected operations, got {type(op).__name__}{hint}")
    return _ffi_api.CreateSchedule(outputs)


@tvm._ffi.register_object("te.Schedule")
class Schedule(Object):
    """How a set of operations is computed; made by :func:`create_schedule`."""

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        if not isinstance(key, (Tensor, Operation)):
            raise TypeError(
                f"schedule: index it with a tensor or an operation, got {type(key).__name__}"
            )
        return _ffi_api.ScheduleGetStage(self, key)

    def normalize(self) -> Schedule:
        """Copy with inlined stages substituted and zero-based loops, ready for InferBound."""
        return _ffi_api.ScheduleNormalize(self)

    def normalize_for_feature_extraction(self) -> Schedule:
        """Like normalize, but inlined constant matrices read as 1."""
        return _ffi_api.ScheduleNormalizeForFeatureExtraction(self)

    def copy(self) -> Schedule:
        """Copy whose stages can be changed without changing these."""
        return _ffi_api.ScheduleCopy(self)

    def create_group(
        self,
        outputs: Tensor | Sequence[Tensor],
        inputs: Tensor | Sequence[Tensor],
        include_inputs: bool = False,
    ) -> Stage:
        """Join the stages between ``inputs`` and ``outputs`` to be attached together.

        Members without a place of their own are computed where the group is: ``compute_at`` of the
        stage that is returned moves them all.

        Parameters
        ----------
        include_inputs : whether the stages of ``inputs`` are members too.

        Raises
        ------
        ScheduleError : the new group would cut an existing one in two.
        """
        ends = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        begins = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        return _ffi_api.ScheduleCreateGroup(self, ends, begins, include_inputs)

    def cache_read(
        self,
        tensor: Tensor,
        scope: str,
        readers: Operation | Tensor | Sequence[Any],
        order: Sequence[int] | None = None,
    ) -> Tensor:
        """Copy of ``tensor`` in memory ``scope``, read by ``readers`` in its place.

        Parameters
        ----------
        order : dimension i of the copy is dimension order[i] of ``tensor``; by default they lie as
            they do there. For readers that go through the tensor against its layout.

        Raises
        ------
        ScheduleError : a reader does not read the tensor; or the order does not name each dimension
            once, or is for a reader that does not compute element by element.
        """
        items = [readers] if isinstance(readers, (Operation, Tensor)) else list(readers)
        ops = [item.op if isinstance(item, Tensor) else item for item in items]
        if order is not None:
            return _ffi_api.SchedulePackRead(self, tensor, scope, ops, list(order))
        return _ffi_api.ScheduleCacheRead(self, tensor, scope, ops)

    def pad_read(
        self, tensor: Tensor, readers: Operation | Tensor | Sequence[Any], shape: Sequence[int]
    ) -> Tensor:
        """Copy of ``tensor`` with zeros behind its ends, read by ``readers`` in its place.

        Parameters
        ----------
        shape : extents of the copy, none less than those of ``tensor``.

        Raises
        ------
        ScheduleError : a reader does not read the tensor, or the shape does not fit.
        """
        items = [readers] if isinstance(readers, (Operation, Tensor)) else list(readers)
        ops = [item.op if isinstance(item, Tensor) else item for item in items]
        return _ffi_api.SchedulePadRead(self, tensor, ops, list(shape))

    def pad_axes(self, tensor: Tensor, extents: Sequence[int]) -> Tensor:
        """Compute a sum of products over longer axes, so that tiles divide them, and copy it out.

        Parameters
        ----------
        extents : of the axes of space, then of those that reduce; none less than it was. Operands
            must be long enough, and zero for steps that are new: copies made by `pad_read` are.

        Returns
        -------
        The sums over the longer axes; ``tensor`` becomes a copy of some of them.

        Raises
        ------
        ScheduleError : the tensor is no sum of products of two operands; its loops were changed
            already; or an operand ends before the longer axes do.

        Examples
        --------
        >>> from tvm import te
        >>> a, b = te.placeholder((61, 45), name="a"), te.placeholder((45, 64), name="b")
        >>> k = te.reduce_axis((0, 45))
        >>> c = te.compute((61, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
        >>> s = te.create_schedule(c.op)
        >>> longer = [s.pad_read(a, c, (64, 48)), s.pad_read(b, c, (48, 64))]
        >>> [int(extent) for extent in s.pad_axes(c, (64, 64, 48)).shape]
        [64, 64]
        """
        return _ffi_api.SchedulePadAxes(self, tensor, list(extents))

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute ``tensor`` in memory ``scope`` first, then copy it to its place.

        The cache is laid out in the present order of the stage's spatial loops, and the stage's
        own loops become plain axes again. An operation with several outputs takes all of them in
        one call. What an intrinsic computes (``te.compute`` over slices) is cached before its loops
        are split.

        Returns
        -------
        The cached tensor, or a list of them when a list was given.
        """
        if isinstance(tensor, Tensor):
            return _ffi_api.ScheduleCacheWrite(self, [tensor], scope)[0]
        return list(_ffi_api.ScheduleCacheWrite(self, list(tensor), scope))

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Turn reduction loop ``axis`` into a spatial axis of partial results.

        Parameters
        ----------
        axis : loop of the stage; the partial results are reduced over it afterwards.
        factor_axis : place of the new axis, counted from the end when negative.

        Returns
        -------
        The partial results: a tensor, or a list for an operation with several outputs.
        """
        factored = list(_ffi_api.ScheduleRFactor(self, tensor, axis, factor_axis))
        return factored[0] if len(factored) == 1 else factored


# Names from other versions of this interface, and where the same thing is found here.
_ELSEWHERE = {
    "store_at": "stages are stored where they are computed; use compute_at",
    "cache_read": "use Schedule.cache_read(tensor, scope, readers)",
    "cache_write": "use Schedule.cache_write(tensor, scope)",
    "rfactor": "use Schedule.rfactor(tensor, axis)",
    "schedule": "keep the Schedule; a stage does not know the schedules it is in",
    "leaf_var_map": "use leaf_iter_vars and relations",
    "compute_pred": "conditions on computation follow from the bounds, see tvm.lower",
    "is_specialized": "give the compute a where= condition or te.if_then_else",
}


@tvm._ffi.register_object("te.Stage")
class Stage(Object):
    """The loops of one operation. Every primitive raises ScheduleError where it is not legal."""

    def __getattr__(self, name: str) -> Any:
        if name in _ELSEWHERE:
            raise AttributeError(f"Stage has no {name}: {_ELSEWHERE[name]}")
        return super().__getattribute__(name)

    @property
    def store_pred(self) -> PrimExpr | None:
        """Condition on stores that :meth:`set_store_predicate` gave, or None."""
        return self.store_predicate

    def split(
        self,
        parent: IterVar,
        factor: int | PrimExpr | None = None,
        nparts: int | PrimExpr | None = None,
        disable_predication: bool = False,
    ) -> tuple[IterVar, IterVar]:
        """Loop ``i`` becomes ``i.outer`` around ``i.inner``.

        Parameters
        ----------
        factor : extent of the inner loop; when it does not divide, the last trip is guarded.
        nparts : extent of the outer loop. Exactly one of the two is given.
        disable_predication : the caller knows that the extent divides, as of scalable vectors: no
            trip is guarded. A loop that does not divide then runs past the end of its tensor.

        Raises
        ------
        ValueError : not exactly one of `factor` and `nparts` is given.
        """
        if (factor is None) == (nparts is None):
            raise ValueError("split: give exactly one of factor and nparts")
        if factor is not None:
            outer, inner = _ffi_api.StageSplitByFactor(self, parent, factor, disable_predication)
        else:
            outer, inner = _ffi_api.StageSplitByNParts(self, parent, nparts, disable_predication)
        return outer, inner

    def pad(self, loop: IterVar, extent: int) -> tuple[IterVar, IterVar]:
        """Axis ``i`` becomes ``i.outer``, of one trip, around ``i.inner`` of `extent` trips.

        Stores are guarded. Of stages that are computed inside, as much is made as a loop of that
        extent reads; `Schedule.pad_axes` makes stages that have so much.

        Raises
        ------
        ScheduleError : the loop is no axis of space, or `extent` is less than it has trips.
        """
        once, padded = _ffi_api.StagePad(self, loop, extent)
        return once, padded

    def fuse(self, *loops: IterVar) -> IterVar:
        """Neighbouring loops, outermost first, become one of the product of their extents.

        A loop of spatial and reduction axes together runs in order, as a reduction does. Without
        any loop: a new outermost loop of one trip.
        """
        return _ffi_api.StageFuse(self, list(loops))

    def reorder(self, *loops: IterVar) -> None:
        """Put these loops in this order into the places they hold together."""
        _ffi_api.StageReorder(self, list(loops))

    def tile(
        self,
        x_parent: IterVar,
        y_parent: IterVar,
        x_factor: int | PrimExpr,
        y_factor: int | PrimExpr,
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops and order them x.outer, y.outer, x.inner, y.inner."""
        x_outer, y_outer, x_inner, y_inner = _ffi_api.StageTile(
            self, x_parent, y_parent, x_factor, y_factor
        )
        return x_outer, y_outer, x_inner, y_inner

    def vectorize(self, var: IterVar) -> None:
        """Trips of the loop become lanes."""
        _ffi_api.StageVectorize(self, var)

    def unroll(self, var: IterVar) -> None:
        """The loop's body is written out for every trip."""
        _ffi_api.StageUnroll(self, var)

    def parallel(self, var: IterVar) -> None:
        """Trips of the loop are shared among the threads of the pool."""
        _ffi_api.StageParallel(self, var)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Map the loop to a thread axis made by :func:`tvm.te.thread_axis`."""
        _ffi_api.StageBind(self, ivar, thread_ivar)

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Have ``tensor_intrin`` compute the loop and all loops inside of it, one call per block.

        Whether the block computes what the intrinsic does is checked when the schedule is lowered.
        """
        _ffi_api.StageTensorize(self, var, tensor_intrin)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach the attribute ``pragma_<pragma_type>`` to the loop; its value defaults to 1.

        "unroll" and "vectorize" are the primitives of these names.
        """
        _ffi_api.StagePragma(
            self, var, pragma_type, convert(1 if pragma_value is None else pragma_value)
        )

    def prefetch(self, tensor: Tensor, var: IterVar, offset: int | PrimExpr) -> None:
        """Read what ``tensor`` will need ``offset`` trips of a loop later into the caches."""
        _ffi_api.StagePrefetch(self, tensor, var, offset)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad the stride of ``axis`` to ``k * factor + offset`` elements."""
        _ffi_api.StageStorageAlign(self, axis, factor, offset)

    def double_buffer(self) -> None:
        """Keep two copies, one filled while the other is read."""
        _ffi_api.StageDoubleBuffer(self)

    def rolling_buffer(self) -> None:
        """Compute only what is new in each trip of a loop, where :func:`InjectRollingBuffer` runs.

        For a stage that is computed at a loop whose trips need overlapping parts of it.
        """
        self.pragma(self.leaf_iter_vars[0], "rolling_buffer")

    def set_scope(self, scope: str) -> None:
        """Memory the results live in: "global", "local", "shared", ..."""
        _ffi_api.StageSetScope(self, scope)

    def set_store_predicate(self, predicate: PrimExpr) -> None:
        """Store only where ``predicate`` holds, for example in one thread of several."""
        _ffi_api.StageSetStorePredicate(self, predicate)

    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Launch threads of given extents around a scan, for its steps to be bound to."""
        axes = [threads] if isinstance(threads, IterVar) else list(threads)
        _ffi_api.StageEnvThreads(self, axes)

    def transform_layout(self, mapping_function: Callable[..., Any]) -> list[IterVar] | None:
        """Lay the results out in memory by other indices, and run the loops in their order.

        An input is read in the new layout, so a caller passes it in the shape that follows; what
        fills up partial tiles is neither read nor written. Layouts add up: another one is given in
        terms of the indices of the one before.

        Parameters
        ----------
        mapping_function : takes an index for each axis and returns those in memory, between which
            ``te.AXIS_SEPARATOR`` may stand; ``lambda n, c: [n, c // 4, c % 4]``.

        Returns
        -------
        The loops, one for each index in memory; None for a stage that has no loops of a compute.

        Raises
        ------
        ScheduleError : the loops are no longer those of the axes, or the indices are no digits of
            them; when it is lowered, something else than element accesses reaches the memory.
        """
        return transform_layout(self, mapping_function)

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute inside loop ``scope`` of stage ``parent``, as much as one trip needs."""
        _ffi_api.StageComputeAt(self, parent, scope)

    def compute_inline(self) -> None:
        """Substitute the definition where it is read."""
        _ffi_api.StageComputeInline(self)

    def compute_root(self) -> None:
        """Compute the whole tensor before its readers."""
        _ffi_api.StageComputeRoot(self)


def InferBound(sch: Schedule, var_context: Any = None) -> Mapping[IterVar, Range]:
    """Domain of every loop of a normalized schedule.

    Parameters
    ----------
    var_context : arith.VarContext that knows which symbolic splits are exact, or None.
    """
    return _ffi_api.InferBound(sch, var_context)


def InferTensorizeRegion(
    stage: Stage, bounds: Mapping[IterVar, Range]
) -> tuple[Mapping[IterVar, Range], Mapping[Tensor, Sequence[Range]]]:
    """What the calls of a tensorized stage cover, in terms of the loops outside of the calls.

    Parameters
    ----------
    bounds : what `InferBound` returned for the normalized schedule.

    Returns
    -------
    outputs, inputs : ranges of the axes of the stage's compute, and of each tensor that it reads
        the region that one call reads.

    Raises
    ------
    ValueError : the stage is not tensorized, or `bounds` are those of another schedule.
    """
    outputs, inputs = _ffi_api.InferTensorizeRegion(stage, bounds)
    return outputs, inputs


def MatchTensorizeBody(
    stage: Stage,
    outputs: Mapping[IterVar, Range],
    inputs: Mapping[Tensor, Sequence[Range]],
    intrin: TensorIntrin,
) -> Sequence[PrimExpr]:
    """The values of a tensorized stage in the axes and inputs of `intrin`.

    They are what lowering compares with ``intrin.op.body``; to see why the two do not match.

    Parameters
    ----------
    outputs, inputs : what `InferTensorizeRegion` returned for the stage.

    Raises
    ------
    ScheduleError : extents or types of the two differ.
    """
    return _ffi_api.MatchTensorizeBody(stage, outputs, inputs, intrin)


def ScheduleOps(
    sch: Schedule, bounds: Mapping[IterVar, Range], keep_trivial_loop: bool = False
) -> Stmt:
    """Loop nests of a normalized schedule; loops of one trip only with ``keep_trivial_loop``."""
    return _ffi_api.ScheduleOps(sch, bounds, keep_trivial_loop)


def SchedulePostProcRewriteForTensorCore(
    stmt: Stmt, schedule: Schedule, extern_buffer: Mapping[Tensor, Any] | None = None
) -> Stmt:
    """Products of stages with the pragma ``tensor_core`` on fragments; :func:`tvm.lower` calls it.

    A marked stage adds up ``a[i, k] * b[k, j]`` of float16 for a sum of float32 or float16, or of
    int8 or uint8 for one of int32; the operands may be transposed. Its loops are those of one
    thread: the stage and both operands are "local" (``cache_write``, ``cache_read``), the operands
    copies of tiles in shared or global memory, and the result is copied out as it is. What the 32
    threads of a warp compute together must be a multiple of 16 x 16, 32 x 8 or 8 x 32 elements in
    multiples of 16 steps.

    Parameters
    ----------
    stmt : result of :func:`ScheduleOps`.
    schedule : the schedule that `stmt` was made from.
    extern_buffer : buffers that tensors will be bound to; their strides must suit fragments.

    Returns
    -------
    `stmt` itself if no stage is marked, else the statement with ``tvm_load_matrix_sync``,
    ``tvm_mma_sync``, ``tvm_store_matrix_sync`` and ``tvm_fill_fragment`` and without the pragma.

    Raises
    ------
    ScheduleError : a marked stage, or what it reads or is read by, is not of this form.
    ValueError : a marked loop belongs to no stage of `schedule`.
    """
    return _ffi_api.SchedulePostProcRewriteForTensorCore(stmt, schedule, dict(extern_buffer or {}))


def SchedulePostProcToPrimFunc(
    args: Sequence[Any], body: Stmt, binds: Mapping[Tensor, Any] | None = None
) -> PrimFunc:
    """Function over ``args`` (tensors, buffers, variables) from the result of ScheduleOps."""
    return _ffi_api.SchedulePostProcToPrimFunc(list(args), body, dict(binds or {}))


def AutoInlineElemWise(sch: Schedule) -> None:
    """Inline every stage, outputs apart, whose body reads at its own indices only."""
    _ffi_api.AutoInlineElemWise(sch)


def AutoInlineBroadcast(sch: Schedule) -> None:
    """Inline every stage, outputs apart, that is elementwise up to broadcasting."""
    _ffi_api.AutoInlineBroadcast(sch)


def AutoInlineInjective(sch: Schedule) -> None:
    """Inline every stage, outputs apart, without a reduction."""
    _ffi_api.AutoInlineInjective(sch)
