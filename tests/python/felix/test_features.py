"""Features and constraints over knobs against those of programs lowered with numbers."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

import testing_processors
import tvm
from testing_features import exponents, features_at, features_of_state
from testing_sketches import make_task, random_config, random_knobs, sketches_of
from tvm import auto_scheduler, te, tir
from tvm.auto_scheduler import _ffi_api
from tvm.auto_scheduler.search_space import feature_version, learned_feature_names
from tvm.felix import ffi
from tvm.felix.features import FeaturePackPy

NAMES = auto_scheduler.feature_names("llvm", "felix")
FAMILIES = [
    "matmul",
    "dense",
    "conv3x3",
    "stem",
    "depthwise_stride2",
    "two_matmuls",
    "max_pool",
    "global_pool",
    "softmax",
    "chain",
    "gather",
]


def pack_of(task, sketch) -> FeaturePackPy:
    func, context = ffi.generate_code_for_state(task, sketch, True)
    return ffi.get_feature_pack(task, func, context)


def concrete_features(task, sketch, config, pack: FeaturePackPy) -> np.ndarray:
    return features_of_state(task, ffi.state_from_config(task, sketch, config), pack)


@pytest.mark.parametrize("name", FAMILIES)
def test_features_at_integer_points_equal_those_of_the_concrete_program(name):
    task = make_task(name)
    rng = random.Random(name)
    for sketch in sketches_of(task)[0]:
        func, context = ffi.generate_code_for_state(task, sketch, True)
        pack = ffi.get_feature_pack(task, func, context)
        assert pack.n_features == len(NAMES)
        for _ in range(3):
            config = random_knobs(context, rng)
            expected = concrete_features(task, sketch, config, pack)
            actual = features_at(pack, config, expected.shape)
            wrong = np.argwhere(~np.isclose(actual, expected, rtol=1e-5, atol=1e-5))
            assert len(wrong) == 0, [
                (str(pack.store_names[int(r)]), NAMES[c], actual[r, c], expected[r, c], config)
                for r, c in wrong[:5]
            ]


def interior_points(pack: FeaturePackPy, n: int, seed: int) -> np.ndarray:
    """Real points that respect the group sums: random shares of the exponents of each prime."""
    rng = np.random.default_rng(seed)
    matrix, offset = pack.linear_constraints()
    points = rng.uniform(0.02, 0.98, (n, len(pack.variables)))
    sums = [
        (row > 0, -limit)
        for row, limit in zip(matrix, offset)
        if set(np.unique(row)) <= {0.0, 1.0} and limit == np.round(limit)
    ]
    for members, limit in sums:
        points[:, members] *= limit / members.sum()
    return points


@pytest.mark.parametrize("name", ["matmul", "conv3x3", "softmax"])
def test_gradients_equal_finite_differences(name):
    task = make_task(name)
    pack = pack_of(task, sketches_of(task)[0][0])
    points = interior_points(pack, 32, 0)
    direction = np.random.default_rng(1).standard_normal(points.shape)
    step = 1e-6
    slope = pack.tape.forward(points + step * direction) - pack.tape.forward(
        points - step * direction
    )
    expected = slope.sum(axis=1) / (2 * step)
    ones = np.ones((len(points), pack.tape.n_roots))
    actual = (pack.tape.backward(points, ones) * direction).sum(axis=1)
    assert np.isfinite(actual).all()
    # A step across a kink of min, max or a rounded size spoils single points.
    error = np.abs(actual - expected) / (1 + np.abs(expected))
    assert np.quantile(error, 0.9) < 1e-5


def test_exponents_of_a_group_are_limited_by_its_extent():
    task = make_task("matmul")
    sketch = sketches_of(task)[0][0]
    pack = pack_of(task, sketch)
    matrix, offset = pack.linear_constraints()
    rng = random.Random(5)
    for _ in range(20):
        point = exponents(pack, random_config(sketch, rng))[0]
        group_rows = [i for i, row in enumerate(matrix) if set(np.unique(row)) <= {-1.0, 0.0, 1.0}]
        assert (matrix[group_rows] @ point + offset[group_rows] <= 1e-9).all()
    beyond = np.full(len(pack.variables), 10.0)
    assert (matrix @ beyond + offset > 0).any()


def inner_tile(sketch):
    """Lengths that put the whole of each split into its innermost loop."""
    config = {}
    for step in sketch.transform_steps:
        if hasattr(step, "lengths"):
            names = [str(length.name) for length in step.lengths]
            config |= dict.fromkeys(names, 1) | {names[-1]: int(step.extent)}
    return config


@pytest.mark.parametrize(
    ("cpu", "unit"), [*testing_processors.X86.items(), *testing_processors.ARM.items()]
)
def test_register_tiles_beyond_the_registers_break_the_limit(cpu, unit):
    task = make_task("matmul", testing_processors.target_of(cpu))
    sketch = sketches_of(task)[0][0]
    pack = pack_of(task, sketch)
    names = [str(name) for name in pack.constraint_names]
    n_roots = pack.n_stores * pack.n_features
    registers = n_roots + next(i for i, n in enumerate(names) if n.endswith(".registers"))
    tile = NAMES.index("tile_vectors")
    rng = random.Random(0)

    def vectors_and_limit(config):
        roots = pack.tape.forward(exponents(pack, config))[0]
        return round(float(np.expm1(roots[tile]))), roots[registers]

    # 24 x 32 elements are more than the registers of any of these processors hold.
    assert vectors_and_limit(inner_tile(sketch))[0] == 24 * 32 * 32 // unit[0]
    configs = [inner_tile(sketch), *(random_config(sketch, rng) for _ in range(30))]
    for vectors, limit in map(vectors_and_limit, configs):
        # One multiply-add takes an operand from memory.
        assert vectors <= unit[1] or limit > 0
        assert vectors > 1 or limit <= 0


def test_an_extent_with_a_large_prime_is_factored():
    a, b = te.placeholder((22, 13), name="A"), te.placeholder((13, 34), name="B")
    k = te.reduce_axis((0, 13), name="k")
    c = te.compute((22, 34), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    task = auto_scheduler.SearchTask(compute_dag=[a, b, c], target="llvm")
    pack = pack_of(task, sketches_of(task)[0][0])
    primes = {int(f[0]) for factors in pack.var_factors.values() for f in factors}
    assert primes == {2, 11, 13, 17}


def test_features_are_the_same_twice():
    task = make_task("conv1x1")
    sketch = sketches_of(task)[0][0]
    first, second = pack_of(task, sketch), pack_of(task, sketch)
    tvm.ir.assert_structural_equal(first.tape, second.tape)


def test_multiply_adds_are_counted_once():
    task = make_task("matmul")
    sketch = sketches_of(task)[0][0]
    config = random_config(sketch, random.Random(2))
    row = concrete_features(task, sketch, config, pack_of(task, sketch))[0]
    values = dict(zip(NAMES, np.expm1(row)))
    assert round(values["float_mad"]) == 24 * 32 * 40
    assert values["float_mul"] == values["float_addsub"] == 0


def test_places_that_are_read_from_memory_are_a_third_of_a_dimension_apart():
    table = te.placeholder((900,), name="table")
    index = te.placeholder((64,), "int32", name="index")
    dag = [table, index, te.compute((64,), lambda i: table[index[i]], name="out")]
    task = auto_scheduler.SearchTask(compute_dag=dag, target="llvm")
    sketch = sketches_of(task)[0][0]
    pack = pack_of(task, sketch)
    row = concrete_features(task, sketch, random_config(sketch, random.Random(0)), pack)[0]
    values = dict(zip(NAMES, np.expm1(row)))
    strides = sorted(round(values[f"B{i}.stride"]) for i in range(3))
    lines = sorted(round(values[f"B{i}.lines"]) for i in range(3))
    assert strides == [1, 1, 300]
    assert lines == [4, 4, 64]


def _fixed_programs() -> dict[str, np.ndarray]:
    """Features of programs that are scheduled by hand, whatever search spaces look like."""
    a, b, bias = (te.placeholder(shape, name=name) for shape, name in _FIXED_INPUTS)
    k = te.reduce_axis((0, 96), "k")
    product = te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    out = te.compute((64, 48), lambda i, j: tir.max(product[i, j] + bias[j], 0.0), name="out")
    found = {}
    for kind, target in _FIXED_TARGETS.items():
        task = auto_scheduler.SearchTask(compute_dag=[a, b, bias, out], target=target)
        state = task.compute_dag.get_init_state()
        i, j = state[out].iters
        io, ii = state.split(out, i, [6 if kind == "cpu_last_tile" else 8])
        jo, ji = state.split(out, j, [16])
        state.reorder(out, [io, jo, ii, ji])
        if kind != "gpu":
            state.parallel(out, io)
            state.vectorize(out, ji)
        else:
            state.bind(out, io, "blockIdx.x")
            state.bind(out, ii, "threadIdx.x")
        state.compute_at(product, out, jo)
        program, _ = ffi.generate_code_for_state(task, state, False)
        found[kind] = _ffi_api.LoopFeatures(task, program, None, "felix").numpy()
    return found


_FIXED_INPUTS = (((64, 96), "a"), ((96, 48), "b"), ((48,), "bias"))
_FIXED_PROCESSOR = (
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -num-cores=4 "
    "-l1-cache-bytes=32768 -l2-cache-bytes=1048576 -l3-cache-bytes=16777216"
)
_FIXED_TARGETS = {
    "cpu": _FIXED_PROCESSOR,
    "cpu_last_tile": _FIXED_PROCESSOR,
    "gpu": "cuda -arch=sm_80",
}


@pytest.mark.parametrize("kind", ["cpu", "cpu_last_tile", "gpu"])
def test_what_features_mean_has_a_number(kind):
    """Features of fixed programs as they were when the version was given its number.

    Where a column is to have other values, raise kLoopFeatureVersion, so that models and data sets
    of the old meaning are refused, and train the packaged model anew; then write the new digest.
    """
    # What only the bound of a machine reads is no model's business.
    learned = len(learned_feature_names(_FIXED_TARGETS[kind]))
    rows = _fixed_programs()[kind][:, :learned]
    digest = hashlib.sha256((np.round(rows, 3) + 0.0).astype("<f4").tobytes()).hexdigest()[:16]
    assert (feature_version(), digest) == (1, _DIGESTS[kind])


_DIGESTS = {
    "cpu": "9aca468f09e20885",
    "cpu_last_tile": "507c7881ac9cc3c7",
    "gpu": "1e61a8f0f48abfe5",
}
