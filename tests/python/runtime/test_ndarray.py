"""Arrays: copies, shared memory, refusals."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import tvm
from testing_cuda_driver import build_driver, driver_environment

DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_round_trips_through_numpy(dtype):
    values = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    array = tvm.nd.array(values)
    assert array.dtype == dtype
    assert array.shape == (3, 4)
    np.testing.assert_array_equal(array.numpy(), values)


@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16"])
def test_numbers_are_rounded_to_bfloat16(source):
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    values = np.array([1.5, -3.14159, 1.00390625, 1.01171875, 3.4e38, -0.0, np.nan, np.inf])
    expected = values.astype("float32").astype(bfloat16).astype(float)
    array = tvm.nd.empty(values.shape, "bfloat16")
    array.copyfrom(values.astype(bfloat16 if source == "bfloat16" else source))
    np.testing.assert_array_equal(array.numpy().view(bfloat16).astype(float), expected)
    # Patterns stay patterns.
    array.copyfrom(array.numpy())
    np.testing.assert_array_equal(array.numpy().view(bfloat16).astype(float), expected)


def test_numpy_returns_independent_memory():
    array = tvm.nd.array(np.zeros(3, "float32"))
    array.numpy()[:] = 1
    assert not array.numpy().any()


def test_array_accepts_strided_values():
    values = np.arange(12, dtype="float32").reshape(3, 4).T
    np.testing.assert_array_equal(tvm.nd.array(values).numpy(), values)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 0)])
def test_unusual_shapes_work(shape):
    assert tvm.nd.array(np.zeros(shape)).numpy().shape == shape


def test_numpy_view_shares_memory():
    array = tvm.nd.array(np.zeros(3, "float32"))
    view = np.from_dlpack(array)
    assert view.ctypes.data == array.data_address
    tvm.nd.from_dlpack(np.ones(3, "float32")).copyto(array)
    assert view.tolist() == [1, 1, 1]


def test_numpy_producer_stays_alive_while_shared():
    values = np.arange(5, dtype="int64")
    alive = weakref.ref(values)
    array = tvm.nd.from_dlpack(values)
    del values
    gc.collect()
    assert alive() is not None
    assert array.numpy().tolist() == [0, 1, 2, 3, 4]
    del array
    gc.collect()
    assert alive() is None


def test_torch_shares_memory_in_both_directions():
    torch = pytest.importorskip("torch")
    array = tvm.nd.array(np.zeros((2, 3), "float32"))
    tensor = torch.from_dlpack(array)
    tensor[1, 2] = 5
    assert array.numpy()[1, 2] == 5
    source = torch.arange(6).reshape(2, 3).t()
    shared = tvm.nd.from_dlpack(source)
    assert shared.shape == (3, 2)
    assert not shared.is_contiguous()
    source[0, 1] = 42
    np.testing.assert_array_equal(shared.numpy(), source.numpy())
    assert tvm.nd.from_dlpack(torch.tensor([True, False])).dtype == "bool"
    # PyTorch says strides as if there were elements.
    assert tvm.nd.from_dlpack(torch.zeros(2, 0, 3)).is_contiguous()


def test_a_capsule_can_be_asked_for():
    torch = pytest.importorskip("torch")
    array = tvm.nd.array(np.zeros(3, "float32"))
    torch.utils.dlpack.from_dlpack(array.to_dlpack()).add_(1)
    np.testing.assert_array_equal(array.numpy(), np.ones(3))


def test_capsules_that_nobody_consumes_are_released():
    array = tvm.nd.array(np.zeros(4))
    for _ in range(1000):
        array.__dlpack__()
    capsule = tvm.nd.to_dlpack(array)
    tvm.nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="not consumed before"):
        tvm.nd.from_dlpack(capsule)


def test_copy_refuses_another_shape():
    array = tvm.nd.empty((2, 3))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), the source \(3, 2\)"):
        array.copyfrom(np.zeros((3, 2)))
    array[:] = 3
    assert (array.numpy() == 3).all()


def test_view_needs_enough_memory():
    array = tvm.nd.array(np.arange(6, dtype="float32"))
    assert array.view((2, 3)).numpy()[1].tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="needs 28 bytes, the array has 24"):
        array.view((7,))


def test_a_view_may_begin_inside_of_the_array():
    array = tvm.nd.array(np.arange(6, dtype="float32"))
    part = array._create_view((2, 2), relative_byte_offset=8)
    assert part.numpy().tolist() == [[2, 3], [4, 5]]
    assert part._create_view((1,), relative_byte_offset=4).numpy().tolist() == [3]
    with pytest.raises(ValueError, match="needs"):
        array._create_view((2,), relative_byte_offset=20)
    with pytest.raises(ValueError, match="begins at byte 0 or later, got -4"):
        array._create_view((1,), relative_byte_offset=-4)


def test_the_text_of_an_array_is_numpys():
    array = tvm.nd.array(np.arange(3, dtype="float32"))
    assert str(array) == "[0. 1. 2.]" and repr(array).startswith("NDArray(float32, shape=(3,)")


def test_processors_have_no_facts_of_blocks_of_threads():
    device = tvm.cpu()
    facts = (device.max_thread_dimensions, device.l2_cache_size_bytes, device.driver_version)
    assert facts == (None, None, None)


def test_facts_of_a_gpu_come_from_its_driver(tmp_path):
    facts = (
        "import tvm; d = tvm.cuda(); "
        "print(d.max_thread_dimensions, d.l2_cache_size_bytes, d.api_version, d.driver_version)"
    )
    result = subprocess.run(
        [sys.executable, "-c", facts],
        env=driver_environment(build_driver(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == f"[1024, 1024, 64] {40 << 20} 13020 13020"


def test_missing_device_and_unknown_kind_are_named():
    with pytest.raises(RuntimeError, match=r"device metal\(0\) is not available"):
        tvm.nd.empty((2,), device=tvm.metal())
    with pytest.raises(ValueError, match='unknown kind "gpux"; known kinds: c, cl, cpu'):
        tvm.device("gpux")
    assert tvm.device("llvm", 0) == tvm.device("cpu", 0) == tvm.cpu(0)


def test_negative_extent_is_refused():
    with pytest.raises(ValueError, match="negative extent -1"):
        tvm.nd.empty((2, -1))


def test_params_round_trip_as_bytes():
    params = {"w": tvm.nd.array(np.eye(2, dtype="float32")), "b/x": tvm.nd.array(np.ones(3, bool))}
    loaded = tvm.runtime.load_param_dict(tvm.runtime.save_param_dict(params))
    assert list(loaded) == ["w", "b/x"]
    np.testing.assert_array_equal(loaded["w"].numpy(), np.eye(2))
    assert loaded["b/x"].dtype == "bool"


@pytest.mark.parametrize(
    ("text", "kind", "bits", "lanes"),
    [
        ("float32", "float", 32, 1),
        ("int8x16", "int", 8, 16),
        ("bool", "bool", 1, 1),
        ("handle", "handle", 64, 1),
        ("bfloat16x4", "bfloat", 16, 4),
    ],
)
def test_data_type_is_a_text_with_parts(text, kind, bits, lanes):
    dtype = tvm.DataType(text)
    assert dtype == text
    assert (dtype.kind, dtype.bits, dtype.lanes) == (kind, bits, lanes)


@pytest.mark.parametrize("text", ["float33x", "flot32", "int8x", "32"])
def test_data_type_refuses_other_text(text):
    with pytest.raises(ValueError, match="cannot read"):
        tvm.DataType(text)
    with pytest.raises(ValueError, match="cannot read"):
        tvm.nd.empty((1,), text)


def test_memory_of_another_kind_is_asked_for_by_name():
    values = np.arange(4, dtype="float32")
    array = tvm.nd.array(values, tvm.cpu(), mem_scope="global")
    assert array.copyto(tvm.cpu(), mem_scope="global").numpy().tolist() == values.tolist()
    halves = tvm.nd.array(array, dtype="float16")
    assert str(halves.dtype) == "float16" and halves.numpy().tolist() == values.tolist()


def test_complex_numbers_are_refused_with_the_way_out():
    torch = pytest.importorskip("torch")
    values = torch.tensor([1 + 2j, 3 - 1j])
    for given in (values, torch.utils.dlpack.to_dlpack(values)):
        with pytest.raises(ValueError, match="parts as an axis of two, as torch.view_as_real"):
            tvm.nd.from_dlpack(given)
    parts = tvm.nd.from_dlpack(torch.view_as_real(values))
    np.testing.assert_array_equal(parts.numpy(), [[1, 2], [3, -1]])


def test_numpys_arrays_are_arguments_without_a_copy():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    array, shape = tvm.nd.numpyasarray(values)
    values[0, 0] = 7
    assert shape == (2, 3) and array.numpy()[0, 0] == 7
    with pytest.raises(ValueError, match="must be contiguous"):
        tvm.nd.numpyasarray(values.T)
