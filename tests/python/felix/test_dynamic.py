"""Networks with sizes that vary from call to call."""

import pytest
import torch
from torch.export import Dim

from tvm import felix


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    batch = Dim("batch", min=2, max=8)
    return model, felix.compile_dynamic(model, torch.randn(3, 4), ({0: batch},), cache=False)


def test_every_size_in_the_range_equals_torch(network):
    model, dynamic = network
    for size in range(2, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(dynamic(x), model(x), rtol=1e-4, atol=1e-5)
    assert "7 sizes" in repr(dynamic)


def test_a_size_is_compiled_once(network):
    _, dynamic = network
    assert dynamic.at(torch.randn(4, 4)) is dynamic.at(torch.randn(4, 4))
    assert dynamic.at(torch.randn(4, 4)) is not dynamic.at(torch.randn(5, 4))


def test_sizes_out_of_range_and_wrong_inputs_are_refused(network):
    _, dynamic = network
    with pytest.raises(ValueError, match=r"dimension 0 of input .* must be in \[2, 8\], got 9"):
        dynamic(torch.randn(9, 4))
    with pytest.raises(ValueError, match=r"must have the shape .*, got \(3, 5\)"):
        dynamic(torch.randn(3, 5))
    with pytest.raises(TypeError, match="takes 1 input like the example, got 2 inputs"):
        dynamic(torch.randn(3, 4), torch.randn(3, 4))


def test_results_keep_their_structure():
    function = felix.compile_dynamic(
        lambda x: {"sum": x.sum(0), "none": None}, torch.randn(3, 4), ({0: Dim("n")},), cache=False
    )
    result = function(torch.ones(5, 4))
    torch.testing.assert_close(result["sum"], torch.full((4,), 5.0))
    assert result["none"] is None


def test_an_example_of_size_one_stands_for_others():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4)).eval()
    batch, width = Dim("batch", max=5), Dim("width", min=3, max=20)
    dynamic = felix.compile_dynamic(
        model, torch.randn(1, 1, 6, 8), ({0: batch, 3: width},), cache=False
    )
    for size in (1, 3, 5):
        x = torch.randn(size, 1, 6, 10 + size)
        torch.testing.assert_close(dynamic(x), model(x), rtol=1e-4, atol=1e-5)


def test_models_that_ask_whether_a_size_is_one_say_what_to_do():
    def pick(x):
        return x * 2 if x.shape[0] == 1 else x

    with pytest.raises(ValueError, match="try examples of two"):
        felix.compile_dynamic(pick, torch.randn(1, 4), ({0: Dim("n", max=9)},), cache=False)


def test_a_program_of_open_sizes_is_sent_to_compile_dynamic():
    model = torch.nn.Linear(4, 3).eval()
    sizes = ({0: Dim("batch", min=1, max=8)},)
    program = torch.export.export(model, (torch.randn(2, 4),), dynamic_shapes=sizes)
    for refuse in (felix.compile, felix.tune):
        with pytest.raises(ValueError, match=r"sizes that vary \(s\d+\).*felix.compile_dynamic"):
            refuse(program)
