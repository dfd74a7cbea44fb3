"""Loading of the compiled library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["__version__", "integer_types", "numeric_types", "string_types"]

__version__ = "0.1.0"

string_types = (str,)
integer_types = (int, np.integer)
numeric_types = (int, float, np.integer, np.floating)


def _load_core() -> Any:
    try:
        from . import _core  # type: ignore[attr-defined]
    except ImportError as error:
        here = Path(__file__).parent
        raise ImportError(
            f"tvm: the compiled library could not be loaded ({error}). It is looked for as "
            f"{here / '_core*.so'} and {here.parent / 'lib'}; build it with `pip install .` in the "
            "project's folder."
        ) from error
    return _core


core = _load_core()
