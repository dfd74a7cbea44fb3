"""Reading programs, under the names of TVM's parser package."""

from __future__ import annotations

from tvm.script import from_source, ir, ir_module, parse, relax, tir

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir"]
