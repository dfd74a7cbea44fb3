"""What names of other TVM versions are called here: naming one raises an error that says so.

Modules whose names are all in another module here (`WITHIN`) can be imported under both paths.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "WITHIN", "hints_for", "moved", "watch_imports"]

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
    "tvm.auto_scheduler.load_best": "tvm.auto_scheduler.load_best_record",
    "tvm.felix.HW_PARAMS": "tvm.auto_scheduler.HardwareParams, which a SearchTask takes",
    "tvm.felix.TARGET": "tvm.felix.extract_tasks, which takes the target",
    "tvm.felix.ansor_tune_full": "tvm.felix.ansor_tune.ansor_tune",
    "tvm.felix.ansor_tune_one_round": "tvm.auto_scheduler.TaskScheduler, whose tune has a budget",
    "tvm.felix.extrac_tasks": "tvm.felix.extract_tasks",
    "tvm.felix.extract_tenset_pickle_tasks": "tvm.felix.extract_tasks for the tasks, and "
    "tvm.auto_scheduler.record_tools.patch_records for TenSet's programs of them",
    "tvm.felix.get_config_best": "tvm.auto_scheduler.load_best_record",
    "tvm.felix.load_and_register_tasks": "tvm.felix.load_tasks",
    "tvm.felix.load_and_register_tasks_": "tvm.felix.load_tasks, whose groups have pairs",
    "tvm.felix.make_runner": "tvm.auto_scheduler.LocalRunner or RPCRunner, the Optimizer's runner",
    "tvm.felix.test_extract_task": "tvm.felix.extract_tasks_, which prints the groups of tasks",
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


# TVM's module: the module here that has its names.
WITHIN: Mapping[str, str] = {
    "tvm.arith.bound": "tvm.arith",
    "tvm.arith.int_solver": "tvm.arith",
    "tvm.autotvm.tuner.gridsearch_tuner": "tvm.autotvm.tuner.index_based_tuner",
    "tvm.dlight.gpu.base": "tvm.dlight.gpu",
    "tvm.driver.tvmc.common": "tvm.driver.tvmc",
    "tvm.felix.cost_model": "tvm.auto_scheduler.cost_model",
    "tvm.ir.global_var_supply": "tvm.ir",
    "tvm.ir.name_supply": "tvm.ir",
    "tvm.ir.tensor_type": "tvm.ir",
    "tvm.meta_schedule.cost_model.random_model": "tvm.meta_schedule.cost_model",
    "tvm.meta_schedule.database.ordered_union_database": "tvm.meta_schedule.database",
    "tvm.meta_schedule.database.schedule_fn_database": "tvm.meta_schedule.database",
    "tvm.meta_schedule.database.union_database": "tvm.meta_schedule.database",
    "tvm.meta_schedule.feature_extractor.per_store_feature": "tvm.meta_schedule.feature_extractor",
    "tvm.meta_schedule.feature_extractor.random_feature_extractor": "tvm.meta_schedule.feature_extractor",
    "tvm.meta_schedule.measure_callback.add_to_database": "tvm.meta_schedule.measure_callback",
    "tvm.meta_schedule.measure_callback.remove_build_artifact": "tvm.meta_schedule.measure_callback",
    "tvm.meta_schedule.measure_callback.update_cost_model": "tvm.meta_schedule.measure_callback",
    "tvm.meta_schedule.mutator.mutate_compute_location": "tvm.meta_schedule.mutator",
    "tvm.meta_schedule.mutator.mutate_parallel": "tvm.meta_schedule.mutator",
    "tvm.meta_schedule.mutator.mutate_thread_binding": "tvm.meta_schedule.mutator",
    "tvm.meta_schedule.mutator.mutate_tile_size": "tvm.meta_schedule.mutator",
    "tvm.meta_schedule.mutator.mutate_unroll": "tvm.meta_schedule.mutator",
    "tvm.meta_schedule.postproc.disallow_dynamic_loop": "tvm.meta_schedule.postproc",
    "tvm.meta_schedule.postproc.rewrite_cooperative_fetch": "tvm.meta_schedule.postproc",
    "tvm.meta_schedule.postproc.rewrite_parallel_vectorize_unroll": "tvm.meta_schedule.postproc",
    "tvm.meta_schedule.postproc.rewrite_reduction_block": "tvm.meta_schedule.postproc",
    "tvm.meta_schedule.postproc.rewrite_unbound_block": "tvm.meta_schedule.postproc",
    "tvm.meta_schedule.postproc.verify_gpu_code": "tvm.meta_schedule.postproc",
    "tvm.meta_schedule.schedule_rule.parallel_vectorize_unroll": "tvm.meta_schedule.schedule_rule",
    "tvm.meta_schedule.search_strategy.replay_func": "tvm.meta_schedule.search_strategy",
    "tvm.meta_schedule.search_strategy.replay_trace": "tvm.meta_schedule.search_strategy",
    "tvm.meta_schedule.space_generator.post_order_apply": "tvm.meta_schedule.space_generator",
    "tvm.meta_schedule.space_generator.schedule_fn": "tvm.meta_schedule.space_generator",
    "tvm.meta_schedule.space_generator.space_generator_union": "tvm.meta_schedule.space_generator",
    "tvm.meta_schedule.task_scheduler.gradient_based": "tvm.meta_schedule.task_scheduler",
    "tvm.meta_schedule.task_scheduler.round_robin": "tvm.meta_schedule.task_scheduler",
    "tvm.relax.analysis.analysis": "tvm.relax.analysis",
    "tvm.relax.frontend.nn.torch": "tvm.relax.frontend.nn",
    "tvm.relax.frontend.onnx.onnx_frontend": "tvm.relax.frontend.onnx",
    "tvm.relax.frontend.torch.exported_program_translator": "tvm.relax.frontend.torch",
    "tvm.relax.frontend.torch.fx_translator": "tvm.relax.frontend.torch",
    "tvm.relax.op.datatype": "tvm.relax.op",
    "tvm.relax.op.index": "tvm.relax.op",
    "tvm.relax.op.mask": "tvm.relax.op",
    "tvm.relax.op.nn.nn": "tvm.relax.op.nn",
    "tvm.relax.op.qdq": "tvm.relax.op",
    "tvm.relax.op.search": "tvm.relax.op",
    "tvm.relax.op.set": "tvm.relax.op",
    "tvm.relax.op.sorting": "tvm.relax.op",
    "tvm.relax.op.ternary": "tvm.relax.op",
    "tvm.relax.transform.lazy_transform_params": "tvm.relax.transform",
    "tvm.relay.analysis.analysis": "tvm.relay.analysis",
    "tvm.relay.analysis.feature": "tvm.relay.analysis",
    "tvm.relay.backend.graph_executor_factory": "tvm.relay.backend.executor_factory",
    "tvm.relay.function": "tvm.relay",
    "tvm.relay.op.algorithm": "tvm.relay.op",
    "tvm.relay.op.nn.nn": "tvm.relay.op.nn",
    "tvm.relay.op.tensor": "tvm.relay.op",
    "tvm.relay.op.transform": "tvm.relay.op",
    "tvm.relay.transform.transform": "tvm.relay.transform",
    "tvm.runtime.disco.disco": "tvm.runtime.disco",
    "tvm.script.ir_builder.relax.frame": "tvm.script.ir_builder.relax",
    "tvm.script.ir_builder.relax.ir": "tvm.script.ir_builder.relax",
    "tvm.script.parser.ir": "tvm.script.ir",
    "tvm.script.parser.relax": "tvm.script.relax",
    "tvm.script.parser.tir": "tvm.script.tir",
    "tvm.testing.utils": "tvm.testing",
    "tvm.tir.block_scope": "tvm.tir.schedule",
    "tvm.tir.generic": "tvm.tir",
    "tvm.topi.cuda.conv2d": "tvm.topi.cuda",
    "tvm.topi.generic.extern": "tvm.topi.generic",
    "tvm.topi.generic.nn": "tvm.topi.generic",
    "tvm.topi.generic.sort": "tvm.topi.generic",
    "tvm.topi.nn.bitserial_conv2d": "tvm.topi.nn",
    "tvm.topi.nn.conv1d_transpose": "tvm.topi.nn",
    "tvm.topi.nn.conv3d_transpose": "tvm.topi.nn",
    "tvm.topi.nn.depthwise_conv2d": "tvm.topi.nn",
    "tvm.topi.nn.group_conv2d_transpose": "tvm.topi.nn",
    "tvm.topi.nn.local_response_norm": "tvm.topi.nn",
    "tvm.topi.nn.mapping": "tvm.topi.nn",
    "tvm.topi.nn.qnn": "tvm.topi.nn",
    "tvm.topi.vision.nms": "tvm.topi.vision",
}


def moved(name: str) -> str | None:
    """What to tell whoever names the older `name`; None for a name there never was."""
    target = MOVED.get(name)
    return None if target is None else f"{name} is a name of another TVM version; use {target}"


def hints_for(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``, which has the modules of `WITHIN` that are to be in it, and says
    where the names of its other versions went."""

    def find(name: str) -> Any:
        if f"{module}.{name}" in WITHIN:
            return importlib.import_module(f"{module}.{name}")
        hint = moved(f"{module}.{name}")
        raise AttributeError(hint or f"module {module!r} has no attribute {name!r}")

    return find


class _SameNames(Loader):
    """Fills a module with the names of another one."""

    def __init__(self, target: str) -> None:
        self._target = target

    def exec_module(self, module: ModuleType) -> None:
        target = importlib.import_module(self._target)
        public = getattr(target, "__all__", None) or [n for n in vars(target) if n[:1] != "_"]
        module.__doc__ = f"The names of {self._target}, under the path that TVM has for them."
        module.__dict__.update({name: getattr(target, name) for name in public})
        # Those that are loaded when they are first named.
        module.__dict__["__getattr__"] = lambda name: getattr(target, name)
        module.__dict__["__all__"] = list(public)


class _OlderModules(MetaPathFinder):
    """Finds modules of TVM's that lie within others here, and says where others went.

    It stands last, so it is only asked for modules that do not exist.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname in WITHIN:
            return ModuleSpec(fullname, _SameNames(WITHIN[fullname]), origin=WITHIN[fullname])
        hint = moved(fullname) if fullname.startswith("tvm.") else None
        if hint is not None:
            # Without `name`: with it, `from tvm import placeholder` would hide the message.
            raise ModuleNotFoundError(hint)
        return None


def watch_imports() -> None:
    """From now on, importing a module of other versions works, or raises an error that says what to
    import."""
    if not any(isinstance(finder, _OlderModules) for finder in sys.meta_path):
        sys.meta_path.append(_OlderModules())
