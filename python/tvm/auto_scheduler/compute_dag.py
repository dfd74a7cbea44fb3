"""The operations of one workload, replay of states on them, and layouts of constant inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

import tvm._ffi
from tvm import te, tir
from tvm.runtime import Object

from . import _ffi_api
from .loop_state import State, StateObject, state_object_of
from .python_code import python_code_from_state
from .utils import get_const_tuple
from .workload_registry import workload_key_to_tensors

__all__ = [
    "ComputeDAG",
    "LayoutRewriteOption",
    "LayoutTransform",
    "get_shape_from_rewritten_layout",
    "pack_array",
    "rewrite_compute_body",
]


class LayoutRewriteOption:
    """How `ComputeDAG.apply_steps_from_state` treats layout-free inputs.

    NO_REWRITE : they keep their layout.
    INSERT_TRANSFORM_STAGE : the program transforms them each time it runs.
    REWRITE_FOR_PRE_TRANSFORMED : the program expects them transformed, see `pack_array`.
    """

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: tvm.target.Target, in_network: bool = False) -> int:
        """What is usual for a target; a network transforms its weights once, when it is built."""
        if target.kind.name != "llvm" and "mali" not in target.keys:
            return LayoutRewriteOption.NO_REWRITE
        if in_network:
            return LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        return LayoutRewriteOption.INSERT_TRANSFORM_STAGE


@tvm._ffi.register_object("auto_scheduler.LayoutTransform")
class LayoutTransform(Object):
    """New layout of one input.

    Attributes
    ----------
    placeholder : name of the input.
    tensor_index : its position among the io tensors.
    original_shape : shape before.
    dims, extents, strides : dimension d of the new array has ``extents[d]`` elements, and walks
        the original dimension ``dims[d]`` in steps of ``strides[d]``.
    """


def pack_array(array: np.ndarray, transform: LayoutTransform) -> np.ndarray:
    """`array` in a new layout, contiguous.

    Parameters
    ----------
    array : shape ``transform.original_shape``.
    transform : as from `ComputeDAG.layout_transforms`.

    Returns
    -------
    Array of shape ``transform.extents`` and the dtype of `array`.

    Raises
    ------
    ValueError : the shape is not the original one, or the parts do not tile it.
    """
    shape = get_const_tuple(transform.original_shape)
    if tuple(array.shape) != shape:
        raise ValueError(
            f"pack_array: {transform.placeholder} has shape {shape}, got {tuple(array.shape)}"
        )
    dims = [int(d) for d in transform.dims]
    extents = get_const_tuple(transform.extents)
    strides = get_const_tuple(transform.strides)
    # Cut each dimension into its parts, largest stride first, then put the parts in loop order.
    split_shape: list[int] = []
    place: dict[int, int] = {}
    for dim, size in enumerate(shape):
        parts = sorted((p for p in range(len(dims)) if dims[p] == dim), key=lambda p: -strides[p])
        expected = size
        for part in parts:
            expected //= extents[part]
            if expected != strides[part]:
                raise ValueError(f"pack_array: parts of dimension {dim} do not tile {size}")
            place[part] = len(split_shape)
            split_shape.append(extents[part])
        if not parts and size != 1:
            raise ValueError(f"pack_array: dimension {dim} of extent {size} has no part")
    order = [place[part] for part in range(len(dims))]
    return np.ascontiguousarray(array.reshape(split_shape).transpose(order))


def get_shape_from_rewritten_layout(
    rewritten_layout: str, axis_names: Sequence[str]
) -> list[tir.IntImm]:
    """Extents of axes in a layout written as text.

    Parameters
    ----------
    rewritten_layout : an extent and the name of an axis for each dimension, outermost first. Names
        are letters and underscores.
    axis_names : the axes, in the order of the shape before.

    Raises
    ------
    ValueError : the text is no layout, or has no such axis.

    Examples
    --------
    >>> [int(extent) for extent in get_shape_from_rewritten_layout("8i32k4i", ["i", "k"])]
    [32, 32]
    """
    return list(_ffi_api.GetShapeFromRewrittenLayout(rewritten_layout, list(axis_names)))


def rewrite_compute_body(compute_tensor: te.Tensor, new_layout: str) -> te.Tensor:
    """The operation of a tensor with its layout-free input in another layout.

    Parameters
    ----------
    compute_tensor : output of an operation whose attribute ``layout_free_placeholders`` names one
        input, read along axes only.
    new_layout : see `get_shape_from_rewritten_layout`; dimensions are named as those axes.

    Returns
    -------
    Tensor of the same shape; among ``op.input_tensors`` is a placeholder of the input's name in the
    shape of the layout. `pack_array` makes its content.

    Raises
    ------
    ValueError : there is not one such input, or it is read at other indices than axes, or the
        layout has other axes.
    """
    op = compute_tensor.op
    free = list(op.attrs.get("layout_free_placeholders", ()))
    if len(free) != 1 or len(op.body) != 1:
        raise ValueError(
            f"rewrite_compute_body: {op.name} has {len(free)} layout-free inputs and "
            f"{len(op.body)} outputs; expected one of each"
        )
    body = _ffi_api.RewriteIndexForNewLayout(free[0].op, new_layout, op.body[0])
    attrs = {k: v for k, v in op.attrs.items() if k != "layout_free_placeholders"}
    return te._ffi_api.ComputeOp(op.name, op.tag, attrs, op.axis, [body]).output(0)


@tvm._ffi.register_object("auto_scheduler.ComputeDAG")
class ComputeDAG(Object):
    """The operations of one workload in topological order.

    Parameters
    ----------
    compute : io tensors, inputs first, or a workload key.

    Attributes
    ----------
    tensors : inputs, then outputs.
    ops : operations, producers before readers; stage ids of a fresh state count these.
    flop_ct : floating point operations of one run, -1 if unknown.
    """

    def __init__(self, compute: Sequence[te.Tensor] | str) -> None:
        tensors = workload_key_to_tensors(compute) if isinstance(compute, str) else list(compute)
        for tensor in tensors:
            if not isinstance(tensor, te.Tensor):
                raise TypeError(
                    f"ComputeDAG: expected te tensors or a workload key, got a list with "
                    f"{type(tensor).__name__}"
                )
        self.__init_handle_by_constructor__(_ffi_api.ComputeDAG, tensors)

    def get_init_state(self) -> State:
        """The state in which nothing is scheduled."""
        return State(self.init_state, self)

    def apply_steps_from_state(
        self,
        state: State | StateObject,
        layout_rewrite: int = LayoutRewriteOption.NO_REWRITE,
    ) -> tuple[te.Schedule, list[te.Tensor]]:
        """The te schedule of a state, and the arguments of the function to build from it.

        With REWRITE_FOR_PRE_TRANSFORMED the arguments have the shapes of the new layouts.
        """
        schedule, args = _ffi_api.ComputeDAGApplyStepsFromState(
            self, state_object_of(state), layout_rewrite
        )
        return schedule, list(args)

    def infer_bound_from_state(
        self, state: State | StateObject, context: Object | None = None
    ) -> State:
        """`state` with the range of every loop filled in.

        Parameters
        ----------
        state : with all lengths literal, or symbolic and described by `context`.
        context : the VarContext that made the symbolic lengths.
        """
        inferred = _ffi_api.ComputeDAGInferBoundFromState(self, state_object_of(state), context)
        return State(inferred, self)

    def replay_steps(self, steps: Sequence[Object]) -> State:
        """The state to which `steps` lead from the initial one."""
        return State(_ffi_api.ComputeDAGReplaySteps(self, list(steps)), self)

    def layout_transforms(self, state: State | StateObject) -> list[LayoutTransform]:
        """New layouts of the layout-free inputs in the program of a state."""
        return list(_ffi_api.ComputeDAGLayoutTransforms(self, state_object_of(state)))

    def layout_free_inputs(self) -> list[int]:
        """Positions of the io tensors whose layout an operation leaves to the schedule."""
        free = [
            tensor
            for op in self.ops
            if isinstance(op, te.ComputeOp)
            for tensor in op.attrs.get("layout_free_placeholders", ())
        ]
        return [
            position
            for position, tensor in enumerate(self.tensors)
            if any(tensor.op.same_as(other.op) for other in free)
        ]

    def print_python_code_from_state(self, state: State | StateObject) -> str:
        """Python code that does what the steps of a state do, see `python_code_from_state`."""
        return python_code_from_state(self, state)

    def rewrite_layout_from_state(self, state: State | StateObject) -> ComputeDAG:
        """The DAG that reads its layout-free inputs in the layouts of a state."""
        return _ffi_api.ComputeDAGRewriteLayoutFromState(self, state_object_of(state))

    def print_dag(self, simple_mode: bool = False) -> str:
        """One line per operation; in simple mode without shapes of the inputs."""
        return str(_ffi_api.ComputeDAGPrintDAG(self, simple_mode))

    def hash_key(self) -> str:
        """MD5 of the operations with their dtypes and attributes.

        The global function ``auto_scheduler.compute_dag.hash_func`` replaces MD5.
        """
        text = self.print_dag(simple_mode=True)
        custom = tvm._ffi.get_global_func(
            "auto_scheduler.compute_dag.hash_func", allow_missing=True
        )
        if custom is not None:
            return str(custom(text))
        return hashlib.md5(text.encode()).hexdigest()

    def workload_key(self) -> str:
        """JSON text ``[hash, [shape of tensor 0], ...]``: equal for equal computations."""
        shapes = [list(get_const_tuple(tensor.shape)) for tensor in self.tensors]
        return json.dumps([self.hash_key(), *shapes])

    def __str__(self) -> str:
        return self.print_dag()
