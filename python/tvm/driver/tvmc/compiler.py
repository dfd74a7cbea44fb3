"""From a network to a package."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from tvm import auto_scheduler, autotvm, relay, runtime
from tvm.contrib import cc
from tvm.ir import IRModule
from tvm.target import Target
from tvm.transform import PassContext

from .errors import TVMCException
from .model import TVMCModel, TVMCPackage, pack

__all__ = ["compile", "is_autoscheduler", "records_scope", "with_layout"]

_Path = str | os.PathLike[str]
_WITH_LAYOUTS = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")


def with_layout(mod: IRModule, layout: str | None) -> IRModule:
    """The network with convolutions in a layout such as "NHWC"; as it is for None."""
    if layout is None:
        return mod
    wanted = {name: [layout, "default"] for name in _WITH_LAYOUTS}
    with PassContext(opt_level=3):
        return relay.transform.ConvertLayout(wanted)(relay.transform.InferType()(mod))


def is_autoscheduler(records: _Path) -> bool:
    """Whether records are of auto_scheduler, as their first line says, and not of AutoTVM."""
    with open(records) as lines:
        for line in lines:
            if line.strip():
                return "i" in json.loads(line)
    return False


def records_scope(records: _Path | None) -> tuple[AbstractContextManager[Any], dict[str, Any]]:
    """The scope in which records of either tuner count, and options of the build.

    Raises
    ------
    TVMCException : there is no such file.
    """
    if records is None:
        return nullcontext(), {}
    if not Path(records).is_file():
        raise TVMCException(f"compile: there is no file of tuning records {records}")
    if is_autoscheduler(records):
        option = {"relay.backend.use_auto_scheduler": True}
        return auto_scheduler.ApplyHistoryBest(str(records)), option
    return autotvm.apply_history_best(str(records)), {}


def compile(
    tvmc_model: TVMCModel,
    target: Target | str,
    opt_level: int = 3,
    tuning_records: _Path | None = None,
    package_path: _Path | None = None,
    cross: str | None = None,
    cross_options: Sequence[str] | str | None = None,
    target_host: Target | str | None = None,
    desired_layout: str | None = None,
    disabled_pass: Sequence[str] | None = None,
) -> TVMCPackage:
    """Compile a network and write it to an archive.

    Parameters
    ----------
    opt_level : passes of higher levels are left out.
    tuning_records : file of AutoTVM or auto_scheduler, whose best schedules are used.
    package_path : of the archive; by default `TVMCModel.default_package_path`.
    cross, cross_options : compiler that links for another machine, and its options.
    target_host : target of the code that launches kernels.
    desired_layout : of convolutions, such as "NHWC".
    disabled_pass : names of passes to leave out.

    Raises
    ------
    TVMCException : there are no such records.
    ValueError : the network or the target is refused, or relay.build cannot compile it.
    """
    chosen = Target(target, target_host) if target_host else Target(target)
    mod = with_layout(tvmc_model.mod, desired_layout)
    scope, config = records_scope(tuning_records)
    left_out = list(disabled_pass or ())
    with scope, PassContext(opt_level=opt_level, config=config, disabled_pass=left_out):
        factory = relay.build(mod, chosen, params=tvmc_model.params)
    params = factory.params
    # The weights are in a file of their own, so not in the library too.
    library = factory.module["remove_params"]() if params else factory.module
    options = cross_options.split() if isinstance(cross_options, str) else cross_options
    fcompile = cc.cross_compiler(cross, list(options or ())) if cross else None
    path = package_path or tvmc_model.default_package_path()
    with tempfile.TemporaryDirectory() as temporary:
        files = {name: Path(temporary) / name for name in TVMCPackage.FILES}
        library.export_library(files["mod.so"], fcompile)
        files["mod.json"].write_text(str(factory.module["get_graph_json"]()))
        files["mod.params"].write_bytes(runtime.save_param_dict(params))
        pack(path, files)
    return TVMCPackage(path)
