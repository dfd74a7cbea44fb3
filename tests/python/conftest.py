"""Settings that hold for every test."""

from __future__ import annotations

import gc
import os

from hypothesis import settings

from tvm.transform import PassContext

# The same examples in every run, so that a failure belongs to the change under test. New ones are
# looked for with HYPOTHESIS_PROFILE=explore.
settings.register_profile("suite", derandomize=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Tests leave nothing for later runs, and find nothing of earlier ones.
os.environ["TVM_FELIX_CACHE"] = "off"

# No test needs a program's time to be right, so none waits for a machine that is calm.
os.environ["TVM_MEASURE_WAIT_SECONDS"] = "0"

# Every function is looked at after every pass, so that what a pass spoils is laid at its door.
PassContext.set_default("ir.verify", True)

# Collecting tests makes millions of objects that all stay: looking through them for garbage takes a
# quarter of the time, and later again and again.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    # Extensions say what they leak when Python ends, where nothing may hide from it.
    gc.unfreeze()
