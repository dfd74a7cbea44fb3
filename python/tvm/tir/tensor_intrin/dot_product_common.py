"""The dot product of four bytes that several machines have, as a call of a function."""

from __future__ import annotations

from ..buffer import Buffer
from ..function import TensorIntrin
from ..op import call_pure_extern, reinterpret
from ..statement import BufferStore, Stmt
from .describe import dot_product, load_lanes

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
]


def _dp4a(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
    words = [
        reinterpret("uint32" if buffer.dtype.startswith("uint") else "int32", lanes)
        for buffer, lanes in ((a, load_lanes(a, [0], 4)), (b, load_lanes(b, [0], 4)))
    ]
    return BufferStore(c, call_pure_extern(c.dtype, "__dp4a", *words, c[0]), [0])


def _register(name: str, dtypes: tuple[str, str, str]) -> str:
    scopes = ("shared", "shared", "local")
    TensorIntrin.register(name, *dot_product(0, 4, dtypes, _dp4a, scopes))
    return name


DP4A_S8S8S32_INTRIN = _register("dp4a_s8s8s32", ("int8", "int8", "int32"))
DP4A_U8S8S32_INTRIN = _register("dp4a_u8s8s32", ("uint8", "int8", "int32"))
DP4A_S8U8S32_INTRIN = _register("dp4a_s8u8s32", ("int8", "uint8", "int32"))
DP4A_U8U8U32_INTRIN = _register("dp4a_u8u8u32", ("uint8", "uint8", "uint32"))
