"""Sparse matrices to try programs with."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["random_bsr_matrix"]


def random_bsr_matrix(
    M: int,
    N: int,
    BS_R: int,
    BS_C: int,
    density: float,
    dtype: str = "float32",
    seed: int | None = None,
) -> Any:
    """A ``scipy.sparse.bsr_matrix`` of (M, N) with random blocks of (BS_R, BS_C).

    Parameters
    ----------
    M, N, BS_R, BS_C : rows and columns of the matrix, and of a block.
    density : share of the blocks that are stored, above 0 and at most 1; at least one is.
    seed : of the generator; a new matrix each time without one.

    Raises
    ------
    ValueError : blocks do not fill the matrix, or there is no such share.
    """
    if min(M, N, BS_R, BS_C) < 1 or M % BS_R or N % BS_C:
        raise ValueError(
            f"random_bsr_matrix: blocks of ({BS_R}, {BS_C}) do not fill a matrix of ({M}, {N})"
        )
    if not 0 < density <= 1:
        raise ValueError(f"random_bsr_matrix: density is above 0 and at most 1, got {density}")
    from scipy.sparse import bsr_matrix

    rng = np.random.default_rng(seed)
    rows, columns = M // BS_R, N // BS_C
    count = max(1, round(density * rows * columns))
    places = np.sort(rng.choice(rows * columns, count, replace=False))
    stored_before = np.searchsorted(places, np.arange(rows + 1) * columns)
    data = rng.standard_normal((count, BS_R, BS_C)).astype(dtype)
    indices, indptr = (places % columns).astype("int32"), stored_before.astype("int32")
    return bsr_matrix((data, indices, indptr), shape=(M, N))
