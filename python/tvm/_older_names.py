"""What names of other TVM versions are called here: naming one raises an error that says so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "hints_for", "moved", "watch_imports"]

_IN_TE = (
    "compute",
    "create_schedule",
    "decl_tensor_intrin",
    "extern",
    "hybrid",
    "placeholder",
    "reduce_axis",
    "scan",
    "schedule",
    "size_var",
    "sum",
    "tag_scope",
    "tensor",
    "tensor_intrin",
    "thread_axis",
    "var",
)
_IN_TIR = (
    "abs",
    "all",
    "any",
    "call_extern",
    "call_intrin",
    "call_packed",
    "call_pure_extern",
    "ceil",
    "comm_reducer",
    "const",
    "cos",
    "decl_buffer",
    "div",
    "erf",
    "exp",
    "expr",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "ir_builder",
    "likely",
    "log",
    "max",
    "max_value",
    "min",
    "min_value",
    "popcount",
    "power",
    "round",
    "sigmoid",
    "sin",
    "sqrt",
    "stmt",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
)

# Full name: what does the same today.
MOVED: Mapping[str, str] = {
    **{f"tvm.{name}": f"tvm.te.{name}" for name in _IN_TE},
    **{f"tvm.{name}": f"tvm.tir.{name}" for name in _IN_TIR},
    "tvm.LoweredFunc": "tvm.tir.PrimFunc",
    "tvm.TVMContext": "tvm.Device",
    "tvm.api": "tvm, tvm.te or tvm.tir, by the kind of name",
    "tvm.auto_scheduler.extrac_tasks": "tvm.auto_scheduler.extract_tasks",
    "tvm.auto_scheduler.relay_integration": "tvm.auto_scheduler.relax_integration",
    "tvm.auto_scheduler.remove_index_check": "tvm.auto_scheduler.rewrite_compute_body",
    "tvm.auto_scheduler.rewrite_tensor_shape": "tvm.auto_scheduler.rewrite_compute_body",
    "tvm.build_module": "tvm.driver.build_module",
    "tvm.codegen": "tvm.target.codegen",
    "tvm.context": "tvm.device",
    "tvm.convert": "tvm.runtime.convert",
    "tvm.felix.ansor_tune": "tvm.auto_scheduler.TaskScheduler, or scripts/ansor_tune_network.py",
    "tvm.felix.cost_model": "tvm.auto_scheduler.cost_model, whose latency_model is felix's",
    "tvm.felix.extrac_tasks": "tvm.felix.extract_tasks",
    "tvm.form_body": "tvm.driver.form_irmodule",
    "tvm.get_tvm_func": "tvm.get_global_func",
    "tvm.gpu": "tvm.cuda",
    "tvm.intrin": "tvm.tir",
    "tvm.load_json": "tvm.ir.load_json",
    "tvm.lowered_func": "tvm.tir, whose PrimFunc was LoweredFunc",
    "tvm.make": "tvm.tir, whose classes construct nodes",
    "tvm.module": "tvm.runtime, which has Module and load_module",
    "tvm.ndarray": "tvm.nd or tvm.runtime.ndarray",
    "tvm.node": "tvm.runtime.object",
    "tvm.save_json": "tvm.ir.save_json",
    "tvm.select": "tvm.tir.Select",
    "tvm.register_intrin_rule": "tvm.ir.register_intrin_lowering",
    "tvm.target.intrin": "tvm.ir.register_intrin_lowering",
    "tvm.target.register_intrin_rule": "tvm.ir.register_intrin_lowering",
    "tvm.topi.util": "tvm.topi.utils",
    "tvm._api_internal": "tvm._ffi.get_global_func; _TargetCreate is tvm.target.Target",
    "tvm._ffi._ctypes": "tvm._ffi.base.core; functions are tvm.runtime.PackedFunc",
    "tvm._ffi._cytpes": "tvm._ffi.base.core; functions are tvm.runtime.PackedFunc",
    "tvm._ffi.function": "tvm._ffi, which has _init_api, register_func and get_global_func",
    "tvm._ffi.ndarray": "tvm.runtime.ndarray",
    "tvm._ffi.node": "tvm.runtime.object",
    "tvm._ffi.object": "tvm.runtime.object",
}


def moved(name: str) -> str | None:
    """What to tell whoever names the older `name`; None for a name there never was."""
    target = MOVED.get(name)
    return None if target is None else f"{name} is a name of another TVM version; use {target}"


def hints_for(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that says where the names of its other versions went."""

    def find(name: str) -> Any:
        hint = moved(f"{module}.{name}")
        raise AttributeError(hint or f"module {module!r} has no attribute {name!r}")

    return find


class _OlderModules(MetaPathFinder):
    """Finds nothing. It stands last, so it is only asked for modules that do not exist."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        hint = moved(fullname) if fullname.startswith("tvm.") else None
        if hint is not None:
            # Without `name`: with it, `from tvm import placeholder` would hide the message.
            raise ModuleNotFoundError(hint)
        return None


def watch_imports() -> None:
    """From now on, importing an older module raises an error that says what to import."""
    if not any(isinstance(finder, _OlderModules) for finder in sys.meta_path):
        sys.meta_path.append(_OlderModules())
