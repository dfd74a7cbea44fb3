"""Names of the border and of the runtime that users type."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

import tvm
from tvm._ffi import base, libinfo, runtime_ctypes
from tvm.runtime import ADT, ShapeTuple


@pytest.fixture
def echo():
    tvm.register_func("test.names.echo", lambda x: x, override=True)
    yield tvm.get_global_func("test.names.echo")
    tvm._ffi.remove_global_func("test.names.echo")


@pytest.mark.parametrize("value", [b"", b"text", b"\xff\x00\x80", bytes(range(256)) * 100])
def test_bytes_come_back_as_bytes(echo, value):
    assert echo(value) == value
    assert type(echo(value)) is bytes
    assert echo(bytearray(value)) == value
    assert echo([value])[0] == value


def test_bytes_are_taken_where_text_is():
    assert tvm.ir.IntImm(b"int8", 3).dtype == "int8"


def test_base_names_the_kinds_of_python_values():
    assert isinstance("a", base.string_types)
    assert isinstance(np.int32(1), base.integer_types)
    assert isinstance(np.float32(1), base.numeric_types)
    assert base.py_str(b"abc") == "abc"
    assert base.version == tvm.__version__ != ""
    assert base.ERROR_TYPE["ValueError"] is tvm.error.ValueError
    assert not base._RUNTIME_ONLY


@pytest.mark.parametrize(("mode", "message"), [("ctypes", ""), ("cython", ""), ("x", "TVM_FFI:")])
def test_tvm_ffi_chooses_among_known_bindings(mode, message):
    done = subprocess.run(
        [sys.executable, "-c", "import tvm"],
        env={**os.environ, "TVM_FFI": mode},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (message == "")
    assert message in done.stderr


def test_device_names_and_numbers_map_back_and_forth():
    for number, name in tvm.runtime.Device.MASK2STR.items():
        assert tvm.runtime.Device.STR2MASK[name] == number
        assert tvm.device(name, 1) == tvm.device(number, 1)
    assert tvm.device("llvm", 0) == tvm.device("cpu", 0) == tvm.cpu(0)
    cuda = tvm.target.Target("cuda -arch=sm_80")
    assert tvm.device(str(cuda), 1) == tvm.cuda(1)
    with pytest.raises(TypeError, match=r"got Target; for a target write tvm\.device\(str"):
        tvm.device(cuda)
    assert tvm.nd.cl(1) == tvm.opencl(1)
    assert tvm.nd.mtl(0) == tvm.metal(0)
    assert runtime_ctypes.Device is tvm.runtime.Device
    assert runtime_ctypes.ArgTypeCode.OBJECT_HANDLE == 7


def test_registry_lists_and_binds_names(echo):
    assert "test.names.echo" in tvm._ffi.list_global_func_names()
    module = types.ModuleType("test_names_module")
    sys.modules[module.__name__] = module
    tvm._ffi._init_api("test.names", module.__name__)
    assert module.echo(5) == 5
    with pytest.raises(ModuleNotFoundError, match="test_no_module"):
        tvm._ffi._init_api("test.names", "test_no_module")
    assert sys.modules["tvm.runtime.profiling"]._ffi_api.AsTable is not None


def test_functions_register_under_their_own_name_too():
    @tvm.register_func
    def test_names_plus_one(x):
        return x + 1

    assert tvm.get_global_func("test_names_plus_one")(1) == 2
    tvm._ffi.remove_global_func("test_names_plus_one")


def test_classes_register_with_and_without_a_key():
    before = dict(base.core.object_classes)
    try:

        @tvm._ffi.register_object
        class IntImm(tvm.ir.PrimExpr):
            pass

        @tvm._ffi.register_object("test.Unknown")
        class Other(tvm.Object):
            pass

        assert base.core.object_classes["IntImm"] is IntImm
        assert base.core.object_classes["test.Unknown"] is Other
        with pytest.raises(TypeError, match="must derive from tvm.Object"):
            tvm._ffi.register_object("test.Bad")(int)
    finally:
        base.core.object_classes.clear()
        base.core.object_classes.update(before)


def test_values_that_stand_for_objects_are_asked_for_them(echo):
    class Half(tvm.runtime.ObjectGeneric):
        def asobject(self):
            return tvm.ir.FloatImm("float32", 0.5)

    assert echo(Half()).value == 0.5
    assert tvm.runtime.convert([1, [2, "a"]]) == [1, [2, "a"]]
    assert tvm.runtime.convert(lambda: 7)() == 7
    with pytest.raises(TypeError, match="cannot pass a value of type set"):
        tvm.runtime.convert({1})


def test_shape_tuple_is_a_sequence_of_numbers(echo):
    shape = ShapeTuple([2, 3, 4])
    assert shape == (2, 3, 4)
    assert echo(shape)[-1] == 4
    assert shape[1:] == (3, 4)
    assert len(shape) == 3
    with pytest.raises(IndexError):
        shape[3]


def test_adt_has_a_tag_and_fields():
    adt = ADT(2, [1, "a", ShapeTuple([1])])
    assert (adt.tag, len(adt)) == (2, 3)
    assert adt[-1] == (1,)
    assert adt[:2] == [1, "a"]
    assert tvm.runtime.tuple_object([5]).tag == 0
    with pytest.raises(IndexError, match="out of range for 3 fields"):
        adt[3]


def test_params_round_trip_and_damaged_ones_are_refused(tmp_path):
    params = {
        "weight": tvm.nd.array(np.arange(6, dtype="float32").reshape(2, 3)),
        "mask": tvm.nd.array(np.array([True, False])),
        "half": tvm.nd.empty((3,), "bfloat16"),
    }
    as_numpy = {"mask": params["mask"].numpy()}
    assert tvm.runtime.load_param_dict(tvm.runtime.save_param_dict(as_numpy))["mask"].size == 2
    data = tvm.runtime.save_param_dict(params)
    assert type(data) is bytes
    loaded = tvm.runtime.load_param_dict(bytearray(data))
    assert list(loaded) == list(params)
    for name, array in params.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name].numpy(), array.numpy())
    tvm.runtime.save_param_dict_to_file(params, tmp_path / "p")
    assert len(tvm.runtime.load_param_dict_from_file(tmp_path / "p")) == 3
    with pytest.raises(ValueError, match='parameters: "bias" is None'):
        tvm.runtime.save_param_dict({"bias": None})
    for size in range(0, len(data), 7):
        with pytest.raises(ValueError, match="parameters: .*damaged"):
            tvm.runtime.load_param_dict(data[:size])


def test_custom_data_types_have_names_and_codes():
    get = tvm.get_global_func
    get("runtime._datatype_register")("test_posit", 150)
    assert get("runtime._datatype_get_type_code")("test_posit") == 150
    assert get("runtime._datatype_get_type_name")(150) == "test_posit"
    assert get("runtime._datatype_get_type_registered")(150)
    assert not get("runtime._datatype_get_type_registered")(151)
    dtype = tvm.tir.Var("x", "custom[test_posit]32x4").dtype
    assert (dtype.kind, dtype.bits, dtype.lanes) == ("custom[test_posit]", 32, 4)
    assert dtype.with_lanes(1) == "custom[test_posit]32"
    with pytest.raises(ValueError, match="NumPy has no counterpart"):
        dtype.with_lanes(1).to_numpy()
    with pytest.raises(ValueError, match="the name or the number is taken"):
        get("runtime._datatype_register")("test_posit", 151)
    with pytest.raises(ValueError, match="must be from 129 to 255"):
        get("runtime._datatype_register")("test_int", 0)


def test_type_table_and_object_hash():
    table = tvm.get_global_func("runtime.DumpTypeTable")(1)
    assert "runtime.PackedFunc\tparent=runtime.Object" in table
    array = tvm.nd.empty((1,))
    digest = tvm.get_global_func("runtime.ObjectPtrHash")
    assert digest(array) == digest(array)
    assert digest(array) != digest(tvm.nd.empty((1,)))


def test_libinfo_tells_what_is_installed():
    info = tvm.support.libinfo()
    assert info["TVM_VERSION"] == tvm.__version__
    assert "llvm" in info["ENABLED"]
    assert os.path.isfile(os.path.join(libinfo.find_include_path()[0], "tvm/runtime/c_host_api.h"))


def test_arrays_share_memory_with_torch_and_numpy():
    array = tvm.nd.array(np.zeros(4, "float32"))
    torch.from_dlpack(array)[1] = 5
    assert array.numpy()[1] == 5
    tensor = torch.zeros(4)
    tvm.nd.from_dlpack(tensor)[:] = np.ones(4)
    assert tensor.sum() == 4
    capsule = torch.utils.dlpack.to_dlpack(tensor)
    assert tvm.nd.from_dlpack(capsule).numpy().sum() == 4
    with pytest.raises(ValueError, match="not consumed before"):
        tvm.nd.from_dlpack(capsule)
    assert np.from_dlpack(array)[1] == 5
    np.testing.assert_array_equal(torch.utils.dlpack.from_dlpack(array.__dlpack__()), array.numpy())


def test_functions_of_numpy_take_arrays():
    array = tvm.nd.array(np.arange(4, dtype="float32"))
    assert np.asarray(array).dtype == np.float32
    assert np.asarray(array, dtype="int64").tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(array, [0, 1, 2, 3])
    with pytest.raises(ValueError, match="from_dlpack shares the memory"):
        array.__array__(copy=False)


def test_arrays_are_made_in_a_memory_scope_that_exists():
    assert tvm.nd.empty((2, 3), "int8", tvm.cpu(), "global").shape == (2, 3)
    with pytest.raises(ValueError, match='memory scope "shared" is not available on cpu'):
        tvm.nd.empty((2,), mem_scope="shared")
    allocate = tvm.get_global_func("runtime.TVMArrayAllocWithScope")
    assert allocate([4], "float32", tvm.cpu(), None).shape == (4,)
    assert allocate(ShapeTuple([2, 3]), "int8", tvm.cpu(), "global").shape == (2, 3)
    with pytest.raises(TypeError, match="the shape is None"):
        allocate(None, "float32", tvm.cpu(), None)
    with pytest.raises(TypeError, match="device must be a Device, got str; write tvm.device"):
        tvm.nd.array(np.ones(3), "cuda")


def test_views_copies_and_assignments():
    array = tvm.nd.array(np.arange(6, dtype="float32"))
    view = array.view((2, 3))
    view[:] = np.full((2, 3), 7.0)
    assert array.numpy().tolist() == [7.0] * 6
    with pytest.raises(ValueError, match="needs 32 bytes, the array has 24"):
        array.view((8,))
    target = tvm.nd.empty((6,))
    assert array.copyto(target) is target
    assert array.copyto(tvm.cpu()).numpy().sum() == 42
    with pytest.raises(ValueError, match="shapes and types must agree"):
        array.copyto(tvm.nd.empty((5,)))
    with pytest.raises(ValueError, match="only the whole array can be assigned"):
        array[0] = 1


def test_runtime_enabled_knows_kinds_and_devices():
    assert tvm.runtime.enabled("llvm")
    assert tvm.runtime.enabled("llvm -mcpu=x86-64")
    assert not tvm.runtime.enabled("no_such_device")
