"""Tensors of which each device of a mesh has a part, or a copy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from tvm import error
from tvm._ffi import get_global_func, register_object
from tvm.ir import GlobalInfo, Range, Type
from tvm.runtime import Object

from .struct_info import StructInfo, TensorStructInfo, TupleStructInfo

__all__ = [
    "DTensorStructInfo",
    "DTensorType",
    "DeviceMesh",
    "Placement",
    "PlacementSpec",
    "PlacementSpecKind",
    "device_mesh",
    "dtensor_fields",
]


@register_object("relax.distributed.DeviceMesh")
class DeviceMesh(GlobalInfo):
    """Devices by their numbers, as the points of a grid.

    Parameters
    ----------
    shape : extents of the grid.
    device_ids : the numbers, the last dimension fastest, or a range of them.

    Raises
    ------
    ValueError : there are more or fewer numbers than points.
    """

    def __init__(self, shape: Sequence[int], device_ids: Sequence[int] | Range) -> None:
        ids, numbers = (None, device_ids) if isinstance(device_ids, Range) else (device_ids, None)
        self.__init_handle_by_constructor__(
            get_global_func("relax.distributed.DeviceMesh"),
            [_literal(extent) for extent in shape],
            [_literal(number) for number in ids or ()],
            numbers,
        )

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape in plain numbers."""
        return tuple(int(extent) for extent in self.shape)


def _literal(number: Any) -> Any:
    return get_global_func("ir.IntImm")("int64", int(number), None)


def device_mesh(shape: Sequence[int], device_ids: Sequence[int] | Range) -> DeviceMesh:
    """A mesh of devices, `DeviceMesh`."""
    return DeviceMesh(shape, device_ids)


class PlacementSpecKind(IntEnum):
    """What devices have of a tensor: a part of it each, or all of it."""

    kSharding = 0
    kReplica = 1


@register_object("relax.distributed.PlacementSpec")
class PlacementSpec(Object):
    """What the devices along one dimension of a mesh have of a tensor.

    `axis` is the dimension of the tensor that is divided among them, -1 for copies.
    """

    def __init__(self, axis: int, kind: PlacementSpecKind | int) -> None:
        self.__init_handle_by_constructor__(
            get_global_func("relax.distributed.PlacementSpec"), axis, int(kind)
        )

    @staticmethod
    def sharding(axis: int) -> PlacementSpec:
        """Equal parts along a dimension of the tensor."""
        return PlacementSpec(axis, PlacementSpecKind.kSharding)

    @staticmethod
    def replica() -> PlacementSpec:
        """A copy for each."""
        return PlacementSpec(-1, PlacementSpecKind.kReplica)


@register_object("relax.distributed.Placement")
class Placement(Object):
    """What the devices of a mesh have of a tensor, for each dimension of the mesh."""

    def __init__(self, dim_specs: Sequence[PlacementSpec]) -> None:
        self.__init_handle_by_constructor__(
            get_global_func("relax.distributed.Placement"), list(dim_specs)
        )

    @staticmethod
    def from_text(text: str) -> Placement:
        """The placement of a text such as "S[0], R": divided along dimension 0, replicated.

        Raises
        ------
        ValueError : the text is another one.
        """
        specs = []
        for part in text.split(",") if text.strip() else ():
            found = re.fullmatch(r"R|S\[(\d+)\]", part.strip())
            if found is None:
                raise error.ValueError(
                    f'Placement: "{part.strip()}" of "{text}" is neither R nor S[dimension]'
                )
            sharded = found[1] is not None
            specs.append(
                PlacementSpec.sharding(int(found[1])) if sharded else PlacementSpec.replica()
            )
        return Placement(specs)

    @property
    def axes(self) -> tuple[int | None, ...]:
        """For each dimension of the mesh, the dimension of the tensor; None for copies."""
        return tuple(None if int(spec.axis) < 0 else int(spec.axis) for spec in self.dim_specs)

    def __str__(self) -> str:
        return str(get_global_func("relax.distributed.PlacementToText")(self))


@register_object("relax.DTensorStructInfo")
class DTensorStructInfo(StructInfo):
    """A tensor on the devices of a mesh.

    Parameters
    ----------
    tensor_sinfo : the whole tensor.

    Raises
    ------
    ValueError : the placement has another rank than the mesh, or divides a dimension that the
        tensor lacks.
    """

    def __init__(
        self, tensor_sinfo: TensorStructInfo, device_mesh: DeviceMesh, placement: Placement | str
    ) -> None:
        if isinstance(placement, str):
            placement = Placement.from_text(placement)
        self.__init_handle_by_constructor__(
            get_global_func("relax.distributed.DTensorStructInfo"),
            tensor_sinfo,
            device_mesh,
            placement,
        )

    @property
    def ndim(self) -> int:
        """Rank of the tensor."""
        return int(self.tensor_sinfo.ndim)

    def with_tensor(self, tensor_sinfo: TensorStructInfo) -> DTensorStructInfo:
        """Another tensor that lies in the same way."""
        return DTensorStructInfo(tensor_sinfo, self.device_mesh, self.placement)

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        return DTensorType(self.ndim, str(self.tensor_sinfo.dtype))


@register_object("relax.DTensorType")
class DTensorType(Type):
    """A tensor on several devices; an unknown element type is "", an unknown rank -1."""

    def __init__(self, ndim: int = -1, dtype: str | None = "float32") -> None:
        self.__init_handle_by_constructor__(
            get_global_func("relax.distributed.DTensorType"), ndim, dtype or "void"
        )


def dtensor_fields(info: StructInfo) -> list[DTensorStructInfo]:
    """The distributed tensors of a value: itself, or fields of a tuple; none of other values."""
    if isinstance(info, TupleStructInfo):
        return [part for field in info.fields for part in dtensor_fields(field)]
    return [info] if isinstance(info, DTensorStructInfo) else []
