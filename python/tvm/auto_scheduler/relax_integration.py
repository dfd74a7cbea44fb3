"""Tasks of networks, and networks' kernels from recorded states."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import relax, te
from tvm.ir import IRModule
from tvm.runtime.ndarray import NDArray
from tvm.runtime.params import named_arrays
from tvm.target import Target

from .compute_dag import ComputeDAG, LayoutRewriteOption, pack_array
from .loop_state import State, StateObject
from .search_task import HardwareParams, SearchTask

__all__ = ["extract_tasks", "group_task", "recorded_schedule"]


def extract_tasks(
    mod: IRModule | Any,
    params: Mapping[str, NDArray] | Sequence[Any] | None = None,
    target: Target | str = "llvm",
    target_host: Target | str | None = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
    dump_workload_to_dag_log: str | Path | None = None,
    opt_level: int = 3,
    other_targets: Sequence[Target] | None = None,
) -> tuple[list[SearchTask], list[int]]:
    """The distinct tuning tasks of a network, and how often it runs each.

    Parameters
    ----------
    mod : a module of relax or relay, a function of relay, or a `torch.nn.Module`.
    params : of a module of relax or relay the arrays that its parameters of those names hold,
        which may then be stored in other layouts; of a torch module its example inputs.
    target, target_host : what to tune for.
    hardware_params : by default those of the target.
    include_simple_tasks : kernels that reduce over nothing too.
    dump_workload_to_dag_log : a file to write workload keys with the texts of their DAGs to.
    opt_level : graph passes need level 3; below, the network is taken as it is fused already.
    other_targets : networks are compiled for one target here; give none.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message; or other targets.
    """
    if other_targets:
        raise ValueError("extract_tasks: a network is compiled for one target; leave other_targets")
    target = target if isinstance(target, Target) else Target(target)
    mod = _module(mod, params)
    groups = relax.extract_tasks(mod) if opt_level >= 3 else relax.fused_groups(mod)
    merged: dict[str, tuple[SearchTask, int]] = {}
    for group in groups:
        if not group.is_tunable or not (include_simple_tasks or _has_reduction(group)):
            continue
        task = group_task(group, target, target_host, hardware_params)
        key = str(task.workload_key)
        known, weight = merged.get(key, (task, 0))
        merged[key] = (known, weight + group.weight)
    if dump_workload_to_dag_log is not None:
        texts = {key: task.compute_dag.print_dag() for key, (task, _) in merged.items()}
        Path(dump_workload_to_dag_log).write_text(json.dumps(texts, indent=2) + "\n")
    return [task for task, _ in merged.values()], [weight for _, weight in merged.values()]


def _module(mod: Any, params: Any) -> IRModule:
    """`mod` as a relax module with its parameters bound."""
    if _is_relay(mod):
        return tvm.get_global_func("relay.ToRelaxModule")(mod, named_arrays(params))
    if isinstance(mod, IRModule):
        return relax.transform.BindParams("main", dict(params))(mod) if params else mod
    from tvm.relax.frontend.torch import export_for_inference, from_exported_program

    if params is None:
        raise ValueError("extract_tasks: of a torch module give its example inputs as params")
    return from_exported_program(export_for_inference(mod, params))


def _is_relay(mod: Any) -> bool:
    functions = mod.functions.values() if isinstance(mod, IRModule) else [mod]
    return any(getattr(func, "type_key", "") == "relay.Function" for func in functions)


def _has_reduction(group: relax.FusedGroup) -> bool:
    return any(
        isinstance(operation, te.ComputeOp) and len(operation.reduce_axis) > 0
        for operation in _operations(group.te.outputs)
    )


def group_task(
    group: relax.FusedGroup,
    target: Target | str,
    target_host: Target | str | None = None,
    hardware_params: HardwareParams | None = None,
) -> SearchTask:
    """The search task of one kernel; its workload key names the kernel in records.

    On processors its programs are measured with weights in the layout they want, as the build
    stores them, unless a weight is not a constant of the network.
    """
    constants = [group.args[i] for i in group.constant_inputs]
    free = [
        tensor
        for stage in _operations(group.te.outputs)
        for tensor in stage.attrs.get("layout_free_placeholders", ())
    ]
    stored = all(tensor in constants for tensor in free)
    target = target if isinstance(target, Target) else Target(target)
    return SearchTask(
        compute_dag=group.args,
        target=target,
        target_host=target_host,
        hardware_params=hardware_params,
        layout_rewrite_option=(
            LayoutRewriteOption.get_target_default(target, True)
            if stored
            else LayoutRewriteOption.NO_REWRITE
        ),
        desc=" ".join(group.op_names),
    )


def _operations(outputs: Sequence[te.Tensor]) -> list[te.Operation]:
    """Every operation that the outputs depend on, once."""
    found: dict[te.Operation, None] = {}
    pending = [tensor.op for tensor in outputs]
    while pending:
        operation = pending.pop()
        if operation not in found:
            found[operation] = None
            pending.extend(tensor.op for tensor in operation.input_tensors)
    return list(found)


def recorded_schedule(
    dag: ComputeDAG, state: State | StateObject, option: int
) -> relax.GroupSchedule:
    """A kernel's schedule from a loop state; constant weights are stored as it reads them."""
    schedule, args = dag.apply_steps_from_state(state, option)
    if option == LayoutRewriteOption.NO_REWRITE:
        return relax.GroupSchedule(schedule, args)
    transforms = dag.layout_transforms(state)
    return relax.GroupSchedule(
        schedule,
        args,
        {int(t.tensor_index): functools.partial(pack_array, transform=t) for t in transforms},
    )
