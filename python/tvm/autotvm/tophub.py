"""Records that others made, for common operators and devices.

Nothing is fetched: a folder of record files, one a target such as ``llvm.log``, is named by the
environment variable ``AUTOTVM_TOPHUB_ROOT_PATH``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tvm.target import Target

from .task.dispatcher import ApplyHistoryBest
from .utils import EmptyContext, logger

__all__ = ["ROOT_VARIABLE", "context"]

ROOT_VARIABLE = "AUTOTVM_TOPHUB_ROOT_PATH"


def context(
    target: Target | str | Sequence[Target | str],
    extra_files: Iterable[str | os.PathLike[str]] | None = None,
) -> Any:
    """A context with the records there are for targets.

    Parameters
    ----------
    target : one or several; the files of their kind and keys are read.
    extra_files : more record files, which must be there.

    Returns
    -------
    An `ApplyHistoryBest`; with neither folder nor files one that knows nothing, after a warning.
    A root of "NONE" gives an `EmptyContext`.

    Raises
    ------
    FileNotFoundError : an extra file is not there. ValueError : a record cannot be read.
    """
    root = os.environ.get(ROOT_VARIABLE)
    if root == "NONE":
        return EmptyContext()
    best = ApplyHistoryBest([])
    if root is None:
        logger.warning(
            "tophub: no folder of records is named by %s, so untuned kernels get fallbacks",
            ROOT_VARIABLE,
        )
    else:
        targets = target if isinstance(target, (list, tuple)) else [target]
        for each in targets:
            each = each if isinstance(each, Target) else Target(each)
            for name in dict.fromkeys([str(each.kind.name), *map(str, each.keys)]):
                path = Path(root) / f"{name}.log"
                if path.exists():
                    best.load(path)
    for extra in extra_files or ():
        best.load(extra)
    return best
