"""Kernels of one module whose machine code lies gigabytes apart in memory."""

import subprocess
import sys
import textwrap

# Only what fits into small holes near the libraries gets a place there; the rest has to go beyond
# a region that is taken. Both kernels call the runtime, by their module's context.
PROGRAM = """
    import ctypes
    import numpy as np
    import tvm
    from tvm import te, topi

    @tvm.register_func("test.negate")
    def negate(source, result):
        tvm.nd.array(-source.numpy()).copyto(result)

    def call(tensor):
        body = lambda given, made: tvm.tir.call_packed("test.negate", given[0], made[0])
        return te.extern(tensor.shape, [tensor], body, name="negated")

    def kernel(tensors, value, name):
        negated = call(value)
        schedule = te.create_schedule(negated.op)
        for axis in value.op.axis[:-1]:
            schedule[value].unroll(axis)
        return tvm.lower(schedule, [*tensors, negated], name=name)

    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    NOTHING_KEPT = 0x4022  # private, anonymous, no memory behind it
    taken = libc.mmap(None, 6 << 30, 0, NOTHING_KEPT, -1, 0)
    end = taken + (6 << 30)
    for size in (1 << 22, 1 << 18, 1 << 16):
        while libc.mmap(None, size, 0, NOTHING_KEPT, -1, 0) >= end:
            pass
    for k in range(1, 200):
        libc.munmap(end - (k << 20), 1 << 14)

    x = te.placeholder((8,), name="x")
    parts = [te.placeholder((3, 7, 11), name=f"x{i}") for i in range(8)]
    small = kernel([x], te.compute((8,), lambda i: x[i] + 1.0, name="more"), "small")
    joined = topi.concatenate([topi.tanh(topi.exp(part)) for part in parts], 2)
    large = kernel(parts, joined, "large")
    functions = {
        var.name_hint: func for mod in (small, large) for var, func in mod.functions.items()
    }
    built = tvm.build(tvm.IRModule(functions), "llvm")

    given = np.arange(8, dtype="float32")
    result = tvm.nd.empty((8,))
    built["small"](tvm.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), -(given + 1))
    arrays = [np.full((3, 7, 11), i / 10, "float32") for i in range(8)]
    result = tvm.nd.empty((3, 7, 88))
    built["large"](*map(tvm.nd.array, arrays), result)
    expected = -np.concatenate([np.tanh(np.exp(a)) for a in arrays], 2)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
    print("equal")
"""


def test_kernels_reach_their_context_from_anywhere():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout.strip() == "equal", done.stderr
