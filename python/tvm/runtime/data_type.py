"""Element types."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

import numpy as np

from . import _ffi_api

__all__ = ["DataType", "DataTypeCode"]

# Floats of few bits, of which there are several of one width.
_NARROW = r"e4m3_float8|e5m2_float8|float[468]_e\d+m\d+[a-z]\w*|float[468]_e\d+m\d+"
_PATTERN = re.compile(
    rf"({_NARROW}|bool|handle|void|bfloat|float|uint|int|custom\[\w+\])(\d*)(?:x(vscalex)?(\d+))?"
)
_DEFAULT_BITS = {"bool": 1, "handle": 64, "void": 0, "bfloat": 16}


@lru_cache(maxsize=1024)
def _parts(text: str) -> tuple[str, int, int, bool]:
    """Kind, bits, lanes, and whether a machine multiplies the lanes."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(
            f'DataType: cannot read "{text}"; expected for example "float32", "int8x16", "bool"'
        )
    narrow = re.search(r"float([468])", match[1])
    bits = int(narrow[1] if narrow else match[2] or _DEFAULT_BITS.get(match[1], 32))
    return match[1], bits, int(match[4] or 1), match[3] is not None


# The names of TVM for what ml_dtypes calls otherwise.
_FLOAT8_NAMES = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}


def _float8(name: str) -> np.dtype:
    try:
        import ml_dtypes  # an optional package, of use for these types only
    except ImportError:
        raise ValueError(
            f"DataType: NumPy has no counterpart of {name}; the package ml_dtypes defines one"
        ) from None
    return np.dtype(getattr(ml_dtypes, _FLOAT8_NAMES.get(name, name)))


class DataTypeCode(IntEnum):
    """Numbers of the kinds of element types, as `DataType.type_code` gives them.

    The first five are DLPack's; 129 and above are types that the user registered.
    """

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


_CODES = {
    "bool": DataTypeCode.UINT,
    "void": DataTypeCode.HANDLE,
    "e4m3_float8": DataTypeCode.E4M3Float,
    "e5m2_float8": DataTypeCode.E5M2Float,
}


class DataType(str):
    """An element type such as ``"float32"``, ``"int8x16"`` or ``"bool"``: a str with parts.

    Attributes
    ----------
    kind : "int", "uint", "float", "bfloat", "bool", "handle", "void", or "custom[name]" for a type
        registered through ``runtime._datatype_register``
    bits : bits of one lane
    lanes : values in one element; 1 for scalars
    scalable : whether a machine's vectors are a multiple of `lanes` that only it knows
    """

    __slots__ = ("bits", "kind", "lanes", "scalable")

    kind: str
    bits: int
    lanes: int
    scalable: bool

    def __new__(cls, value: str | np.dtype | type) -> DataType:
        text = value if isinstance(value, str) else np.dtype(value).name
        self = super().__new__(cls, text)
        self.kind, self.bits, self.lanes, self.scalable = _parts(text)
        return self

    @property
    def type_code(self) -> int:
        """Number of the kind, see `DataTypeCode`.

        Raises
        ------
        ValueError : the kind is a floating point of few bits that has no number in TVM.
        """
        if self.kind in _CODES:
            return _CODES[self.kind]
        if self.kind.startswith("custom["):
            return _ffi_api._datatype_get_type_code(self.kind[7:-1])
        if self.kind.upper() not in DataTypeCode.__members__:
            raise ValueError(f"DataType: there is no number for the kind {self.kind}")
        return DataTypeCode[self.kind.upper()]

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return (self.bits * self.lanes + 7) // 8

    def with_lanes(self, lanes: int) -> DataType:
        """The type of the same elements with another number of lanes."""
        scalar = self.removesuffix(f"x{self.lanes}").removesuffix("xvscale")
        return DataType(scalar if lanes == 1 else f"{scalar}x{lanes}")

    def to_numpy(self) -> np.dtype:
        """The NumPy type; bfloat16, which NumPy lacks, as its 16-bit pattern.

        8-bit floating point is the type of the package ``ml_dtypes``.

        Raises
        ------
        ValueError : there is none, or that package is not installed.
        """
        if self.lanes == 1 and self.bits == 8 and "float" in self.kind:
            return _float8(self)
        narrow = self.bits < 8 and "float" in self.kind
        if self.lanes != 1 or narrow or self.kind.startswith(("handle", "void", "custom")):
            raise ValueError(f"DataType: NumPy has no counterpart of {self}")
        return np.dtype("uint16") if self.kind == "bfloat" else np.dtype(str(self))

    def __reduce__(self) -> tuple[type[DataType], tuple[str]]:
        return DataType, (str(self),)
