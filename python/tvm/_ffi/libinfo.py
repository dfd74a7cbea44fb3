"""Where the package's libraries and headers are."""

from __future__ import annotations

from pathlib import Path

from .base import _RUNTIME_ONLY, core
from .version import __version__

__all__ = ["__version__", "find_include_path", "find_lib_path"]


def find_lib_path() -> list[str]:
    """Paths of the libraries in use, the runtime's first."""
    runtime = Path(core.get_global_func("runtime.GetLibraryPath", False)())
    compiler = runtime.with_name(runtime.name.replace("tvm_runtime", "tvm"))
    return [str(runtime)] if _RUNTIME_ONLY else [str(runtime), str(compiler)]


def find_include_path() -> list[str]:
    """Folders to give to a C or C++ compiler, for ``tvm/runtime/*.h``.

    Raises
    ------
    RuntimeError : the package was installed without its headers.
    """
    package = Path(__file__).resolve().parent.parent
    places = [package / "include", package.parent.parent / "include"]
    found = [str(place) for place in places if (place / "tvm/runtime/c_runtime_api.h").is_file()]
    if not found:
        listed = ", ".join(map(str, places))
        raise RuntimeError(f"find_include_path: the headers are in none of {listed}")
    return found[:1]
