"""Features against what a program does when it is run: each trip counted, each index looked at.

The extractors for numbers and for knobs are one; this one shares nothing with them.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

import testing_gpu
from testing_sketches import make_task, random_config, sketches_of
from tvm import auto_scheduler, te, tir, topi
from tvm.auto_scheduler import _ffi_api
from tvm.felix import ffi
from tvm.tir.stmt_functor import post_order_visit

NAMES = auto_scheduler.feature_names("llvm", "felix")
_BINARY = {
    tir.Add: "({} + {})",
    tir.Sub: "({} - {})",
    tir.Mul: "({} * {})",
    tir.FloorDiv: "({} // {})",
    tir.FloorMod: "({} % {})",
    tir.Min: "min({}, {})",
    tir.Max: "max({}, {})",
    tir.LT: "({} < {})",
    tir.LE: "({} <= {})",
    tir.GT: "({} > {})",
    tir.GE: "({} >= {})",
    tir.EQ: "({} == {})",
    tir.NE: "({} != {})",
    tir.And: "({} and {})",
    tir.Or: "({} or {})",
}

_KINDS = ("serial", "parallel", "vectorized", "unrolled")
_THREADS = ("thread_extent", "virtual_thread")


@dataclass
class Counted:
    """What happened at one store."""

    buffer: str
    bytes: int
    arithmetic: int
    """Sums, differences and products of floats in the stored value."""
    is_guarded: bool = False
    """Whether it stands behind a condition."""
    executions: int = 0
    hulls: dict[str, list[list[int]]] = field(default_factory=dict)
    """Buffer to the least and the greatest index of each dimension."""
    trips: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Loop to its kind and its greatest number of trips."""
    starts: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Buffer to its indices in the first and in the second execution, of each access."""
    visits: dict[str, list[tuple[int, dict[str, int]]]] = field(default_factory=dict)
    """Buffer to the first two executions that touch its first element: number, values of loops."""


class Interpreter:
    """A program as Python code that counts."""

    def __init__(self, func: tir.PrimFunc) -> None:
        self.lines: list[str] = []
        self.stores: list[Counted] = []
        self.buffers: list[str] = []
        """In the order in which the program mentions them."""
        self._known: list[tir.Buffer] = []
        self.first_stored: list[str] = []
        """In the order in which the program begins to store to them."""
        self.realized: dict[str, list[list[int]]] = {}
        self.shapes: dict[str, list[int]] = {}
        self._names: dict[tir.Var, str] = {}
        self._loops: list[str] = []
        self._is_guarded = False
        self._axes: dict[str, str] = {}
        """Names of the thread axes that are bound, by their tags."""
        self._statement(func.body, "")
        exec("\n".join(self.lines), {"stores": self.stores, "realized": self.realized, "see": _see})

    def _say(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def _label(self, buffer: tir.Buffer) -> str:
        """A name that no other buffer has."""
        at = next((i for i, known in enumerate(self._known) if known.same_as(buffer)), None)
        if at is None:
            at = len(self._known)
            self._known.append(buffer)
            self.buffers.append(f"{buffer.name}#{at}")
            self.shapes[self.buffers[at]] = [int(extent) for extent in buffer.shape]
        return self.buffers[at]

    def _statement(self, node: tir.Stmt, indent: str) -> None:
        if isinstance(node, tir.SeqStmt):
            for part in node.seq:
                self._statement(part, indent)
        elif isinstance(node, tir.For):
            name = self._names[node.loop_var] = f"v{len(self._names)}"
            low, extent = self._value(node.min), self._value(node.extent)
            self._say(indent, f"for {name} in range({low}, {low} + {extent}):")
            self._loops.append(f"'{name}': ('{_KINDS[int(node.kind)]}', {extent}, {name})")
            self._statement(node.body, indent + " ")
            self._loops.pop()
        elif isinstance(node, tir.IfThenElse):
            self._say(indent, f"if {self._value(node.condition)}:")
            before, self._is_guarded = self._is_guarded, True
            self._statement(node.then_case, indent + " ")
            self._is_guarded = before
            assert node.else_case is None
        elif isinstance(node, tir.BufferRealize):
            extents = ", ".join(self._value(bound.extent) for bound in node.bounds)
            label = self._label(node.buffer)
            self._say(indent, f"realized.setdefault('{label}', []).append([{extents}])")
            self._statement(node.body, indent)
        elif isinstance(node, tir.AttrStmt) and str(node.attr_key) in _THREADS:
            self._threads_of(node, indent)
        elif isinstance(node, tir.AttrStmt):
            self._statement(node.body, indent)
        else:
            assert isinstance(node, tir.BufferStore), type(node)
            self._store(node, indent)

    def _threads_of(self, node: tir.AttrStmt, indent: str) -> None:
        """One after the other; an axis that is bound again is the one that there is."""
        tag = str(node.node.thread_tag)
        if tag in self._axes and tag != "vthread":
            self._names[node.node.var] = self._axes[tag]
            self._statement(node.body, indent)
            return
        name = self._axes[tag] = self._names[node.node.var] = f"v{len(self._names)}"
        extent = self._value(node.value)
        self._say(indent, f"for {name} in range({extent}):")
        self._loops.append(f"'{name}': ('{tag}', {extent}, {name})")
        self._statement(node.body, indent + " ")
        self._loops.pop()
        del self._axes[tag]

    def _store(self, node: tir.BufferStore, indent: str) -> None:
        stored = self._label(node.buffer)
        if stored not in self.first_stored:
            self.first_stored.append(stored)
        loads: list[tir.BufferLoad] = []
        arithmetic = 0

        def visit(part: object) -> None:
            nonlocal arithmetic
            if isinstance(part, tir.BufferLoad):
                loads.append(part)
            elif isinstance(part, (tir.Add, tir.Sub, tir.Mul)) and "float" in str(part.dtype):
                arithmetic += 1

        post_order_visit(node.value, visit)
        for load in loads:
            self._label(load.buffer)
        if not loads:
            self._say(indent, "pass")  # what a reduction starts with
            return
        number = len(self.stores)
        width = int(np.dtype(str(node.buffer.dtype)).itemsize)
        self.stores.append(Counted(stored, width, arithmetic, self._is_guarded))
        self._say(indent, f"stores[{number}].executions += 1")
        loops = "{" + ", ".join(self._loops) + "}"
        for access in (node, *loads):
            indices = ", ".join(self._value(index) for index in access.indices)
            label = self._label(access.buffer)
            self._say(indent, f"see(stores[{number}], '{label}', ({indices},), {loops})")

    def _value(self, node: tir.PrimExpr) -> str:
        if isinstance(node, tir.IntImm):
            return str(int(node))
        if isinstance(node, tir.Var):
            return self._names[node]
        if isinstance(node, tir.Cast):
            return self._value(node.value)
        if isinstance(node, tir.Call) and str(node.op.name) == "tir.likely":
            return self._value(node.args[0])
        return _BINARY[type(node)].format(self._value(node.a), self._value(node.b))


def _see(store: Counted, buffer: str, indices: tuple[int, ...], loops: dict) -> None:
    hull = store.hulls.setdefault(buffer, [[index, index] for index in indices])
    for ends, index in zip(hull, indices):
        ends[0], ends[1] = min(ends[0], index), max(ends[1], index)
    for name, (kind, extent, _) in loops.items():
        store.trips[name] = (kind, max(extent, store.trips.get(name, (kind, 0))[1]))
    starts = store.starts.setdefault(buffer, [])
    if store.executions <= 2:
        starts.append(indices)
    visits = store.visits.setdefault(buffer, [])
    if (
        len(visits) < 2
        and indices == starts[0]
        and not (visits and visits[0][0] == store.executions)
    ):
        visits.append((store.executions, {name: value for name, (*_, value) in loops.items()}))


def products(form: str) -> list[te.Tensor]:
    a = te.placeholder((2, 12, 10), name="a")
    b = te.placeholder((2, 16, 10) if form == "NT" else (2, 10, 16), name="b")
    return [a, b, topi.nn.batch_matmul(a, b, transpose_b=form == "NT")]


def last_tiles() -> list[te.Tensor]:
    """Rows of which no divisor is a tile that fills the registers."""
    a, b = te.placeholder((19, 4), name="a"), te.placeholder((32, 4), name="b")
    return [a, b, topi.nn.relu(topi.nn.dense(a, b))]


def tasks() -> dict[str, auto_scheduler.SearchTask]:
    found = {name: make_task(name) for name in ("dense", "conv1x1", "chain", "two_matmuls")}
    for form in ("NN", "NT"):
        found[form] = auto_scheduler.SearchTask(compute_dag=products(form), target="llvm")
    found["last_tiles"] = auto_scheduler.SearchTask(
        compute_dag=last_tiles(), target="llvm -mcpu=znver4 -num-cores=1"
    )
    return found


@pytest.mark.parametrize(
    "name", ["dense", "conv1x1", "chain", "two_matmuls", "NN", "NT", "last_tiles"]
)
def test_features_are_what_running_the_program_counts(name):
    task = tasks()[name]
    sketches, failures = sketches_of(task)
    assert sketches and not failures
    rng = random.Random(name)
    for sketch in sketches:
        func, context = ffi.generate_code_for_state(task, sketch, True)
        order = ffi.get_feature_pack(task, func, context).buffer_order
        config = random_config(sketch, rng)
        state = ffi.state_from_config(task, sketch, config)
        concrete, _ = ffi.generate_code_for_state(task, state, False)
        rows = np.expm1(_ffi_api.LoopFeatures(task, concrete, order, "felix").numpy())
        program = Interpreter(concrete)
        assert len(rows) == len(program.stores) > 0
        for row, slots, store in zip(rows, order, program.stores):
            values = dict(zip(NAMES, row))
            numbers = [int(slot) for slot in slots]
            expected = counted(program, store, numbers) | used_again(program, store, numbers)
            for column, value in expected.items():
                assert values[column] == pytest.approx(value, rel=1e-3), (
                    f"{column} of {store.buffer} at {config}"
                )


def counted(program: Interpreter, store: Counted, slots: list[int]) -> dict[str, float]:
    """Columns of one store, from counts."""
    found: dict[str, float] = {"outer_prod": store.executions}
    running = [(kind, trips) for kind, trips in store.trips.values() if trips > 1]
    found["num_loops"] = len(running)
    for column, kind in (
        ("vec_prod", "vectorized"),
        ("unroll_prod", "unrolled"),
        ("parallel_prod", "parallel"),
    ):
        extents = [trips for mark, trips in running if mark == kind]
        found[column] = math.prod(extents) if extents else 0
    for slot, number in enumerate(slots):
        hull = store.hulls[program.buffers[number]]
        elements = math.prod(high - low + 1 for low, high in hull)
        found[f"B{slot}.bytes"] = store.executions * store.bytes
        found[f"B{slot}.unique_bytes"] = elements * store.bytes
    if store.buffer in program.realized:
        allocations = program.realized[store.buffer]
        found["alloc_size"] = math.prod(allocations[0]) * store.bytes
        found["alloc_outer_prod"] = len(allocations)
        found["alloc_inner_prod"] = store.executions / len(allocations)
    return found


def used_again(program: Interpreter, store: Counted, slots: list[int]) -> dict[str, float]:
    """Columns of how far one trip is from the next, and of when an element is read again."""
    found: dict[str, float] = {}
    for slot, number in enumerate(slots):
        buffer = program.buffers[number]
        starts, shape = store.starts[buffer], program.shapes[buffer]
        if store.executions > 1:
            pairs = zip(starts, starts[len(starts) // 2 :])
            found[f"B{slot}.stride"] = min(_distance(a, b, shape) for a, b in pairs)
        # What a store in the same loops writes or reads before is used again by that.
        if sum(buffer in other.hulls for other in program.stores) > 1 or buffer == store.buffer:
            continue
        (first, before), *later = store.visits[buffer]
        moved = [[k for k in before if before[k] != after[k]] for _, after in later]
        if moved and len(moved[0]) > 1:
            continue  # windows that overlap: by two loops at once
        if moved and later[0][1][moved[0][0]] - before[moved[0][0]] > 1:
            continue  # a fused loop, whose trips in between move the index
        found[f"B{slot}.reuse_dis_iter"] = later[0][0] - first if later else 0
        found[f"B{slot}.reuse_ct"] = store.trips[moved[0][0]][1] if later else 0
    return found


def _distance(first: tuple[int, ...], second: tuple[int, ...], shape: list[int]) -> int:
    """Elements between two places, along the last dimension in which they differ."""
    row = 1
    for a, b, extent in zip(reversed(first), reversed(second), reversed(shape)):
        if a != b:
            return abs(a - b) * row
        row *= extent
    return 0


@pytest.mark.parametrize("name", ["dense", "two_matmuls", "NT"])
def test_arithmetic_is_what_the_program_does(name):
    """A multiply-add is one operation of two."""
    task = tasks()[name]
    [sketch, *_], _ = sketches_of(task)
    func, context = ffi.generate_code_for_state(task, sketch, True)
    order = ffi.get_feature_pack(task, func, context).buffer_order
    state = ffi.state_from_config(task, sketch, random_config(sketch, random.Random(0)))
    concrete, _ = ffi.generate_code_for_state(task, state, False)
    rows = np.expm1(_ffi_api.LoopFeatures(task, concrete, order, "felix").numpy())
    for row, store in zip(rows, Interpreter(concrete).stores):
        values = dict(zip(NAMES, row))
        done = 2 * values["float_mad"] + values["float_addsub"] + values["float_mul"]
        assert done == pytest.approx(store.executions * store.arithmetic, rel=1e-3)


GPU_NAMES = auto_scheduler.feature_names(testing_gpu.TARGET, "felix")


# Which threads share a copy into shared memory no loop says, but not how large it is.
_OF_COPIES = ("unique_bytes", "stride", "alloc_size", "alloc_outer_prod", "vec_prod")


def test_a_thread_axis_that_is_bound_again_counts_once():
    """Copies into shared memory bind the threads of the kernel around them again."""
    task = testing_gpu.sym_task("matmul")
    sketch = task.sketches[0]
    order = sketch.fetch_features().buffer_order
    [state] = testing_gpu.random_states("matmul", sketch.index, 1)
    concrete, _ = ffi.generate_code_for_state(task.ansor_task, state, False)
    rows = np.expm1(_ffi_api.LoopFeatures(task.ansor_task, concrete, order, "felix").numpy())
    bindings = []

    def add(node):
        if isinstance(node, tir.AttrStmt) and str(node.attr_key) == "thread_extent":
            bindings.append(str(node.node.thread_tag))

    tir.stmt_functor.post_order_visit(concrete.body, add)
    assert bindings.count("threadIdx.x") > 1
    program = Interpreter(concrete)
    last = {store.buffer: store for store in program.stores}
    shared = 0
    for row, label in zip(rows, program.first_stored):
        values, trips = dict(zip(GPU_NAMES, row)), last[label].trips.values()
        copies = ".shared" in label
        shared += copies
        # One copy into shared memory serves all virtual threads.
        loops = [extent for kind, extent in trips if not (copies and kind == "vthread")]
        assert values["outer_prod"] == pytest.approx(math.prod(loops), rel=1e-3)
        assert values["threadIdx_x_len"] == pytest.approx(dict(trips)["threadIdx.x"], rel=1e-3)
    assert shared


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul", "matmul_tokens", "max_pool", "chain"])
def test_features_of_kernels_are_what_running_the_threads_counts(name):
    """Each thread does the stores to global memory and to registers, virtual ones too."""
    task = testing_gpu.sym_task(name)
    n_counted = 0
    for sketch in task.sketches:
        order = sketch.fetch_features().buffer_order
        for state in testing_gpu.random_states(name, sketch.index, 2):
            concrete, _ = ffi.generate_code_for_state(task.ansor_task, state, False)
            rows = np.expm1(
                _ffi_api.LoopFeatures(task.ansor_task, concrete, order, "felix").numpy()
            )
            program = Interpreter(concrete)
            last = {store.buffer: store for store in program.stores}
            assert len(rows) == len(last)
            for row, slots, label in zip(rows, order, program.first_stored):
                store, values = last[label], dict(zip(GPU_NAMES, row))
                numbers = [int(slot) for slot in slots]
                found = counted(program, store, numbers) | used_again(program, store, numbers)
                trips = dict(store.trips.values())
                # On GPUs threads are parallel loops, too.
                del found["parallel_prod"]
                expected = {
                    tag.replace(".", "_") + "_len": trips.get(tag, 1)
                    for tag in ("blockIdx.x", "threadIdx.x")
                }
                copies = trips.get("vthread", 1) if ".shared" in label else 1
                # Threads behind a condition that keeps some of them out count as all.
                assert values["outer_prod"] >= store.executions / copies * (1 - 1e-3)
                if ".shared" in label:
                    found = {c: v for c, v in found.items() if c.split(".")[-1] in _OF_COPIES}
                    # Features ask how far the next thread is, which takes the next vector; what is
                    # counted is how far the same thread's next element is.
                    if "vectorized" not in trips:
                        found = {c: v for c, v in found.items() if not c.endswith(".stride")}
                if ".shared" in label or not store.is_guarded:
                    expected |= found
                n_counted += len(expected)
                for column, value in expected.items():
                    assert values[column] == pytest.approx(value, rel=1e-3), (
                        f"{column} of {store.buffer} in {state}"
                    )
    assert n_counted
