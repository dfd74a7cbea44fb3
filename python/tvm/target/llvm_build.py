"""From LLVM IR text to machine code: in memory, as an object file, or as text to read."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime import Module

from . import _ffi_api
from .machine import (
    host_cpu,
    host_triple,
    initialize_llvm,
    llvm,
    machine_features,
    unpassable_types,
)
from .target import Target

__all__ = [
    "ObjectCode",
    "build",
    "compile_ir",
    "compile_object",
    "exported_names",
    "load_ir",
    "load_object",
    "optimize_ir",
    "runs_here",
]

# Code generation level of LLVM. Measured on register-tiled convolutions: 1 and 2 give the same
# speed, 0 none at all.
_CODEGEN_LEVEL = 2

# LLVM's type of functions with the packed calling convention.
_PACKED_FUNCTION = "i32 (ptr, i32, ptr)"


@dataclass(frozen=True)
class ObjectCode:
    """Machine code of a module, which can be sent to another process and loaded there.

    Attributes
    ----------
    data : contents of an object file.
    functions : names of the functions a host may call.
    """

    data: bytes
    functions: tuple[str, ...]


@functools.lru_cache(maxsize=16)
def _target_machine(triple: str, cpu: str, features: str, abi: str = "") -> Any:
    initialize_llvm()
    # Position-independent code serves both uses: linked into a library, and loaded anywhere.
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu,
        features=features,
        opt=_CODEGEN_LEVEL,
        reloc="pic",
        codemodel="default",
        abiname=abi,
    )


def _machine_of(target: Target) -> Any:
    return _target_machine(
        target.get_attr("code_triple", target.get_attr("mtriple", "")),
        target.get_attr("mcpu", ""),
        target.get_attr("mattr_full", ""),
        target.get_attr("mabi", ""),
    )


# A vector, of as many lanes as a number says or as the machine has.
_VECTOR = re.compile(r"<(?:vscale x )?\d+ x ")
# How generated text calls the body of a loop.
_LOOP = "\nfor_body."


def _level(target: Target, text: str) -> int | None:
    """Level of LLVM's own pipeline for a module, None for the few passes that it gets otherwise.

    A program with loops and without any vector was not written for vectors, so LLVM may look for
    them. What was scheduled is compiled as it was written: LLVM's pipeline takes many times as
    long, and undoes tiles that fill the registers. Nor does it move lines that a debugger shows.

    Raises
    ------
    ValueError : the target's ``-opt-level`` is none of LLVM.
    """
    given = target.get_attr("opt-level", None)
    if given is None:
        unscheduled = _LOOP in text and _VECTOR.search(text) is None
        return 2 if unscheduled and "!DICompileUnit(" not in text else None
    if int(given) not in range(4):
        raise ValueError(f"Target: {target}: opt-level is a number from 0 to 3, got {given}")
    return int(given)


def _run_pipeline(module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level > 1
    # Of straight code LLVM 22 makes vectors of any length, of which its generator ends the process.
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


@functools.cache
def _pass_manager(machine: Any) -> tuple[Any, Any]:
    """The passes that pay for themselves on what our generator writes.

    The text already has its loops unrolled, vectorised and freed of repeated and invariant values;
    what is left is to lift local buffers into registers and to tidy up.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes, builder


def optimize_ir(text: str, target: Target) -> Any:
    """Parse, verify and optimise LLVM IR for a target.

    Parameters
    ----------
    text : LLVM IR.
    target : of kind "llvm".

    Returns
    -------
    llvmlite's module.

    Raises
    ------
    InternalError : the text is no valid LLVM IR.
    ValueError : it calls a function with floats for which the target has no registers.
    """
    module = _optimized(text, _machine_of(target), _level(target, text))
    _check_calls(module, target)
    return module


# Intrinsics that become instructions even of the oldest floating point unit.
_INSTRUCTIONS = ("llvm.fabs.", "llvm.copysign.", "llvm.fmuladd.", "llvm.sqrt.", "llvm.vector.")


def _check_calls(module: Any, target: Target) -> None:
    triple = target.get_attr("mtriple", "") or host_triple()
    names = unpassable_types(triple, target.get_attr("mattr_full", ""))
    if not names:
        return

    def check(function: str, callee: str, types: Iterable[Any]) -> None:
        for each in map(str, types):
            if any(re.search(rf"\b{name}\b", each) for name in names):
                raise ValueError(
                    f"llvm code generator: function {function} passes {each} in a call of "
                    f"{callee}, for which {triple} has registers only with SSE2; leave -sse2 out "
                    "of mattr, or name an mtriple of 32 bits"
                )

    for function in module.functions:
        if function.is_declaration:
            continue
        check(function.name, function.name, [argument.type for argument in function.arguments])
        for block in function.blocks:
            for line in block.instructions:
                if line.opcode == "frem":
                    check(function.name, "fmod", [line.type])
                if line.opcode != "call":
                    continue
                operands = list(line.operands)
                callee = operands[-1].name or "a pointer"
                if not callee.startswith(_INSTRUCTIONS):
                    check(function.name, callee, [line.type, *[each.type for each in operands]])


def _optimized(text: str, machine: Any, level: int | None) -> Any:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise tvm.error.InternalError(f"generated LLVM IR is not valid: {error}") from error
    if level == 0:
        return module
    passes, builder = _pass_manager(machine)
    for function in module.functions:
        # Functions marked so run once per call; their time to compile is all that counts.
        if not function.is_declaration and not any(b"optnone" in a for a in function.attributes):
            passes.run(function, builder)
    if level:
        _run_pipeline(module, machine, level)
    return module


def joins_system_library(mod: Any, target: Target) -> bool:
    """Whether the functions register themselves when a program that has them starts.

    ValueError if the module names a prefix of its functions that one of them lacks.
    """
    prefix = mod.get_attr("system_lib_prefix")
    if prefix is None:
        return bool(target.get_attr("system-lib", False))
    for name in exported_names(mod):
        if not name.startswith(str(prefix)):
            raise tvm.error.ValueError(
                f"build: the module's system_lib_prefix is '{prefix}', but its function '{name}' "
                "does not begin with it"
            )
    return True


def _optimized_module(mod: Any, target: Target) -> Any:
    """Optimised LLVM IR of a lowered module, with what its pragmas import."""
    text = str(_ffi_api.EmitLLVM(mod, target))
    if joins_system_library(mod, target):
        text += _registration(exported_names(mod))
    module = optimize_ir(text, target)
    imports = [str(code) for code in _ffi_api.ImportedLLVM(mod)]
    if not imports:
        return module
    for code in imports:
        module.link_in(_parse_import(code))
    # Imported functions come as their compiler left them, and the calls of them can be inlined.
    _run_pipeline(module, _machine_of(target), 2)
    return module


def _registration(names: tuple[str, ...]) -> str:
    """LLVM IR that makes functions part of `tvm.runtime.system_lib` when the program starts."""
    texts, calls = [], []
    for i, name in enumerate(names):
        text = f'c"{name}\\00"'
        texts.append(f"@tvm_name_{i} = private constant [{len(name.encode()) + 1} x i8] {text}")
        calls.append(
            f"  call i32 @TVMBackendRegisterSystemLibSymbol(ptr @tvm_name_{i}, ptr @{name})"
        )
    entry = "{ i32, ptr, ptr }"
    return "\n".join(
        [
            "",
            *texts,
            "declare i32 @TVMBackendRegisterSystemLibSymbol(ptr, ptr)",
            "define internal void @tvm_register_functions() {",
            *calls,
            "  ret void",
            "}",
            f"@llvm.global_ctors = appending global [1 x {entry}] "
            f"[{entry} {{ i32 65535, ptr @tvm_register_functions, ptr null }}]",
            "",
        ]
    )


def _parse_import(code: str) -> Any:
    is_path = "\n" not in code and code.endswith((".ll", ".bc"))
    try:
        if is_path and code.endswith(".bc"):
            return llvm.parse_bitcode(Path(code).read_bytes())
        return llvm.parse_assembly(Path(code).read_text() if is_path else code)
    except OSError as reason:
        raise ValueError(f'pragma import_llvm: cannot read "{code}": {reason}') from reason
    except RuntimeError as reason:
        raise ValueError(
            "pragma import_llvm: expected LLVM IR, or the path of a .ll or .bc file; LLVM "
            f"{'.'.join(map(str, llvm.llvm_version_info))} says: {reason}"
        ) from reason


def compile_ir(text: str, target: Target) -> bytes:
    """Machine code of LLVM IR as the contents of an object file."""
    return _machine_of(target).emit_object(optimize_ir(text, target))


@functools.cache
def _jit() -> Any:
    initialize_llvm()
    features = machine_features()
    machine = _target_machine(
        str(features["mtriple"]), str(features["mcpu"]), str(features["mattr_full"])
    )
    # JITLink keeps the sections of an object together. The older linker may put them further apart
    # than a 32-bit displacement reaches once a process has mapped many libraries, and aborts.
    return llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)


_library_names = itertools.count()

# Every module has a pointer of this name, through which its functions find what it imports.
_MODULE_CONTEXT = "__tvm_module_ctx"
# A module in one object file has its context beside its code. Of several files one has it, and the
# others find its address in a table: files may lie further apart in memory than a displacement of
# 32 bits reaches.
_CONTEXT_INSIDE = f"@{_MODULE_CONTEXT} = weak protected global ptr null"
_CONTEXT_ELSEWHERE = f"@{_MODULE_CONTEXT} = external global ptr"
_CONTEXT_ALONE = f"@{_MODULE_CONTEXT} = global ptr null\n"


def _missing_hint(text: str | None) -> str:
    """What to do about functions that the code calls and nobody has; empty when there are none."""
    if text is None:
        return ""
    known = {str(name) for name in _ffi_api.LLVMRuntimeSymbols()}
    missing = [
        function.name
        for function in llvm.parse_assembly(text).functions
        if function.is_declaration
        and not function.name.startswith("llvm.")
        and function.name not in known
        and llvm.address_of_symbol(function.name) is None
    ]
    if not missing:
        return ""
    return (
        f"\nIt calls {', '.join(missing)}, which this process does not have. Load the library "
        "first, with ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL), or bring the code along with the "
        "pragma import_llvm"
    )


def _link(
    objects: Sequence[bytes], functions: Sequence[str], text: Callable[[], str | None]
) -> tuple[dict[str, int], int, Any]:
    """Load object files into this process as one library.

    Returns the addresses of the functions and of the module's context; they hold as long as the
    third value lives. `text` gives the LLVM IR, if it is at hand, to say what is missing.
    """
    linker = llvm.JITLibraryBuilder().add_current_process()
    for data in objects:
        linker.add_object_img(data)
    for name, address in _ffi_api.LLVMRuntimeSymbols().items():
        linker.import_symbol(str(name), int(address))
    for name in (*functions, _MODULE_CONTEXT):
        linker.export_symbol(name)
    try:
        tracker = linker.link(_jit(), f"tvm_{next(_library_names)}")
    except RuntimeError as reason:
        raise tvm.error.RuntimeError(
            f"the machine code cannot be loaded here: {reason}{_missing_hint(text())}"
        ) from reason
    return {name: tracker[name] for name in functions}, tracker[_MODULE_CONTEXT], tracker


class _CompiledModule:
    """What a runtime module over generated code needs from the compiler: texts, files, memory.

    Parameters
    ----------
    source : the lowered module and its target; None for a module loaded from machine code.
    data : contents of the one object file that holds all functions, if there is one by now.
    text : the LLVM IR of a module that was read from it.
    """

    def __init__(
        self, source: tuple[Any, Target] | None, data: bytes | None, text: str | None = None
    ) -> None:
        self._source = source
        self._data = data
        self._read = text
        # What keeps the code in memory.
        self.tracker: Any = None

    @functools.cached_property
    def text(self) -> str | None:
        """The optimised LLVM IR."""
        return str(_optimized_module(*self._source)) if self._source else self._read

    @property
    def data(self) -> bytes:
        """Contents of one object file of all functions."""
        if self._data is None:
            assert self._source is not None
            self._data = _emitted(*self._source)
        return self._data

    def __call__(self, request: str, *args: str) -> str | None:
        if request == "save":
            path, file_format = args
            self._save(Path(path), file_format)
            return None
        if request == "triple":
            return self._source[1].get_attr("mtriple", "") if self._source else ""
        request = "asm" if request == "s" else request
        if request not in ("ll", "asm"):
            raise ValueError(
                f'Module.get_source: format "{request}" is not one of "ll", "asm" and "s"'
            )
        if self.text is None:
            raise ValueError(
                f'Module.get_source("{request}"): the module was loaded from machine code, which '
                "keeps no source; ask the module that was built"
            )
        if request == "ll":
            return self.text
        target = self._source[1] if self._source else Target("llvm")
        return _machine_of(target).emit_assembly(llvm.parse_assembly(self.text))

    def _save(self, path: Path, file_format: str) -> None:
        file_format = file_format or path.suffix.lstrip(".")
        if file_format in ("o", "obj"):
            path.write_bytes(self.data)
        elif file_format in ("ll", "s"):
            path.write_text(self("ll" if file_format == "ll" else "asm") or "")
        elif file_format == "bc":
            path.write_bytes(llvm.parse_assembly(self("ll") or "").as_bitcode())
        else:
            raise ValueError(
                f'Module.save("{path}"): cannot write format "{file_format}"; use "o", "ll", "bc" '
                'or "s", or export_library for a shared library'
            )


def runs_here(target: Target) -> bool:
    """Whether this machine can run the code: its architecture, its system, its vector unit."""
    triple, host = target.get_attr("mtriple", ""), host_triple()
    if "-" not in triple and "linux" in host:
        # An architecture without a system is made into objects as Linux has them.
        triple = host.replace(host.partition("-")[0], triple, 1) if triple else ""
    if triple and _platform(triple) != _platform(host):
        return False
    features = host_cpu()[1].split(",")
    widest = 512 if "+avx512f" in features else 256 if "+avx" in features else 128
    return not host.startswith("x86_64") or target.vector_width <= widest


def _platform(triple: str) -> tuple[str, str]:
    parts = triple.split("-")
    systems = ("linux", "darwin", "macos", "windows", "freebsd", "android")
    system = next((s for s in systems if any(s in part for part in parts[1:])), "none")
    return parts[0], system


@tvm._ffi.register_func("target.llvm_foreign_triple")
def foreign_triple(module: Module) -> str | None:
    """The triple of a module's code where that is for another architecture or system than this."""
    triple = module.get_source("triple") if module.type_key == "llvm" else ""
    return triple if triple and _platform(triple) != _platform(host_triple()) else None


def exported_names(mod: Any) -> tuple[str, ...]:
    """Names under which a host may call the functions of a lowered module, sorted."""
    from tvm.ir import CallingConv

    names = []
    for func in mod.functions.values():
        attrs = func.attrs or {}
        if "global_symbol" in attrs and attrs.get("calling_conv") == CallingConv.C_PACKED_FUNC:
            names.append(str(attrs["global_symbol"]))
    return tuple(sorted(names))


def compile_object(mod: Any, target: Target) -> ObjectCode:
    """Compile a lowered module to machine code without loading it.

    Parameters
    ----------
    mod : IRModule whose functions have the packed calling convention.
    target : of kind "llvm".
    """
    return ObjectCode(_emitted(mod, target), exported_names(mod))


def _emitted(mod: Any, target: Target) -> bytes:
    return _machine_of(target).emit_object(_optimized_module(mod, target))


def load_object(code: ObjectCode) -> Module:
    """Load machine code into this process; no linker and no file are needed.

    Raises
    ------
    RuntimeError : the code is for another processor, or a function is missing.
    """
    return _loaded([code.data], code.functions, _CompiledModule(None, code.data))


@tvm._ffi.register_func("target.build.llvm")
def build(mod: Any, target: Target) -> Module:
    """Compile a lowered module, and load it into this process if this machine can run it.

    Parameters
    ----------
    mod : IRModule whose functions have the packed calling convention.
    target : of kind "llvm".

    Returns
    -------
    Module; `get_source("ll")` is the optimised LLVM IR, `get_source("asm")` the assembly. Code for
    another machine can be saved and exported but not called.
    """
    # The caller may go on with its module.
    source = mod.with_functions(mod.functions)
    names = exported_names(mod)
    if not runs_here(target):
        owner = tvm._ffi.convert_to_tvm_func(
            _CompiledModule((source, target), _emitted(mod, target))
        )
        machine = f"{target.get_attr('mtriple', '')} ({target.mcpu or 'generic'})"
        return _ffi_api.ForeignLLVMModule(list(names), machine, owner)
    objects = _machine_code(source, target)
    return _loaded(
        objects,
        names,
        _CompiledModule((source, target), objects[0] if len(objects) == 1 else None),
    )


@tvm._ffi.register_func("runtime.module.loadfile_ll")
@tvm._ffi.register_func("runtime.module.loadfile_bc")
def load_ir(path: str, _format: str) -> Module:
    """LLVM IR of a file, as `Module.save` writes it, as machine code in this process.

    Raises
    ------
    ValueError : the file is no LLVM IR, or is for another architecture or system.
    """
    try:
        if path.endswith(".bc"):
            module = llvm.parse_bitcode(Path(path).read_bytes())
        else:
            module = llvm.parse_assembly(Path(path).read_text())
    except OSError as reason:
        raise tvm.error.RuntimeError(f'load_module: cannot read "{path}": {reason}') from reason
    except RuntimeError as reason:
        raise ValueError(f'load_module: "{path}" is no LLVM IR: {reason}') from reason
    if module.triple and _platform(module.triple) != _platform(host_triple()):
        raise ValueError(
            f'load_module: "{path}" is code for {module.triple}, this machine is {host_triple()}'
        )
    # Functions that a host calls take values, their number, and a place for the result.
    names = sorted(
        function.name
        for function in module.functions
        if not function.is_declaration
        and function.linkage == llvm.Linkage.external
        and str(function.global_value_type) == _PACKED_FUNCTION
    )
    data = _machine_of(Target("llvm")).emit_object(module)
    return _loaded([data], names, _CompiledModule(None, data, str(module)))


def _loaded(objects: Sequence[bytes], names: Sequence[str], owner: _CompiledModule) -> Module:
    addresses, context, owner.tracker = _link(objects, names, lambda: owner.text)
    return _ffi_api.LLVMModule(addresses, context, tvm._ffi.convert_to_tvm_func(owner))


# Machine code of functions by their LLVM IR and machine, the latest last. A network is compiled
# several times while it is tuned, and from one time to the next few of its kernels change.
_KNOWN_CODE: OrderedDict[tuple[str, Any, int | None], bytes] = OrderedDict()
_KNOWN_CODE_ENTRIES = 512
_known_code_lock = threading.Lock()


def _machine_code(mod: Any, target: Target) -> list[bytes]:
    """Object files that together hold a module's functions, one for each where they are apart."""
    together = (
        len(mod.functions) < 2
        or joins_system_library(mod, target)
        or len(_ffi_api.ImportedLLVM(mod))
        or _ffi_api.HasInnerCalls(mod)
    )
    if together:
        return [_emitted(mod, target)]
    machine = _machine_of(target)
    texts = [
        str(_ffi_api.EmitLLVM(tvm.IRModule({var: func}), target))
        for var, func in mod.functions.items()
    ]
    assert all(_CONTEXT_INSIDE in text for text in texts)
    apart = [text.replace(_CONTEXT_INSIDE, _CONTEXT_ELSEWHERE) for text in texts]
    return [_object_of(text, machine, _level(target, text)) for text in [_CONTEXT_ALONE, *apart]]


def _object_of(text: str, machine: Any, level: int | None) -> bytes:
    """Machine code of LLVM IR, from the latest if it is among them."""
    key = (hashlib.sha256(text.encode()).hexdigest(), machine, level)
    with _known_code_lock:
        data = _KNOWN_CODE.pop(key, None)
    if data is None:
        data = machine.emit_object(_optimized(text, machine, level))
    with _known_code_lock:
        _KNOWN_CODE[key] = data
        if len(_KNOWN_CODE) > _KNOWN_CODE_ENTRIES:
            _KNOWN_CODE.popitem(last=False)
    return data


@tvm._ffi.register_func("target.build.nvptx")
def build_nvptx(mod: Any, target: Target) -> Module:
    """Compile kernels to PTX with LLVM; the CUDA driver makes machine code of it at the launch.

    Parameters
    ----------
    mod : IRModule of kernels.
    target : of kind "nvptx"; option mcpu is the architecture, "sm_70" when not given.

    Returns
    -------
    Module whose `get_source()` is the PTX.

    Raises
    ------
    ValueError : a kernel needs what only the target cuda has, or this LLVM cannot write PTX.
    """
    text = _ffi_api.EmitNVPTX(mod, target)
    initialize_llvm()
    triple = target.get_attr("mtriple", "nvptx64-nvidia-cuda")
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise ValueError(
            f"target.build.nvptx is not enabled: the LLVM of llvmlite does not know {triple}"
        ) from error
    machine = _target_machine(triple, target.mcpu or "sm_70", "")
    ptx = machine.emit_assembly(_optimized(str(text), machine, None))
    return _ffi_api.NVPTXModule(mod, ptx)
