"""relax.frontend.nn.op: choosing tokens, and exchanges between workers."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec
from tvm.relax.op import ccl
from tvm.runtime import disco as disco  # registers what exchanges call
from tvm.script import ir as I
from tvm.script import relax as R


class Sampler(nn.Module):
    def choose(self, p, u, i):
        return op.multinomial_from_uniform(p, u, i, dtype="int32")

    def own_row(self, p, u):
        return op.multinomial_from_uniform(p, u)

    def best(self, p, order, top_p, top_k, u, i):
        return op.sample_top_p_top_k_from_sorted_prob(p, order, top_p, top_k, u, i)

    def cut(self, p, in_order, top_p, top_k):
        return op.renormalize_top_p_top_k_prob(p, in_order, top_p, top_k)

    def room(self, p):
        return op.empty((3, p.shape[1]), "int32")


@pytest.fixture(scope="module")
def sampler():
    table = {"p": ("b", "v"), "in_order": ("b", "v"), "order": ("b", "v"), "u": ("n", 1),
             "i": ("n", 1), "top_p": ("b", 1), "top_k": ("b", 1)}  # fmt: skip

    def what(names):
        return {
            name: spec.Tensor(
                table[name], "int64" if name in ("order", "i", "top_k") else "float32"
            )
            for name in names
        }

    mod, _ = Sampler().export_tvm(
        {
            "choose": what(["p", "u", "i"]),
            "own_row": what(["p"]) | {"u": spec.Tensor(("b", 1), "float32")},
            "best": what(["p", "order", "top_p", "top_k", "u", "i"]),
            "cut": what(["p", "in_order", "top_p", "top_k"]),
            "room": what(["p"]),
        }
    )
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def drawn(rows=3, choices=9, samples=40, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(choices), rows).astype("float32")
    u = rng.random((samples, 1)).astype("float32")
    return p, u, rng.integers(0, rows, (samples, 1))


def run(vm, name, *arrays):
    return vm[name](*map(tvm.nd.array, arrays)).numpy()


def test_multinomial_takes_the_first_choice_whose_sum_exceeds_the_number(sampler):
    p, u, i = drawn()
    got = run(sampler, "choose", p, u, i)
    sums = p.cumsum(axis=1)
    want = [(sums[row] <= number).sum() for row, number in zip(i[:, 0], u[:, 0])]
    assert got.dtype == "int32" and got[:, 0].tolist() == want
    np.testing.assert_array_equal(
        run(sampler, "own_row", p, u[:3]), (sums <= u[:3]).sum(1)[:, None]
    )


def test_a_number_above_the_sum_of_rounded_probabilities_takes_the_last_choice(sampler):
    p = np.array([[0.25, 0.25, 0.25, 0.2499]], "float32")
    got = run(sampler, "choose", p, np.array([[0.99999]], "float32"), np.array([[0]]))
    assert got.tolist() == [[3]]


def limits():
    return np.array([[0.5], [0.9], [1.0]], "float32"), np.array([[5], [2], [4]])


def test_samples_come_from_the_likeliest_choices_in_their_proportion(sampler):
    p, u, i = drawn()
    order = np.argsort(-p, axis=1)
    in_order = np.take_along_axis(p, order, axis=1)
    top_p, top_k = limits()
    got = run(sampler, "best", in_order, order, top_p, top_k, u, i)
    for (choice,), (number,), (row,) in zip(got, u, i):
        sums = in_order[row].cumsum()
        kept = min(int((sums < top_p[row, 0]).sum()) + 1, top_k[row, 0])
        place = min(int((sums <= number * sums[kept - 1]).sum()), kept - 1)
        assert choice == order[row, place]


def test_what_is_kept_of_probabilities_sums_up_to_one(sampler):
    p, *_ = drawn()
    in_order = -np.sort(-p, axis=1)
    top_p, top_k = limits()
    got = run(sampler, "cut", p, in_order, top_p, top_k)
    for row in range(3):
        kept = min(int((in_order[row].cumsum() < top_p[row]).sum()) + 1, top_k[row, 0])
        want = np.where(p[row] >= in_order[row, kept - 1], p[row], 0)
        np.testing.assert_allclose(got[row], want / want.sum(), rtol=1e-5)


def test_empty_gives_memory_of_the_shape(sampler):
    p, *_ = drawn()
    assert run(sampler, "room", p).shape == (3, 9)


def test_samplers_refuse_columns_of_other_shapes():
    class Wrong(nn.Module):
        def forward(self, p, u):
            return op.multinomial_from_uniform(p, u)

    args = {"p": spec.Tensor((2, 4), "float32"), "u": spec.Tensor((2, 2), "float32")}
    with pytest.raises(ValueError, match=r"uniform_sample is float32 of shape \(samples, 1\)"):
        Wrong().export_tvm({"forward": args})


# Workers


def test_exchanges_say_what_they_give():
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    infos = [
        ccl.allreduce(x, "max"),
        ccl.broadcast_from_worker0(x),
        ccl.allgather(x, 3),
        ccl.scatter_from_worker0(x, 2, axis=1),
    ]
    shapes = [[int(v) for v in call.struct_info.shape.values] for call in infos]
    assert shapes == [[4, 6], [4, 6], [12, 6], [4, 3]]
    unknown = relax.Var("y", R.Tensor("float16", ndim=2))
    assert ccl.allgather(unknown, 3).struct_info == R.Tensor("float16", ndim=2)


def test_exchanges_refuse_what_they_cannot_do():
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    with pytest.raises(ValueError, match="op_type is one of sum, prod, min, max, avg, got 'mean'"):
        ccl.allreduce(x, "mean")
    with pytest.raises(ValueError, match="6 elements along axis 1 cannot be divided equally"):
        ccl.scatter_from_worker0(x, 4, axis=1)
    with pytest.raises(ValueError, match="axis 2 of 2 dimensions"):
        ccl.scatter_from_worker0(x, 2, axis=2)


def test_exchanges_become_functions_of_the_session():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 6), "float32")):
            with R.dataflow():
                a = R.ccl.allreduce(x, op_type="min")
                b = R.ccl.broadcast_from_worker0(a)
                c = R.ccl.allgather(b, num_workers=2)
                R.output(c)
            return c

    text = relax.transform.LegalizeOps()(Module).script()
    assert 'R.call_dps_packed("runtime.disco.allreduce", (x, R.shape([2]))' in text
    assert 'R.call_dps_packed("runtime.disco.broadcast_from_worker0"' in text
    assert 'R.call_dps_packed("runtime.disco.allgather"' in text
    again = tvm.script.from_source(Module.script())
    tvm.ir.assert_structural_equal(again, Module)


def test_parts_of_a_scatter_lie_behind_each_other():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 6), "float32")):
            with R.dataflow():
                a = R.ccl.scatter_from_worker0(x, num_workers=3, axis=1)
                R.output(a)
            return a

    executable = relax.build(relax.transform.LegalizeOps()(Module), "llvm")
    x = np.arange(12, dtype="float32").reshape(2, 6)
    sent = []
    own_name = "runtime.disco.scatter_from_worker0"
    own = tvm.get_global_func(own_name)
    tvm.register_func(own_name, lambda source, _: sent.append(source.numpy()), override=True)
    try:
        relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.nd.array(x))
    finally:
        tvm.register_func(own_name, own, override=True)
    np.testing.assert_array_equal(sent[0], np.stack(np.split(x, 3, axis=1)))
