"""External operations whose functions NumPy does, and files fetched from the network."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import tvm
from tvm import te
from tvm.contrib import cblas, cublas, dlpack, dnnl, download, mkl, pickle_memoize, rocblas
from tvm.contrib import random as random_numbers


def run(inputs, output, *arrays):
    """The output of an operation on arrays."""
    function = tvm.build(te.create_schedule(output.op), [*inputs, output], target="llvm")
    out = tvm.nd.empty([int(x) for x in output.shape], output.dtype)
    function(*map(tvm.nd.array, arrays), out)
    return out.numpy()


@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_blas_are_those_of_numpy(transa, transb, dtype):
    m, n, k = 5, 7, 3
    a = np.random.default_rng(0).random((k, m) if transa else (m, k)).astype(dtype)
    b = np.random.default_rng(1).random((n, k) if transb else (k, n)).astype(dtype)
    left, right = (te.placeholder(x.shape, dtype, name) for x, name in ((a, "a"), (b, "b")))
    found = run([left, right], cblas.matmul(left, right, transa, transb), a, b)
    np.testing.assert_allclose(found, (a.T if transa else a) @ (b.T if transb else b), rtol=1e-6)


@pytest.mark.parametrize("iterative", [False, True])
def test_products_of_batches(iterative):
    a, b = np.random.default_rng(0).random((2, 4, 5, 5)).astype("float32")
    left, right = te.placeholder(a.shape, name="a"), te.placeholder(b.shape, name="b")
    product = cblas.batch_matmul(left, right, transb=True, iterative=iterative)
    np.testing.assert_allclose(
        run([left, right], product, a, b), a @ b.transpose(0, 2, 1), rtol=1e-5
    )
    with pytest.raises(ValueError, match="expected operands of 2 dimensions, got a of 3"):
        cblas.matmul(left, right)


@pytest.mark.parametrize("library", [dnnl, mkl])
def test_products_under_the_names_of_other_libraries(library):
    a, b = np.random.default_rng(0).random((2, 5, 5)).astype("float32")
    left, right = te.placeholder(a.shape, name="a"), te.placeholder(b.shape, name="b")
    found = run([left, right], library.matmul(left, right, transb=True), a, b)
    np.testing.assert_allclose(found, a @ b.T, rtol=1e-5)


def test_products_of_bytes_are_exact():
    a, b = np.full((3, 400), 255, "uint8"), np.full((400, 2), -128, "int8")
    left, right = te.placeholder(a.shape, "uint8", "a"), te.placeholder(b.shape, "int8", "b")
    found = run([left, right], mkl.matmul_u8s8s32(left, right), a, b)
    np.testing.assert_array_equal(found, np.full((3, 2), -255 * 128 * 400))
    with pytest.raises(TypeError, match="expected uint8 and int8, got int8 and uint8"):
        mkl.matmul_u8s8s32(right, left)


@pytest.mark.parametrize("library", [cublas, rocblas])
def test_a_library_that_is_not_linked_is_named_when_it_is_called(library):
    a = te.placeholder((4, 4), name="a")
    name = f"tvm.contrib.{library.__name__.rpartition('.')[2]}.matmul"
    x = np.ones((4, 4), "float32")
    with pytest.raises(Exception, match=name):
        run([a], library.matmul(a, a), x)


def test_random_tensors_are_drawn_anew_and_after_a_seed_again():
    seed = tvm.get_global_func("tvm.contrib.random.seed")
    uniform = random_numbers.uniform(-2.0, 3.0, (64, 64))
    seed(7)
    first, second = run([], uniform), run([], uniform)
    assert not np.array_equal(first, second)
    assert first.min() >= -2 and first.max() < 3 and abs(first.mean() - 0.5) < 0.2
    seed(7)
    np.testing.assert_array_equal(run([], uniform), first)
    normal = run([], random_numbers.normal(4.0, 0.5, (64, 64)))
    assert abs(normal.mean() - 4) < 0.1 and abs(normal.std() - 0.5) < 0.1
    integers = run([], random_numbers.randint(-3, 4, (64, 64), "int64"))
    assert set(np.unique(integers)) == set(range(-3, 4))
    with pytest.raises(ValueError, match="expected an integer type, got float32"):
        random_numbers.randint(0, 2, (4,), "float32")


def test_compiled_functions_write_into_tensors_of_pytorch():
    x = te.placeholder((6,), name="x")
    y = te.compute((6,), lambda i: x[i] * 2, name="y")
    function = dlpack.to_pytorch_func(tvm.build(te.create_schedule(y.op), [x, y], target="llvm"))
    given, out = torch.arange(6.0), torch.zeros(6)
    function(given, out)
    assert torch.equal(out, given * 2)


def test_results_are_remembered_by_key_and_arguments():
    calls = []

    @pickle_memoize.memoize("test_results_are_remembered")
    def slow(array, scale=1):
        calls.append(scale)
        return array * scale

    big = np.arange(5000.0)
    other = big.copy()
    other[2500] = -1  # where the text of an array has dots
    for array, scale in ((big, 1), (big, 1), (other, 1), (big, 2), (big, 2)):
        np.testing.assert_array_equal(slow(array, scale=scale), array * scale)
    assert calls == [1, 1, 2]
    with pytest.raises(TypeError, match="give it a key"):
        pickle_memoize.memoize(slow)


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{service.server_address[1]}"
        service.shutdown()


def test_files_are_fetched_once(server, tmp_path, monkeypatch):
    folder, url = server
    (folder / "data.bin").write_bytes(b"first")
    monkeypatch.setattr(download, "TEST_DATA_ROOT_PATH", tmp_path / "kept")
    path = download.download_testdata(f"{url}/data.bin", "data.bin", module=["a", "b"])
    assert path == str(tmp_path / "kept/a/b/data.bin")
    (folder / "data.bin").write_bytes(b"other")
    fetch = (f"{url}/data.bin", path)
    download.download(*fetch)
    download.download(*fetch, size_compare=True)
    assert Path(path).read_bytes() == b"first"
    (folder / "data.bin").write_bytes(b"longer now")
    download.download(*fetch, size_compare=True)
    assert Path(path).read_bytes() == b"longer now"
    (folder / "data.bin").write_bytes(b"once more.")
    download.download(*fetch, overwrite=True)
    assert Path(path).read_bytes() == b"once more."


def test_what_cannot_be_fetched_is_said(server, tmp_path):
    _, url = server
    with pytest.raises(OSError, match=r"missing cannot be fetched to .*x\.bin.*404"):
        download.download(f"{url}/missing", tmp_path / "x.bin", retries=0)
    assert list(tmp_path.glob("x.bin*")) == []
    with pytest.raises(ValueError, match="none of the schemes http, https, file"):
        download.download("ftp://example.org/x", tmp_path / "x.bin")
    with pytest.raises(ValueError, match="is outside of"):
        download.download_testdata(f"{url}/x", "../../x")
