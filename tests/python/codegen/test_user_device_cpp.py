"""A device that a library of its own adds, compiled against the installed headers."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tvm._ffi.libinfo import find_include_path, find_lib_path

REPOSITORY = Path(__file__).resolve().parents[3]

PROGRAM = """
    import ctypes, sys
    import numpy as np
    import tvm
    from tvm import te
    from tvm.runtime import register_device

    ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    register_device("npu", 41)
    n = 20
    A, B = (te.placeholder((n,), name=name) for name in "AB")
    C = te.compute((n,), lambda i: A[i] * B[i], name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], factor=8)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    module = tvm.build(s, [A, B, C], tvm.target.Target("npu -lanes=8", host="llvm"), name="mul")
    device = tvm.device("npu", 0)
    a, b = np.arange(n, dtype="float32"), np.full(n, 3, "float32")
    c = tvm.nd.empty((n,), "float32", device)
    module["mul"](tvm.nd.array(a, device), tvm.nd.array(b, device), c)
    np.testing.assert_allclose(c.numpy(), a * b)
    print(module.imported_modules[0].get_source())
"""


@pytest.mark.slow
def test_a_library_adds_a_device_without_touching_the_compiler(tmp_path):
    library = tmp_path / "libnpu.so"
    source = REPOSITORY / "docs/examples/device_cpp/npu.cc"
    command = ["c++", "-std=c++20", "-O0", "-shared", "-fPIC", str(source), "-o", str(library)]
    command += [f"-I{folder}" for folder in find_include_path()]
    for linked in map(Path, find_lib_path()):
        command += [str(linked), f"-Wl,-rpath,{linked.parent}"]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(library)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "__npu__ void" in done.stdout
    assert 'npu_index("blockIdx.x")' in done.stdout
