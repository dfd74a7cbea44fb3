from __future__ import annotations

import os
from pathlib import Path

import pytest

from tvm.runtime import disco


@pytest.fixture(scope="module")
def disco_functions():
    """Name of a module that registers functions; worker processes find it as well."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield "testing_disco"


@pytest.fixture(scope="module", params=["threads", "processes"])
def session(request, disco_functions):
    """Three workers of each kind."""
    kind = {"threads": disco.ThreadedSession, "processes": disco.ProcessSession}[request.param]
    made = kind(3)
    made.import_python_module(disco_functions)
    yield made
    made.shutdown()
