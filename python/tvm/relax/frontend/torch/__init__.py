"""Import of PyTorch modules through ``torch.export``."""

from .exported_program import export_for_inference, from_exported_program, from_module
from .ops import supported_operators

__all__ = ["export_for_inference", "from_exported_program", "from_module", "supported_operators"]
