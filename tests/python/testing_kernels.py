"""GPU kernels written by hand, statement by statement."""

from __future__ import annotations

import tvm
from tvm import te, tir
from tvm.ir import CallingConv
from tvm.target import emulated
from tvm.tir import call_intrin


class Kernel:
    """A kernel under construction: buffers are parameters, threads are bound at once."""

    def __init__(self, threads, blocks=1):
        self.ib = tir.ir_builder.create()
        self.params = []
        self.blocks, self.threads = blocks, threads
        self.bx, self.tx = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        self.ib.scope_attr(self.bx, "thread_extent", blocks)
        self.ib.scope_attr(self.tx, "thread_extent", threads)

    def buffer(self, shape, dtype="float32", name="A"):
        buffer = tir.decl_buffer(shape, dtype, name)
        self.params.append(buffer.data)
        return self.ib.buffer_ptr(buffer)

    def sync(self, scope="shared"):
        self.ib.emit(call_intrin("int32", "tir.tvm_storage_sync", scope))

    def build(self, target=None, tags=("blockIdx.x", "threadIdx.x")):
        attrs = {
            "global_symbol": "kernel",
            "calling_conv": int(CallingConv.DEVICE_KERNEL_LAUNCH),
            "tir.kernel_launch_params": list(tags),
        }
        func = tir.PrimFunc(self.params, self.ib.get(), attrs=attrs)
        return tvm.target.build_module(tvm.IRModule({"kernel": func}), target or emulated("cuda"))

    def run(self, *arrays, target=None):
        tensors = [tvm.nd.array(a) for a in arrays]
        self.build(target)["kernel"](*tensors, self.blocks, self.threads)
        return tensors[-1].numpy()
