"""Programs for several devices: how tensors lie on a mesh, and what each device computes.

Say of some tensors how they lie (`R.dist.annotate_sharding`), then run

>>> passes = [
...     transform.PropagateSharding(),
...     transform.LowerGlobalViewToLocalView(),
...     transform.LegalizeRedistribute(),
...     transform.LowerDistIR(),
... ]

on a module of kernels (`relax.transform.LegalizeOps`). What comes out exchanges tensors by
`R.ccl`, and runs in the workers of a session of `tvm.runtime.disco`.
"""

from ..dtensor import (
    DeviceMesh,
    DTensorStructInfo,
    DTensorType,
    Placement,
    PlacementSpec,
    PlacementSpecKind,
    device_mesh,
)
from . import transform

__all__ = [
    "DTensorStructInfo",
    "DTensorType",
    "DeviceMesh",
    "Placement",
    "PlacementSpec",
    "PlacementSpecKind",
    "device_mesh",
    "transform",
]
