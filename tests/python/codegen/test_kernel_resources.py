"""What compiled kernels take of a multiprocessor, read from their machine code."""

from __future__ import annotations

import pytest

import tvm

nvrtc = pytest.importorskip("tvm.contrib.nvrtc")
pytest.importorskip("cuda.bindings.nvrtc")

TWICE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }\n'
# 96 sums at once, where 1024 threads leave 64 registers to each.
CROWDED = """
extern "C" __global__ void __launch_bounds__(1024) crowded(const float* a, float* b) {
  __shared__ float row[1024];
  float sum[96];
  for (int i = 0; i < 96; ++i) sum[i] = a[i * 1024 + threadIdx.x];
  row[threadIdx.x] = sum[0];
  __syncthreads();
  for (int k = 0; k < 100; ++k) {
#pragma unroll
    for (int i = 0; i < 96; ++i) {
      sum[i] = sum[i] * sum[(i * 7 + 1) % 96] + row[(threadIdx.x + k) & 1023];
    }
  }
  for (int i = 0; i < 96; ++i) b[i * 1024 + threadIdx.x] = sum[i];
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_registers_shared_memory_and_spills_are_read(arch):
    with nvrtc.recorded_resources() as resources:
        nvrtc.compile_cuda(TWICE + CROWDED, arch=arch)
    assert set(resources) == {"twice", "crowded"}
    simple, crowded = resources["twice"], resources["crowded"]
    assert 1 <= simple.registers <= 32
    assert (simple.shared_bytes, simple.stack_bytes, simple.spill_bytes) == (0, 0, 0)
    assert crowded.registers == 64
    assert crowded.shared_bytes == 4096
    assert crowded.spill_bytes > 0
    assert crowded.stack_bytes > 0


def test_a_kernel_that_the_assembler_lets_spill_has_all_registers_of_one_block(monkeypatch):
    compiled = []

    def compile_text(code, arch):
        compiled.append(code)
        spill = {"one": 0, "two": 8 if "(64, 1) two" not in code else 0}
        nvrtc._resources.get().update(
            {name: nvrtc.KernelResources(64, 0, 0, bytes_) for name, bytes_ in spill.items()}
        )
        return b"code %d" % len(compiled)

    monkeypatch.setattr(nvrtc, "compile_cuda", compile_text)
    text = "void __launch_bounds__(32) one(int x) {}\nvoid __launch_bounds__(64) two(int x) {}\n"
    with nvrtc.recorded_resources() as resources:
        code = nvrtc._compile_callback(text, tvm.target.Target("cuda -arch=sm_80"))
    assert code == b"code 2" and compiled == [text, text.replace("(64)", "(64, 1)")]
    assert [resources[name].spill_bytes for name in ("one", "two")] == [0, 0]


def test_nothing_is_recorded_outside_of_the_block_or_for_assembly():
    with nvrtc.recorded_resources() as resources:
        nvrtc.compile_cuda(TWICE, "ptx", arch="sm_80")
    nvrtc.compile_cuda(TWICE, arch="sm_80")
    assert resources == {}


def test_bytes_that_are_no_cubin_are_refused():
    with pytest.raises(ValueError, match="no cubin"):
        nvrtc.kernel_resources(b"text")
    cubin = nvrtc.compile_cuda(TWICE, arch="sm_80")
    with pytest.raises(ValueError, match="damaged"):
        nvrtc.kernel_resources(cubin[:200])
