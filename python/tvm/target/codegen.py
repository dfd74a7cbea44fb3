"""Code generation by the target's kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.runtime import Module

from . import _ffi_api
from .features import cpu_features as ask_llvm
from .llvm_intrinsics import llvm_get_intrinsic_name, llvm_lookup_intrinsic_id
from .machine import (
    host_cpu,
    host_triple,
    initialize_llvm,
    known_cpus,
    llvm,
    x86_vendor,
)
from .target import Target

__all__ = [
    "build_module",
    "llvm_cpu_has_features",
    "llvm_get_cpu_archlist",
    "llvm_get_cpu_features",
    "llvm_get_intrinsic_name",
    "llvm_get_system_cpu",
    "llvm_get_system_triple",
    "llvm_get_system_x86_vendor",
    "llvm_get_targets",
    "llvm_get_vector_width",
    "llvm_lookup_intrinsic_id",
    "llvm_version_major",
    "target_has_features",
]

# First words of triples for which LLVM can be built.
_LLVM_TARGETS = (
    *("aarch64", "aarch64_be", "amdgcn", "arm", "armeb", "avr", "bpf", "hexagon", "i386", "lanai"),
    *("loongarch32", "loongarch64", "mips", "mips64", "mips64el", "mipsel", "msp430", "nvptx"),
    *("nvptx64", "ppc32", "ppc64", "ppc64le", "r600", "riscv32", "riscv64", "sparc", "sparcv9"),
    *("systemz", "thumb", "wasm32", "wasm64", "x86_64", "xcore"),
)


def build_module(mod: Any, target: Any) -> Module:
    """Generate code for a lowered module with the generator ``target.build.<kind>``.

    Parameters
    ----------
    mod : IRModule, or one PrimFunc, already lowered for the target.
    target : Target, or anything `Target` accepts.

    Raises
    ------
    ValueError : no generator is registered for the target's kind.
    """
    from tvm.ir import IRModule

    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    if not isinstance(target, Target):
        target = Target(target)
    return _ffi_api.Build(mod, target)


def llvm_version_major(allow_none: bool = False) -> int:
    """First number of the version of LLVM that compiles for processors.

    Parameters
    ----------
    allow_none : taken as in TVM, which may be built without LLVM.
    """
    return int(llvm.llvm_version_info[0])


def llvm_get_system_cpu() -> str:
    """LLVM's name of the processor that this runs on."""
    return host_cpu()[0]


def llvm_get_system_triple() -> str:
    """LLVM's name of the kind of machine that this runs on."""
    return host_triple()


def llvm_get_system_x86_vendor() -> str:
    """Maker of the processor that this runs on: "intel", "amd", or "unknown" for all others."""
    return x86_vendor()


def llvm_get_targets() -> list[str]:
    """LLVM's names of the kinds of processors that it makes code for here."""
    initialize_llvm()
    found = []
    for name in _LLVM_TARGETS:
        try:
            found.append(llvm.Target.from_triple(name).name)
        except RuntimeError:
            # Left out when this LLVM was built.
            continue
    return found


def _of_llvm(target: Target | None) -> Target:
    target = target or Target.current(allow_none=True) or Target("llvm")
    if target.kind.name != "llvm":
        raise ValueError(f"LLVM knows nothing of the target {target}; expected one of kind llvm")
    return target


def _triple_of(target: Target) -> str:
    return str(target.get_attr("mtriple", "") or host_triple())


def _features_of(target: Target, names: tuple[str, ...] | None = None) -> frozenset[str]:
    cpu, mattr = target.get_attr("mcpu", ""), target.get_attr("mattr_full", "")
    return ask_llvm(_triple_of(target), cpu, mattr, names)


def llvm_get_cpu_archlist(target: Target | None = None) -> list[str]:
    """Processors that ``-mcpu`` can name with a target's ``-mtriple``, sorted.

    Parameters
    ----------
    target : of kind "llvm"; that of ``with target`` by default, else this machine.
    """
    return sorted(known_cpus(_triple_of(_of_llvm(target))))


def llvm_get_cpu_features(target: Target | None = None) -> list[str]:
    """LLVM's names of the features that a target's processor has, sorted; ``-mattr`` counts.

    Parameters
    ----------
    target : of kind "llvm"; that of ``with target`` by default, else this machine.
    """
    return sorted(_features_of(_of_llvm(target)))


def llvm_cpu_has_features(cpu_features: str | Sequence[str], target: Target | None = None) -> bool:
    """Whether a target's processor has all of the features named.

    Parameters
    ----------
    cpu_features : LLVM's names, such as "avx2"; a text may have several, with commas between.
    target : of kind "llvm"; that of ``with target`` by default, else this machine.
    """
    words = cpu_features.split(",") if isinstance(cpu_features, str) else cpu_features
    names = tuple(sorted({str(word).strip() for word in words}))
    return set(names) == _features_of(_of_llvm(target), names)


def llvm_get_vector_width(target: Target | None = None) -> int:
    """Bits of the vectors that code for a target uses."""
    return _of_llvm(target).vector_width


def target_has_features(cpu_features: str | Sequence[str], target: Target | None = None) -> bool:
    """`llvm_cpu_has_features`, but False for targets of other kinds than "llvm".

    Parameters
    ----------
    cpu_features : LLVM's names, such as "avx2"; a text may have several, with commas between.
    target : that of ``with target`` by default, else this machine.
    """
    target = target or Target.current(allow_none=True) or Target("llvm")
    return target.kind.name == "llvm" and llvm_cpu_has_features(cpu_features, target)
