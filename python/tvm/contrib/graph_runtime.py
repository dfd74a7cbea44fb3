"""The graph executor under its name before TVM 0.8; see `tvm.contrib.graph_executor`."""

from .graph_executor import GraphModule, create

__all__ = ["GraphModule", "create"]
