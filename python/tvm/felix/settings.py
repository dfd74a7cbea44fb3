"""Options of a tuning run, as its folder keeps them, and what can be told of them at once.

Nothing here imports PyTorch, which takes seconds: mistakes are answered before that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tvm
from tvm.auto_scheduler.search_space import space_key
from tvm.auto_scheduler.simulated import simulated
from tvm.contrib import nvcc
from tvm.contrib.nvrtc import require_arch
from tvm.runtime.files import read_json
from tvm.target import Target
from tvm.target.llvm_build import runs_here
from tvm.target.machine import host_cpu, host_triple

from .checkpoint import packaged_checkpoint
from .network_file import InputSpec

if TYPE_CHECKING:
    from tvm.auto_scheduler.cost_model.latency_model import LatencyModel

__all__ = ["SearchBudget", "TuneSettings", "check_settings", "read_settings", "require_device"]


@dataclass(frozen=True)
class SearchBudget:
    """How long and how widely is searched.

    Attributes
    ----------
    trials : programs to measure over all kernels, those of an earlier run of the folder included.
    config_seeds : start points of the descent, per sketch and round.
    grad_steps : gradient steps of a kernel's first round.
    per_round : programs measured a round.
    seed : of every random choice.
    cost_model : "packaged" for the checkpoint in this package of processors like the target, which
        other targets do without; "none" for an untrained model; or a path.

    Raises
    ------
    ValueError : a number is out of range.
    """

    trials: int = 300
    config_seeds: int = 32
    grad_steps: int = 64
    per_round: int = 8
    seed: int = 0
    cost_model: str = "packaged"

    def __post_init__(self) -> None:
        for name in ("trials", "config_seeds", "grad_steps", "per_round"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")
        # Torch takes no larger ones.
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2**63 - 1, got {self.seed}")

    def checkpoint(self, target: Target) -> Path | None:
        """The file of the cost model that a search for `target` starts from; None for a new one.

        Raises
        ------
        ValueError : there is no such file.
        """
        choices = {"packaged": packaged_checkpoint(target), "none": None}
        found = choices.get(self.cost_model, Path(self.cost_model))
        if found is not None and not Path(found).is_file():
            raise ValueError(
                f"cost_model: there is no checkpoint {found}; name a file, or one of "
                f"{', '.join(choices)}"
            )
        return None if found is None else Path(found)

    def model(self, target: Target) -> LatencyModel:
        """The cost model that a search for `target` starts from.

        Raises
        ------
        ValueError : there is no such model, or its file is damaged.
        """
        from tvm.auto_scheduler.cost_model.latency_model import LatencyModel

        return LatencyModel(pretrained=self.checkpoint(target), seed=self.seed)


@dataclass(frozen=True)
class TuneSettings:
    """Options of a tuning run; written to its folder, so that resuming needs only the folder."""

    network: str
    target: str = "llvm"
    batch_size: int = 1
    trials: int = 300
    """Programs to measure over all tasks."""
    config_seeds: int = 32
    """Start points of the descent, per sketch and round."""
    grad_steps: int = 64
    per_round: int = 8
    seed: int = 0
    threads: int | None = None
    """CPU threads of everything that is timed; None for all cores."""
    weights: str | None = None
    """State dict to load instead of random weights."""
    cost_model: str = "packaged"
    """"packaged" for the checkpoint in this package, "none" for an untrained model, or a path."""
    winograd: bool | None = None
    """Whether products may be fewer than the network's, by Winograd and Strassen (processors); None
    for what is faster inside the network."""
    timing_rounds: int = 21
    """Samples of the closing comparison."""
    cache: bool = True
    """Whether kernels that this machine knows from other runs are not tuned again."""
    tensorboard: bool = False
    """Whether the course of the search is written as TensorBoard events too."""
    simulate: bool = False
    """Take seconds from an analytic model of the GPU that the target names; it is not used."""
    fleet: str | None = None
    """Address of a Ray cluster to build and measure on; None for this machine."""
    together: list[str] = field(default_factory=list)
    """Other networks that are tuned in the same search."""
    inputs: list[str] = field(default_factory=list)
    """Inputs that a network from a file leaves open, see `network_file.InputSpec`."""

    def budget(self) -> SearchBudget:
        """How long and how widely is searched; see SearchBudget for errors."""
        return SearchBudget(
            self.trials,
            self.config_seeds,
            self.grad_steps,
            self.per_round,
            self.seed,
            self.cost_model,
        )


def read_settings(folder: Path) -> TuneSettings:
    """Settings of an earlier run.

    Raises
    ------
    FileNotFoundError : the folder has no `run.json`, so no run was started there.
    ValueError : it is damaged; the message names file and line, or the option.
    """
    path = folder / "run.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} has no run.json, so there is nothing to resume; start with --out {folder}"
        )
    # Runs from before there was a choice did without.
    options = {"winograd": False, "cache": False, **_mapping(path)}
    kinds = {field.name: field.type for field in fields(TuneSettings)}
    for name, value in options.items():
        if name not in kinds:
            raise ValueError(f"{path}: there is no option {name!r}; known are {', '.join(kinds)}")
        kind = str(kinds[name])
        texts = kind != "list[str]" or all(isinstance(entry, str) for entry in value)
        if not isinstance(value, _TYPES[kind]) or not texts:
            raise ValueError(f"{path}: {name} is a {kinds[name]}, got {value!r}")
    if "network" not in options:
        raise ValueError(f"{path}: it names no network")
    return TuneSettings(**options)


def check_settings(settings: TuneSettings) -> None:
    """Look at options before anything is done with them.

    Raises
    ------
    ValueError : a number is out of range, there is no such target or cost model, the target has no
        search space, there is no device of it nor a model where it is to be simulated, or no
        compiler for its architecture.
    RuntimeError : as of `require_device`.
    """
    target = Target(settings.target)
    # A target that nobody can search for is refused, whatever it runs on.
    space_key(target, "felix")
    if settings.simulate:
        simulated(target)
        _require_arch(target)
    else:
        require_device(target)
    for name in ("batch_size", "timing_rounds"):
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} must be >= 1, got {getattr(settings, name)}")
    if settings.fleet is not None and settings.simulate:
        raise ValueError("fleet: a simulated device is computed here; leave one of the two out")
    names = [settings.network, *settings.together]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"with: {twice[0]} is named twice")
    if settings.together and settings.simulate:
        raise ValueError("with: a simulated run is of one network; leave one of the two out")
    for text in settings.inputs:
        InputSpec.read(text)
    if settings.threads is not None and settings.threads < 1:
        raise ValueError(f"threads must be >= 1, got {settings.threads}")
    settings.budget().checkpoint(target)


# Types of the options in run.json.
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "bool | None": (bool, type(None)),
    "int | None": (int, type(None)),
    "str | None": (str, type(None)),
    "list[str]": (list,),
}


def _mapping(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected an object with options, got {type(content).__name__}")
    return content


def _require_arch(target: Target) -> None:
    if target.get_attr("arch"):
        require_arch(str(target.get_attr("arch")))


def require_device(target: Target) -> None:
    """Look whether programs for a target can be run here, which measuring them takes.

    Raises
    ------
    ValueError : there is no such GPU or no compiler for its architecture, or the target is another
        kind of processor, or one with wider vectors; one line.
    RuntimeError : its driver is too old for the compiler of kernels, or there is no compiler.
    """
    kind = str(target.kind.name)
    if "gpu" in target.keys and not tvm.device(kind, 0).exist:
        simulated, reason = "", ""
        if kind == "cuda":
            # Of the commands that measure, that one alone has the option.
            simulated = ", or try a run out on a model of the device by felix tune --simulate"
            reason = f" ({nvcc.why_no_gpu()})"
        raise ValueError(
            f"target {kind}: this machine has no GPU to measure on{reason}; run where there is one"
            f"{simulated}"
        )
    if kind == "cuda":
        nvcc.require_loadable_code()
        _require_arch(target)
    if kind == "llvm":
        here = host_triple().partition("-")[0]
        wanted = str(target.get_attr("mtriple", "") or here).partition("-")[0]
        if wanted != here:
            raise ValueError(
                f"target {target}: programs for {wanted} cannot be measured on this machine, which "
                f"is {here}; tune on one of that kind, or by tvm.auto_scheduler with an RPCRunner"
            )
        if not runs_here(target):
            raise ValueError(
                f"target {target}: this machine, a {host_cpu()[0]}, cannot run its programs; leave "
                "-mcpu and -mattr out to tune for this one, tune on one of that kind, or by "
                "tvm.auto_scheduler with an RPCRunner"
            )
