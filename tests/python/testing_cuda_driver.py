"""A CUDA driver without a device, for what must hold when one is too old, missing or lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent / "runtime" / "fake_cuda_driver.c"


def build_driver(folder):
    """Compile the driver into a folder; tests without a C compiler are skipped."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", folder / "libcuda.so.1", _SOURCE], check=True
    )
    return folder


def driver_environment(folder, **options):
    """Environment of a process that finds this driver before any other.

    Parameters
    ----------
    folder : of `build_driver`; launches of all processes are counted there.
    options : of the driver, such as ``fail_from=3``; see its source.
    """
    own = {f"FAKE_CUDA_{name.upper()}": str(value) for name, value in options.items()}
    launches = {"FAKE_CUDA_LAUNCHES": str(folder / "launches")}
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    quiet = {"PYTHONWARNINGS": "ignore", "TVM_FELIX_CACHE": "off", "TVM_NUM_THREADS": "1"}
    return {**os.environ, **quiet, **own, **launches, "LD_LIBRARY_PATH": os.pathsep.join(paths)}
