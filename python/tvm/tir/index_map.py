"""Maps from indices to indices, as layouts of buffers and of the variables of blocks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tvm._ffi
import tvm.error
from tvm.ir import PrimExpr
from tvm.runtime import NDArray, Object, convert, ndarray

from . import _ffi_api
from .expr import Add, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var

__all__ = ["IndexMap"]

_NUMPY = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    FloorDiv: np.floor_divide,
    FloorMod: np.mod,
    Min: np.minimum,
    Max: np.maximum,
}


@tvm._ffi.register_object("tir.IndexMap")
class IndexMap(Object):
    """``lambda initial_indices: final_indices``, for example ``lambda i: [i // 4, i % 4]``.

    Parameters
    ----------
    initial_indices : variables, the indices before.
    final_indices : expressions of them, the indices after.
    inverse_index_map : the map back, where it is known better than arithmetic finds it.
    """

    #: Stands between indices of a mapping function where a group of flattened axes ends.
    AXIS_SEPARATOR = "axis_separator"

    def __init__(
        self,
        initial_indices: Sequence[Var],
        final_indices: Sequence[PrimExpr | int],
        inverse_index_map: IndexMap | Callable[..., Any] | None = None,
    ) -> None:
        if inverse_index_map is not None and not isinstance(inverse_index_map, IndexMap):
            inverse_index_map = IndexMap.from_func(inverse_index_map)
        final = [convert(index) for index in final_indices]
        self.__init_handle_by_constructor__(
            _ffi_api.IndexMap, list(initial_indices), final, inverse_index_map
        )

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: IndexMap | Callable[..., Any] | None = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """The map that a Python function computes.

        Parameters
        ----------
        mapping_function : takes one variable for each index, returns a list of expressions.
        ndim : number of indices; needed where the function takes ``*indices``.
        index_dtype : type of the variables.

        Raises
        ------
        ValueError : the number of indices is not clear, or axis separators were returned.
        """
        index_map, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise tvm.error.ValueError(
                "IndexMap.from_func: the mapping function returned axis separators; use "
                "from_func_with_separators"
            )
        return index_map

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: IndexMap | Callable[..., Any] | None = None,
        *,
        index_dtype: str = "int64",
    ) -> tuple[IndexMap, list[int]]:
        """The map that a Python function computes, and the places of its axis separators.

        The function may put `IndexMap.AXIS_SEPARATOR` between indices; a place is the number of
        indices in front of it.
        """
        initial = _parameters(mapping_function, ndim, index_dtype)
        mapped = mapping_function(*initial)
        if isinstance(mapped, tvm.ir.Array) or not isinstance(mapped, (list, tuple, PrimExpr, int)):
            mapped = list(mapped)
        elif isinstance(mapped, (PrimExpr, int)):
            mapped = [mapped]
        final: list[Any] = []
        separators: list[int] = []
        for index in mapped:
            if isinstance(index, str) and index == IndexMap.AXIS_SEPARATOR:
                separators.append(len(final))
            elif isinstance(index, int):
                final.append(IntImm(index_dtype, index))
            elif isinstance(index, PrimExpr) or hasattr(index, "asobject"):
                final.append(convert(index))
            else:
                raise tvm.error.TypeError(
                    "IndexMap: a mapping function returns expressions and "
                    f"IndexMap.AXIS_SEPARATOR, got {index!r}"
                )
        return IndexMap(initial, final, inverse_index_map), separators

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether both maps give equal indices everywhere, by proof."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        if len(self.final_indices) != len(other_map.final_indices):
            return False
        analyzer = tvm.arith.Analyzer()
        mapped = self.map_indices(list(other_map.initial_indices))
        return all(
            analyzer.can_prove_equal(a, tvm.tir.Cast(a.dtype, b) if a.dtype != b.dtype else b)
            for a, b in zip(mapped, other_map.final_indices, strict=True)
        )

    def map_indices(self, indices: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """Indices after the map, of the type of those given."""
        return list(_ffi_api.IndexMapMapIndices(self, [convert(index) for index in indices]))

    def map_shape(self, shape: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """Extents of what a box of extents `shape` becomes; partial tiles count as full."""
        return list(_ffi_api.IndexMapMapShape(self, [convert(extent) for extent in shape]))

    def map_ndarray(self, arr_src: NDArray) -> NDArray:
        """An array with the elements of `arr_src` where the map puts them, and zeros elsewhere."""
        source = arr_src.numpy()
        shape = [int(extent) for extent in self.map_shape(source.shape)]
        grid = dict(zip(self.initial_indices, np.indices(source.shape), strict=True))
        result = np.zeros(shape, dtype=source.dtype)
        result[tuple(_evaluate(index, grid) for index in self.final_indices)] = source
        return ndarray.array(result)

    def inverse(self, shape: Sequence[PrimExpr | int]) -> IndexMap:
        """The map back from the image of a box of extents `shape`.

        Raises
        ------
        ValueError : not every point of the image has exactly one origin.
        """
        return _ffi_api.IndexMapInverse(self, [convert(extent) for extent in shape])

    def non_surjective_inverse(
        self, shape: Sequence[PrimExpr | int]
    ) -> tuple[IndexMap, PrimExpr | bool]:
        """The map back, and the condition under which a point of the image has no origin.

        Raises
        ------
        ValueError : two points have one image.
        """
        back, outside = _ffi_api.IndexMapNonSurjectiveInverse(
            self, [convert(extent) for extent in shape]
        )
        return back, outside


def _parameters(function: Callable[..., Any], ndim: int | None, dtype: str) -> list[Var]:
    names: list[str] = []
    variadic = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
        elif parameter.kind == parameter.VAR_POSITIONAL:
            variadic = name
        else:
            raise tvm.error.ValueError(
                f"IndexMap: parameter {name} of the mapping function is no index; use positional "
                "parameters"
            )
    if variadic is not None:
        if ndim is None:
            raise tvm.error.ValueError(
                f"IndexMap: the mapping function takes *{variadic}, so ndim has to be given"
            )
        names += [f"{variadic}_{i}" for i in range(ndim - len(names))]
    if ndim is not None and len(names) != ndim:
        raise tvm.error.ValueError(
            f"IndexMap: the mapping function takes {len(names)} indices, and ndim is {ndim}"
        )
    return [Var(name, dtype) for name in names]


def _evaluate(expr: PrimExpr, values: dict[Var, Any]) -> Any:
    """Values of an index expression over a grid."""
    if isinstance(expr, IntImm):
        return int(expr)
    if isinstance(expr, Var):
        return values[expr]
    if isinstance(expr, Cast):
        return _evaluate(expr.value, values)
    operation = _NUMPY.get(type(expr))
    if operation is None:
        raise tvm.error.ValueError(f"IndexMap.map_ndarray: cannot compute {expr}")
    return operation(_evaluate(expr.a, values), _evaluate(expr.b, values))
