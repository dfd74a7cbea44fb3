"""Programs exported with dynamic shapes: at many sizes, and outside of their ranges."""

import pytest
import torch
from torch.export import Dim

import tvm
from tvm import relax
from tvm.felix import nn
from tvm.relax.frontend.torch import (
    DynamicSizes,
    ProgramImporter,
    export_for_inference,
    from_exported_program,
)


class Sized:
    """A program and how to run it on inputs of any size."""

    def __init__(self, model, inputs, dynamic_shapes):
        self.model = model
        self.program = export_for_inference(model, inputs, None, dynamic_shapes)
        self.sizes = DynamicSizes(self.program)
        self.importer = ProgramImporter(self.program)

    def module(self, *inputs):
        return self.importer.at(self.sizes.of([x.shape for x in inputs]))

    def check(self, *inputs):
        executable = relax.build(self.module(*inputs), "llvm")
        arrays = [tvm.nd.from_dlpack(x) for x in inputs]
        result = relax.VirtualMachine(executable, tvm.cpu())["main"](*arrays)
        results = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
        with torch.no_grad():
            expected = self.model(*inputs)
        expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        for got, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(torch.from_dlpack(got), wanted, rtol=1e-3, atol=1e-4)


class Joined(torch.nn.Module):
    """Sizes that are computed from others: views, halves, indices made from a size."""

    def forward(self, a, b):
        x = torch.cat([a, b], 0)
        places = torch.arange(x.shape[0])
        half = x[: x.shape[0] // 2] + places[: x.shape[0] // 2, None]
        return x.reshape(-1, 2, 3).sum(1), half


@pytest.mark.slow
def test_twenty_sizes_equal_torch():
    n = Dim("n", min=2, max=40)
    sized = Sized(Joined(), (torch.randn(6, 3), torch.randn(12, 3)), ({0: 2 * n}, {0: 4 * n}))
    for size in range(2, 22):
        sized.check(torch.randn(2 * size, 3), torch.randn(4 * size, 3))


def test_transformer_runs_at_any_batch_and_length():
    torch.manual_seed(0)
    model = nn.Llama(50, 16, 1, 2, 1, 24).eval()
    dynamic = ({0: Dim("batch", max=8), 1: Dim("length", max=16)},)
    sized = Sized(model, (torch.randint(50, (2, 9)),), dynamic)
    for batch, length in ((1, 16), (3, 2), (8, 5)):
        sized.check(torch.randint(50, (batch, length)))


def test_weights_are_shared_by_all_sizes():
    sized = Sized(torch.nn.Linear(4, 5), (torch.randn(3, 4),), ({0: Dim("n", min=2, max=8)},))

    def weight(mod):
        return mod["main"].body.blocks[0].bindings[0].value.args[1]

    first, second = (weight(sized.module(torch.randn(n, 4))) for n in (2, 7))
    assert first.data.same_as(second.data)


def test_sizes_outside_of_the_range_are_refused_with_both():
    n = Dim("n", min=2, max=8)
    sized = Sized(Joined(), (torch.randn(6, 3), torch.randn(12, 3)), ({0: 2 * n}, {0: 4 * n}))
    with pytest.raises(
        ValueError, match=r"dimension 0 of input 'a' must be .* in \[2, 8\], got 18"
    ):
        sized.sizes.of([(18, 3), (36, 3)])
    with pytest.raises(ValueError, match=r"input 'b' must have the shape .*, got \(10, 3\)"):
        sized.sizes.of([(4, 3), (10, 3)])
    with pytest.raises(ValueError, match=r"input 'a' must have the shape .*, got \(4, 5\)"):
        sized.sizes.of([(4, 5), (8, 3)])
    with pytest.raises(ValueError, match=r"input 'a' must have the shape .*, got \(4,\)"):
        sized.sizes.of([(4,), (8, 3)])


def test_dynamic_shapes_without_sizes_are_symbolic_extents():
    program = export_for_inference(torch.nn.Linear(4, 5), torch.randn(3, 4), None, ({0: Dim("n")},))
    func = from_exported_program(program)["main"]
    extent, width = func.params[0].struct_info.shape.values
    assert isinstance(extent, tvm.tir.Var) and int(width) == 4
    assert func.ret_struct_info.shape.values[0].same_as(extent)


def test_dynamic_shapes_that_the_program_fixes_are_said_in_one_line():
    with pytest.raises(ValueError, match="dynamic_shapes: ") as caught:
        export_for_inference(lambda x: x.reshape(2, 3), torch.randn(6), None, ({0: Dim("n")},))
    assert "\n" not in str(caught.value)
