"""The command ``felix``: tune, compile, report, records, profile."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .console import end_process, run_command
from .network_file import FILE_KINDS, InputSpec, is_network_file, load_network_file, short_name

if TYPE_CHECKING:
    from .settings import TuneSettings

__all__ = ["Help", "command_line", "main"]


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows defaults, but not that there is none."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None else super()._get_help_string(action)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default this process's; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="felix", description="Faster networks for this machine, by gradient search."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (configure, _) in _COMMANDS.items():
        text = configure.__doc__ or ""
        command = commands.add_parser(name, help=text, description=text, formatter_class=Help)
        configure(command)
        command.set_defaults(parser=command)
    options = parser.parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    _check(options)
    # Commands import what they need, so that --help and usage errors answer at once.
    return run_command(lambda: _COMMANDS[options.command][1](options))


def command_line() -> NoReturn:
    """The program ``felix``."""
    end_process(main())


def _check(options: argparse.Namespace) -> None:
    for name, written in _POSITIVE.items():
        value = getattr(options, name, None)
        if value is not None and value < 1:
            options.parser.error(f"{written} must be >= 1, got {value}")
    seed = getattr(options, "seed", 0)
    if not 0 <= seed < 2**63:
        options.parser.error(f"--seed must be from 0 to 2**63 - 1, got {seed}")


# Options that count something, and how they are written on the command line.
_POSITIVE = {
    "batch_size": "batch_size",
    "trials": "--trials",
    "config_seeds": "--config-seeds",
    "grad_steps": "--grad-steps",
    "per_round": "--per-round",
    "timing_rounds": "--timing-rounds",
    "threads": "--threads",
    "runs": "--runs",
    "count": "-n",
    "keep": "--keep",
}

_NETWORK = (
    "a name of felix.nn (mlp, resnet18, mobilenet_v2, ...), a file (.onnx, .pt2 of "
    "torch.export.save, .pt of torch.jit.save), or module:function that returns "
    "(model, example_inputs)"
)


def _add_network(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument("network", nargs=nargs, help=_NETWORK)
    parser.add_argument("batch_size", nargs="?", type=int, default=1, help="examples a run")
    parser.add_argument("--target", default="llvm", help="what to compile for")
    parser.add_argument("--weights", help="state dict to load instead of random weights")
    parser.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="[NAME=]SHAPE[:TYPE]",
        help="an input of a network from a file that leaves it open, such as 1x3x224x224 or "
        "ids=1x128:int64 (may be given again)",
    )


def _configure_tune(parser: argparse.ArgumentParser) -> None:
    """Tune a network for this machine by gradient descent, and compare it with PyTorch."""
    _add_network(parser, nargs="?")
    parser.add_argument(
        "--with",
        dest="together",
        action="append",
        default=[],
        metavar="NETWORK",
        help="another network to tune in the same search, with the same cost model; kernels that "
        "networks share are searched once (may be given again)",
    )
    parser.add_argument("--trials", type=int, default=300, help="programs to measure in total")
    parser.add_argument(
        "--config-seeds", type=int, default=32, help="start points per sketch and round"
    )
    parser.add_argument(
        "--grad-steps", type=int, default=64, help="gradient steps of a first round"
    )
    parser.add_argument("--per-round", type=int, default=8, help="programs measured a round")
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores)")
    parser.add_argument(
        "--cost-model",
        default="packaged",
        help='checkpoint of a trained model; "packaged" for the one that comes with the package, '
        '"none" to learn from this run alone',
    )
    parser.add_argument(
        "--winograd",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="compute 3x3 convolutions by Winograd's minimal filtering, and large products with "
        "constant weights by Strassen's scheme, wherever that is estimated to be less work, or "
        "nowhere (default: where it is measured to be faster); results differ by rounding "
        "(processors only)",
    )
    parser.add_argument(
        "--cache",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="do not tune again what this machine remembers from other runs",
    )
    parser.add_argument(
        "--timing-rounds",
        type=int,
        default=21,
        help="samples of the closing comparison; quick networks have up to ten times as many",
    )
    parser.add_argument(
        "--tensorboard", action="store_true", help="write TensorBoard events into the folder too"
    )
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="take seconds from an analytic model of the GPU that --target names, such as "
        '"cuda -arch=sm_80"; compiles everything and runs nothing on a device',
    )
    parser.add_argument(
        "--fleet",
        metavar="ADDRESS",
        help="build and measure on a Ray cluster, such as ray://host:10001; "
        '"local" starts one on this machine',
    )
    parser.add_argument(
        "--out", type=Path, help="folder of the results (default: runs/<network>-<time>)"
    )
    parser.add_argument(
        "--resume",
        type=Path,
        help="go on with the run in this folder; its options apply, but for those given here of "
        "--trials, --config-seeds, --grad-steps, --per-round, --timing-rounds, --cache, --fleet "
        "and --tensorboard",
    )
    parser.add_argument(
        "--no-progress", action="store_true", help="say nothing of phases, and show no progress bar"
    )


# What a run that goes on may be told anew: what was measured stays as true as it was.
_CHANGEABLE = (
    "trials",
    "config_seeds",
    "grad_steps",
    "per_round",
    "timing_rounds",
    "cache",
    "fleet",
    "tensorboard",
)


def _given(options: argparse.Namespace) -> set[str]:
    """The names of those options that the command line has, whatever they are set to."""
    unset = argparse.Namespace(**dict.fromkeys(vars(options)))
    again = options.parser.parse_args(options.arguments[1:], unset)
    return {name for name, value in vars(again).items() if value is not None}


def _changed(settings: TuneSettings, options: argparse.Namespace) -> TuneSettings:
    """Settings of a run with those options that the command line has.

    Raises
    ------
    ValueError : an option would make another run of it.
    """
    names = _given(options) & {field.name for field in fields(settings)} - {"network", "batch_size"}
    for name in sorted(names - set(_CHANGEABLE)):
        known, value = getattr(settings, name), getattr(options, name)
        if value != known:
            written = {"together": "with", "inputs": "input"}.get(name, name).replace("_", "-")
            raise ValueError(
                f"--{written}: the run in {options.resume} has {known!r}, which going on with it "
                f"cannot change to {value!r}; leave the option out, or start another run with --out"
            )
    if options.out is not None:
        raise ValueError(f"--out: the results of --resume {options.resume} stay in that folder")
    return replace(settings, **{name: getattr(options, name) for name in names})


def _tune(options: argparse.Namespace) -> None:
    if (options.network is None) == (options.resume is None):
        options.parser.error("name a network, or a folder with --resume (and not both)")
    from .logging import init_logging
    from .progress import phase
    from .settings import TuneSettings, check_settings, read_settings

    if options.resume is not None:
        folder = options.resume
        settings = _changed(read_settings(folder), options)
    else:
        name = f"{short_name(options.network)}-{time.strftime('%Y%m%d-%H%M%S')}"
        folder = options.out or Path("runs") / name
        if (folder / "records.json").exists():
            raise ValueError(
                f"{folder} already holds a run; continue it with --resume {folder}, "
                "or choose another --out"
            )
        settings = TuneSettings(
            network=options.network,
            target=options.target,
            batch_size=options.batch_size,
            trials=options.trials,
            config_seeds=options.config_seeds,
            grad_steps=options.grad_steps,
            per_round=options.per_round,
            seed=options.seed,
            threads=options.threads,
            weights=options.weights,
            cost_model=options.cost_model,
            winograd=options.winograd,
            timing_rounds=options.timing_rounds,
            cache=options.cache,
            tensorboard=options.tensorboard,
            simulate=options.simulate,
            fleet=options.fleet,
            together=options.together,
            inputs=options.inputs,
        )
    # Before the network is made, which takes a while.
    check_settings(settings)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; results go into a folder, choose another --out")
    phases = not options.no_progress
    init_logging(console=30, phases=phases)
    phase("Loading %s", settings.network)
    from tvm.target import Target

    from .tune_network import tune_network

    settings.budget().model(Target(settings.target))
    model, inputs = _load(settings.network, settings.weights, settings.batch_size, settings.inputs)
    together = {name: _load(name, None, settings.batch_size, ()) for name in settings.together}
    folder.mkdir(parents=True, exist_ok=True)
    init_logging(folder / "tune.log", console=30, phases=phases)
    tune_network(
        model, inputs, settings, folder, together=together, progress=not options.no_progress
    )


def _configure_compile(parser: argparse.ArgumentParser) -> None:
    """Compile a network into one shared library."""
    _add_network(parser)
    parser.add_argument("--records", type=Path, help="folder of a tuning run, or record file")
    parser.add_argument("-o", "--output", type=Path, help="the library (default: <network>.so)")
    parser.add_argument(
        "--weights-file",
        type=Path,
        help="write the weights here, to be mapped into memory, instead of into the library",
    )


def _compile(options: argparse.Namespace) -> None:
    output = options.output or Path(f"{short_name(options.network)}.so")
    for path in filter(None, (output, options.weights_file)):
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}")
    network = _compiled(options)
    print(network)
    network.executable.export_library(output, weights=options.weights_file)
    for path in filter(None, (output, options.weights_file)):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _configure_report(parser: argparse.ArgumentParser) -> None:
    """Write report.html of a tuning run again, and print its figures."""
    parser.add_argument("folder", type=Path, help="folder of the run")


def _report(options: argparse.Namespace) -> None:
    from . import report
    from .html_report import write_report

    written = write_report(options.folder)
    facts = json.loads((options.folder / "summary.json").read_text())
    if facts.get("simulated"):
        report.print_results(facts["tasks"], title="Tasks, simulated")
        report.print_simulated_network(facts)
    else:
        report.print_results(facts["tasks"])
    if "kernels" in facts:
        report.print_network_table(facts)
    print(written)


def _configure_records(parser: argparse.ArgumentParser) -> None:
    """Look at records, bring stores together, and make them smaller."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in _RECORD_ACTIONS.items():
        action = actions.add_parser(name, help=text, description=text, formatter_class=Help)
        if name == "prune":
            action.add_argument("store", nargs="?", type=Path, help=f"the store ({_MACHINE})")
            action.add_argument(
                "--keep", type=int, default=16, help="fastest programs of each kernel to keep"
            )
        else:
            action.add_argument(
                "sources",
                nargs="+" if name == "list" else "*",
                type=Path,
                help="record files or folders of runs"
                + ("" if name == "list" else f", or record stores ({_MACHINE})"),
            )
        action.add_argument("--workload", default="", help="text in the workload key")
        action.add_argument("--target", default="", help="text in the target")
        if name != "list":
            action.add_argument("--processor", default="", help="text in the processor's name")
        if name in ("list", "best"):
            action.add_argument(
                "-n", dest="count", type=int, default=20, help="show at most this many"
            )
            action.add_argument("--json", action="store_true", help="print the records themselves")
        if name == "list":
            action.add_argument(
                "--valid", action="store_true", help="leave out failed measurements"
            )
        if name == "merge":
            action.add_argument(
                "-o", "--output", type=Path, help=f"a store, or a file ending in .json ({_MACHINE})"
            )


_MACHINE = "default: what this machine remembers"
_RECORD_ACTIONS = {
    "list": "Every record of files, the fastest first.",
    "best": "The fastest record of each kernel.",
    "count": "How many programs of each kernel were measured.",
    "prune": "Leave the slower programs out of a store.",
    "merge": "Bring stores and record files together, into a store or a record file.",
}


def _records(options: argparse.Namespace) -> None:
    from .records_command import run

    run(options)


def _configure_profile(parser: argparse.ArgumentParser) -> None:
    """Compile a network, run it, and show what each kernel takes."""
    _add_network(parser)
    parser.add_argument("--records", type=Path, help="folder of a tuning run, or record file")
    parser.add_argument("--runs", type=int, default=5, help="runs to take the median of")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def _profile(options: argparse.Namespace) -> None:
    from . import report

    network = _compiled(options)
    kernels = sorted(
        report.kernel_facts(network, options.runs), key=lambda k: -k["calls"] * k["seconds"]
    )
    if options.json:
        print(json.dumps(kernels, indent=2))
        return
    print(network)
    report.print_kernels(kernels)


def _compiled(options: argparse.Namespace) -> Any:
    from . import compiler

    model, inputs = _load(options.network, options.weights, options.batch_size, options.inputs)
    return compiler.compile(model, inputs, options.target, options.records)


def _load(
    network: str, weights: str | None, batch_size: int, inputs: Sequence[str]
) -> tuple[Any, tuple[Any, ...]]:
    if is_network_file(network):
        if weights is not None or batch_size != 1:
            raise ValueError(f"{network}: a file says its weights and its batch itself")
        return load_network_file(network, [InputSpec.read(text) for text in inputs])
    if inputs:
        raise ValueError(f"input: {network} has its inputs; leave --input out")
    from . import nn

    if network not in nn.NETWORKS and Path(network).exists():
        if Path(network).is_dir():
            raise ValueError(f"{network} is a folder and no network; a run goes on with --resume")
        kinds = ", ".join(sorted(FILE_KINDS))
        raise ValueError(f"{network} is no file of a network; the names of those end with {kinds}")

    return nn.load_network(network, weights=weights, batch=batch_size)


_COMMANDS: dict[
    str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]
] = {
    "tune": (_configure_tune, _tune),
    "compile": (_configure_compile, _compile),
    "report": (_configure_report, _report),
    "records": (_configure_records, _records),
    "profile": (_configure_profile, _profile),
}
