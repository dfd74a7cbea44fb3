"""Python's operators on whole tensors, ``a + b`` and the like, as operators of this library."""

from __future__ import annotations

from tvm.te.tensor import define_operators

from .broadcast import add, divide, floor_divide, floor_mod, multiply, subtract
from .math import cast, negative

define_operators(
    {
        operator.__name__: operator
        for operator in (
            add,
            subtract,
            multiply,
            divide,
            floor_divide,
            floor_mod,
            negative,
            cast,
        )
    }
)
