"""What a program is made of once passes have cut it into parts, or given its values names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm._ffi
from tvm.ir import GlobalVar, IRModule, RelayExpr
from tvm.runtime import NDArray
from tvm.runtime.params import named_arrays

from ..expr import Function

__all__ = [
    "check_basic_block_normal_form",
    "extract_fused_functions",
    "get_calibration_data",
]


def check_basic_block_normal_form(expr: RelayExpr) -> bool:
    """Whether all that several blocks use has a name, as `transform.ToBasicBlockNormalForm` makes.

    Blocks are bodies of functions, branches, and clauses of matches.
    """
    check = tvm._ffi.get_global_func("relay.analysis.check_basic_block_normal_form")
    return bool(check(expr))


def extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    """The different functions that operators are fused to, by their structural hash as text.

    If the program has no functions with the attribute "Primitive" yet, it is simplified for
    inference and fused first, as `transform.FuseOps` does at level 3; the module stays as it is.
    """
    return dict(tvm._ffi.get_global_func("relay.analysis.ExtractFusedFunctions")(mod).items())


def get_calibration_data(
    mod: IRModule, data: Mapping[str, Any]
) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """What goes into the parts of a partitioned program, and what comes out, for some inputs.

    Parameters
    ----------
    mod : a program after `transform.PartitionGraph`, whose parts are functions with the attribute
        "Compiler" that "main" calls once each. The parts are computed here, by relay's operators.
    data : arrays for the parameters of "main", by name.

    Returns
    -------
    By part, {"inputs": arrays, "outputs": arrays}; a tuple counts as its fields.

    Raises
    ------
    ValueError : a part is called several times or not in "main", or an input is missing.
    """
    result: dict[GlobalVar, dict[str, list[NDArray]]] = {}
    run = tvm._ffi.get_global_func("relay.analysis.GetCalibrationData")
    for name, (inputs, outputs) in run(mod, named_arrays(data)).items():
        result[mod.get_global_var(str(name))] = {"inputs": list(inputs), "outputs": list(outputs)}
    return result
