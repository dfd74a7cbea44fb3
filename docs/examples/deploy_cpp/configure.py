"""Print the arguments of CMake that say where the headers and the runtime library are."""

from __future__ import annotations

from tvm._ffi.libinfo import find_include_path, find_lib_path


def arguments() -> list[str]:
    folders = ";".join(map(str, find_include_path()))
    return [f"-DTVM_INCLUDE={folders}", f"-DTVM_RUNTIME={find_lib_path()[0]}"]


if __name__ == "__main__":
    print(" ".join(f"'{argument}'" for argument in arguments()))
