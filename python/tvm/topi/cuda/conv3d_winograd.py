"""Three-dimensional Winograd convolution as CUDA programs name it."""

from __future__ import annotations

from typing import Any

from ..nn.conv3d_winograd import conv3d_winograd_tile_size

__all__: list[str] = []


def _infer_tile_size(data: Any, kernel: Any, layout: str = "NCDHW") -> int:
    """The tile size for data and a kernel, of which only the shapes matter."""
    place = layout.index("D")
    depth, height, width = (int(e) for e in data.shape[place : place + 3])
    return conv3d_winograd_tile_size(depth, height, width)
