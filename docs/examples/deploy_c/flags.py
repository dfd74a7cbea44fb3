"""Print what a C compiler needs to find the headers and the runtime library."""

from __future__ import annotations

from pathlib import Path

from tvm._ffi.libinfo import find_include_path, find_lib_path


def flags() -> list[str]:
    library = Path(find_lib_path()[0])
    return [
        *(f"-I{folder}" for folder in find_include_path()),
        f"-L{library.parent}",
        "-ltvm_runtime",
        f"-Wl,-rpath,{library.parent}",
        "-lm",
    ]


if __name__ == "__main__":
    print(" ".join(flags()))
