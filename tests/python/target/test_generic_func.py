"""Functions with versions by target, and targets in the forms that programs give them."""

from __future__ import annotations

import pytest

import tvm
from tvm.target import Target


def make():
    @tvm.target.generic_func
    def tile(size):
        return size

    tile.register(["cuda", "gpu"])(lambda size: size * 32)
    tile.register("cpu", lambda size: size * 8)
    return tile


def test_the_keys_of_the_present_target_choose():
    tile = make()
    assert tile(1) == 1
    for target, expected in ((tvm.target.cuda(), 32), (tvm.target.mali(), 32), ("llvm", 8)):
        with Target(target):
            assert tile(1) == expected
            assert tile.get_packed_func()(1) == expected
    with pytest.raises(ValueError, match='there is a version for "cpu"'):
        tile.register("cpu", lambda size: 0)
    with pytest.raises(ValueError, match="no version for"):
        tvm.target.get_native_generic_func("test.nothing")()


def test_a_named_function_is_known_to_others():
    @tvm.target.override_native_generic_func("test.strategy")
    def strategy(size):
        return size + 1

    generic = tvm.target.get_native_generic_func("test.strategy")
    generic.register(lambda size: size + 2, ["gpu"])
    with Target("rocm"):
        assert strategy(1) == 3
    assert strategy(1) == 2


def test_targets_in_all_forms_become_targets_with_hosts():
    assert Target.canon_target_and_host(None) == (None, None)
    with pytest.raises(AssertionError, match="Target host is not empty"):
        Target.canon_target_and_host(None, "llvm")
    target, host = Target.canon_target_and_host("cuda", "llvm")
    assert (target.kind.name, host.kind.name) == ("cuda", "llvm")
    for many in ("llvm", ["llvm"], {1: "llvm"}, {"kind": "llvm"}, tvm.runtime.convert(["llvm"])):
        assert [one.kind.name for one in Target.canon_multi_target(many)] == ["llvm"]
    found, host = Target.canon_target_map_and_host({"cuda": 1, "llvm": 2}, "llvm")
    assert {str(one.kind.name): value for one, value in found.items()} == {"cuda": 1, "llvm": 2}
    assert all(one.host.same_as(host) for one in found)


def test_numbers_become_literals_when_they_are_converted():
    items = tvm.runtime.convert([1, [2.5], {"a": True}])
    assert (items[0].value, str(items[0].dtype)) == (1, "int32")
    assert str(items[1][0].dtype) == "float32"
    assert str(items[2]["a"].dtype) == "bool"
    assert str(tvm.runtime.const(3, "int8").dtype) == "int8"
    assert tvm.tir.StringImm("a") in tvm.runtime.convert(["a"])
    assert tvm._ffi.base.TVMError is tvm.error.TVMError


def test_devices_are_named_with_their_number():
    assert tvm.device("cuda:3") == tvm.cuda(3)
    assert tvm.device("cuda", 3) == tvm.cuda(3)
    assert tvm.device(tvm.runtime.Device.kDLMetal, 2) == tvm.metal(2)
    for text, number in (("cpu:0:0", None), ("cpu:?", None), ("cpu:", None), ("cpu:1", 1)):
        with pytest.raises(ValueError, match="may be followed by one number"):
            tvm.device(text, number)
    with pytest.raises(ValueError, match="is an integer"):
        tvm.device("cuda", "?")


def test_makers_of_targets_give_their_keys():
    makers = {
        tvm.target.rocm: ["rocm", "gpu"],
        tvm.target.mali: ["mali", "opencl", "gpu"],
        tvm.target.bifrost: ["bifrost", "opencl", "gpu"],
        tvm.target.intel_graphics: ["intel_graphics", "opencl", "gpu"],
        tvm.target.vta: ["vta", "cpu"],
    }
    for make, keys in makers.items():
        target = make("board")
        assert [str(key) for key in target.keys] == keys
        assert target.model == "board"


def test_values_in_quotes_and_machines_as_hosts():
    target = Target("vulkan -device_name='Name with blanks' --supports_float16=True")
    assert target.attrs["device_name"] == "Name with blanks"
    assert target.attrs["supports_float16"]
    assert Target(str(target)).attrs["device_name"] == "Name with blanks"
    with pytest.raises(ValueError, match="a quote is not closed"):
        Target("vulkan -device_name='x")
    host = Target("cuda --host nvidia/jetson-nano").host
    assert (host.arch, host.attrs["registers_per_block"]) == ("sm_53", 32768)
    assert Target({"kind": "llvm", "host": "nvidia/jetson-nano"}).host.arch == "sm_53"
    assert Target("nvidia/nvidia-a100").l2_cache_size_bytes == 40 << 20


def test_limits_of_a_device_that_is_not_there_are_those_of_its_kind():
    assert Target("opencl -from_device=7").max_num_threads == Target("opencl").max_num_threads
