"""Targets: what a program is compiled for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Device, Object
from tvm.runtime import device as as_device
from tvm.runtime.container import Array

from . import _ffi_api
from .features import TargetFeatures

__all__ = [
    "Target",
    "TargetKind",
    "adreno",
    "arm_cpu",
    "bifrost",
    "create",
    "cuda",
    "emulated",
    "intel_graphics",
    "list_target_kinds",
    "llvm",
    "mali",
    "micro",
    "register_target_kind",
    "riscv_cpu",
    "rocm",
    "vta",
]


_KIND_ATTRIBUTES = ("default_features", "default_keys", "device_type", "option_types")


@tvm._ffi.register_object("TargetKind")
class TargetKind(Object):
    """A family of targets that share one code generator, ``target.build.<name>``."""

    @property
    def options(self) -> dict[str, str]:
        """Options that targets of this kind accept, by name, with their types.

        A type is "str", "int", "bool", "array" (of text) or "targets".
        """
        return {str(name): str(kind) for name, kind in sorted(self.option_types.items())}

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        """`options` of the kind of that name.

        Raises
        ------
        ValueError : there is no such kind.
        """
        return _ffi_api.TargetKindGet(kind_name).options


def list_target_kinds() -> list[str]:
    """Names of all registered target kinds, sorted."""
    return [str(name) for name in _ffi_api.ListTargetKinds()]


def register_target_kind(
    name: str,
    device_type: int,
    keys: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> TargetKind:
    """Add a target kind: ``Target(name)`` parses, ``target.build.<name>`` generates its code.

    Parameters
    ----------
    name : the kind's name, the first word of a target's text.
    device_type : DLPack number of the device the code runs on.
    keys : families of schedules that apply to it, most specific first.
    options : option name to type: "str", "int", "bool", "array" (strings separated by commas)
        or "targets" (targets separated by commas, or by semicolons where they have options).

    Raises
    ------
    ValueError : the name is taken, or an option has an unknown type.
    """
    return _ffi_api.RegisterTargetKind(name, device_type, list(keys), dict(options or {}))


def _plain(value: Any) -> Any:
    """A target attribute as a JSON-compatible Python value."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    return [part.export() if isinstance(part, Target) else str(part) for part in value]


@tvm._ffi.register_object("Target")
class Target(Object):
    """What a program is compiled for: a kind, its options, and facts about the machine.

    Parameters
    ----------
    target : text (``"llvm -mcpu=skylake-avx512 -num-cores=4"``), the tag of a machine
        (``"nvidia/nvidia-a100"``, see `list_tags`), JSON text or a dict with the entry ``kind``, or
        another target.
    host : target of the code that launches the kernels, in any of these forms.

    Raises
    ------
    ValueError : unknown kind, unknown option, or a malformed value.
    TypeError : `target` is none of the forms above.

    Examples
    --------
    >>> str(Target("llvm -num-cores=2"))
    'llvm -keys=cpu -num-cores=2'
    """

    def __init__(self, target: Any, host: Any = None) -> None:
        if isinstance(target, str) and target.lstrip().startswith("{"):
            try:
                target = json.loads(target)
            except json.JSONDecodeError as error:
                raise ValueError(f"Target: the JSON text does not parse: {error}") from error
        if isinstance(target, Mapping):
            target = dict(target)
        elif not isinstance(target, (str, Target)):
            raise TypeError(
                f"Target: expected text, a dict or a Target, got {type(target).__name__}"
            )
        if host is not None and not isinstance(host, Target):
            host = Target(host)
        self.__init_handle_by_constructor__(_ffi_api.Target, target, host)

    def __enter__(self) -> Target:
        _ffi_api.TargetEnterScope(self)
        return self

    def __exit__(self, *unused: object) -> None:
        _ffi_api.TargetExitScope(self)

    def __str__(self) -> str:
        return _ffi_api.TargetStr(self)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The innermost target entered with ``with`` on this thread.

        Raises
        ------
        ValueError : there is none and `allow_none` is false.
        """
        return _ffi_api.TargetCurrent(allow_none)

    @staticmethod
    def from_device(device: Device | str) -> Target:
        """What programs for a device of this machine are compiled for, with its limits.

        Parameters
        ----------
        device : a processor or a CUDA device; by name it is the first of its kind.

        Raises
        ------
        ValueError : the device is not there, or is of another kind.
        """
        found = as_device(device) if isinstance(device, str) else device
        if not found.exist:
            raise ValueError(f"Target.from_device: there is no usable {found} here")
        if found.device_type == Device.kDLCPU:
            return Target("llvm").with_machine()
        if found.device_type != Device.kDLCUDA:
            raise ValueError(
                f"Target.from_device: the limits of {found} cannot be asked for; name them in the "
                "text of a target"
            )
        return Target(
            {
                "kind": "cuda",
                "arch": f"sm_{found.compute_version.replace('.', '')}",
                "max_threads_per_block": found.max_threads_per_block,
                "max_shared_memory_per_block": found.max_shared_memory_per_block,
                "thread_warp_size": found.warp_size,
            }
        )

    def get_kind_attr(self, attr_name: str) -> Any:
        """A fact about all targets of the kind: "device_type", "default_keys", "option_types" or
        "default_features"; None for what no kind says."""
        return getattr(self.kind, attr_name) if attr_name in _KIND_ATTRIBUTES else None

    @staticmethod
    def list_kinds() -> list[str]:
        """Names of all registered target kinds, sorted."""
        return list_target_kinds()

    def with_host(self, host: Any) -> Target:
        """The same target with another host."""
        return Target(self, host)

    def with_machine(self) -> Target:
        """The same target with the machine that it means written out.

        ``llvm`` becomes ``llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -num-cores=16`` where
        that is this machine, so that what is kept of it, as in a record, is not taken for that of
        another one.
        """
        return _ffi_api.NameMachine(self)

    def is_same_machine(self, recorded: Target) -> bool:
        """Whether what was measured for `recorded` holds for this target.

        True for the same kind and processor, whatever the number of its cores. A recorded target
        that names no processor, as old records have it, passes for any.
        """
        return _ffi_api.IsSameMachine(self, recorded)

    def get_attr(self, name: str, default: Any = None) -> Any:
        """An option as the user gave it, else the machine's fact of that name, else `default`.

        '-' and '_' are the same letter in names.
        """
        value = _plain(_ffi_api.TargetFind(self, name))
        return default if value is None else value

    def export(self) -> dict[str, Any]:
        """The target as a JSON-compatible dict that `Target` accepts."""
        table: dict[str, Any] = {"kind": str(self.kind.name), "keys": [str(k) for k in self.keys]}
        table.update((str(k), _plain(v)) for k, v in self.attrs.items())
        if self.host is not None:
            table["host"] = self.host.export()
        return table

    def get_target_device_type(self) -> int:
        """DLPack's number of the device the code runs on: 1 for processors, 2 for CUDA."""
        return int(self.kind.device_type)

    @property
    def features(self) -> TargetFeatures:
        """What follows from the options about the machine, see `TargetFeatures`."""
        return TargetFeatures(self, _ffi_api.TargetFeatures(self))

    @property
    def tag(self) -> str:
        """Name of the machine that the target was made from, see `list_tags`; else empty."""
        return self.get_attr("tag", "")

    @property
    def supports_integer_dot_product(self) -> bool:
        """Whether one instruction multiplies and adds four bytes (``dp4a``): CUDA since sm_61."""
        if self.kind.name != "cuda":
            return False
        digits = "".join(c for c in self.arch.removeprefix("sm_") if c.isdigit())
        return bool(digits) and int(digits) >= 61

    @property
    def device_name(self) -> str:
        """Value of option ``device``, empty when not given."""
        return self.get_attr("device", "")

    @property
    def model(self) -> str:
        """Value of option ``model``, "unknown" when not given."""
        return self.get_attr("model", "unknown")

    @property
    def mcpu(self) -> str:
        """LLVM's name of the processor."""
        return self.get_attr("mcpu", "")

    @property
    def mattr(self) -> list[str]:
        """Features of the processor that are switched on or off, such as "+avx2"."""
        return self.get_attr("mattr", [])

    @property
    def arch(self) -> str:
        """Architecture of a GPU, such as "sm_80"; empty when not given."""
        return self.get_attr("arch", "")

    @property
    def num_cores(self) -> int:
        """Cores the generated code may use."""
        return _ffi_api.NumCores(self)

    @property
    def vector_width(self) -> int:
        """Bits of one vector register."""
        return _ffi_api.VectorBits(self)

    @property
    def gpu_facts(self) -> dict[str, float]:
        """Limits of the GPU meant and what its multiprocessors do, by name.

        From the target's options, a device that is there, or the table of architectures; the
        architecture is the one of ``-arch``, "sm_80" without.

        Raises
        ------
        ValueError : the target is no GPU, or ``-arch`` names none.
        """
        if "gpu" not in self.keys:
            raise ValueError(f"Target.gpu_facts: {self} is no GPU")
        return dict(_ffi_api.GpuFacts(self).items())

    @property
    def num_vector_registers(self) -> int:
        """Vector registers the processor has."""
        return _ffi_api.NumVectorRegisters(self)

    @property
    def vector_units(self) -> int:
        """Multiply-adds of whole vector registers that a core starts a cycle; 2 if unknown."""
        return int(self.get_attr("vector_units", 2))

    @property
    def has_wide_units(self) -> bool:
        """Whether a core multiplies more than 512 bits a cycle, which its caches hardly feed."""
        return self.vector_units * self.vector_width > 512

    @property
    def cache_bytes(self) -> tuple[int, int, int]:
        """Bytes of the data caches L1, L2 and L3 that one core can use."""
        first, second, third = (int(size) for size in _ffi_api.CacheBytes(self))
        return first, second, third

    @property
    def max_num_threads(self) -> int:
        """Threads of one block, 1 on a CPU."""
        return self.get_attr("max_num_threads", 1)

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of shared memory of one block, 0 on a CPU."""
        return self.get_attr("max_shared_memory_per_block", 0)

    @property
    def thread_warp_size(self) -> int:
        """Threads that run in lockstep, 1 on a CPU."""
        return self.get_attr("thread_warp_size", 1)

    @property
    def l2_cache_size_bytes(self) -> int:
        """Bytes of a GPU's second cache, 0 when not known."""
        return self.get_attr("l2_cache_size_bytes", 0)

    @property
    def libs(self) -> list[str]:
        """External libraries the schedules may call."""
        return self.get_attr("libs", [])

    @property
    def max_block_size_x(self) -> int:
        """Threads of one block along its first axis, 1 on a CPU."""
        return self.get_attr("max_block_size_x", self.max_num_threads)

    @property
    def max_block_size_y(self) -> int:
        """Threads of one block along its second axis, 1 on a CPU."""
        return self.get_attr("max_block_size_y", self.max_num_threads)

    @staticmethod
    def canon_target(target: Any) -> Target | None:
        """A target in any form as a Target; None stays."""
        return target if target is None or isinstance(target, Target) else Target(target)

    @staticmethod
    def target_or_current(target: Any) -> Target:
        """`target` as a Target; the one in scope if it is None.

        Raises
        ------
        ValueError : None, and no target is in scope.
        """
        return Target(_ffi_api.TargetCurrent(False) if target is None else target)

    @staticmethod
    def canon_target_and_host(
        target: Any, target_host: Any = None
    ) -> tuple[Target | None, Target | None]:
        """A target with its host, and that host; a host that is given takes the place of its own.

        Raises
        ------
        AssertionError : a host without a target.
        """
        if target is None:
            assert target_host is None, "Target host is not empty when target is empty."
            return None, None
        found = Target(target) if target_host is None else Target(target, target_host)
        return found, found.host

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> list[Target]:
        """One target, several, or a table of them by device, as a list.

        Raises
        ------
        AssertionError : there is none.
        """
        assert multi_targets is not None, "a target is needed, got None"
        if isinstance(multi_targets, Mapping) and "kind" not in multi_targets:
            multi_targets = list(multi_targets.values())
        if not isinstance(multi_targets, list | tuple | Array):
            multi_targets = [multi_targets]
        return [Target(target) for target in multi_targets]

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list[Target]:
        """The same, each with its host."""
        targets = Target.canon_multi_target(target)
        return [Target(one) if target_host is None else Target(one, target_host) for one in targets]

    @staticmethod
    def canon_target_map_and_host(
        target_map: Mapping[Any, Any], target_host: Any = None
    ) -> tuple[dict[Target, Any], Target | None]:
        """A table by target with the host in all of them, and that host."""
        host = Target.canon_target(target_host)
        found = {}
        for target, value in target_map.items():
            one, own = Target.canon_target_and_host(target, host)
            assert one is not None
            host = host or own
            found[one] = value
        return found, host


def create(target: Any) -> Target:
    """Older spelling of ``Target(target)``."""
    return Target(target)


def _merge_options(own: Sequence[str], more: str | Sequence[str] | None) -> list[str]:
    if more is None:
        return list(own)
    return [*own, *(more.split() if isinstance(more, str) else more)]


def llvm(options: str | Sequence[str] | None = None) -> Target:
    """Target for this machine's processor.

    Parameters
    ----------
    options : more options, as text or as a list of words.
    """
    return Target(" ".join(["llvm", *_merge_options([], options)]))


def cuda(
    model: str = "unknown",
    arch: str | None = None,
    options: str | Sequence[str] | None = None,
) -> Target:
    """Target for an NVIDIA GPU.

    Parameters
    ----------
    model : name of the board, kept as an option.
    arch : architecture, such as "sm_80".
    options : more options, as text or as a list of words.
    """
    own = [] if model == "unknown" else [f"-model={model}"]
    if arch is not None:
        own.append(f"-arch={arch}")
    return Target(" ".join(["cuda", *_merge_options(own, options)]))


# Boards and phones by the names that TVM has for them: the chip, the system, and what LLVM is to be
# told of the processor beyond that.
_ARM_BOARDS: dict[str, tuple[str, str, str]] = {
    "pixel2": ("snapdragon835", "arm64-linux-android", ""),
    **dict.fromkeys(
        ("mate10", "mate10pro", "p20", "p20pro"), ("kirin970", "arm64-linux-android", "")
    ),
    "rasp3b": ("bcm2837", "armv7l-linux-gnueabihf", ""),
    "rasp4b": ("bcm2711", "armv8l-linux-gnueabihf", "-mcpu=cortex-a72"),
    "rasp4b64": ("bcm2711", "aarch64-linux-gnu", "-mcpu=cortex-a72"),
    "pynq": ("pynq", "armv7a-linux-eabi", ""),
    "beagleai": ("beagleai", "armv7a-linux-gnueabihf", "-mcpu=cortex-a15"),
    "stm32mp1": ("stm32mp1", "armv7a-linux-gnueabihf", "-mcpu=cortex-a7"),
    "thunderx": ("thunderx", "aarch64-linux-gnu", "-mcpu=thunderxt88"),
}


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for an ARM processor under Linux.

    Parameters
    ----------
    model : name of a board or a phone, such as "rasp3b" or "pixel2", which stands for its chip and
        system; any other name is kept as an option, and the processor is one of 64 bits.
        `list_tags` has boards with the number of their cores.
    options : more options, as text or as a list of words; ``-mcpu=`` names the processor.
    """
    chip, triple, processor = _ARM_BOARDS.get(model, (model, "aarch64-linux-gnu", ""))
    own = ["-keys=arm_cpu,cpu", "-device=arm_cpu", f"-mtriple={triple}", "-mattr=+neon"]
    if chip != "unknown":
        own.append(f"-model={chip}")
    return Target(" ".join(["llvm", *_merge_options([*own, *processor.split()], options)]))


def riscv_cpu(model: str = "sifive-u54", options: str | Sequence[str] | None = None) -> Target:
    """Target for a RISC-V processor under Linux.

    Parameters
    ----------
    model : LLVM's name of the processor; names with "e" or "s" and two digits (``sifive-e31``) are
        those of 32 bits. The calling convention passes floats in registers where it has them.
    options : more options, as text or as a list of words.
    """
    bits, convention = (32, "ilp32") if "-e" in model else (64, "lp64d")
    own = [
        "-keys=arm_cpu,cpu",
        "-device=arm_cpu",
        f"-model={model}",
        f"-mtriple=riscv{bits}-unknown-linux-gnu",
        f"-mcpu={model}",
        f"-mabi={convention}",
    ]
    return Target(" ".join(["llvm", *_merge_options(own, options)]))


def adreno(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for a Qualcomm Adreno GPU, by OpenCL."""
    return _device("opencl", ["-device=adreno", "-keys=adreno,opencl,gpu"], model, options)


# Chips and boards of microTVM: the options of the compiler that takes the C code.
_MICRO_BOARDS: dict[str, str] = {
    "host": "",
    "atsamd51": "-mcpu=cortex-m4",
    "cxd5602gg": "-mcpu=cortex-m4",
    "esp32": "",
    "imxrt10xx": "-mcpu=cortex-m7",
    "mps2_an521": "-mcpu=cortex-m33",
    "mps3_an547": "-mcpu=cortex-m55",
    "nrf52840": "-mcpu=cortex-m4",
    "nrf5340dk": "-mcpu=cortex-m33",
    "rp2040": "-mcpu=cortex-m0",
    "sam3x8e": "-mcpu=cortex-m3",
    "stm32f746xx": "-mcpu=cortex-m7 -march=armv7e-m",
    "stm32h7xx": "-mcpu=cortex-m7",
    "stm32l4r5zi": "-mcpu=cortex-m4",
    "stm32u5xx": "-mcpu=cortex-m33",
    "zynq_mp_r5": "-mcpu=cortex-r5",
}


def micro(model: str = "host", options: str | Sequence[str] | None = None) -> Target:
    """Target for a board without an operating system, whose compiler takes C.

    Parameters
    ----------
    model : name of a chip or board; "host" is this machine.
    options : more options, as text or as a list of words.

    Raises
    ------
    ValueError : there is no such board; the message lists them.
    """
    if model not in _MICRO_BOARDS:
        raise ValueError(
            f'target.micro: there is no board "{model}"; the boards are '
            f"{', '.join(_MICRO_BOARDS)}. Others are written as tvm.target.Target"
            '("c -mcpu=...")'
        )
    own = [f"-model={model}", *_MICRO_BOARDS[model].split()]
    return Target(" ".join(["c", *_merge_options(own, options)]))


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for an AMD GPU; arguments as for `cuda`."""
    return _device("rocm", [], model, options)


def mali(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for an ARM Mali GPU, by OpenCL."""
    return _device("opencl", ["-device=mali"], model, options)


def intel_graphics(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for an integrated Intel GPU, by OpenCL."""
    own = ["-device=intel_graphics", "-thread_warp_size=16"]
    return _device("opencl", own, model, options)


def bifrost(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for an ARM Bifrost GPU, by OpenCL."""
    return _device("opencl", ["-device=bifrost"], model, options)


def vta(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """Target for the accelerator VTA, whose code generator and runtime are a user's."""
    return _device("ext_dev", ["-keys=vta,cpu", "-device=vta"], model, options)


def _device(
    kind: str, own: Sequence[str], model: str, options: str | Sequence[str] | None
) -> Target:
    named = [] if model == "unknown" else [f"-model={model}"]
    return Target(" ".join([kind, *_merge_options([*own, *named], options)]))


def emulated(target: Any = "cuda", check_races: bool = True) -> Target:
    """Target that runs the kernels of a GPU target on this machine, in an interpreter.

    A schedule for the GPU lowers as for the GPU itself: the result has its keys and limits. Arrays
    are on ``tvm.cpu()``. The interpreter runs a block with all its threads at once, and raises an
    error where a GPU would go wrong silently: accesses outside of a buffer, barriers that only some
    threads reach, shuffles from idle threads, blocks that are larger than the limits, and races.

    Parameters
    ----------
    target : the GPU target, or anything `Target` accepts; its host runs the launching code.
    check_races : whether to look for threads that share memory without a barrier between them.

    Raises
    ------
    ValueError : `target` has an option that says nothing to the interpreter, such as libs.

    Examples
    --------
    >>> gpu = emulated("cuda -max_threads_per_block=256")
    >>> str(gpu.kind.name), gpu.thread_warp_size, [str(key) for key in gpu.keys]
    ('stackvm', 32, ['cuda', 'gpu'])
    """
    gpu = Target(target)
    # Libraries of the GPU are not here.
    known = set(_ffi_api.TargetKindGet("stackvm").options) - {"libs"}
    options: dict[str, Any] = {
        str(name): _plain(value) for name, value in gpu.features.items() if str(name) in known
    }
    for name, value in gpu.attrs.items():
        if str(name) not in known:
            raise ValueError(
                f'emulated("{gpu}"): option {name} has no meaning here; leave it out '
                f"(options: {', '.join(sorted(known))})"
            )
        options[str(name)] = _plain(value)
    options |= {
        "kind": "stackvm",
        "keys": [str(key) for key in gpu.keys],
        "check_races": check_races,
    }
    return Target(options, gpu.host if gpu.host is not None else "llvm")


# Accelerators of users; who adds one gives it a code generator, ``target.build.ext_dev``.
register_target_kind("ext_dev", 12, ["ext_dev"])
