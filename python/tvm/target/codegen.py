"""Code generation by the target's kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.runtime import Module

from . import _ffi_api
from .machine import host_cpu, host_triple, llvm
from .target import Target

__all__ = [
    "build_module",
    "llvm_get_system_cpu",
    "llvm_get_system_triple",
    "llvm_version_major",
    "target_has_features",
]


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


def llvm_version_major() -> int:
    """First number of the version of LLVM that compiles for processors."""
    return int(llvm.llvm_version_info[0])


def llvm_get_system_cpu() -> str:
    """LLVM's name of the processor that this runs on."""
    return host_cpu()[0]


def llvm_get_system_triple() -> str:
    """LLVM's name of the kind of machine that this runs on."""
    return host_triple()


def target_has_features(cpu_features: str | Sequence[str], target: Target | None = None) -> bool:
    """Whether code for a target may use instructions of all the features named.

    A target for this very processor has those that it has; others those that `mattr` names.

    Parameters
    ----------
    cpu_features : LLVM's names, such as "avx2"; a text may have several, with commas between.
    target : that of ``with target`` by default.
    """
    names = cpu_features.split(",") if isinstance(cpu_features, str) else list(cpu_features)
    target = Target.current() if target is None else target
    assert target is not None
    given = [str(item) for item in target.attrs.get("mattr", ())]
    if str(target.attrs.get("mcpu", "")) in ("", host_cpu()[0]):
        given = [*host_cpu()[1].split(","), *given]
    return all(f"+{name.strip()}" in given for name in names)
