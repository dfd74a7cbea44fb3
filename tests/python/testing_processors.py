"""Processors that tests name, so that a machine of one kind tests the code for all kinds."""

from __future__ import annotations

import llvmlite.binding as llvm

from tvm.target import Target

X86_TRIPLE = "x86_64-unknown-linux-gnu"
ARM_TRIPLE = "aarch64-unknown-linux-gnu"
# Bits of a vector register, and how many there are, by LLVM's name.
X86 = {
    "haswell": (256, 16),
    "znver3": (256, 16),
    "skylake-avx512": (512, 32),
    "znver4": (512, 32),
    "sapphirerapids": (512, 32),
}
ARM = {"neoverse-n1": (128, 32)}


def target_of(cpu: str) -> Target:
    """A target that is the same on every machine; its code need not run on this one."""
    triple = X86_TRIPLE if cpu in X86 else ARM_TRIPLE
    return Target(f"llvm -mtriple={triple} -mcpu={cpu}")


def has_feature(name: str) -> bool:
    """Whether this machine's processor has a feature, by LLVM's name."""
    return bool(llvm.get_host_cpu_features().get(name, False))
