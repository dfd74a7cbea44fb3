"""The command line."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error

from . import compiler, frontends, runner, tuner
from .errors import TVMCException
from .model import TVMCPackage

__all__ = ["main", "parse_shapes"]

_SHAPE = re.compile(r"([^\s:,]+)\s*:\s*(\[[-\d\s,]*\])[\s,]*")


def parse_shapes(text: str) -> dict[str, list[int]]:
    """Shapes by name of text such as ``data:[1,3,224,224] mask:[1,10]``.

    Raises
    ------
    ArgumentTypeError : the text has another form.
    """
    found = _SHAPE.findall(text)
    rest = _SHAPE.sub("", text).strip()
    shapes = {name: [int(n) for n in ast.literal_eval(shape)] for name, shape in found}
    if rest or not shapes or any(n < 0 for shape in shapes.values() for n in shape):
        raise argparse.ArgumentTypeError(f'write shapes as "data:[1,3,224,224]", not as "{text}"')
    return shapes


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host:
        host, port = text, "9090"
    if not port.isdigit():
        raise argparse.ArgumentTypeError(f'an address is written as "host:port", got "{text}"')
    return host, int(port)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("FILE", help="the network")
    parser.add_argument("--model-format", choices=frontends.FORMATS, help="default: by its name")
    parser.add_argument("--input-shapes", type=parse_shapes, metavar="NAME:[N,...]")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    parser.add_argument("--target-host", help="target of the code that launches kernels")
    parser.add_argument("--desired-layout", metavar="LAYOUT", help="of convolutions, as NHWC")
    parser.add_argument("--tuning-records", metavar="FILE", help="records of an earlier tuning")


def _add_rpc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rpc-tracker", type=_address, metavar="HOST:PORT")
    parser.add_argument("--rpc-key", help="kind of device that the tracker gives out")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tvmc", description="Compile, run and tune networks.")
    parser.add_argument("--version", action="version", version=tvm.__version__)
    commands = parser.add_subparsers(dest="command", required=True)

    compile_ = commands.add_parser("compile", help="compile a network to a package")
    _add_model(compile_)
    compile_.add_argument("-o", "--output", default="module.tar", metavar="FILE")
    compile_.add_argument("-O", "--opt-level", type=int, default=3, choices=range(5))
    compile_.add_argument("--cross-compiler", metavar="PROGRAM", help="links for another machine")
    compile_.add_argument("--cross-compiler-options", metavar="OPTIONS")
    compile_.add_argument("--disabled-pass", metavar="NAMES", help="separated by commas")
    compile_.set_defaults(function=_compile)

    run = commands.add_parser("run", help="run a package")
    run.add_argument("FILE", help="the package")
    run.add_argument("--device", default="cpu", choices=runner.DEVICES)
    run.add_argument("-i", "--inputs", metavar="FILE", help="arrays by name (.npz)")
    run.add_argument("-o", "--outputs", metavar="FILE", help="where outputs are written (.npz)")
    run.add_argument("--fill-mode", default="random", choices=runner.FILL_MODES)
    run.add_argument("--print-top", type=int, metavar="N", help="print the N largest of output_0")
    run.add_argument("--print-time", action="store_true", help="measure and print the time")
    run.add_argument("--end-to-end", action="store_true", help="count copies, too")
    run.add_argument("--repeat", type=int, default=1)
    run.add_argument("--number", type=int, default=1)
    _add_rpc(run)
    run.set_defaults(function=_run)

    tune = commands.add_parser("tune", help="search schedules for a network")
    _add_model(tune)
    tune.add_argument("-o", "--output", required=True, metavar="FILE", help="file of records")
    tune.add_argument("--trials", type=int, default=10000)
    tune.add_argument("--tuner", default="xgb", choices=tuner.TUNERS)
    tune.add_argument("--enable-autoscheduler", action="store_true")
    tune.add_argument("--include-simple-tasks", action="store_true")
    tune.add_argument("--early-stopping", type=int)
    tune.add_argument("--min-repeat-ms", type=int)
    tune.add_argument("--timeout", type=float, default=10)
    tune.add_argument("--repeat", type=int, default=1)
    tune.add_argument("--number", type=int, default=10)
    tune.add_argument("--parallel", type=int)
    _add_rpc(tune)
    tune.set_defaults(function=_tune)
    return parser


def _compile(args: argparse.Namespace) -> None:
    compiler.compile(
        frontends.load_model(args.FILE, args.model_format, args.input_shapes),
        args.target,
        opt_level=args.opt_level,
        tuning_records=args.tuning_records,
        package_path=args.output,
        cross=args.cross_compiler,
        cross_options=args.cross_compiler_options,
        target_host=args.target_host,
        desired_layout=args.desired_layout,
        disabled_pass=args.disabled_pass.split(",") if args.disabled_pass else None,
    )


def _run(args: argparse.Namespace) -> None:
    hostname, port = args.rpc_tracker or (None, 0)
    inputs = None
    if args.inputs is not None:
        with np.load(args.inputs) as file:
            inputs = dict(file)
    result = runner.run(
        TVMCPackage(args.FILE),
        args.device,
        hostname=hostname,
        port=port,
        rpc_key=args.rpc_key,
        inputs=inputs,
        fill_mode=args.fill_mode,
        benchmark=args.print_time,
        repeat=args.repeat,
        number=args.number,
        end_to_end=args.end_to_end,
    )
    if args.print_time:
        print(result.format_times())
    if args.print_top is not None:
        scores = result.get_output("output_0").ravel()
        best = np.argsort(scores)[::-1][: args.print_top]
        print(np.stack([best, scores[best]]))
    if args.outputs is not None:
        arrays: dict[str, Any] = result.outputs
        np.savez(args.outputs, **arrays)


def _tune(args: argparse.Namespace) -> None:
    hostname, port = args.rpc_tracker or (None, 0)
    tuner.tune(
        frontends.load_model(args.FILE, args.model_format, args.input_shapes),
        args.target,
        tuning_records=args.output,
        prior_records=args.tuning_records,
        enable_autoscheduler=args.enable_autoscheduler,
        rpc_key=args.rpc_key,
        hostname=hostname,
        port=port,
        trials=args.trials,
        target_host=args.target_host,
        tuner=args.tuner,
        min_repeat_ms=args.min_repeat_ms,
        early_stopping=args.early_stopping,
        timeout=args.timeout,
        repeat=args.repeat,
        number=args.number,
        parallel=args.parallel,
        include_simple_tasks=args.include_simple_tasks,
        desired_layout=args.desired_layout,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status, with the message of an error on standard error."""
    args = _parser().parse_args(argv)
    try:
        args.function(args)
    except (TVMCException, FileNotFoundError, error.TVMError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    return 0
