"""Facts about the processor a program is compiled for: vector width, registers, caches, cores."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime.threading import usable_cores

try:
    import llvmlite.binding as llvm
except ModuleNotFoundError as reason:
    raise ModuleNotFoundError(
        "tvm.target needs the package llvmlite, which is missing here; install it with "
        "`pip install llvmlite`. A machine that only runs exported libraries does without: set "
        "TVM_USE_RUNTIME_LIB=1",
        name=reason.name,
    ) from reason

__all__ = [
    "host_cpu",
    "host_triple",
    "has_half_conversions",
    "initialize_llvm",
    "known_cpus",
    "llvm",
    "int16_vector_width",
    "machine_features",
    "sums_bfloat16_products",
    "sums_byte_products",
    "unpassable_types",
    "vector_unit",
    "x86_vendor",
]

# Data caches that one core can use, in KiB: L1, L2, and the part of L3 that it shares. From the
# vendors' optimisation guides; where models of one name differ, the smallest server.
_CACHE_KIB = {
    "haswell": (32, 256, 8 << 10),
    "broadwell": (32, 256, 8 << 10),
    "skylake": (32, 256, 8 << 10),
    "skylake-avx512": (32, 1 << 10, 16 << 10),
    "cascadelake": (32, 1 << 10, 16 << 10),
    "icelake-server": (48, 1280, 24 << 10),
    "sapphirerapids": (48, 2 << 10, 30 << 10),
    "emeraldrapids": (48, 2 << 10, 30 << 10),
    "graniterapids": (48, 2 << 10, 48 << 10),
    "znver1": (32, 512, 8 << 10),
    "znver2": (32, 512, 16 << 10),
    "znver3": (32, 512, 32 << 10),
    "znver4": (32, 1 << 10, 32 << 10),
    "znver5": (48, 1 << 10, 32 << 10),
    "neoverse-n1": (64, 1 << 10, 32 << 10),
    "neoverse-v1": (64, 1 << 10, 32 << 10),
    "neoverse-n2": (64, 1 << 10, 32 << 10),
    "neoverse-v2": (64, 2 << 10, 36 << 10),
}
# Of any other name, such as x86-64-v3: what every server of the last decade has at least, so that a
# search guided by them errs on the safe side.
_LEAST_CACHE_KIB = (32, 256, 4 << 10)
_CACHE_ROOT = Path("/sys/devices/system/cpu/cpu0/cache")

# A processor whose vectors are not x86's: bits of one register, number of registers.
_VECTOR_UNIT_BY_ARCH = {
    "aarch64": (128, 32),
    "arm64": (128, 32),
    "arm": (128, 16),
    "powerpc64le": (128, 64),
    "riscv64": (128, 32),
}

# Processors that start two multiply-adds a cycle of vectors of 512 bits; others with such vectors
# start one. Of narrower vectors two are the rule, with these exceptions.
_TWO_WIDE_UNITS = frozenset(
    {
        "skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids",
        "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids", "znver5",
    }
)  # fmt: skip
_NARROW_UNITS = {"znver1": 1, "neoverse-v1": 4, "neoverse-v2": 4}

_VENDORS = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}

_WIDEST_ADD = """
define <16 x float> @add(<16 x float> %a, <16 x float> %b) {
  %c = fadd <16 x float> %a, %b
  ret <16 x float> %c
}
"""


@functools.cache
def initialize_llvm() -> None:
    """Register LLVM's processors and their printers, once per process."""
    # Our code carries its pointers through loops already. LLVM's strength reduction finds the same
    # again, in two thirds of the time to compile a loop of a hundred multiply-adds. The switch is
    # one of the process: other users of llvmlite in it, such as numba, do without as well.
    llvm.set_option("tvm", "-disable-lsr")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


@functools.cache
def host_triple() -> str:
    """LLVM triple of this process, for instance ``x86_64-unknown-linux-gnu``."""
    return llvm.get_process_triple()


@functools.cache
def host_cpu() -> tuple[str, str]:
    """LLVM's name of this processor, and its features as ``+avx2,-avx512f,...``."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def x86_vendor() -> str:
    """Maker of this processor as Linux reports it: "intel", "amd" or "unknown"."""
    described = _read(Path("/proc/cpuinfo"))
    return next(
        (name for sign, name in _VENDORS.items() if sign in described),
        "unknown",
    )


@functools.cache
def known_cpus(triple: str) -> frozenset[str]:
    """Names LLVM accepts as `mcpu` for a triple.

    LLVM prints the list to the process's standard error and gives no other access to it, so a child
    process is asked. Empty when the child fails, which callers take as "cannot tell".
    """
    script = (
        "import sys, llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        "llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu='help')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, triple], capture_output=True, text=True, check=False
    )
    listing = result.stderr.partition("Available features")[0]
    return frozenset(re.findall(r"^\s+(\S+)\s+- Select the ", listing, flags=re.MULTILINE))


@functools.cache
def _makes_code(triple: str, cpu: str) -> bool:
    """Whether LLVM makes code of the triple for a processor that it knows.

    One of 32 bits, under a triple of 64, ends the process, so a child process tries.
    """
    script = (
        "import sys, llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        "llvm.initialize_all_asmprinters()\n"
        "target = llvm.Target.from_triple(sys.argv[1])\n"
        "module = llvm.parse_assembly('define void @f() { ret void }')\n"
        "target.create_target_machine(cpu=sys.argv[2]).emit_object(module)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, triple, cpu], capture_output=True, check=False
    )
    return b"64-bit code requested" not in result.stderr


def _check_cpu(triple: str, cpu: str) -> None:
    # LLVM ends the whole process on a name it does not know, hence the check ahead of it.
    if not cpu or cpu == host_cpu()[0]:
        return
    known = known_cpus(triple)
    if known and cpu not in known:
        raise ValueError(
            f"Target: mcpu {cpu!r} is not a processor LLVM knows for {triple}; it knows "
            f"{', '.join(sorted(known))}"
        )
    if not _makes_code(triple, cpu):
        raise ValueError(
            f"Target: mcpu {cpu!r} is a processor of 32 bits, and {triple} has 64; name another "
            "processor, or an mtriple of 32 bits such as i686-unknown-linux-gnu"
        )


@functools.cache
def vector_unit(triple: str, cpu: str, features: str) -> tuple[int, int]:
    """Width in bits of the vector registers code generation uses, and how many there are.

    For x86 the answer is read off the code LLVM makes for a wide addition, so that it covers every
    processor name and feature list without a table of them.
    """
    initialize_llvm()
    arch = triple.partition("-")[0]
    if arch not in ("x86_64", "i686", "i386"):
        return _VECTOR_UNIT_BY_ARCH.get(arch, (128, 16))
    if unpassable_types(triple, features):
        return 128, 16
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    assembly = machine.emit_assembly(llvm.parse_assembly(_WIDEST_ADD))
    if "zmm" in assembly:
        return 512, 32
    count = 16 if arch == "x86_64" else 8
    return (256 if "ymm" in assembly else 128), count


# A sum of products of bytes as LLVM's loops have them; where there is an instruction for it, LLVM
# takes that.
_BYTE_PRODUCTS = """
define i32 @f(<16 x i8> %a, <16 x i8> %b) {
  %c = zext <16 x i8> %a to <16 x i32>
  %d = sext <16 x i8> %b to <16 x i32>
  %e = mul <16 x i32> %c, %d
  %s = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %e)
  ret i32 %s
}
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)
"""


_WORDS = """
define <32 x i16> @add(<32 x i16> %a, <32 x i16> %b) {
  %c = add <32 x i16> %a, %b
  ret <32 x i16> %c
}
"""


def unpassable_types(triple: str, features: str) -> tuple[str, ...]:
    """LLVM's types that calls on x86_64 pass in registers which the features take away.

    LLVM ends the process where a call passes one, or takes it from another register.
    """
    if not triple.startswith("x86_64"):
        return ()
    last = {item[1:]: item[0] for item in features.split(",") if item}
    if last.get("sse") == "-":
        return ("half", "bfloat", "float", "double")
    return ("half", "bfloat", "double") if last.get("sse2") == "-" else ()


# First words of triples of x86 with 32 bits, where SSE2 is an extension.
_X86_32 = ("i386", "i486", "i586", "i686")

_DOUBLES = """
define <2 x double> @f(<2 x double> %a) {
  %b = fadd <2 x double> %a, %a
  ret <2 x double> %b
}
"""


def _lacks_sse2(triple: str, cpu: str, features: str) -> bool:
    """Whether a processor is an x86 of 32 bits without SSE2.

    LLVM ends the process where a vector of halves is passed for one.
    """
    if triple.partition("-")[0] not in _X86_32:
        return False
    return "addpd" not in _assembly(_DOUBLES, triple, cpu, features)


@functools.cache
def _assembly(text: str, triple: str, cpu: str, features: str) -> str:
    initialize_llvm()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    return str(machine.emit_assembly(llvm.parse_assembly(text)))


def _x86_assembly(text: str, target: Any) -> str:
    """What LLVM makes of a program for a target; nothing where that is of another architecture."""
    attrs = target.attrs
    mattr = ",".join(str(item) for item in attrs.get("mattr", ()))
    facts = machine_features(str(attrs.get("mtriple", "")), str(attrs.get("mcpu", "")), mattr)
    triple, cpu, features = (str(facts[key]) for key in ("mtriple", "mcpu", "mattr_full"))
    is_x86 = triple.partition("-")[0] in ("x86_64", *_X86_32)
    if unpassable_types(triple, features) or _lacks_sse2(triple, cpu, features):
        return ""
    return _assembly(text, triple, cpu, features) if is_x86 else ""


def sums_byte_products(target: Any) -> bool:
    """Whether an x86 processor sums products of unsigned and signed bytes in one instruction.

    That is VNNI, of AVX-512 or on its own.
    """
    return "vpdpbusd" in _x86_assembly(_BYTE_PRODUCTS, target)


# A conversion that comes with AVX-512's products of bfloat16.
_TO_BFLOAT16 = """
define <16 x bfloat> @f(<16 x float> %a) {
  %b = fptrunc <16 x float> %a to <16 x bfloat>
  ret <16 x bfloat> %b
}
"""


def sums_bfloat16_products(target: Any) -> bool:
    """Whether an x86 processor has AVX-512's sums of products of bfloat16."""
    lines = _x86_assembly(_TO_BFLOAT16, target).splitlines()
    return any("vcvtneps2bf16" in line and "zmm" in line for line in lines)


_FROM_HALF = """
define <4 x float> @f(<4 x half> %a) {
  %b = fpext <4 x half> %a to <4 x float>
  ret <4 x float> %b
}
"""


@tvm._ffi.register_func("target.has_half_conversions")
def has_half_conversions(target: Any) -> bool:
    """Whether a processor converts between float16 and float32 by instructions.

    Those of x86 do with F16C or with AVX-512's float16; all others that LLVM knows count as if they
    did.
    """
    if target.kind.name != "llvm":
        return True
    features = str(target.get_attr("mattr_full", ""))
    triple = str(target.get_attr("mtriple", "")) or host_triple()
    if unpassable_types(triple, features):
        return False
    if _lacks_sse2(triple, str(target.get_attr("mcpu", "")), features):
        return False
    # Of this machine's processor all features are listed, so LLVM need not be asked.
    ours = [item for item in features.split(",") if item in ("+f16c", "-f16c", "-avx")]
    if ours:
        return ours[-1] == "+f16c"
    assembly = _x86_assembly(_FROM_HALF, target)
    return not assembly or "vcvtph2ps" in assembly


def int16_vector_width(target: Any) -> int:
    """Bits of the widest vectors of 16-bit integers that an x86 processor adds; 0 for others.

    AVX alone has wide vectors of floats only, and so has AVX-512 without its instructions on words.
    """
    lines = [line for line in _x86_assembly(_WORDS, target).splitlines() if "paddw" in line]
    registers = (("zmm", 512), ("ymm", 256), ("xmm", 128))
    found = (bits for name, bits in registers if any(name in line for line in lines))
    return next(found, 0)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@functools.cache
def _caches(cpu: str, is_host: bool) -> dict[str, int]:
    """Bytes of the data caches that one core of a processor can use, and of one cache line."""
    sizes = {
        level: kib << 10 for level, kib in enumerate(_CACHE_KIB.get(cpu, _LEAST_CACHE_KIB), start=1)
    }
    line = 64
    for index in sorted(_CACHE_ROOT.glob("index*")) if is_host else ():
        level, size = _read(index / "level"), _read(index / "size")
        amount = re.fullmatch(r"(\d+)([KMG]?)", size)
        if _read(index / "type") == "Instruction" or not level.isdigit() or amount is None:
            continue
        unit = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[amount[2]]
        sizes[int(level)] = int(amount[1]) * unit
        declared = _read(index / "coherency_line_size")
        line = int(declared) if declared.isdigit() else line
    return {
        "l1_cache_bytes": sizes[1],
        "l2_cache_bytes": sizes[2],
        "l3_cache_bytes": sizes[3],
        "cache_line_bytes": line,
    }


def _vector_units(cpu: str, vector_width: int) -> int:
    """Multiply-adds of whole vector registers that a core starts a cycle."""
    if vector_width >= 512:
        return 2 if cpu in _TWO_WIDE_UNITS else 1
    return _NARROW_UNITS.get(cpu, 2)


@functools.cache
def _missing_vectors(triple: str) -> list[str]:
    """Vector instructions that this machine does without though its processor's name has them.

    A virtual machine may hide them, and then the name alone does not say which machine is meant.
    """
    name, flags = host_cpu()
    if vector_unit(triple, name, "") == vector_unit(triple, name, flags):
        return []
    return [flag for flag in flags.split(",") if flag.startswith(("-avx", "-fma"))]


def _with_float_abi(triple: str, float_abi: str) -> str:
    """The triple whose functions take floats in registers ("hard") or not ("soft").

    LLVM reads ARM's convention off the last word of the triple, such as gnueabihf.
    """
    if float_abi not in ("soft", "hard"):
        raise ValueError(f'Target: mfloat-abi is "soft" or "hard", got "{float_abi}"')
    if not triple.startswith(("arm", "thumb")):
        if float_abi == "soft":
            raise ValueError(
                f"Target: mfloat-abi=soft is a convention of ARM's 32 bits, not of {triple}"
            )
        return triple
    return triple.removesuffix("hf") + ("hf" if float_abi == "hard" else "")


def machine_features(triple: str = "", cpu: str = "", mattr: str = "") -> dict[str, Any]:
    """What code generation and the searches need to know about a processor.

    Parameters
    ----------
    triple, cpu : LLVM names; empty means this process's and this machine's.
    mattr : features on top of the processor's own, as ``+avx2,-fma``.

    Returns
    -------
    Dictionary with ``mtriple``, ``mcpu``, ``mattr_full`` (the text given to LLVM), ``vector_width``
    (bits), ``num_vector_registers``, ``vector_units`` (multiply-adds of whole registers that a core
    starts a cycle), ``l1_cache_bytes``, ``l2_cache_bytes``, ``l3_cache_bytes``,
    ``cache_line_bytes`` and ``num_cores``; also ``mattr`` where this machine lacks vectors that its
    processor's name promises. Caches are those that the system reports where this machine's
    processor is meant, else those of a table of names. A name says nothing of cores: these are this
    machine's.

    Raises
    ------
    ValueError : LLVM does not know the processor.
    """
    triple = triple or host_triple()
    is_native = triple.partition("-")[0] == host_triple().partition("-")[0]
    is_host = is_native and cpu in ("", host_cpu()[0])
    features = mattr
    missing: list[str] = []
    if is_host:
        cpu, host = host_cpu()
        features = f"{host},{mattr}" if mattr else host
        missing = _missing_vectors(triple)
    _check_cpu(triple, cpu)
    width, count = vector_unit(triple, cpu, features)
    return {
        "mtriple": triple,
        "mcpu": cpu,
        "mattr_full": features,
        "vector_width": width,
        "num_vector_registers": count,
        "vector_units": _vector_units(cpu, width),
        **_caches(cpu, is_host),
        "num_cores": usable_cores(),
        **({"mattr": missing} if missing else {}),
    }


@tvm._ffi.register_func("target.features.llvm")
def _llvm_features(target: Any) -> dict[str, Any]:
    attrs = {str(name): value for name, value in target.attrs.items()}
    mattr = ",".join(str(part) for part in attrs.get("mattr", ()))
    triple = str(attrs.get("mtriple", ""))
    if attrs.get("jit", "mcjit") not in ("mcjit", "orcjit"):
        raise ValueError(f'Target: jit is "mcjit" or "orcjit", got "{attrs["jit"]}"')
    found = machine_features(triple, str(attrs.get("mcpu", "")), mattr)
    if "mfloat-abi" in attrs:
        found["code_triple"] = _with_float_abi(found["mtriple"], str(attrs["mfloat-abi"]))
    return found
