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

# Felix matches operators with a class each.
_OPERATORS = (
    "AdaptiveAvgPool",
    "BatchMatmul",
    "Broadcast",
    "ConstScalar",
    "Conv",
    "Conv2dTensorCore",
    "Conv2dWinograd",
    "Dense",
    "DepthwiseConv2d",
    "Elemwise",
    "GroupConv2d",
    "Mean",
    "OnePool",
    "Softmax",
    "ThreeOPsPool",
    "TransposeConv2d",
    "TwoOPsPool",
)

# Importers and compilers of relay that are not here.
_OTHER_FRONTENDS = (
    "caffe",
    "caffe2",
    "coreml",
    "darknet",
    "keras",
    "mxnet",
    "oneflow",
    "paddlepaddle",
    "tensorflow",
    "tensorflow2",
    "tflite",
)
_OTHER_COMPILERS = (
    "arm_compute_lib",
    "bnns",
    "clml",
    "cmsisnn",
    "coreml",
    "cublas",
    "cudnn",
    "cutlass",
    "dnnl",
    "ethosn",
    "ethosu",
    "libtorch",
    "tensorrt",
    "vitis_ai",
)

# Full name: what does the same today.
MOVED: Mapping[str, str] = {
    **{f"tvm.{name}": f"tvm.te.{name}" for name in _IN_TE},
    **{f"tvm.{name}": f"tvm.tir.{name}" for name in _IN_TIR},
    **{
        f"tvm.felix.sym_dag.{name}": "tvm.felix.sym_dag.RELAY_BUILDERS, which has it by its name"
        for name in _OPERATORS
    },
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
    "tvm.felix.ansor_tune.ansor_tune_full": "tvm.felix.ansor_tune.ansor_tune",
    "tvm.felix.ansor_tune.ansor_tune_one_round": "tvm.auto_scheduler.TaskScheduler, whose tune has "
    "a budget",
    "tvm.felix.ansor_tune.get_config_best": "tvm.auto_scheduler.load_best_record",
    "tvm.felix.ffi.FeaturePack": "tvm.felix.ffi.FeaturePackPy",
    "tvm.felix.ffi.VarContext": "tvm.arith.VarContext",
    "tvm.felix.ffi.measure_mis_performance": "tvm.felix.ffi.measure_performance",
    "tvm.felix.ffi.measure_state_performance": "tvm.felix.ffi.measure_performance",
    "tvm.felix.ffi.parse_expr_preorder": "tvm.felix.tape.Tape, which has expressions as they are",
    "tvm.felix.ffi.print_expr_preorder": "tvm.felix.tape.Tape, which has expressions as they are",
    "tvm.felix.optim.TaskOptimizer": "tvm.felix.optim.SingleTaskOptimizer",
    "tvm.felix.optim.add_to_dataset_builder": "tvm.felix.optim.Optimizer, whose data_builder has "
    "what it measured",
    "tvm.felix.optim.get_measure_input": "tvm.felix.optim.SketchPerfFunc, whose "
    "make_measure_inputs makes them",
    "tvm.felix.optim.measure_configs_latency_": "tvm.felix.ffi.measure_performance",
    "tvm.felix.sketch.SketchPerfFunc": "tvm.felix.optim.SketchPerfFunc",
    "tvm.felix.sym_dag.RelayOpBuilder": "tvm.felix.operators.OperatorBuilder",
    "tvm.felix.sym_task.ConfigInfo": "tvm.felix.optim.ConfigInfo",
    "tvm.felix.sym_task.TaskPerfFunc": "tvm.felix.optim.TaskPerfFunc",
    "tvm.felix.sym_task.extract_tenset_pickle_tasks": "tvm.felix.extract_tasks for the tasks, and "
    "tvm.auto_scheduler.record_tools.patch_records for TenSet's programs of them",
    "tvm.felix.sym_task.load_and_register_tasks": "tvm.felix.load_tasks",
    "tvm.felix.sym_task.load_and_register_tasks_": "tvm.felix.load_tasks, whose groups have pairs",
    "tvm.felix.sym_task.measure_configs_latency_": "tvm.felix.ffi.measure_performance",
    "tvm.felix.utils.AnsorTask": "tvm.auto_scheduler.SearchTask",
    "tvm.felix.utils.HW_PARAMS": "tvm.auto_scheduler.HardwareParams, which a SearchTask takes",
    "tvm.felix.utils.InpResPair": "tvm.auto_scheduler.load_records, which gives such pairs",
    "tvm.felix.utils.MEASURER": "tvm.auto_scheduler.LocalRunner or RPCRunner, the Optimizer's "
    "runner",
    "tvm.felix.utils.TARGET": "tvm.felix.extract_tasks, which takes the target",
    "tvm.felix.utils.get_tvm_mod": "tvm.relax.frontend.torch.from_exported_program",
    "tvm.felix.utils.make_runner": "tvm.auto_scheduler.LocalRunner or RPCRunner, the Optimizer's "
    "runner",
    "tvm.felix.utils.parse_task": "tvm.felix.TaskInstance, which has desc and sizes",
    "tvm.felix.utils.parse_task_name": "tvm.felix.TaskInstance, which has desc and sizes",
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
    **{
        f"tvm.relay.frontend.{name}": "tvm.relay.frontend.from_onnx, after an export to ONNX "
        "(tf2onnx, paddle2onnx and the like)"
        for name in _OTHER_FRONTENDS
    },
    **{
        f"tvm.relay.op.contrib.{name}": "tvm.relay.op.contrib.register_pattern_table, "
        "tvm.relay.transform.MergeComposite and a function relay.ext.<name>: this compiler is not "
        "here"
        for name in _OTHER_COMPILERS
    },
    **{
        f"tvm.contrib.{name}": "tvm.topi, whose schedules for GPUs need no library"
        for name in ("cudnn", "miopen", "cublaslt", "cusparse", "thrust")
    },
    "tvm.contrib.nnpack": "tvm.topi, whose schedules for processors need no library",
    "tvm.contrib.rpc": "tvm.rpc",
    "tvm.contrib.pipeline_executor": "tvm.contrib.graph_executor.GraphModule, one for each part",
    "tvm.contrib.cutlass": "tvm.topi, whose schedules for tensor cores need no library",
    "tvm.micro": "tvm.target.Target of the kind c, whose source any compiler takes",
    "tvm.exec.autotvm_log_editor": "python -m tvm.autotvm.record, with --mode pick",
    "tvm.exec.popen_worker": "tvm.contrib.popen_pool.PopenWorker, which starts its process itself",
    "tvm.relay.backend.compile_engine": "tvm.relay.backend.te_compiler",
    "tvm.relay.backend.contrib": "tvm.relay.op.contrib.register_pattern_table, relay.ext.<name> "
    "and topi.register_schedule",
    "tvm.relay.collage": "tvm.relay.transform.MergeComposite and AnnotateTarget, which take the "
    "patterns of compilers in the order in which they are given",
    "tvm.relay.ir_pass": "tvm.relay.transform or tvm.relay.analysis",
    "tvm.relay.module": "tvm.IRModule",
    "tvm._api_internal": "tvm._ffi.get_global_func; _TargetCreate is tvm.target.Target",
    "tvm._ffi._ctypes": "tvm._ffi.base.core; functions are tvm.runtime.PackedFunc",
    "tvm._ffi._cytpes": "tvm._ffi.base.core; functions are tvm.runtime.PackedFunc",
    "tvm._ffi.function": "tvm._ffi, which has _init_api, register_func and get_global_func",
    "tvm._ffi.ndarray": "tvm.runtime.ndarray",
    "tvm._ffi.node": "tvm.runtime.object",
    "tvm._ffi.object": "tvm.runtime.object",
}


# TVM's module: the module here that has its names.
# Packages here whose parts TVM has in modules of their own.
_PARTS: Mapping[str, str] = {
    "tvm.arith": "bound int_solver",
    "tvm.dlight": "analysis",
    "tvm.dlight.cpu": "base",
    "tvm.dlight.gpu": "base",
    "tvm.driver.tvmc": "common",
    "tvm.ir": "global_var_supply name_supply tensor_type type_relation",
    "tvm.meta_schedule.cost_model": "random_model",
    "tvm.meta_schedule.database": "ordered_union_database schedule_fn_database union_database",
    "tvm.meta_schedule.feature_extractor": "per_store_feature random_feature_extractor",
    "tvm.meta_schedule.measure_callback": "add_to_database remove_build_artifact update_cost_model",
    "tvm.meta_schedule.mutator": (
        "mutate_compute_location mutate_parallel mutate_thread_binding mutate_tile_size "
        "mutate_unroll"
    ),
    "tvm.meta_schedule.postproc": (
        "disallow_dynamic_loop rewrite_cooperative_fetch rewrite_parallel_vectorize_unroll "
        "rewrite_reduction_block rewrite_unbound_block verify_gpu_code"
    ),
    "tvm.meta_schedule.schedule_rule": "parallel_vectorize_unroll",
    "tvm.meta_schedule.search_strategy": "replay_func replay_trace",
    "tvm.meta_schedule.space_generator": "post_order_apply schedule_fn space_generator_union",
    "tvm.meta_schedule.task_scheduler": "gradient_based round_robin",
    "tvm.relax.analysis": "analysis",
    "tvm.relax.distributed": "global_info struct_info type",
    "tvm.relax.frontend.nn": "torch",
    "tvm.relax.frontend.onnx": "onnx_frontend",
    "tvm.relax.frontend.torch": "exported_program_translator fx_translator",
    "tvm.relax.op": "datatype index mask qdq search set sorting ternary",
    "tvm.relax.op.nn": "nn",
    "tvm.relax.transform": "lazy_transform_params",
    "tvm.relay": "function",
    "tvm.relay.analysis": "analysis feature",
    "tvm.relay.op": "algorithm tensor transform",
    "tvm.relay.op.nn": "nn",
    "tvm.relay.transform": "transform",
    "tvm.runtime.disco": "disco",
    "tvm.script.ir_builder.relax": "frame ir",
    "tvm.script.ir_builder.tir": "frame ir",
    "tvm.testing": "utils",
    "tvm.tir": "generic",
    "tvm.topi.cuda": "conv2d",
    "tvm.topi.generic": "extern nn sort",
    "tvm.topi.nn": (
        "bitserial_conv2d conv1d_transpose conv3d_transpose depthwise_conv2d "
        "group_conv2d_transpose local_response_norm mapping qnn"
    ),
    "tvm.topi.vision": "nms",
}

WITHIN: Mapping[str, str] = {
    **{f"{parent}.{part}": parent for parent, parts in _PARTS.items() for part in parts.split()},
    "tvm.autotvm.tuner.gridsearch_tuner": "tvm.autotvm.tuner.index_based_tuner",
    "tvm.contrib.mkldnn": "tvm.contrib.dnnl",
    "tvm.contrib.util": "tvm.contrib.utils",
    "tvm.driver.tvmc.autotuner": "tvm.driver.tvmc.tuner",
    "tvm.driver.tvmc.main": "tvm.driver.tvmc.command",
    "tvm.felix.cost_model": "tvm.auto_scheduler.cost_model",
    "tvm.relay.annotation": "tvm.relay.op.annotation",
    "tvm.relay.backend.graph_runtime_codegen": "tvm.relay.backend.graph_executor_codegen",
    "tvm.relay.backend.runtime": "tvm.relay.backend.executor",
    "tvm.relay.transform.fake_quantization_to_integer": "tvm.relay.transform.fake_quantization",
    "tvm.runtime.name_transforms": "tvm.relay.backend.name_transforms",
    "tvm.relay.backend.graph_executor_factory": "tvm.relay.backend.executor_factory",
    "tvm.script.ir_builder.relax.distributed": "tvm.script.relax_dist",
    "tvm.script.parser._core": "tvm.script.parser.core",
    "tvm.script.parser.ir": "tvm.script.ir",
    "tvm.script.parser.relax": "tvm.script.relax",
    "tvm.script.parser.ir.entry": "tvm.script.ir",
    "tvm.script.parser.relax.dist": "tvm.script.relax_dist",
    "tvm.script.parser.relax.entry": "tvm.script.relax",
    "tvm.script.parser.tir": "tvm.script.tir",
    "tvm.script.parser.tir.entry": "tvm.script.tir",
    "tvm.runtime.support": "tvm.meta_schedule.utils",
    "tvm.relax.backend.cuda": "tvm.relax.backend.contrib",
    "tvm.relax.backend.cuda.cublas": "tvm.relax.backend.contrib.cublas",
    "tvm.relax.backend.cuda.cudnn": "tvm.relax.backend.contrib.cudnn",
    "tvm.relax.backend.cuda.cutlass": "tvm.relax.backend.contrib.cutlass",
    "tvm.tir.block_scope": "tvm.tir.schedule",
    "tvm.tir.tensor_intrin.vnni": "tvm.tir.tensor_intrin.x86",
}


def moved(name: str) -> str | None:
    """What to tell whoever names the older `name`; None for a name there never was."""
    target = MOVED.get(name)
    return None if target is None else f"{name} is a name of another TVM version; use {target}"


def hints_for(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``, which has the modules of `WITHIN` that are to be in it, and says
    where the names of its other versions went."""

    def find(name: str) -> Any:
        if name == "__path__":
            # ``from module import name`` drops what is said here and raises an ImportError without
            # it, unless the module may have modules in it: then `_OlderModules` is asked, too.
            return []
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
        if any(name.startswith(f"{module.__name__}.") for name in WITHIN):
            module.__path__ = []


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
        if hint is None:
            return None
        # Programs that bring such a module along may have added a finder behind this one.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        # Without `name`: with it, `from tvm import placeholder` would hide the message.
        raise ModuleNotFoundError(hint)


def watch_imports() -> None:
    """From now on, importing a module of other versions works, or raises an error that says what to
    import."""
    if not any(isinstance(finder, _OlderModules) for finder in sys.meta_path):
        sys.meta_path.append(_OlderModules())
