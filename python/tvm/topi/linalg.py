"""Products of tensors over named or numbered dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .dense import matmul as _matmul
from .utils import Extent, as_int, equal_const_int, get_const_tuple, is_constant, normalize_axis

__all__ = ["einsum", "matmul", "tensordot"]


def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """Product of two matrices; a flag swaps an operand's axes."""
    return _matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)


def tensordot(
    a: te.Tensor, b: te.Tensor, axes: int | tuple[Sequence[int] | int, Sequence[int] | int] = 2
) -> te.Tensor:
    """Sum of products over dimensions of a paired with dimensions of b.

    Parameters
    ----------
    axes : a count pairs the last ones of a with the first of b; else the dimensions of each.
    """
    shape_a, shape_b = get_const_tuple(a.shape), get_const_tuple(b.shape)
    if isinstance(axes, int):
        over_a, over_b = list(range(len(shape_a) - axes, len(shape_a))), list(range(axes))
    else:
        over_a, over_b = (
            [normalize_axis(k, len(shape)) for k in ([part] if isinstance(part, int) else part)]
            for part, shape in zip(axes, (shape_a, shape_b))
        )
    if len(over_a) != len(over_b):
        raise ValueError(f"topi.tensordot: {over_a} and {over_b} do not pair up")
    letters = [chr(ord("a") + k) for k in range(len(shape_a) + len(shape_b))]
    names_a, names_b = letters[: len(shape_a)], letters[len(shape_a) :]
    for p, q in zip(over_a, over_b):
        names_b[q] = names_a[p]
    kept = [c for k, c in enumerate(names_a) if k not in over_a]
    kept += [c for k, c in enumerate(names_b) if k not in over_b]
    return _contract([names_a, names_b], kept, [a, b], "tensordot")


def _contract(
    terms: Sequence[Sequence[str]], output: Sequence[str], operands: Sequence[te.Tensor], name: str
) -> te.Tensor:
    """Product of the operands summed over the letters that the output does not have."""
    extent: dict[str, Extent] = {}
    for term, operand in zip(terms, operands):
        for letter, n in zip(term, get_const_tuple(operand.shape)):
            known = extent.setdefault(letter, n)
            if equal_const_int(known, 1):
                extent[letter] = n
            elif is_constant(known) and is_constant(n) and as_int(n) not in (1, as_int(known)):
                raise ValueError(
                    f"topi.{name}: a dimension has extent {known} in one operand and {n} in another"
                )
    summed = {
        letter: te.reduce_axis((0, n), name=f"r{letter}")
        for letter, n in extent.items()
        if letter not in output
    }

    def body(*indices: Any) -> Any:
        at = {**dict(zip(output, indices)), **summed}
        value: Any = None
        for term, operand in zip(terms, operands):
            element = operand(
                *(
                    tir.const(0, "int32") if equal_const_int(n, 1) else at[letter]
                    for letter, n in zip(term, get_const_tuple(operand.shape))
                )
            )
            value = element if value is None else value * element
        return te.sum(value, axis=list(summed.values())) if summed else value

    return te.compute(
        [extent[letter] for letter in output],
        body,
        name=f"T_{name}",
        tag=tag.MATMUL if summed else tag.BROADCAST,
    )


def einsum(subscripts: str, *operands: te.Tensor) -> te.Tensor:
    """Product of tensors in Einstein's notation, such as ``"bij,bjk->bik"``, as NumPy's einsum.

    Letters that the output does not have are summed over. Without ``->``, the output has the
    letters that occur once, in alphabetical order. ``...`` stands for any leading dimensions,
    which broadcast.

    Raises
    ------
    ValueError : the notation does not fit the operands.
    """
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(
            f"topi.einsum: {subscripts!r} has {len(terms)} terms for {len(operands)} operands"
        )
    named: list[list[str]] = []
    longest = 0
    for term, operand in zip(terms, operands):
        letters = list(term.replace("...", ""))
        rest = len(operand.shape) - len(letters)
        if not all(c.isalpha() for c in letters) or rest < 0 or (rest and "..." not in term):
            raise ValueError(
                f"topi.einsum: term {term!r} does not fit an operand of {len(operand.shape)} "
                "dimensions"
            )
        longest = max(longest, rest)
        front = term.index("...") if "..." in term else 0
        # The dimensions of an ellipsis are numbered from its end, so that they line up.
        dots = [str(k) for k in reversed(range(rest))]
        named.append(letters[:front] + dots + letters[front:])
    dots = [str(k) for k in reversed(range(longest))]
    if arrow:
        plain = right.replace("...", "")
        front = right.index("...") if "..." in right else 0
        output = list(plain[:front]) + (dots if "..." in right else []) + list(plain[front:])
    else:
        every = [c for term in named for c in term if c.isalpha()]
        output = dots + sorted(c for c in set(every) if every.count(c) == 1)
    known = {c for term in named for c in term}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ValueError(
            f"topi.einsum: output {right!r} of {subscripts!r} repeats or invents letters"
        )
    return _contract(named, output, operands, "einsum")
