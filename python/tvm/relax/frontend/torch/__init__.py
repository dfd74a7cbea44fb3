"""Import of PyTorch modules through ``torch.export``, and of graphs of ``torch.fx``."""

from .arguments import operators_table, supported_operators
from .dynamo import dynamo_capture_subgraphs, relax_dynamo
from .export import export_for_inference, in_eval_mode
from .exported_program import (
    Problem,
    ProgramImporter,
    UnsupportedOperators,
    WritesToInputs,
    can_import,
    from_exported_program,
    from_module,
)
from .fx_graph import from_fx
from .sizes import DynamicSizes
from .structure import CallSignature, drawn_seed

__all__ = [
    "CallSignature",
    "DynamicSizes",
    "Problem",
    "ProgramImporter",
    "UnsupportedOperators",
    "WritesToInputs",
    "can_import",
    "drawn_seed",
    "dynamo_capture_subgraphs",
    "export_for_inference",
    "from_exported_program",
    "from_fx",
    "from_module",
    "in_eval_mode",
    "operators_table",
    "relax_dynamo",
    "supported_operators",
]
