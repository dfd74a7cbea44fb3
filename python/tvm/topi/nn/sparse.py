"""Products with a matrix of which only the elements, or the blocks, that are not 0 are stored."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..launch import one_thread
from ..utils import as_int, get_const_tuple, simplify
from .pad import pad

__all__ = [
    "sparse_add",
    "sparse_conv2d",
    "sparse_dense",
    "sparse_dense_sp_lhs",
    "sparse_dense_sp_rhs",
    "sparse_transpose",
]


class _Rows:
    """Rows of a sparse matrix: elements (CSR) or blocks (BSR) of each, and their columns."""

    def __init__(self, where: str, data: te.Tensor, indices: te.Tensor, indptr: te.Tensor) -> None:
        ranks = len(data.shape), len(indices.shape), len(indptr.shape)
        if ranks not in ((1, 1, 1), (3, 1, 1)):
            raise ValueError(
                f"topi.nn.{where}: a sparse matrix is data of one dimension (CSR) or three (BSR: "
                "blocks, rows and columns of a block), with indices and indptr of one; got "
                f"{ranks[0]}, {ranks[1]} and {ranks[2]} dimensions"
            )
        self.data, self.indices, self.indptr = data, indices, indptr
        shape = get_const_tuple(data.shape)
        self.block = (as_int(shape[1]), as_int(shape[2])) if len(shape) == 3 else (1, 1)
        self.count = simplify((get_const_tuple(indptr.shape)[0] - 1) * self.block[0])

    def dot(self, row: Any, vector: Any) -> Any:
        """Sum of the products of a row with ``vector(column)``, in the type of the data."""
        height, _ = self.block
        return self.dot_of(row // height, row % height, vector)

    def dot_of(self, group: Any, within: Any, vector: Any) -> Any:
        """`dot` of the row `within` a group of them: blocks that lie beside each other."""
        _, width = self.block
        first = self.indptr[group]
        at = te.reduce_axis((0, self.indptr[group + 1] - first), "block")
        if len(self.data.shape) == 1:
            product = self.data[first + at] * vector(self.indices[first + at])
            return te.sum(product, axis=at)
        inside = te.reduce_axis((0, width), "column")
        column = self.indices[first + at] * width + inside
        product = self.data[first + at, within, inside] * vector(column)
        return te.sum(product, axis=[at, inside])


def sparse_dense_sp_rhs(
    data: te.Tensor, weight_data: te.Tensor, weight_indices: te.Tensor, weight_indptr: te.Tensor
) -> te.Tensor:
    """``data @ weight.T`` with a sparse weight.

    Parameters
    ----------
    data : (m, k).
    weight_data, weight_indices, weight_indptr : of a matrix (n, k), as ``scipy.sparse`` has them:
        ``csr_matrix`` or ``bsr_matrix``. Columns are below k, which is not checked.

    Returns
    -------
    (m, n).

    Raises
    ------
    ValueError : the arrays have the dimensions of neither kind.
    """
    rows = _Rows("sparse_dense", weight_data, weight_indices, weight_indptr)
    m, _ = get_const_tuple(data.shape)
    if len(weight_data.shape) == 1:
        return te.compute(
            (m, rows.count),
            lambda i, j: rows.dot(j, lambda column: data[i, column]),
            name="T_sparse_dense",
            tag="sparse_dense_sp_rhs_csrmm",
        )
    # A stage of whole blocks, since their loops have constant lengths that a schedule can use.
    height = rows.block[0]
    blocks = te.compute(
        (m, get_const_tuple(weight_indptr.shape)[0] - 1, height),
        lambda i, block, within: rows.dot_of(block, within, lambda column: data[i, column]),
        name="T_sparse_dense_block",
        tag="sparse_dense_sp_rhs_bsrmm_block",
    )
    return te.compute(
        (m, rows.count),
        lambda i, j: blocks[i, tir.indexdiv(j, height), tir.indexmod(j, height)],
        name="T_sparse_dense",
        tag="sparse_dense_sp_rhs_bsrmm",
    )


def sparse_dense_sp_lhs(
    data_data: te.Tensor, data_indices: te.Tensor, data_indptr: te.Tensor, weight: te.Tensor
) -> te.Tensor:
    """``data @ weight.T`` with sparse data of (m, k) and a weight of (n, k).

    Errors are those of :func:`sparse_dense_sp_rhs`.
    """
    rows = _Rows("sparse_dense", data_data, data_indices, data_indptr)
    n, _ = get_const_tuple(weight.shape)
    return te.compute(
        (rows.count, n),
        lambda i, j: rows.dot(i, lambda column: weight[j, column]),
        name="T_sparse_dense",
        tag="sparse_dense_sp_lhs",
    )


def sparse_dense(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    sparse_lhs: bool = False,
) -> te.Tensor:
    """``dense @ sparse.T``, or ``sparse @ dense.T`` where the sparse matrix comes first.

    See :func:`sparse_dense_sp_rhs` and :func:`sparse_dense_sp_lhs`.
    """
    if sparse_lhs:
        return sparse_dense_sp_lhs(sparse_data, sparse_indices, sparse_indptr, dense_data)
    return sparse_dense_sp_rhs(dense_data, sparse_data, sparse_indices, sparse_indptr)


def sparse_add(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
) -> te.Tensor:
    """A matrix plus a sparse one.

    Parameters
    ----------
    dense_data : (m, n).
    sparse_data, sparse_indices, sparse_indptr : of a matrix (m, n), as ``scipy.sparse.csr_matrix``
        has them; elements of one place are summed.

    Raises
    ------
    ValueError : the arrays have other dimensions.
    """
    if len(sparse_data.shape) != 1 or len(dense_data.shape) != 2:
        raise ValueError("topi.nn.sparse_add: takes a matrix and the three arrays of a CSR matrix")
    m, n = get_const_tuple(dense_data.shape)

    def element(i: Any, j: Any) -> Any:
        at = te.reduce_axis((0, sparse_indptr[i + 1] - sparse_indptr[i]), "element")
        place = sparse_indptr[i] + at
        zero = tir.const(0, dense_data.dtype)
        here = sparse_indices[place] == j.astype(sparse_indices.dtype)
        return te.sum(tir.Select(here, sparse_data[place], zero), axis=at)

    stored = te.compute((m, n), element, name="stored")
    return te.compute((m, n), lambda i, j: dense_data[i, j] + stored[i, j], name="sparse_add")


def sparse_transpose(
    sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor
) -> list[te.Tensor]:
    """The three arrays of the transpose of a square CSR matrix.

    Raises
    ------
    ValueError : the arrays are those of blocks.
    """
    if len(sparse_data.shape) != 1:
        raise ValueError("topi.nn.sparse_transpose: takes the three arrays of a CSR matrix")
    (count,) = get_const_tuple(sparse_data.shape)
    (ends,) = get_const_tuple(sparse_indptr.shape)
    size = as_int(ends) - 1

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        data, indices, indptr = (ib.buffer_ptr(b) for b in ins)
        new_data, new_indices, new_indptr = (ib.buffer_ptr(b) for b in outs)
        kind = sparse_indptr.dtype
        with one_thread(ib):
            with ib.for_range(0, ends, "column") as column:
                new_indptr[column] = tir.const(0, kind)
            with ib.for_range(0, count, "element") as element:
                column = indices[element] + 1
                new_indptr[column] = new_indptr[column] + tir.const(1, kind)
            with ib.for_range(0, size, "column") as column:
                new_indptr[column + 1] = new_indptr[column + 1] + new_indptr[column]
            # Each column's place moves on as it is filled: the places are then one column further.
            with (
                ib.for_range(0, size, "row") as row,
                ib.for_range(0, indptr[row + 1] - indptr[row], "at") as at,
            ):
                element = indptr[row] + at
                column = indices[element]
                place = new_indptr[column]
                new_data[place] = data[element]
                new_indices[place] = row.astype(sparse_indices.dtype)
                new_indptr[column] = new_indptr[column] + tir.const(1, kind)
            with ib.for_range(0, size, "column") as column:
                new_indptr[size - column] = new_indptr[size - 1 - column]
            new_indptr[0] = tir.const(0, kind)
        return ib.get()

    shapes = [(count,), (count,), (ends,)]
    kinds = [str(t.dtype) for t in (sparse_data, sparse_indices, sparse_indptr)]
    given = [sparse_data, sparse_indices, sparse_indptr]
    made = te.extern(shapes, given, body, name="sparse_transpose", dtype=kinds)
    return list(made)


def sparse_conv2d(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> te.Tensor:
    """A convolution of stride one with a sparse weight and zeros around the data.

    Parameters
    ----------
    dense_data : of a layout "NHWC" or "NCHW".
    sparse_data, sparse_indices, sparse_indptr : of a matrix (out channels, kernel_size ** 2 * in
        channels), the in channels innermost, as ``csr_matrix`` or ``bsr_matrix`` have them.
    kernel_size : of both sides, odd; the result has as many rows and columns as the data.

    Raises
    ------
    ValueError : the arrays have the dimensions of neither kind, the layout is another one, or
        `kernel_size` is even.
    """
    if kernel_size % 2 == 0:
        raise ValueError(f"topi.nn.sparse_conv2d: kernel_size must be odd, got {kernel_size}")
    if layout not in ("NHWC", "NCHW"):
        raise ValueError(f"topi.nn.sparse_conv2d: layout is 'NHWC' or 'NCHW', got '{layout}'")
    rows = _Rows("sparse_conv2d", sparse_data, sparse_indices, sparse_indptr)
    sizes = dict(zip(layout, get_const_tuple(dense_data.shape)))
    channels, border = sizes["C"], kernel_size // 2
    shape = {**sizes, "C": rows.count}
    around = [border if axis in "HW" else 0 for axis in layout]
    padded = pad(dense_data, around, around) if border else dense_data

    def element(*place: Any) -> Any:
        at = dict(zip(layout, place))

        def value(column: Any) -> Any:
            tap = tir.indexdiv(column, channels)
            source = {
                "N": at["N"],
                "H": at["H"] + tir.indexdiv(tap, kernel_size),
                "W": at["W"] + tir.indexmod(tap, kernel_size),
                "C": tir.indexmod(column, channels),
            }
            return padded(*[source[axis] for axis in layout])

        return rows.dot(at["C"], value)

    return te.compute(
        [shape[axis] for axis in layout], element, name="T_sparse_conv2d",
        tag=f"sparse_conv2d_{layout.lower()}",
    )  # fmt: skip
