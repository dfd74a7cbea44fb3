"""Commands that tune operators and networks by each tuner."""

from __future__ import annotations

import importlib
import json

import pytest

from tvm.meta_schedule.testing.relay_workload import get_network, list_networks

COMMON = ["--target", "llvm -num-cores=1", "--num-trials", "3", "--number", "1"]


def _main(module):
    return importlib.import_module(f"tvm.{module}").main


@pytest.mark.parametrize("tuner", ["auto_scheduler", "meta_schedule"])
def test_an_operator_is_tuned(tuner, tmp_path, capsys):
    arguments = ["--workload", "SFM", "--work-dir", str(tmp_path), "--min-repeat-ms", "0"]
    _main(f"{tuner}.testing.tune_te")([*COMMON, *arguments])
    assert "Running time in milliseconds" in capsys.readouterr().out
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("tuner", ["autotvm"])
def test_a_network_is_tuned(tuner, tmp_path, capsys):
    arguments = ["--workload", "mlp", "--input-shape", "[1, 784]", "--work-dir", str(tmp_path)]
    _main(f"{tuner}.testing.tune_relay")([*COMMON, *arguments, "--min-repeat-ms", "0"])
    assert "Running time in milliseconds" in capsys.readouterr().out


def test_arguments_that_are_no_shapes_are_refused(tmp_path, capsys):
    arguments = ["--workload", "mlp", "--input-shape", "1x784", "--work-dir", str(tmp_path)]
    with pytest.raises(SystemExit):
        _main("autotvm.testing.tune_relay")([*COMMON, *arguments])
    assert 'write a shape as "[1,3,224,224]", not "1x784"' in capsys.readouterr().err
    shapes = json.dumps([{"name": "x", "shape": [1]}])
    arguments = ["--model-name", "n", "--onnx-path", "n.onnx", "--input-shape", shapes]
    with pytest.raises(SystemExit):
        _main("meta_schedule.testing.tune_onnx")([*COMMON, *arguments, "--work-dir", str(tmp_path)])
    assert "write inputs as" in capsys.readouterr().err


def test_networks_by_name():
    mod, params, (name, shape, dtype) = get_network("bert_base", [1, 8])
    assert (shape, dtype) == ([1, 8], "int64") and params
    assert [str(p.name_hint) for p in mod["main"].params][0] == name
    mod, _, _ = get_network("squeezenet_1.1", [1, 3, 32, 32], layout="NHWC")
    assert 'data_layout="NHWC"' in mod.astext(False)
    with pytest.raises(ValueError, match="no network 'resnet_7'; known are .*resnet_50"):
        get_network("resnet_7", [1, 3, 32, 32])
    assert "vgg_16" in list_networks()
