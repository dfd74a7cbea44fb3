"""Which layouts operators of networks are best computed in, by target.

What a network is written in stands on top of the operator library, so the rules for a target are
registered from there.
"""

from __future__ import annotations

from typing import Any

from tvm.target import generic_func

__all__ = ["conv2d_alter_layout", "dense_alter_layout"]


@generic_func
def conv2d_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """A convolution in the layout that is best for the current target; None to leave it.

    Parameters
    ----------
    attrs, inputs : of a call of ``nn.conv2d`` of relay.
    tinfos, out_type : types of the operands and the result.
    """
    return None


@generic_func
def dense_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """A dense layer with its weights as they are best stored for the current target; None to leave
    it.

    Parameters
    ----------
    attrs, inputs : of a call of ``nn.dense`` of relay.
    tinfos, out_type : types of the operands and the result.
    """
    return None
