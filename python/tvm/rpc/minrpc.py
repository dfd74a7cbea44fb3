"""Programs that are a library and the least server of RPC in one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm import error
from tvm.runtime import system_lib_path
from tvm.runtime.module import IMPORTS_SYMBOL

__all__ = ["with_minrpc"]

_SERVERS = ("posix_popen_server",)
_RUNTIMES = ("libtvm_runtime", "libtvm")
# What code calls to join the functions of its program (`tvm.runtime.system_lib`).
_JOINING = b"TVMBackendRegisterSystemLibSymbol"

# `PopenSession` starts a program with the arguments "--session FOLDER" and a socket as its input.
_MAIN = r"""
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>

static int Call(const char* name, const TVMAny* args, int32_t num_args, TVMAny* ret) {
  TVMFunctionHandle function;
  return TVMFuncGetGlobal(name, &function) || TVMFuncCall(function, args, num_args, ret);
}

int main(int argc, char** argv) {
  TVMAny args[3], ret;
  if (argc != 3 || strcmp(argv[1], "--session") != 0) {
    fprintf(stderr, "%s: serves a session of tvm.rpc; start it by rpc.PopenSession\n", argv[0]);
    return 2;
  }
  memset(args, 0, sizeof(args));
  memset(&ret, 0, sizeof(ret));
  args[0].type_code = kTVMInt;
  args[0].v_int64 = 0;
  args[1].type_code = kTVMStr;
  args[1].v_str = argv[2];
  if (Call("rpc.DefaultAllowedFunctions", args, 0, &args[2]) ||
      Call("rpc.ServeSocket", args, 3, &ret)) {
    fprintf(stderr, "%s: %s\n", argv[0], TVMGetLastError());
    return 1;
  }
  TVMAnyFree(&args[2]);
  TVMAnyFree(&ret);
  return 0;
}
"""


def with_minrpc(
    compile_func: Callable[..., None],
    server: str = "posix_popen_server",
    runtime: str | Path = "libtvm_runtime",
) -> Callable[..., None]:
    """What `Module.export_library` takes as `fcompile` to write a program in place of a library.

    The program serves one session, for `PopenSession`, whose `system_lib` has the functions of the
    module. Build the module for a target with ``-system-lib``.

    Parameters
    ----------
    compile_func : links a program, called as ``compile_func(output, files, options=...)``, such as
        `tvm.contrib.cc.create_executable`.
    server : "posix_popen_server", which serves its standard input.
    runtime : what the program is linked with: "libtvm_runtime"; "libtvm" for the compiler too; or
        the path of a libtvm_runtime, for instance of another machine, which must be found there
        where the program starts.

    Raises
    ------
    ValueError : the server is another, or there is no such library; by the function returned, if
        the module was built without ``-system-lib`` or imports modules that travel as bytes, since
        a program has only functions that are linked.

    Examples
    --------
    ::

        target = tvm.target.Target("llvm -system-lib")
        module = tvm.build(schedule, args, tvm.target.Target(target, target), name="add")
        module.export_library("add", fcompile=rpc.with_minrpc(cc.create_executable))
        add = rpc.PopenSession("add").system_lib()["add"]
    """
    if server not in _SERVERS:
        raise error.ValueError(
            f"with_minrpc: there is no server '{server}'; there is {', '.join(_SERVERS)}"
        )
    linked = [str(path) for path in _libraries(runtime)]

    def link(
        output: str | Path, objects: Sequence[str | Path], options: Sequence[str] = (), **more: Any
    ) -> None:
        contents = [Path(file).read_bytes() for file in objects]
        if any(IMPORTS_SYMBOL.encode() in content for content in contents):
            raise error.ValueError(
                "with_minrpc: the module imports others that travel as bytes, which a program does "
                "not read; export a library, and upload it to a session of rpc.native_server()"
            )
        if not any(_JOINING in content for content in contents):
            raise error.ValueError(
                "with_minrpc: the functions of the module do not join those of a program; build it "
                'for a target with the option, such as Target("llvm -system-lib")'
            )
        with tempfile.TemporaryDirectory() as folder:
            main = Path(folder, "minrpc.c")
            main.write_text(_MAIN)
            every = [*map(str, objects), str(main)]
            compile_func(output, every, options=[*options, *linked], **more)

    return link


def _libraries(runtime: str | Path) -> list[str]:
    """Options of the linker."""
    if runtime in _RUNTIMES:
        own = system_lib_path().resolve()
        found = [own] if runtime == _RUNTIMES[0] else [own.with_stem(str(runtime)), own]
    else:
        found = [Path(runtime).absolute()]
    for path in found:
        if not path.is_file():
            raise error.ValueError(
                f"with_minrpc: runtime: there is no library {path}; give one of "
                f"{', '.join(_RUNTIMES)}, or the path of a libtvm_runtime"
            )
    # The program calls nothing of libtvm, which the linker would leave out.
    return ["-Wl,--no-as-needed", *map(str, found), f"-Wl,-rpath,{found[0].parent}"]
