"""What an exported program holds besides computations: checks and access to tuples."""

from __future__ import annotations

import math
from typing import Any

from ..arguments import COMPLEX_CONVERTERS, CONVERTERS, Arguments, complex_converter, converter

__all__: list[str] = []


@complex_converter("_assert_tensor_metadata.default")
@converter("_assert_tensor_metadata.default", "_assert_async.msg",
           "sym_constrain_range_for_size.default", "sym_constrain_range.default")  # fmt: skip
def _no_effect(a: Arguments) -> list[Any]:
    # A check that tracing leaves behind; its condition was fixed with the program's shapes.
    return []


@converter("_assert_scalar.default")
def _assert_scalar(a: Arguments) -> list[Any]:
    if a["self"] is False or a["self"] == 0:
        raise ValueError(
            f"relax.frontend.torch: a size that the program does not allow: {a['assert_msg']}"
        )
    return []


@converter("sym_size.int")
def _size(a: Arguments) -> Any:
    return a["self"].struct_info.shape.values[a.axis()]


@converter("sym_numel.default")
def _numel(a: Arguments) -> Any:
    return math.prod(a["self"].struct_info.shape.values)


def _getitem(a: Arguments) -> Any:
    return a["0"][a["1"]]


CONVERTERS["getitem"] = COMPLEX_CONVERTERS["getitem"] = _getitem
