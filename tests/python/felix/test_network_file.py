"""Networks from files of ONNX, torch.export and torch.jit, in Python and on the command line."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from torch import nn

from tvm import felix
from tvm.felix.command import main
from tvm.felix.network_file import InputSpec, load_network_file, short_name

X = torch.randn(2, 6, generator=torch.Generator().manual_seed(1))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * scale


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Scaled().eval()


@pytest.fixture(scope="module")
def files(model, tmp_path_factory):
    """One file of each kind, by what made it."""
    folder = tmp_path_factory.mktemp("files")
    found = {
        kind: folder / f"{kind}{suffix}"
        for kind, suffix in {"exported": ".pt2", "named": ".pt2", "open": ".pt2", "scripted": ".pt",
                             "traced": ".ts", "weights": ".pth"}.items()
    }  # fmt: skip
    scale = torch.tensor(2.0)
    torch.export.save(torch.export.export(model, (X, scale)), found["exported"])
    torch.export.save(torch.export.export(model, (X,), {"scale": scale}), found["named"])
    batch = {"x": {0: torch.export.Dim("batch")}, "scale": None}
    dynamic = torch.export.export(model, (X, scale), dynamic_shapes=batch)
    torch.export.save(dynamic, found["open"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(model), found["scripted"])
        torch.jit.save(torch.jit.trace(model, (X, scale)), found["traced"])
    torch.save(model.state_dict(), found["weights"])
    return found


@pytest.mark.parametrize("kind", ["exported", "named", "scripted", "traced"])
def test_saved_modules_compute_what_was_saved(kind, files, model):
    specs = [InputSpec.read("scale=scalar"), InputSpec.read("2x6")]
    is_program = files[kind].suffix == ".pt2"
    module, inputs = load_network_file(files[kind], () if is_program else specs)
    assert [tuple(tensor.shape) for tensor in inputs] == [(2, 6), ()]
    network = felix.compile(module, inputs)
    scale = torch.tensor(3.0)
    torch.testing.assert_close(network(X, scale), model(X, scale).detach(), rtol=1e-4, atol=1e-5)


def test_scripted_modules_name_their_inputs(files):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.load(files["scripted"])
    network = felix.compile(module, {"x": X, "scale": torch.tensor(1.0)})
    with pytest.raises(ValueError, match="input 'x' must be float32 of shape"):
        network(x=X[:1], scale=torch.tensor(1.0))
    with pytest.raises(TypeError, match=r"do not fit Scaled.forward\(x, scale\)"):
        felix.compile(module, X)


def test_open_sizes_of_onnx_models_are_given_by_name(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    value = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 4])
        for name in ("x", "y")
    ]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    with pytest.raises(ValueError, match=r"input 'x' are open \(batchx4\).* --input x="):
        load_network_file(path)
    with pytest.raises(ValueError, match="input 'x' is float32, not int64"):
        load_network_file(path, [InputSpec.read("3x4:int64")])
    module, (x,) = load_network_file(path, [InputSpec.read("3x4")])
    torch.testing.assert_close(felix.compile(module, (x,))(x), torch.relu(x))


@pytest.mark.parametrize(
    ("kind", "specs", "message"),
    [
        ("open", [], "has open sizes .* export it without dynamic_shapes"),
        ("exported", ["2x6"], "an exported program has its inputs"),
        ("scripted", [], r"shapes of its inputs \(x, scale\); give one --input for each"),
        ("scripted", ["2x6"], "as in --input scale="),
        ("scripted", ["2x6", "scalar", "3"], "takes 2 inputs, --input is given 3"),
        ("scripted", ["z=2"], "there is no input 'z'; its inputs are x, scale"),
        ("scripted", ["2x6:float33", "scalar"], "there is no element type 'float33'"),
        ("weights", ["2x6"], "no module saved by torch.jit.save .* name it as module:function"),
    ],
)
def test_what_does_not_fit_a_file_is_said_with_the_way_out(kind, specs, message, files):
    with pytest.raises(ValueError, match=message):
        load_network_file(files[kind], [InputSpec.read(text) for text in specs])


@pytest.mark.parametrize("suffix", [".pt2", ".pt", ".onnx"])
def test_damaged_files_are_named(suffix, tmp_path):
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(b"PK\x03\x04 nothing of use")
    with pytest.raises(ValueError, match="damaged"):
        load_network_file(path, [InputSpec.read("1")])
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_network_file(tmp_path / f"missing{suffix}")


@pytest.mark.parametrize("text", ["1,3", "x=", "1x-2", "2x3:", ""])
def test_shapes_have_one_form(text):
    with pytest.raises(ValueError, match="expected \\[NAME=\\]SHAPE"):
        InputSpec.read(text)


def test_names_of_folders_are_those_of_files():
    assert short_name("/some/where/net.v2.onnx") == "net.v2"
    assert short_name("package.module:make") == "package.module.make"


def test_the_command_tunes_a_file_and_goes_on_with_its_inputs(files, tmp_path, capsys):
    out = str(tmp_path / "run")
    given = ["--input", "2x6", "--input", "scalar", "--no-cache"]
    command = ["tune", str(files["scripted"]), *given, "--no-progress"]
    assert main([*command, "--trials", "2", "--timing-rounds", "1", "--out", out]) == 0
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert settings["inputs"] == ["2x6", "scalar"]
    assert main(["tune", "--resume", out, "--no-progress"]) == 0
    assert main(["compile", "mlp", "--input", "1x3"]) != 0
    assert "mlp has its inputs; leave --input out" in capsys.readouterr().err


def test_text_in_place_of_a_model_is_told_what_reads_it():
    with pytest.raises(TypeError, match=r"felix\.nn\.load_network\('dcgan'\) gives a network"):
        felix.extract_tasks("dcgan", (), "llvm")
    with pytest.raises(TypeError, match=r"felix\.network_file\.load_network_file\('net\.onnx'\)"):
        felix.compile("net.onnx", ())
