"""Resizing of images in numpy, axis by axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["resize1d_python", "resize2d_python", "resize3d_python"]


def _source(size: int, target: int, mode: str) -> np.ndarray:
    """Where each of `target` places is among `size` elements."""
    places = np.arange(target, dtype="float64")
    if mode == "align_corners":
        return places * ((size - 1) / (target - 1) if target > 1 else 0.0)
    if mode == "half_pixel":
        return (places + 0.5) * size / target - 0.5
    if mode == "asymmetric":
        return places * size / target
    raise ValueError(f'coordinate_transformation_mode "{mode}" is not known')


def _taps(places: np.ndarray, method: str, mode: str, alpha: float) -> list[tuple]:
    """Pairs of whole places and factors."""
    if method in ("nearest_neighbor", "nearest"):
        if mode == "align_corners":
            return [(np.floor(places + 0.5), np.ones_like(places))]
        chosen = np.ceil(places - 0.5) if mode == "half_pixel" else np.floor(places + 1e-5)
        return [(chosen, np.ones_like(places))]
    low = np.floor(places)
    rest = places - low
    if method in ("linear", "bilinear", "trilinear"):
        return [(low, 1 - rest), (low + 1, rest)]
    if method not in ("cubic", "bicubic"):
        raise ValueError(f'method "{method}" is not known')

    def kernel(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        near = (alpha + 2) * x**3 - (alpha + 3) * x**2 + 1
        far = alpha * (x**3 - 5 * x**2 + 8 * x - 4)
        return np.where(x <= 1, near, far)

    return [(low + k, kernel(rest - k)) for k in (-1, 0, 1, 2)]


def _resize_axis(
    data: np.ndarray, axis: int, size: int, method: str, mode: str, alpha: float
) -> np.ndarray:
    length = data.shape[axis]
    total = 0.0
    for whole, factor in _taps(_source(length, size, mode), method, mode, alpha):
        taken = np.take(data, np.clip(whole, 0, length - 1).astype("int64"), axis=axis)
        total = total + taken * factor.reshape([-1 if k == axis else 1 for k in range(data.ndim)])
    return np.asarray(total)


def _resizer(letters: str) -> Callable[..., np.ndarray]:
    def resize(
        data: np.ndarray,
        scale: Sequence[float],
        layout: str,
        method: str = "linear",
        coordinate_transformation_mode: str = "align_corners",
        alpha: float = -0.5,
    ) -> np.ndarray:
        """Image with the spatial axes of `layout` (D, H, W) `scale` times as long.

        Raises
        ------
        ValueError : an unknown method or mode.
        """
        out = data.astype("float64")
        for letter, factor in zip(letters, scale, strict=True):
            axis = layout.index(letter)
            size = round(data.shape[axis] * factor)
            out = _resize_axis(out, axis, size, method, coordinate_transformation_mode, alpha)
        return out.astype(data.dtype)

    return resize


resize1d_python = _resizer("W")
resize2d_python = _resizer("HW")
resize3d_python = _resizer("DHW")
