"""Statements, blocks and the regions that blocks name: TVM's module of all of them."""

from __future__ import annotations

from .block import Block, BlockRealize, MatchBufferRegion
from .buffer import BufferRegion
from .statement import *  # noqa: F403
from .statement import __all__ as _statements

__all__ = [*_statements, "Block", "BlockRealize", "BufferRegion", "MatchBufferRegion"]
