"""C to LLVM IR with clang, for the pragma ``import_llvm``."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tvm import error

__all__ = ["create_llvm", "find_clang"]

# Newer versions first: what they write is closest to what llvmlite's LLVM reads.
_NAMES = ("clang", *(f"clang-{version}" for version in range(30, 12, -1)))


def find_clang(required: bool = True) -> list[str]:
    """Names of the clang programs on the search path, the one to prefer first.

    Raises
    ------
    RuntimeError : there is none, although `required`.
    """
    found = [name for name in _NAMES if shutil.which(name)]
    if required and not found:
        raise error.RuntimeError(
            "find_clang: no clang was found; install it (the distribution's package clang), or "
            'build for the target "c", which takes C itself with the pragma import_c'
        )
    return found


def create_llvm(
    inputs: str | Path | Sequence[str | Path],
    output: str | Path | None = None,
    options: Sequence[str] = ("-O2",),
    cc: str | None = None,
) -> str:
    """LLVM IR of C or C++, as text that ``stage.pragma(axis, "import_llvm", text)`` takes.

    Parameters
    ----------
    inputs : paths of sources, or the text of one, which is C++ where it says ``extern "C"``.
    output : file to write the text to as well.
    options : arguments of clang.
    cc : the clang to run; the first of `find_clang` if left out.

    Raises
    ------
    RuntimeError : there is no clang, or it does not accept a source (with its messages).
    """
    compiler = cc or find_clang()[0]
    with tempfile.TemporaryDirectory() as folder:
        sources = [_as_file(source, Path(folder)) for source in _as_list(inputs)]
        texts = []
        for source in sources:
            command = [compiler, "-S", "-emit-llvm", *_pointer_options(compiler), *options]
            command += ["-o", "-", str(source)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as reason:
                raise error.RuntimeError(
                    f"create_llvm: cannot run {compiler}: {reason}"
                ) from reason
            if done.returncode != 0:
                raise error.RuntimeError(f"create_llvm: {compiler} failed:\n{done.stderr}")
            texts.append(done.stdout)
    text = texts[0] if len(texts) == 1 else _linked(texts)
    if output is not None:
        Path(output).write_text(text)
    return text


def _as_list(inputs: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    return [inputs] if isinstance(inputs, (str, Path)) else inputs


def _as_file(source: str | Path, folder: Path) -> Path:
    if isinstance(source, Path) or re.fullmatch(r"[^\n{}]+\.(c|cc|cpp|cxx)", source):
        return Path(source)
    suffix = "cc" if 'extern "C"' in source else "c"
    path = folder / f"input{len(list(folder.iterdir()))}.{suffix}"
    path.write_text(source)
    return path


def _pointer_options(compiler: str) -> list[str]:
    """Version 14 still writes pointers with the type of what they point to unless told not to."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"version (\d+)", done.stdout)
    return ["-Xclang", "-opaque-pointers"] if version and int(version[1]) == 14 else []


def _linked(texts: Sequence[str]) -> str:
    import llvmlite.binding as llvm

    whole = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        whole.link_in(llvm.parse_assembly(text))
    return str(whole)
