"""Functions of PyTorch as the importer understands them, beside PyTorch."""

import torch

import tvm
from tvm import relax
from tvm.felix.compiler import as_ndarray
from tvm.relax.frontend.torch import CallSignature, export_for_inference, from_exported_program


def imported(function, *args, **kwargs):
    """What the imported function returns for the inputs, in its structure."""
    program = export_for_inference(function, args, kwargs)
    signature = CallSignature(program)
    executable = relax.build(from_exported_program(program), "llvm")
    inputs = [as_ndarray(t) for t in signature.tensors(args, kwargs)]
    result = relax.VirtualMachine(executable, tvm.cpu())["main"](*inputs)
    arrays = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
    return signature.results([torch.from_dlpack(array) for array in arrays])


def check(function, *args, rtol=1e-4, atol=1e-5, **kwargs):
    with torch.no_grad():
        expected = function(*args, **kwargs)
    torch.testing.assert_close(imported(function, *args, **kwargs), expected, rtol=rtol, atol=atol)
