"""The runtime library runs stackvm programs without the compiler, by a library beside it."""

from __future__ import annotations

import subprocess
import sys

import tvm
from tvm import te

HOST = """
import ctypes, sys

class Any(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("padding", ctypes.c_int32), ("value", ctypes.c_int64)]

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]

lib = ctypes.CDLL(sys.argv[1])
lib.TVMGetLastError.restype = ctypes.c_char_p
INT, OBJECT, TENSOR, TEXT = 2, 7, 8, 9
kept = []

def check(status):
    assert status == 0, lib.TVMGetLastError()

def call(function, *args):
    values = (Any * len(args))(*[Any(code, 0, value) for code, value in args])
    result = Any()
    check(lib.TVMFuncCall(ctypes.c_void_p(function), values, len(args), ctypes.byref(result)))
    return result

def find(name):
    handle = ctypes.c_void_p()
    check(lib.TVMFuncGetGlobal(name, ctypes.byref(handle)))
    return handle.value

def text(value):
    kept.append(ctypes.create_string_buffer(value))
    return TEXT, ctypes.addressof(kept[-1])

def tensor(values):
    data, shape = (ctypes.c_float * len(values))(*values), (ctypes.c_int64 * 1)(len(values))
    t = Tensor(ctypes.addressof(data), (1, 0), 1, 2, 32, 1, shape, None, 0)
    kept.extend([data, shape, t])
    return data, (TENSOR, ctypes.addressof(t))

def interpreter_is_loaded():
    return any("libtvm_stackvm" in line for line in open("/proc/self/maps"))

assert not interpreter_is_loaded()
load = find(b"runtime.ModuleLoadFromFile")
module = call(load, text(sys.argv[2].encode()), text(b"stackvm"))
get = find(b"runtime.ModuleGetFunction")
function = call(get, (OBJECT, module.value), text(b"double"), (INT, 0))
(_, a), (out, b) = tensor([1, 2, 3, 4]), tensor([0] * 4)
call(function.value, a, b)
assert interpreter_is_loaded()
print(list(out))
"""


def test_runtime_library_alone_runs_a_saved_program(tmp_path):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    module = tvm.build(te.create_schedule(B.op), [A, B], target="stackvm", name="double")
    module.save(tmp_path / "double.stackvm")
    library = tvm.runtime.system_lib_path()
    assert library.name.startswith("libtvm_runtime")
    command = [sys.executable, "-c", HOST, str(library), str(tmp_path / "double.stackvm")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[2.0, 4.0, 6.0, 8.0]\n", done.stderr
