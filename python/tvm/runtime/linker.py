"""The system's C compiler, as compiler and linker of exported libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tvm import error
from tvm._ffi.libinfo import find_include_path

__all__ = [
    "create_executable",
    "create_object",
    "create_shared",
    "create_staticlib",
    "embedding_source",
    "get_cc",
    "link_objects",
]


def get_cc() -> str | None:
    """The C compiler: the environment's ``CC``, else ``cc``, ``gcc`` or ``clang``; None without."""
    named = os.environ.get("CC")
    if named:
        return named
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def create_shared(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: str | Path | None = None,
    ccache_env: Mapping[str, str] | None = None,
) -> None:
    """Compile and link C sources and object files into a shared library.

    Parameters
    ----------
    objects : the files, or a single one.
    options : further arguments of the compiler.
    cc : the compiler; `get_cc` if left out.
    cwd : folder that the compiler runs in, from which relative paths count.
    ccache_env : environment of ``ccache``, through which the compiler is then called.

    Raises
    ------
    RuntimeError : there is no compiler, or it failed (with its output).
    """
    # Calls into the runtime stay open: the process that loads the library provides them.
    kind = ["-shared", "-fPIC"]
    _link("create_shared", kind, output, objects, options, cc, cwd, ccache_env)


def link_objects(output: str | Path, objects: Sequence[str | Path]) -> None:
    """Link object files of this machine's kind into a shared library.

    By the linker itself where there is one, which takes a tenth of the time that the compiler takes
    to call it; raises as `create_shared`.
    """
    linker = shutil.which("ld")
    if linker is not None:
        command = [linker, "-shared", "-o", str(output), *map(str, objects)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return
    create_shared(output, objects)


def create_object(
    output: str | Path,
    sources: Sequence[str | Path],
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> None:
    """The same, compiled but not linked, for use in a shared library."""
    _link("create_object", ["-c", "-fPIC"], output, sources, options, cc)


def create_executable(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: str | Path | None = None,
    ccache_env: Mapping[str, str] | None = None,
) -> None:
    """The same, into a program; what calls the runtime needs it among the options."""
    _link("create_executable", [], output, objects, options, cc, cwd, ccache_env)


def create_staticlib(
    output: str | Path,
    objects: Sequence[str | Path],
    options: Sequence[str] | None = None,
    ar: str | None = None,
) -> None:
    """Put object files, and C sources after compiling them, into a static library (".a").

    What `Module.export_library` takes as `fcompile`. Functions of a library for a program of one's
    own join `tvm.runtime.system_lib` if they were built for a target with ``-system-lib``.

    Parameters
    ----------
    options : further arguments of the compiler, for sources.
    ar : the archiver; the environment's ``AR``, else ``ar``, if left out.

    Raises
    ------
    RuntimeError : there is no archiver or, for sources, no compiler, or one of them failed.
    """
    archiver = ar or os.environ.get("AR") or shutil.which("ar")
    if archiver is None:
        raise error.RuntimeError(
            "create_staticlib: no archiver (ar) was found; install one, name one in the "
            "environment variable AR, or pass ar"
        )
    with tempfile.TemporaryDirectory() as folder:
        members: list[str] = []
        for number, given in enumerate(map(Path, objects)):
            if given.suffix == ".o":
                members.append(str(given))
                continue
            members.append(str(Path(folder, f"{given.stem}{number}.o")))
            create_object(members[-1], [given], options)
        Path(output).unlink(missing_ok=True)
        done = subprocess.run(
            [archiver, "rcs", str(output), *members], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise error.RuntimeError(f"create_staticlib: {archiver} failed:\n{done.stderr}")


def _link(
    who: str,
    kind: Sequence[str],
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None,
    cc: str | None,
    cwd: str | Path | None = None,
    ccache_env: Mapping[str, str] | None = None,
) -> None:
    compiler = cc or get_cc()
    if compiler is None:
        raise error.RuntimeError(
            f"{who}: no C compiler (cc, gcc, clang) was found; install one, name one in the "
            "environment variable CC, or pass cc"
        )
    includes = [f"-I{folder}" for folder in find_include_path()]
    files = [objects] if isinstance(objects, str | Path) else objects
    command = [compiler, *kind, "-O2", *includes, "-o", str(output)]
    command += [*map(str, files), *(options or ()), "-lm"]
    environment = None
    if ccache_env is not None:
        if shutil.which("ccache") is None:
            raise error.RuntimeError(f"{who}: ccache_env is given, but ccache was not found")
        command.insert(0, "ccache")
        environment = {**os.environ, **ccache_env}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=cwd, env=environment
        )
    except OSError as reason:
        raise error.RuntimeError(f"{who}: cannot run {compiler}: {reason}") from reason
    if done.returncode != 0:
        raise error.RuntimeError(f"{who}: {compiler} failed:\n{done.stderr}")


def embedding_source(symbol: str, data: Path) -> str:
    """C source of a symbol under which lie the size of a file, as 64 bits, and its bytes."""
    quoted = str(data).replace("\\", "\\\\").replace('"', '\\"')
    return f"""__asm__(
    ".section .rodata\\n"
    ".balign 64\\n"
    ".global {symbol}\\n"
    "{symbol}:\\n"
    ".quad {data.stat().st_size}\\n"
    ".incbin \\"{quoted}\\"\\n"
    ".text\\n");
"""
