"""contrib.tvmjs and vm.builtin.ndarray_cache.*: parameters in a folder of shards."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm.contrib import tvmjs


def call(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


@pytest.fixture
def params():
    rng = np.random.default_rng(0)
    half = tvm.nd.empty((3,), "bfloat16")
    half.copyfrom(np.array([0x3F80, 0x4000, 0xC040], "uint16"))
    return {
        "param_0": rng.normal(size=(4, 5)).astype("float32"),
        "param_1": tvm.nd.array(rng.integers(0, 9, (7,)).astype("int8")),
        "param_2": half,
        "scalar": np.array(2.5, "float64"),
    }


def test_raw_parameters_come_back_bit_by_bit(params, tmp_path):
    tvmjs.dump_ndarray_cache(params, tmp_path, "raw", {"kind": "test"}, show_progress=False)
    loaded, metadata = tvmjs.load_ndarray_cache(tmp_path, tvm.cpu())
    assert metadata == {"kind": "test"} and list(loaded) == list(params)
    for name, value in params.items():
        got = loaded[name]
        assert str(got.dtype) == str(value.dtype)
        want = value.numpy() if isinstance(value, tvm.nd.NDArray) else value
        np.testing.assert_array_equal(got.numpy(), want)


def test_float32_may_be_kept_as_bfloat16(params, tmp_path):
    tvmjs.dump_ndarray_cache(params, tmp_path, show_progress=False)
    loaded, _ = tvmjs.load_ndarray_cache(str(tmp_path / "ndarray-cache.json"), tvm.cpu())
    got = loaded["param_0"].numpy()
    assert got.dtype == "float32"
    np.testing.assert_allclose(got, params["param_0"], rtol=2**-8)
    index = json.loads((tmp_path / "ndarray-cache.json").read_text())
    (shard,) = index["records"]
    first = shard["records"][0]
    assert first["format"] == "f32-to-bf16" and first["nbytes"] == 40 and first["byteOffset"] == 0
    assert shard["records"][3]["format"] == "raw"


def test_shards_have_about_the_size_that_is_asked_for(tmp_path):
    pairs = ((f"w{i}", np.full((1 << 18,), i, "float32")) for i in range(5))
    tvmjs.dump_ndarray_cache(pairs, tmp_path, "raw", shard_cap_mb=2, show_progress=False)
    assert len(list(tmp_path.glob("params_shard_*.bin"))) == 3
    loaded, _ = tvmjs.load_ndarray_cache(tmp_path, tvm.cpu())
    assert [int(loaded[f"w{i}"].numpy()[-1]) for i in range(5)] == list(range(5))


def test_an_update_keeps_the_other_arrays(params, tmp_path):
    tvmjs.dump_ndarray_cache(params, tmp_path, "raw", {"a": 1, "b": 1}, show_progress=False)
    more = {"param_0": np.zeros((2,), "int32"), "new": (1, 2, 3)}
    tvmjs.dump_ndarray_cache(
        more, tmp_path, "raw", {"b": 2}, show_progress=False, update_if_exists=True
    )
    loaded, metadata = tvmjs.load_ndarray_cache(tmp_path, tvm.cpu())
    assert metadata == {"a": 1, "b": 2} and set(loaded) == {*params, "new"}
    assert loaded["param_0"].shape == (2,) and loaded["new"].numpy().tolist() == [1, 2, 3]


def test_networks_take_parameters_that_the_process_has_loaded(params, tmp_path):
    call("ndarray_cache.clear")
    tvmjs.dump_ndarray_cache(params, tmp_path, "raw", show_progress=False)
    call("ndarray_cache.load", str(tmp_path), tvm.cpu().device_type, 0)
    assert len(call("param_array_from_cache", "param", -1)) == 3
    got = call("param_array_from_cache", "param", 2)
    np.testing.assert_array_equal(got[0].numpy(), params["param_0"])
    (scalar,) = call("param_array_from_cache_by_name", ["scalar"])
    assert scalar.numpy() == 2.5
    with pytest.raises(ValueError, match="param_3 of 5 is not loaded"):
        call("param_array_from_cache", "param", 5)
    with pytest.raises(ValueError, match="not loaded: other"):
        call("param_array_from_cache_by_name", ["other", "scalar"])
    with pytest.raises(ValueError, match="is there already"):
        call("ndarray_cache.update", "scalar", got[0], False)
    call("ndarray_cache.update", "scalar", got[0], True)
    assert call("ndarray_cache.get", "scalar").shape == (4, 5)
    call("ndarray_cache.remove", "scalar")
    assert call("ndarray_cache.get", "scalar") is None
    call("ndarray_cache.clear")


def test_formats_and_names_are_looked_at(tmp_path):
    with pytest.raises(ValueError, match="encode_format is one of f32-to-bf16, raw, got 'zip'"):
        tvmjs.dump_ndarray_cache({}, tmp_path, "zip")
    with pytest.raises(ValueError, match="two parameters are called 'a'"):
        tvmjs.dump_ndarray_cache([("a", np.zeros(1)), ("a", np.zeros(1))], tmp_path)
    with pytest.raises(ValueError, match="there is no"):
        tvmjs.load_ndarray_cache(tmp_path / "missing", tvm.cpu())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(dataPath="../params_shard_0.bin"), "is no file in"),
        (lambda s: s.update(md5sum="0" * 32), "checksum"),
        (lambda s: s["records"][0].update(byteOffset=1 << 40), "ends before a does"),
        (lambda s: s["records"][0].update(byteOffset=-8), "of shape"),
        (lambda s: s["records"][0].update(shape=[1 << 62, 4]), "of shape"),
        (lambda s: s["records"][0].update(format="pickle"), "is pickle float32"),
        (lambda s: s["records"][0].pop("dtype"), "is damaged"),
        (lambda s: s["records"][0].update(dtype="object"), "is damaged"),
        (lambda s: s.pop("records"), "does not list the arrays"),
        (lambda s: s.update(records=[3]), "does not list the arrays"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, change, message):
    tvmjs.dump_ndarray_cache({"a": np.zeros(3, "float32")}, tmp_path, "raw", show_progress=False)
    path = tmp_path / "ndarray-cache.json"
    index = json.loads(path.read_text())
    change(index["records"][0])
    path.write_text(json.dumps(index))
    with pytest.raises(ValueError, match=message):
        tvmjs.load_ndarray_cache(tmp_path, tvm.cpu())
