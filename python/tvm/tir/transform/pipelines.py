"""Passes that let a GPU's threads work on several trips of a loop at once."""

from __future__ import annotations

from tvm.ir.transform import Pass

from . import _ffi_api

__all__ = ["InjectPTXAsyncCopy", "InjectSoftwarePipeline"]


def InjectSoftwarePipeline() -> Pass:
    """Loops whose parts work on different trips at the same time.

    A loop with the annotations ``software_pipeline_stage`` and ``software_pipeline_order``, lists
    with a number for each statement of its body, becomes three: one that fills the pipeline, one
    that runs it and one that empties it. Statement s of trip t runs together with trip
    ``t + stage[s]``, at place ``order[s]``. Buffers that the body allocates get an axis in front
    for as many copies as are in use at once. Statements of the stages in
    ``software_pipeline_async_stages`` only start what they do: attributes around them
    (``async_scope``, ``async_commit_queue_scope``) and around their readers
    (``async_wait_queue_scope``, ``async_wait_inflight_count``) say when it has to have ended.

    For functions of opaque blocks without views of regions.

    Raises
    ------
    ValueError : (when run) the lists do not fit the body, two statements have one order, those of
        one stage change their order, or a statement would read what a later stage writes.
    """
    return _ffi_api.InjectSoftwarePipeline()


def InjectPTXAsyncCopy() -> Pass:
    """Copies of global to shared memory in ``async_scope`` become ``cp.async`` instructions.

    Groups of them (``async_commit_queue_scope``) end with a commit, and their readers begin with
    a wait. Copies of 4, 8 or 16 bytes of one element type are changed, guarded ones
    (``T.if_then_else(condition, A[i], 0)``) too. Builds run this pass under
    ``PassContext(config={"tir.use_async_copy": True})``.

    Needs flat accesses.
    """
    return _ffi_api.InjectPTXAsyncCopy()
