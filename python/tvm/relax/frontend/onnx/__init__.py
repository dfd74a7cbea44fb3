"""Import of ONNX models.

A model becomes a PyTorch module first, whose operators are imported as those of any other
(`tvm.relax.frontend.torch`), so an ONNX operator is written down once, in PyTorch's terms.
"""

from .errors import OnnxError
from .importer import example_inputs, from_onnx
from .module import GraphInput, OnnxModule

__all__ = ["GraphInput", "OnnxError", "OnnxModule", "example_inputs", "from_onnx"]
