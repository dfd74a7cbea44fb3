"""Gradient-descent auto-scheduling: from a PyTorch network to fast code for this machine.

>>> from tvm import felix
>>> fast = felix.tune(model, example_inputs, trials=300)

and in parts:

>>> tasks = felix.extract_tasks(model, example_inputs, save_to="run/tasks.json")
>>> optim = felix.Optimizer(tasks, felix.MLPModelPLWrapper())
>>> optim.tune(n_measurements=300, log_file="run/records.json")
>>> fast = felix.compile_in_place(model, example_inputs, records="run")
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tvm._older_names import hints_for

# Loaded on first use: torch takes seconds to import, and PyTorch Lightning as long again.
_LAZY = {
    "extract_tasks": "sym_task",
    "load_tasks": "sym_task",
    "save_tasks": "sym_task",
    "make_task": "sym_task",
    "batch_create_tasks": "sym_task",
    "SymbolicDAG": "sym_dag",
    "Operator": "operators",
    "operators_of": "operators",
    "extract_tasks_": "sym_task",
    "AnsorTaskWeight": "utils",
    "extract_ansor_tasks": "utils",
    "SymTask": "sym_task",
    "SymTaskAndInstances": "sym_task",
    "TaskInstance": "sym_task",
    "Sketch": "sketch",
    "FelixPolicy": "policy",
    "EvolutionPolicy": "evolution",
    "KernelCache": "cache",
    "Network": "network",
    "GraphOptions": "network",
    "Optimizer": "optim",
    "TuneResult": "optim",
    "MLPModelPLWrapper": "tvm.auto_scheduler.cost_model.lightning_model",
    "packaged_checkpoint": "checkpoint",
    "DatasetBuilder": "tvm.auto_scheduler.cost_model.dataset",
    "cache_folder": "cache",
    "OnnxNetwork": "onnx_network",
    "from_onnx": "onnx_network",
    "compile": "compiler",
    "compile_dynamic": "dynamic",
    "compile_in_place": "tuning",
    "DynamicNetwork": "dynamic",
    "tune": "tuning",
    "tune_together": "tuning",
    "CompiledNetwork": "compiler",
    "init_logging": "logging",
}
# Felix has these as attributes as soon as it is imported.
_LAZY_MODULES = (
    "_ffi_api",
    "ansor_tune",
    "features",
    "ffi",
    "nn",
    "optim",
    "sketch",
    "sym_dag",
    "sym_task",
    "utils",
)

__all__ = sorted([*_LAZY, "nn"])


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        return hints_for(__name__)(name)
    try:
        home = _LAZY[name]
        module = importlib.import_module(home if "." in home else f"{__name__}.{home}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "tvm":
            raise
        raise ModuleNotFoundError(
            f"tvm.felix needs {error.name}; install the extra: pip install 'tvm[felix]'",
            name=error.name,
        ) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _register_backend() -> None:
    """Make ``torch.compile(model, backend="felix")`` known, also where tvm is not installed.

    An installed package is found by its entry point. Importing TorchDynamo takes a second, so it is
    done only for programs that use PyTorch.
    """
    from torch._dynamo.backends import registry

    if "felix" not in registry.list_backends():

        def felix(*args: Any, **kwargs: Any) -> Any:
            from .torch_backend import felix as backend

            return backend(*args, **kwargs)

        registry.register_backend(felix, name="felix")


if "torch" in sys.modules:
    _register_backend()
