"""Compiled functions on the tensors of other frameworks, without copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.runtime import ndarray

__all__ = ["convert_func", "to_pytorch_func"]


def convert_func(
    tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]
) -> Callable[..., Any]:
    """A function that takes tensors of a framework where `tvm_func` takes arrays.

    Parameters
    ----------
    tensor_type : arguments of this type are passed as arrays that share their memory, so what the
        function writes is seen in them.
    to_dlpack_func : makes a DLPack capsule of one.
    """

    def call(*args: Any) -> Any:
        return tvm_func(
            *(
                ndarray.from_dlpack(to_dlpack_func(arg)) if isinstance(arg, tensor_type) else arg
                for arg in args
            )
        )

    return call


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """`convert_func` for tensors of PyTorch."""
    import torch
    from torch.utils import dlpack

    return convert_func(tvm_func, torch.Tensor, dlpack.to_dlpack)
