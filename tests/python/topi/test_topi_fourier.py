"""Fast Fourier transforms of rows and columns, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tvm
from tvm import relax, te, topi
from tvm.relax import op


def run(inputs, outputs, arrays, target="llvm"):
    schedule = te.create_schedule([o.op for o in outputs])
    func = tvm.build(schedule, [*inputs, *outputs], target)
    results = [tvm.nd.array(np.zeros([int(n) for n in o.shape], o.dtype)) for o in outputs]
    func(*map(tvm.nd.array, arrays), *results)
    return [result.numpy() for result in results]


def complex_rows(shape, dtype):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(2)]


def transform(kind, n, rows=3, count=None, dtype="float32", sign=-1, target="llvm"):
    """The library's transform of random rows, and those rows."""
    count = n if count is None else count
    split = topi.fft_split(n)
    assert split[0] * split[1] == n
    scale = 1 / n if kind == "irfft" else 1.0
    tables = [t.astype(dtype) for t in topi.fft_tables(*split, sign, scale)]
    width = n // 2 + 1 if kind == "irfft" else n
    data = complex_rows((rows, width), dtype)[: 1 if kind == "rfft" else 2]
    arrays = [*data, *tables]
    inputs = [te.placeholder(a.shape, a.dtype) for a in arrays]
    with tvm.target.Target(target):
        if kind == "rfft":
            outputs = topi.rfft_rows(*inputs, count)
        elif kind == "fft":
            outputs = topi.fft_rows(*inputs, count, sign)
        else:
            outputs = [topi.irfft_rows(*inputs)]
        found = run(inputs, outputs, arrays, target)
    return found, data


def tolerance(dtype):
    return {"float32": 2e-6, "float64": 1e-14}[dtype]


# Powers of two, lengths of audio, odd ones, and first steps that fill no vectors.
LENGTHS = [32, 45, 64, 100, 256, 400, 441, 480, 512, 600, 847, 1000, 1024, 1300, 2048, 4096]


@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_real_numbers_and_back(n):
    half = n // 2 + 1
    (re, im), (data,) = transform("rfft", n, count=half)
    want = np.fft.rfft(data.astype("float64"))
    largest = abs(want).max()
    assert abs(re + 1j * im - want).max() < tolerance("float32") * largest
    (found,), (re, im) = transform("irfft", n, sign=1)
    want = np.fft.irfft(re.astype("float64") + 1j * im, n)
    assert abs(found - want).max() < tolerance("float32") * abs(want).max()


@pytest.mark.parametrize(("n", "sign"), zip(LENGTHS, itertools.cycle([-1, 1])))
def test_rows_of_complex_numbers(n, sign):
    (re, im), data = transform("fft", n, sign=sign)
    z = data[0].astype("float64") + 1j * data[1]
    want = np.fft.fft(z) if sign < 0 else np.fft.ifft(z, norm="forward")
    assert abs(re + 1j * im - want).max() < tolerance("float32") * abs(want).max()


OF_OTHER_VECTORS = [
    ("llvm", "float32"),
    ("llvm -mcpu=haswell", "float32"),
    ("llvm -mcpu=nehalem", "float32"),
    ("llvm", "float64"),
]


@pytest.mark.parametrize(("target", "dtype"), OF_OTHER_VECTORS)
@pytest.mark.parametrize(
    ("n", "count", "sign"), [(64, 64, 1), (100, 51, -1), (256, 128, 1), (441, 441, -1)]
)
def test_rows_of_pairs(target, dtype, n, count, sign):
    re, im = complex_rows((3, n), dtype)
    tables = [t.astype(dtype) for t in topi.fft_tables(*topi.fft_split(n), sign, 0.5)]
    arrays = [np.stack([re, im], -1).reshape(3, 2 * n), *tables]
    inputs = [te.placeholder(a.shape, a.dtype) for a in arrays]
    with tvm.target.Target(target):
        (found,) = run(inputs, [topi.fft_pairs(*inputs, count, sign)], arrays, target)
    z = re.astype("float64") + 1j * im
    want = 0.5 * (np.fft.fft(z) if sign < 0 else np.fft.ifft(z, norm="forward"))[:, :count]
    found = found.reshape(3, count, 2)
    error = abs(found[..., 0] + 1j * found[..., 1] - want).max()
    assert error < tolerance(dtype) * abs(want).max()


@pytest.mark.parametrize(("target", "dtype"), OF_OTHER_VECTORS)
@pytest.mark.parametrize(
    ("n", "pairs"), zip([64, 90, 256, 400, 512, 882], itertools.cycle([True, False]))
)
def test_rows_of_real_numbers_by_half_as_many_complex_ones(target, dtype, pairs, n):
    data = complex_rows((3, n), dtype)[0]
    tables = [*topi.fft_tables(*topi.fft_split(n // 2), -1, 0.5), topi.rfft_turns(n)]
    arrays = [data, *(t.astype(dtype) for t in tables)]
    inputs = [te.placeholder(a.shape, a.dtype) for a in arrays]
    with tvm.target.Target(target):
        outputs = [topi.rfft_pairs(*inputs)] if pairs else topi.rfft_halves(*inputs)
        found = run(inputs, outputs, arrays, target)
    if pairs:
        together = found[0].reshape(3, n // 2 + 1, 2)
        found = [together[..., 0], together[..., 1]]
    want = np.fft.rfft(data.astype("float64"))
    error = abs(found[0] + 1j * found[1] - want).max()
    assert error < tolerance(dtype) * abs(want).max()


# Eight and four lanes, and float64 of eight.
@pytest.mark.parametrize(
    ("target", "dtype"),
    [("llvm -mcpu=haswell", "float32"), ("llvm -mcpu=nehalem", "float32"), ("llvm", "float64")],
)
@pytest.mark.parametrize("n", [100, 400, 600])
def test_vectors_of_other_processors_and_types(target, dtype, n):
    found, (data,) = transform("rfft", n, count=n // 2, dtype=dtype, target=target)
    want = np.fft.rfft(data.astype("float64"))[:, : n // 2]
    error = abs(found[0] + 1j * found[1] - want).max()
    assert error < tolerance(dtype) * abs(want).max()


@pytest.mark.parametrize("shape", [(2, 12, 16), (1, 64, 50), (3, 13, 17)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_columns(shape, sign):
    arrays = complex_rows(shape, "float32")
    inputs = [te.placeholder(a.shape, a.dtype) for a in arrays]
    count = shape[1] // 2 + 1
    re, im = run(inputs, topi.fft_columns(*inputs, count, sign, 0.25), arrays)
    z = arrays[0].astype("float64") + 1j * arrays[1]
    want = np.fft.fft(z, axis=1) if sign < 0 else np.fft.ifft(z, axis=1, norm="forward")
    assert abs(re + 1j * im - 0.25 * want[:, :count]).max() < 2e-6 * abs(want).max()


def test_imaginary_parts_of_what_is_real_count_as_zero():
    n = 64
    (found,), (re, im) = transform("irfft", n, sign=1)
    assert im[:, 0].all() and im[:, -1].all()
    im[:, [0, -1]] = 0
    np.testing.assert_allclose(found, np.fft.irfft(re + 1j * im, n), rtol=1e-4, atol=1e-6)


def test_lengths_that_have_no_two_steps_are_told():
    assert topi.fft_split(31) is None
    assert topi.fft_split(2 * 641) is None
    assert topi.fft_split(1 << 14) is None
    assert not topi.is_straight(17) and not topi.is_straight(256) and not topi.is_straight(1)
    assert topi.is_straight(13 * 7)
    # Every other length of a few small primes has.
    smooth = [2**a * 3**b * 5**c for a in range(5, 11) for b in range(2) for c in range(2)]
    assert all(topi.fft_split(n) for n in smooth if n <= 4096)


def test_wrong_operands_are_named():
    narrow = te.placeholder((2, 8, 8)), te.placeholder((2, 8, 8))
    with pytest.raises(ValueError, match="at least 16 inner elements"):
        topi.fft_columns(*narrow, 8, -1)
    tables = [te.placeholder(t.shape) for t in topi.fft_tables(4, 16, -1)]
    rows = te.placeholder((2, 64)), te.placeholder((2, 64))
    with pytest.raises(ValueError, match="sign is -1 or 1, got 2"):
        topi.fft_rows(*rows, *tables, 64, 2)
    with pytest.raises(ValueError, match=r"rows of 64 elements, got \[2, 60\]"):
        topi.rfft_rows(te.placeholder((2, 60)), *tables, 31)
    with pytest.raises(ValueError, match="at most 64 elements, got 65"):
        topi.rfft_rows(rows[0], *tables, 65)
    with pytest.raises(ValueError, match=r"rows of 33 elements, got \[2, 64\]"):
        topi.irfft_rows(*rows, *tables)
    halves = te.placeholder((2, 64), "float16")
    with pytest.raises(ValueError, match="float32 or float64, got float16"):
        topi.rfft_rows(halves, *tables, 33)


def test_devices_compute_sums():
    """Threads of a GPU have an element each; the emulator checks their accesses."""
    n, half = 36, 19
    data, (re, im) = complex_rows((2, n), "float32")[0], complex_rows((2, half), "float32")
    columns = complex_rows((2, 6, 16), "float32")
    params = [
        relax.Var(name, relax.TensorStructInfo(a.shape, "float32"))
        for name, a in zip(("x", "re", "im", "cre", "cim"), (data, re, im, *columns))
    ]
    builder = relax.BlockBuilder()

    def tables(sign, scale=1.0):
        split = topi.fft_split(n)
        return [relax.const(t.astype("float32")) for t in topi.fft_tables(*split, sign, scale)]

    with builder.function("main", params):
        with builder.dataflow():
            x, a, b, c, d = params
            calls = [
                op.fourier.rfft_rows(x, *tables(-1), half),
                op.fourier.irfft_rows(a, b, *tables(1, 1 / n)),
                op.fourier.fft_columns(c, d, 6, -1),
            ]
            spectrum, signal, turned = map(builder.emit, calls)
            parts = [relax.TupleGetItem(pair, k) for pair in (spectrum, turned) for k in range(2)]
            out = builder.emit_output(relax.Tuple([*map(builder.emit, parts), signal]))
        builder.emit_func_output(out)
    target = tvm.target.emulated("cuda")
    machine = relax.VirtualMachine(relax.build(builder.get(), target), tvm.cpu())
    found = [v.numpy() for v in machine["main"](*map(tvm.nd.array, (data, re, im, *columns)))]
    np.testing.assert_allclose(found[0] + 1j * found[1], np.fft.rfft(data), atol=1e-4)
    z = columns[0] + 1j * columns[1]
    np.testing.assert_allclose(found[2] + 1j * found[3], np.fft.fft(z, axis=1), atol=1e-4)
    np.testing.assert_allclose(found[4], np.fft.irfft(re + 1j * im, n), atol=1e-5)
