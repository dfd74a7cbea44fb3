"""What importers of one's own need, under the path that programs import it from."""

from .attributes import AttrCvt, Renamer, RequiredAttr, StrAttrsDict
from .cells import gru_cell, lstm_cell, rnn_cell
from .inference import (
    fold_constant,
    get_name,
    get_relay_op,
    infer_channels,
    infer_shape,
    infer_type,
    infer_value,
    infer_value_simulated,
    new_var,
    set_span,
    try_infer_value,
    try_resolve_var_to_const,
)
from .table import ExprTable
from .tensors import autopad, ensure_scalar_shape, shape_of, to_int_list, unbind

__all__ = [
    "AttrCvt",
    "ExprTable",
    "Renamer",
    "RequiredAttr",
    "StrAttrsDict",
    "autopad",
    "ensure_scalar_shape",
    "fold_constant",
    "get_name",
    "get_relay_op",
    "gru_cell",
    "infer_channels",
    "infer_shape",
    "infer_type",
    "infer_value",
    "infer_value_simulated",
    "lstm_cell",
    "new_var",
    "rnn_cell",
    "set_span",
    "shape_of",
    "to_int_list",
    "try_infer_value",
    "try_resolve_var_to_const",
    "unbind",
]
