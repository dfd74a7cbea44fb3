"""Object files that hold bytes, for processors whose compiler is not here.

The layout is that of "System V Application Binary Interface", chapter 4, and of the 64-bit tables
of its supplements.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

__all__ = ["write_embedding_object"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATABLE, _VERSION = 1, 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC = 2
_GLOBAL_OBJECT = 1 << 4 | 1
_ALIGNMENT = 64


def write_embedding_object(output: Path, symbol: str, data: Path, like: Path) -> bool:
    """Write what :func:`embedding_source` says as an object for the machine of another one.

    Parameters
    ----------
    data : the file whose size, as 64 bits, and bytes lie under the symbol.
    like : an object file of that machine.

    Returns
    -------
    Whether it is written: `like` is a little-endian ELF file of 64 bits.
    """
    with like.open("rb") as file:
        header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:6] != b"\x7fELF\x02\x01":
        return False
    identity, _, machine, _, _, _, _, flags, *_ = _HEADER.unpack(header)
    size = data.stat().st_size
    names = b"\0.rodata\0.symtab\0.strtab\0.note.GNU-stack\0"
    strings = b"\0" + symbol.encode() + b"\0"
    symbols = bytes(_SYMBOL.size) + _SYMBOL.pack(1, _GLOBAL_OBJECT, 0, 1, 0, size + 8)
    start = _ALIGNMENT
    place = start + size + 8
    place += -place % 8
    table = place + len(symbols) + len(strings) + len(names)
    table += -table % 8

    def section(name: bytes, kind: int, flag: int, at: int, extent: int, *rest: int) -> bytes:
        link, info, alignment, entry = rest
        return _SECTION.pack(
            names.index(name), kind, flag, 0, at, extent, link, info, alignment, entry
        )

    strings_at = place + len(symbols)
    names_at = strings_at + len(strings)
    sections = [
        bytes(_SECTION.size),
        section(b".rodata\0", _PROGBITS, _ALLOC, start, size + 8, 0, 0, _ALIGNMENT, 0),
        # The first symbol that is not local is the second.
        section(b".symtab\0", _SYMTAB, 0, place, len(symbols), 3, 1, 8, _SYMBOL.size),
        section(b".strtab\0", _STRTAB, 0, strings_at, len(strings), 0, 0, 1, 0),
        section(b"\0", _STRTAB, 0, names_at, len(names), 0, 0, 1, 0),
        # Without it linkers take the stack for one that code is run from.
        section(b".note.GNU-stack\0", _PROGBITS, 0, names_at, 0, 0, 0, 1, 0),
    ]
    with output.open("wb") as out, data.open("rb") as source:
        out.write(
            _HEADER.pack(
                identity, _RELOCATABLE, machine, _VERSION, 0, 0, table, flags, _HEADER.size, 0, 0,
                _SECTION.size, len(sections), 4,
            )
        )  # fmt: skip
        out.write(struct.pack("<Q", size))
        shutil.copyfileobj(source, out)
        out.write(bytes(place - out.tell()))
        out.write(symbols + strings + names)
        out.write(bytes(table - out.tell()))
        out.write(b"".join(sections))
    return True
