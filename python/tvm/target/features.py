"""Instructions that a target's processor has, by LLVM's names and by TVM's."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import tvm._ffi

from .machine import host_triple, initialize_llvm, llvm

__all__ = ["TargetFeatures", "cpu_features", "has_scalable_vectors", "known_features"]


@functools.cache
def known_features(triple: str) -> tuple[str, ...]:
    """Names of the features of processors that LLVM has for a triple, sorted.

    LLVM prints the list to the process's standard error and gives no other access to it, so a child
    process is asked. Empty when the child fails.
    """
    script = (
        "import sys, llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        "llvm.Target.from_triple(sys.argv[1]).create_target_machine(features='+help')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, triple], capture_output=True, text=True, check=False
    )
    listing = result.stderr.partition("Available features")[2]
    return tuple(sorted(re.findall(r"^\s+(\S+)\s+- ", listing, flags=re.MULTILINE)))


# What inlining makes of a pair of such functions tells whether the processor has a feature: LLVM
# puts a function into another only if the other may use all of its instructions.
_PAIR = """
define internal void @has_{number}(ptr %p) "target-cpu"="{cpu}" "target-features"="{more}" {{
  store volatile i32 {number}, ptr %p
  ret void
}}
define void @ask_{number}(ptr %p) "target-cpu"="{cpu}" "target-features"="{features}" {{
  call void @has_{number}(ptr %p)
  ret void
}}
"""


# What contradicts the triple, or lacks what it needs, ends the process. x86 and 64-bit ARM are safe
# but for the width; of the other two the features are asked about that stand for themselves.
_NOT_ASKED = {"32bit", "64bit"}
_ASKED = {
    "riscv": {"m", "a", "f", "d", "c", "v", "zba", "zbb", "zbs", "zfh", "zicsr", "zifencei"},
    "arm": {"aes", "bf16", "crc", "dotprod", "dsp", "fp16", "fullfp16", "hwdiv", "hwdiv-arm"}
    | {"i8mm", "mve", "mve.fp", "neon", "sha2", "vfp2", "vfp3", "vfp4"},
}


def _can_be_asked(triple: str, name: str) -> bool:
    for family, names in _ASKED.items():
        if triple.startswith(family):
            return name in names
    return name not in _NOT_ASKED


@functools.lru_cache(maxsize=1024)
def cpu_features(
    triple: str, cpu: str, features: str, names: tuple[str, ...] | None = None
) -> frozenset[str]:
    """LLVM's names of the features that a processor has.

    Parameters
    ----------
    triple, cpu : LLVM's names of the kind of machine and of the processor.
    features : what is switched on or off on top, as ``+avx2,-fma``.
    names : those to ask about, all by default, which takes about a second. A processor has none
        that LLVM does not know.

    LLVM has no list of a processor's features to read, and is asked about each; of RISC-V and
    32-bit ARM about the basic ones only.
    """
    initialize_llvm()
    known = [name for name in known_features(triple) if _can_be_asked(triple, name)]
    asked = known if names is None else [name for name in names if name in known]
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    texts = [f'target triple = "{triple}"']
    for number, name in enumerate(asked):
        more = f"{features},+{name}" if features else f"+{name}"
        texts.append(_PAIR.format(number=number, cpu=cpu, more=more, features=features))
    module = llvm.parse_assembly("\n".join(texts))
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1))
    builder.getModulePassManager().run(module, builder)
    lacking = {int(number) for number in re.findall(r"call .*@has_(\d+)\(", str(module))}
    return frozenset(name for number, name in enumerate(asked) if number not in lacking)


def _has(name: str) -> Callable[[Any], bool]:
    def ask(target: Any) -> bool:
        triple = target.get_attr("mtriple", "") or host_triple()
        cpu, features = target.get_attr("mcpu", ""), target.get_attr("mattr_full", "")
        return name in cpu_features(triple, cpu, features, (name,))

    return ask


@tvm._ffi.register_func("target.has_scalable_vectors")
def has_scalable_vectors(target: Any) -> bool:
    """Whether the target's vectors are multiples of a length that only the machine knows.

    Those of ARM's SVE and of RISC-V's V are.
    """
    if target.kind.name != "llvm":
        return False
    triple = target.get_attr("mtriple", "") or host_triple()
    names = {"aarch64": "sve", "arm64": "sve", "riscv32": "v", "riscv64": "v"}
    name = names.get(triple.partition("-")[0])
    return name is not None and _has(name)(target)


# TVM's names of what ARM's processors of the A profile have.
_ARM: dict[str, Callable[[Any], bool]] = {
    "is_aarch64": lambda target: target.get_attr("mtriple", "").startswith("aarch64"),
    "has_asimd": _has("neon"),
    "has_sve": _has("sve"),
    "has_dotprod": _has("dotprod"),
    "has_matmul_i8": _has("i8mm"),
    "has_fp16_simd": _has("fullfp16"),
    "has_sme": _has("sme"),
}


class TargetFeatures:
    """What follows from a target's options about its machine, as attributes; None for the unknown.

    Of ARM's processors under ``llvm`` these are `is_aarch64`, `has_asimd`, `has_sve`,
    `has_dotprod`, `has_matmul_i8`, `has_fp16_simd` and `has_sme`; of those whose ``-mcpu`` begins
    with ``cortex-m`` `has_dsp` and `has_mve`. The others are the facts that `Target.get_attr` finds
    besides options, such as `vector_width` or `thread_warp_size`.

    Examples
    --------
    >>> from tvm.target import Target
    >>> target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76")
    >>> target.features.has_dotprod, target.features.has_sve
    (True, False)
    """

    def __init__(self, target: Any, facts: Any) -> None:
        self._target = target
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._facts:
            return self._facts[name]
        is_arm = self._target.kind.name == "llvm" and "arm_cpu" in self._target.keys
        return _ARM[name](self._target) if is_arm and name in _ARM else None

    def items(self) -> list[tuple[str, Any]]:
        """Facts that are known without asking LLVM, by name."""
        return [(str(name), value) for name, value in self._facts.items()]
