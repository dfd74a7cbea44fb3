"""Networks from files: loaded, tuned, compiled and run, from Python and by the command."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import tvm
from tvm import relay, rpc
from tvm.driver import tvmc
from tvm.driver.tvmc.command import main, parse_shapes
from tvm.driver.tvmc.compiler import is_autoscheduler

SHAPE = (2, 3, 8, 8)
RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(64, 3, 3, 3)).astype("float32")
DENSE = RNG.normal(size=(64, 5)).astype("float32")


def expected(x: np.ndarray) -> np.ndarray:
    out = torch.relu(torch.conv2d(torch.from_numpy(x), torch.from_numpy(WEIGHT), padding=1))
    return out.mean((2, 3)).numpy() @ DENSE


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler of tasks leaves a table of latencies in the working folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution, a mean and a product, of an open number of images."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "d"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *SHAPE[1:]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(DENSE, "d")],
    )
    opset = helper.make_opsetid("", 17)
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)
    return path


@pytest.fixture(scope="module")
def model(net: Path) -> tvmc.TVMCModel:
    return tvmc.load(net, shape_dict={"x": SHAPE})


@pytest.fixture(scope="module")
def package(model: tvmc.TVMCModel, tmp_path_factory: pytest.TempPathFactory) -> tvmc.TVMCPackage:
    path = tmp_path_factory.mktemp("package") / "net.tar"
    return tvmc.compile(model, "llvm", package_path=path)


def check(package: tvmc.TVMCPackage, **options: object) -> tvmc.TVMCResult:
    x = RNG.normal(size=SHAPE).astype("float32")
    result = tvmc.run(package, "cpu", inputs={"x": x}, **options)
    np.testing.assert_allclose(result.get_output("output_0"), expected(x), rtol=1e-4, atol=1e-4)
    return result


def test_a_network_is_saved_and_printed(
    model: tvmc.TVMCModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "model.tar")
    again = tvmc.TVMCModel(model_path=tmp_path / "model.tar", name="again")
    tvm.ir.assert_structural_equal(again.mod, model.mod)
    assert again.params.keys() == model.params.keys()
    np.testing.assert_array_equal(again.params["w"].numpy(), WEIGHT)
    assert model.default_package_path() == "net-package.tar"
    assert again.default_tuning_records_path() == "again_tuner.log"
    again.summary()
    assert "nn.conv2d" in capsys.readouterr().out
    with pytest.raises(tvmc.TVMCException, match="give a relay module, or the file"):
        tvmc.TVMCModel()


def test_a_package_holds_weights_once(package: tvmc.TVMCPackage) -> None:
    with tarfile.open(package.package_path) as tar:
        assert sorted(tar.getnames()) == ["mod.json", "mod.params", "mod.so"]
    weights = tvm.runtime.load_param_dict(package.params)
    assert sum(w.numpy().size for w in weights.values()) >= WEIGHT.size + DENSE.size
    assert '"nodes"' in package.graph
    check(tvmc.TVMCPackage(package.package_path))


def test_times_are_measured(package: tvmc.TVMCPackage) -> None:
    assert check(package).times is None
    for end_to_end in (False, True):
        result = check(package, benchmark=True, repeat=3, number=1, end_to_end=end_to_end)
        assert len(result.times.results) == 3
        assert "3 repeats" in result.format_times()
        assert "output_0" in str(result)


def test_inputs_are_filled_and_checked(package: tvmc.TVMCPackage) -> None:
    for mode, x in (("zeros", np.zeros(SHAPE, "float32")), ("ones", np.ones(SHAPE, "float32"))):
        result = tvmc.run(package, "cpu", fill_mode=mode)
        np.testing.assert_allclose(result.outputs["output_0"], expected(x), rtol=1e-4, atol=1e-4)
    assert np.abs(tvmc.run(package, "cpu").outputs["output_0"]).sum() > 0
    with pytest.raises(tvmc.TVMCException, match="no input y; its inputs are x"):
        tvmc.run(package, "cpu", inputs={"y": 1})
    with pytest.raises(tvmc.TVMCException, match=r"input x is of shape \(2, 3, 8, 8\), got \(1,"):
        tvmc.run(package, "cpu", inputs={"x": np.zeros((1, *SHAPE[1:]))})
    with pytest.raises(tvmc.TVMCException, match='fill mode "twos" is not one of zeros'):
        tvmc.run(package, "cpu", fill_mode="twos")
    with pytest.raises(tvmc.TVMCException, match='device "tpu" is not one of cpu'):
        tvmc.run(package, "tpu")


def test_integers_are_filled_too(tmp_path: Path) -> None:
    x, flag = relay.var("x", shape=(64,), dtype="int32"), relay.var("f", shape=(64,), dtype="bool")
    func = relay.Function([x, flag], relay.where(flag, x, relay.negative(x)))
    model = tvmc.TVMCModel(tvm.IRModule.from_expr(func))
    package = tvmc.compile(model, "llvm", package_path=tmp_path / "where.tar")
    values = tvmc.run(package, "cpu").get_output("output_0")
    assert values.dtype == "int32" and values.min() < 0 < values.max()
    assert np.abs(values).max() < 128


def test_a_package_runs_on_another_machine(package: tvmc.TVMCPackage) -> None:
    server = rpc.Server(port=0, silent=True)
    try:
        check(package, hostname="127.0.0.1", port=server.port)
    finally:
        server.terminate()


def test_a_network_is_tuned_with_templates(model: tvmc.TVMCModel, tmp_path: Path) -> None:
    records, more = tmp_path / "records.json", tmp_path / "more.json"
    options = {"trials": 2, "repeat": 1, "number": 1}
    assert tvmc.tune(model, "llvm", tuning_records=records, **options) == str(records)
    first = records.read_text()
    assert first
    tvmc.tune(model, "llvm", tuning_records=more, prior_records=records, **options)
    assert records.read_text() == first and more.read_text()
    path = tmp_path / "tuned.tar"
    check(tvmc.compile(model, "llvm", tuning_records=records, package_path=path))


def test_a_network_is_tuned_with_programs(tmp_path: Path) -> None:
    x, w = relay.var("x", shape=(4, 16)), relay.var("w", shape=(8, 16))
    weight, data = (RNG.normal(size=s).astype("float32") for s in ((8, 16), (4, 16)))
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    model = tvmc.TVMCModel(tvm.IRModule.from_expr(func), {"w": weight})
    options = {"trials": 1, "repeat": 1, "number": 1, "enable_autoscheduler": True}
    records = tvmc.tune(model, "llvm", tuning_records=tmp_path / "records.json", **options)
    assert is_autoscheduler(records)
    path = tmp_path / "tuned.tar"
    package = tvmc.compile(model, "llvm", tuning_records=records, package_path=path)
    result = tvmc.run(package, "cpu", inputs={"x": data}).get_output("output_0")
    np.testing.assert_allclose(result, np.maximum(data @ weight.T, 0), rtol=1e-4, atol=1e-4)


def test_layouts_and_levels_are_chosen(model: tvmc.TVMCModel, tmp_path: Path) -> None:
    for k, options in enumerate(({"desired_layout": "NHWC"}, {"opt_level": 0})):
        check(tvmc.compile(model, "llvm", package_path=tmp_path / f"{k}.tar", **options))
    cross = {"cross": "cc", "cross_options": "-O1 -fPIC"}
    check(tvmc.compile(model, "llvm", package_path=tmp_path / "cross.tar", **cross))


def test_other_formats_are_read(model: tvmc.TVMCModel, tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    x = torch.rand(2, 4)
    torch.jit.save(torch.jit.trace(net, x), tmp_path / "net.pt")
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    (tmp_path / "net.relay").write_text(relay.Function(
        [v := relay.var("data", shape=(2, 4))], relay.nn.relu(v)).astext())  # fmt: skip
    for name, want in (("net.pt", net), ("net.pt2", net), ("net.relay", torch.relu)):
        shapes = None if name == "net.relay" else {"data": (2, 4)}
        loaded = tvmc.load(tmp_path / name, shape_dict=shapes)
        package = tvmc.compile(loaded, "llvm", package_path=tmp_path / "other.tar")
        result = tvmc.run(package, "cpu", inputs={"data": x.numpy()})
        np.testing.assert_allclose(
            result.get_output("output_0"), want(x).detach().numpy(), rtol=1e-5, atol=1e-5
        )
    with pytest.raises(tvmc.TVMCException, match="does not say the shapes of its inputs"):
        tvmc.load(tmp_path / "net.pt")
    with pytest.raises(tvmc.TVMCException, match="says the shapes of its inputs"):
        tvmc.load(tmp_path / "net.relay", shape_dict={"data": (2, 4)})
    with pytest.raises(tvmc.TVMCException, match='format "tflite" is not one of onnx, pytorch'):
        tvmc.load(tmp_path / "net.pt", model_format="tflite")
    with pytest.raises(FileNotFoundError, match="no file"):
        tvmc.load(tmp_path / "nothing.onnx")


def test_options_that_do_not_fit_are_refused(model: tvmc.TVMCModel, tmp_path: Path) -> None:
    with pytest.raises(tvmc.TVMCException, match='tuner "best" is not one of xgb'):
        tvmc.tune(model, "llvm", tuner="best")
    with pytest.raises(tvmc.TVMCException, match="name an rpc_key"):
        tvmc.tune(model, "llvm", hostname="127.0.0.1")
    with pytest.raises(tvmc.TVMCException, match="no file of prior records"):
        tvmc.tune(model, "llvm", prior_records=tmp_path / "nothing")
    with pytest.raises(tvmc.TVMCException, match="no file of tuning records"):
        tvmc.compile(model, "llvm", tuning_records=tmp_path / "nothing")
    text = tmp_path / "text.tar"
    text.write_text("text")
    with pytest.raises(tvmc.TVMCException, match="is no archive with mod.so"):
        tvmc.TVMCPackage(text)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("x:[2,3]", {"x": [2, 3]}),
        ("x:[2, 3] y.0:[]", {"x": [2, 3], "y.0": []}),
        ("a/b:[1],c:[4,4]", {"a/b": [1], "c": [4, 4]}),
    ],
)
def test_shapes_are_read_from_text(text: str, shapes: dict[str, list[int]]) -> None:
    assert parse_shapes(text) == shapes


@pytest.mark.parametrize("text", ["", "x", "x:2,3", "x:[2,-1]", "x:[2] y"])
def test_text_of_another_form_is_no_shape(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compile", "net.onnx", "--input-shapes", text])
    assert "write shapes as" in capsys.readouterr().err


def test_the_command_compiles_tunes_and_runs(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = [str(net), "--input-shapes", "x:[2,3,8,8]"]
    records, package = str(tmp_path / "records.json"), str(tmp_path / "net.tar")
    x = RNG.normal(size=SHAPE)
    np.savez(tmp_path / "inputs.npz", x=x)
    tuning = ["--trials", "2", "--number", "1", "--tuner", "random"]
    assert main(["tune", *network, "--output", records, *tuning]) == 0
    assert main(["compile", *network, "--tuning-records", records, "--output", package]) == 0
    files = ["--inputs", str(tmp_path / "inputs.npz"), "--outputs", str(tmp_path / "outputs.npz")]
    capsys.readouterr()
    assert main(["run", package, *files, "--print-time", "--print-top", "2"]) == 0
    printed = capsys.readouterr().out
    assert "1 repeats" in printed and printed.count("\n") == 3
    with np.load(tmp_path / "outputs.npz") as outputs:
        wanted = expected(x.astype("float32"))
        np.testing.assert_allclose(outputs["output_0"], wanted, rtol=1e-4, atol=1e-4)
    assert main(["run", str(tmp_path / "nothing.tar")]) == 1
    assert "nothing.tar" in capsys.readouterr().err


def test_the_module_is_a_command() -> None:
    command = [sys.executable, "-m", "tvm.driver.tvmc", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tvm.__version__
