"""``R.DTensor``, ``R.device_mesh`` and ``R.dist``: tensors on several devices in texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import error, relax
from tvm.ir import RelayExpr
from tvm.relax.dtensor import DeviceMesh, DTensorStructInfo, Placement
from tvm.relax.dtensor import device_mesh as device_mesh
from tvm.relax.op import call_tir as call_tir
from tvm.relax.op import distributed as _op
from tvm.relax.op.distributed import call_tir_local_view as call_tir_local_view
from tvm.relax.op.distributed import redistribute_replica_to_shard as redistribute_replica_to_shard
from tvm.runtime import NDArray, ndarray

from .annotations import Annotation
from .ir_builder.base import IRBuilder
from .ir_builder.ir import IRModuleFrame
from .relax_types import StructInfoMaker, Tensor

__all__ = [
    "annotate_sharding",
    "call_tir",
    "call_tir_local_view",
    "const",
    "device_mesh",
    "redistribute",
    "redistribute_replica_to_shard",
]


def _mesh_named(text: str) -> DeviceMesh | None:
    """The mesh that ``list[number]`` names in the module that is read; None outside of one.

    Raises
    ------
    ValueError : the module has no such mesh.
    """
    frame = IRBuilder.current().find(IRModuleFrame) if IRBuilder.is_in_scope() else None
    if frame is None:
        return None
    found = re.fullmatch(r"(\w+)\[(\d+)\]", text)
    infos = frame.global_infos.get(found[1], []) if found else []
    if found is None or int(found[2]) >= len(infos):
        known = [
            f"{name}[{i}]" for name, some in frame.global_infos.items() for i in range(len(some))
        ]
        raise error.ValueError(
            f"R.DTensor: the module has no mesh `{text}`; I.module_global_infos lists "
            + (", ".join(known) or "nothing")
        )
    return infos[int(found[2])]


def _mesh(mesh: DeviceMesh | str) -> DeviceMesh:
    named = _mesh_named(mesh) if isinstance(mesh, str) else mesh
    if named is None:
        raise error.ValueError(
            f"R.dist: `{mesh}` names a mesh of a module; outside of one give R.device_mesh(...)"
        )
    return named


def _placement(placement: Placement | str) -> Placement:
    return Placement.from_text(placement) if isinstance(placement, str) else placement


def _dtensor(
    shape: Any = None,
    dtype: Any = None,
    device_mesh: DeviceMesh | str | None = None,
    placement: Placement | str = "",
    *,
    ndim: int = -1,
) -> Any:
    """A tensor on a mesh: ``R.DTensor((128, 128), "float32", "mesh[0]", "S[0], R")``.

    Parameters
    ----------
    shape, dtype, ndim : the whole tensor, as in ``R.Tensor``.
    device_mesh : a mesh, or its place in the lists of the module.
    placement : for each dimension of the mesh ``R``, a copy, or ``S[i]``, parts along dimension i.
    """
    tensor = Tensor(shape, dtype, None, ndim)
    mesh = DeviceMesh([], []) if device_mesh is None else device_mesh
    if isinstance(mesh, str):
        named = _mesh_named(mesh)
        if named is None:
            # Python evaluates annotations before the module is read.
            return Annotation("R.DTensor")
        mesh = named
    return DTensorStructInfo(tensor, mesh, _placement(placement))


DTensor = StructInfoMaker("R.DTensor", _dtensor)


def annotate_sharding(
    value: RelayExpr, device_mesh: DeviceMesh | str, placement: Placement | str
) -> relax.Call:
    """The tensor, of which it is said how it shall lie on a mesh."""
    return _op.annotate_sharding(value, _mesh(device_mesh), _placement(placement))


def redistribute(
    value: RelayExpr, device_mesh: DeviceMesh | str, placement: Placement | str
) -> relax.Call:
    """The tensor, lying in another way."""
    return _op.redistribute(value, _mesh(device_mesh), _placement(placement))


def const(
    value: bool | float | Sequence[Any] | np.ndarray | NDArray, struct_info: DTensorStructInfo
) -> relax.Constant:
    """A constant that every device has.

    Raises
    ------
    TypeError : `struct_info` is that of another value.
    """
    if not isinstance(struct_info, DTensorStructInfo):
        raise error.TypeError(f"R.dist.const: struct_info must be an R.DTensor, got {struct_info}")
    if not isinstance(value, NDArray):
        value = ndarray.array(np.asarray(value, str(struct_info.tensor_sinfo.dtype)))
    return relax.Constant(value, struct_info)
