"""Inputs and results of any structure, and what is said of modules that cannot be exported."""

import dataclasses

import pytest
import torch

from tvm import felix
from tvm.relax.frontend.torch import export_for_inference

X = torch.arange(12.0).reshape(3, 4)


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple | None = None
    label: str = "none"


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: torch.Tensor


class Cache:
    """A class of one's own that nobody registered."""

    def __init__(self, first):
        self.layers = [first]
        self.length = 3


def test_results_come_back_as_the_dataclass_with_none_and_numbers():
    compiled = felix.compile(lambda x: (Output(x + 1, (x, None)), 7, None), X)
    result, number, nothing = compiled(X)
    assert type(result) is Output
    assert (number, nothing, result.hidden[1], result.label) == (7, None, None, "none")
    torch.testing.assert_close(result.logits, X + 1)


def test_results_come_back_as_a_frozen_dataclass_and_as_an_object():
    frozen, cache = felix.compile(lambda x: (Frozen(x * 2), Cache(x - 1)), X)(X)
    torch.testing.assert_close(frozen.value, X * 2)
    assert type(cache) is Cache
    assert cache.length == 3
    torch.testing.assert_close(cache.layers[0], X - 1)


def test_inputs_may_be_nested_objects():
    def read(pair, cache):
        return pair["a"].logits + cache.layers[0]

    compiled = felix.compile(read, ({"a": Output(X)}, Cache(X)))
    torch.testing.assert_close(compiled({"a": Output(X * 2)}, Cache(X * 3)), X * 5)
    with pytest.raises(TypeError, match="inputs must be structured like the example"):
        compiled({"b": Output(X)}, Cache(X))


def test_keywords_come_in_any_order():
    compiled = felix.compile(lambda x, *, a, b: x + a - b, X, example_kwargs={"a": X, "b": X * 2})
    torch.testing.assert_close(compiled(X, b=X, a=X), X)


def test_a_single_tensor_stands_for_one_input():
    assert felix.compile(torch.nn.Linear(4, 2), X)(X).shape == (3, 2)


def test_inputs_that_are_one_tensor_in_the_example_stay_two():
    torch.testing.assert_close(felix.compile(lambda a, b: a - b, (X, X))(X * 3, X), X * 2)


def test_a_wrong_number_of_inputs_is_said_in_one_line():
    with pytest.raises(TypeError, match=r"2 example inputs do not fit Linear.forward\(input\)"):
        felix.compile(torch.nn.Linear(4, 2), (X, X))
    compiled = felix.compile(lambda a, b: a + b, (X, X))
    with pytest.raises(TypeError, match="takes 2 inputs like the example, got 1 input$"):
        compiled(X)
    with pytest.raises(TypeError, match="takes 2 inputs like the example, got 1 input and b"):
        compiled(X, b=X)


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match="expected a module or a function of tensors, got int"):
        felix.compile(3, X)


def test_a_branch_on_data_is_named_by_its_line(capfd):
    def branch(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(ValueError) as caught:
        export_for_inference(branch, X)
    message = str(caught.value)
    assert "\n" not in message
    assert "test_torch_structures.py" in message
    assert "(if x.sum() > 0:)" in message
    assert caught.value.__suppress_context__
    assert capfd.readouterr().err == ""


def test_a_branch_inside_of_a_module_is_named_too():
    class Inner(torch.nn.Module):
        def forward(self, x):
            return x[: int(x.max())]

    with pytest.raises(ValueError, match=r"values of a tensor at .*\(return x\[: int\(x.max"):
        export_for_inference(torch.nn.Sequential(Inner()), X)


def test_hooks_for_the_export_are_taken_off_again():
    module = torch.nn.Linear(4, 2)
    export_for_inference(module, X)
    assert not module._forward_hooks
    assert not module._forward_pre_hooks


def test_objects_come_back_from_programs_whose_operators_are_decomposed():
    """The export copies what it knows of results then, the objects of its tracing included."""
    cache = felix.compile(lambda x: Cache(torch.logaddexp(x, x + 1)), X)(X)
    torch.testing.assert_close(cache.layers[0], torch.logaddexp(X, X + 1))


def test_a_program_that_is_exported_already_is_compiled_with_its_inputs():
    program = torch.export.export(torch.nn.Linear(4, 2), (X,))
    with torch.no_grad():
        expected = program.module()(X)
    compiled = felix.compile(program)
    torch.testing.assert_close(compiled(X), expected)
    with pytest.raises(ValueError, match="an exported program has its example inputs"):
        felix.compile(program, X)
    rows = torch.export.Dim("rows", max=64)
    program = torch.export.export(torch.nn.Linear(4, 2), (X,), dynamic_shapes=({0: rows},))
    with torch.no_grad():
        expected = program.module()(X[:2])
    torch.testing.assert_close(felix.compile_dynamic(program)(X[:2]), expected)
    with pytest.raises(ValueError, match="exported for sizes that vary .* felix.compile_dynamic"):
        felix.compile(program)


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated")
def test_weights_that_the_export_cannot_read_are_explained():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.LSTM(4, 8)

        def forward(self, x):
            return self.layer(x)[0]

    packed = torch.ao.quantization.quantize_dynamic(Recurrent().eval(), {torch.nn.LSTM})
    with pytest.raises(ValueError, match="objects that torch.export cannot read.*quantise with"):
        felix.compile(packed, torch.ones(3, 2, 4))
