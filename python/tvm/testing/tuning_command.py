"""Commands that tune operators, networks and ONNX files, one for each tuner.

They take TVM's options, measure on this machine or on devices that a tracker gives out, and print
how long the result takes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tvm
from tvm import auto_scheduler, relay
from tvm import meta_schedule as ms
from tvm.contrib import graph_executor
from tvm.driver import tvmc
from tvm.driver.tvmc.compiler import records_scope
from tvm.ir import IRModule
from tvm.meta_schedule.testing import te_workload
from tvm.meta_schedule.testing.relay_workload import get_network, list_networks
from tvm.target import Target

__all__ = ["tune_file", "tune_network", "tune_operator"]

Main = Callable[..., None]
"""A command, which takes its arguments as a list; by default those of the process."""
Inputs = list[tuple[str, list[int], str]]
Params = dict[str, Any]


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"write true or false, not '{text}'")
    return text.lower() in ("true", "1")


def _shape(text: str) -> list[int]:
    try:
        return [int(extent) for extent in json.loads(text)]
    except (ValueError, TypeError) as err:
        raise argparse.ArgumentTypeError(f'write a shape as "[1,3,224,224]", not "{text}"') from err


def _inputs(text: str) -> Inputs:
    try:
        return [(i["name"], [int(n) for n in i["shape"]], i["dtype"]) for i in json.loads(text)]
    except (ValueError, TypeError, KeyError) as err:
        form = '[{"name": "x", "dtype": "float32", "shape": [1, 3]}]'
        raise argparse.ArgumentTypeError(f"write inputs as {form}, not {text}") from err


def _parser(name: str, what: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=what)
    parser.add_argument("--target", type=Target, required=True)
    parser.add_argument("--num-trials", type=int, required=True, help="programs to measure")
    parser.add_argument("--work-dir", required=True, help="folder that records are kept in")
    parser.add_argument("--rpc-host", help="tracker; by default measured on this machine")
    parser.add_argument("--rpc-port", type=int, default=9190)
    parser.add_argument("--rpc-key", help="kind of device that the tracker gives out")
    parser.add_argument("--number", type=int, default=3, help="runs of a measurement")
    parser.add_argument("--repeat", type=int, default=1, help="measurements of a program")
    parser.add_argument("--min-repeat-ms", type=int, default=100)
    parser.add_argument("--cpu-flush", type=_boolean, default=False, help="empty caches before")
    return parser


def _tune_by_traces(args: argparse.Namespace, tune: Callable[..., Any], *program: Any) -> Any:
    """The database of a search by MetaSchedule."""
    clock = ms.runner.EvaluatorConfig(args.number, args.repeat, args.min_repeat_ms, args.cpu_flush)
    runner: Any = ms.runner.LocalRunner(evaluator_config=clock)
    if args.rpc_host is not None:
        place = ms.runner.RPCConfig(args.rpc_host, args.rpc_port, args.rpc_key)
        runner = ms.runner.RPCRunner(rpc_config=place, evaluator_config=clock)
    return tune(
        *program,
        target=args.target,
        work_dir=args.work_dir,
        max_trials_global=args.num_trials,
        runner=runner,
    )


def _records(args: argparse.Namespace, name: str) -> str:
    folder = Path(args.work_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"{name}.json")


def _timing(args: argparse.Namespace) -> dict[str, Any]:
    names = ("number", "repeat", "min_repeat_ms")
    timing = {name: getattr(args, name) for name in names}
    return timing | {"enable_cpu_cache_flush": args.cpu_flush}


def tune_operator(name: str, tuner: str) -> Main:
    """The command that tunes an operator of `meta_schedule.testing.te_workload`.

    Parameters
    ----------
    name : of the module that is run. tuner : "meta_schedule" or "auto_scheduler".
    """

    def main(argv: Sequence[str] | None = None) -> None:
        parser = _parser(name, "Tune an operator.")
        parser.add_argument("--workload", required=True, choices=sorted(te_workload.CONFIGS))
        args = parser.parse_args(argv)
        func, shapes = te_workload.CONFIGS[args.workload]
        arrays = list(func(*shapes[0]))
        if tuner == "meta_schedule":
            program = tvm.te.create_prim_func(arrays)
            database = _tune_by_traces(args, ms.tune_tir, program)
            schedule = ms.tir_integration.compile_tir(database, program, args.target)
            if schedule is None:
                raise SystemExit(f"{name}: none of {args.num_trials} programs could be run")
            _print_time(args, tvm.build(schedule.mod, target=args.target), arrays)
            return
        dag = auto_scheduler.ComputeDAG(arrays)
        task = auto_scheduler.SearchTask(
            compute_dag=dag, workload_key=dag.workload_key(), target=args.target
        )
        records = _records(args, args.workload)
        timing = _timing(args)
        runner: Any = auto_scheduler.LocalRunner(**timing)
        if args.rpc_host is not None:
            runner = auto_scheduler.RPCRunner(args.rpc_key, args.rpc_host, args.rpc_port, **timing)
        task.tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=args.num_trials,
                runner=runner,
                measure_callbacks=[auto_scheduler.RecordToFile(records)],
            )
        )
        sch, arrays = task.apply_best(records)
        _print_time(args, tvm.build(sch, arrays, args.target), arrays)

    return main


def _print_time(args: argparse.Namespace, function: Any, arrays: Sequence[Any]) -> None:
    """Where kernels run on this machine, how long one takes."""
    if args.rpc_host is not None:
        return
    device = tvm.device(args.target.kind.name, 0)
    values = [
        tvm.nd.array(np.ones([int(n) for n in a.shape], str(a.dtype)), device) for a in arrays
    ]
    clock = function.time_evaluator(
        function.entry_name, device, number=args.number, repeat=args.repeat,
        min_repeat_ms=args.min_repeat_ms,
    )  # fmt: skip
    print(f"Running time in milliseconds: {clock(*values).mean * 1e3:.4f}")


def tune_network(name: str, tuner: str) -> Main:
    """The command that tunes a network of `meta_schedule.testing.relay_workload`.

    Parameters
    ----------
    tuner : "meta_schedule", "auto_scheduler" or "autotvm".
    """

    def main(argv: Sequence[str] | None = None) -> None:
        parser = _parser(name, "Tune a network.")
        parser.add_argument("--workload", required=True, choices=list_networks())
        parser.add_argument("--input-shape", type=_shape, required=True)
        parser.add_argument("--layout", help="of convolutions, such as NHWC")
        args = parser.parse_args(argv)
        mod, params, info = get_network(args.workload, args.input_shape, layout=args.layout)
        _tune_program(args, tuner, args.workload, mod, params, [info])

    return main


def tune_file(name: str, tuner: str) -> Main:
    """The command that tunes an ONNX file; see :func:`tune_network`."""

    def main(argv: Sequence[str] | None = None) -> None:
        parser = _parser(name, "Tune an ONNX file.")
        parser.add_argument("--model-name", required=True)
        parser.add_argument("--onnx-path", required=True)
        parser.add_argument("--input-shape", type=_inputs, required=True)
        args = parser.parse_args(argv)
        shapes = {key: shape for key, shape, _ in args.input_shape}
        mod, params = relay.frontend.from_onnx(args.onnx_path, shapes)
        _tune_program(args, tuner, args.model_name, mod, params, args.input_shape)

    return main


def _tune_program(
    args: argparse.Namespace,
    tuner: str,
    name: str,
    mod: IRModule,
    params: Params,
    inputs: Inputs,
) -> None:
    if tuner == "meta_schedule":
        database = _tune_by_traces(args, ms.relay_integration.tune_relay, mod, params)
        library: Any = ms.relay_integration.compile_relay(database, mod, args.target, params)
    else:
        model = tvmc.TVMCModel(mod, params)
        records = tvmc.tune(
            model,
            args.target,
            tuning_records=_records(args, name),
            enable_autoscheduler=tuner == "auto_scheduler",
            hostname=args.rpc_host,
            port=args.rpc_port,
            rpc_key=args.rpc_key,
            trials=args.num_trials,
            **_timing(args),
        )
        scope, options = records_scope(records)
        with scope, tvm.transform.PassContext(opt_level=3, config=options):
            library = relay.build(mod, args.target, params=params)
    if args.rpc_host is not None:
        return
    device = tvm.device(args.target.kind.name, 0)
    module = graph_executor.GraphModule(library["default"](device))
    generator = np.random.default_rng(0)
    for key, shape, dtype in inputs:
        numbers = generator.random(shape) if "float" in dtype else generator.integers(0, 2, shape)
        module.set_input(key, tvm.nd.array(numbers.astype(dtype)))
    found = module.benchmark(device, number=args.number, repeat=max(args.repeat, 3))
    print(f"Running time in milliseconds: {found.mean * 1e3:.4f}")
