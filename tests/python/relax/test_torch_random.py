"""Random numbers in imported programs: their distributions, and what repeats them."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import tvm
from testing_torch_programs import imported
from tvm import felix, relax, te, topi
from tvm.felix.compiler import as_ndarray
from tvm.relax.frontend.torch import from_module

COUNT = 40000


def drawn(function, *args):
    torch.manual_seed(11)
    return imported(function, *args)


def looks_like(values, distribution):
    """Kolmogorov and Smirnov find no difference that one of a thousand samples has."""
    assert stats.kstest(values.double().flatten().numpy(), distribution.cdf).pvalue > 1e-3


def test_words_are_those_of_the_published_generator():
    seed = te.placeholder((1,), "int64", name="seed")
    bits = topi.random.random_bits(seed, 0, (1,))
    function = tvm.build(te.create_schedule(bits.op), [seed, bits], "llvm")
    out = tvm.nd.array(np.zeros(1, "uint64"))
    function(tvm.nd.array(np.zeros(1, "int64")), out)
    # The known answer of Random123 for a counter and a key of zeros.
    assert hex(out.numpy()[0]) == "0xff1dae596cd10df2"


def test_a_seed_is_one_number():
    with pytest.raises(ValueError, match="the seed must be int64 of shape"):
        topi.random.random_bits(te.placeholder((2,), "int64"), 0, (1,))
    with pytest.raises(ValueError, match="no integers from 3 on below 3"):
        topi.random.random_integers(te.placeholder((1,), "int64"), 0, (1,), 3, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_have_the_distributions_of_torch(dtype):
    x = torch.zeros(COUNT, dtype=dtype)

    def function(x):
        return {
            "rand": torch.rand_like(x),
            "randn": torch.randn_like(x),
            "uniform": torch.empty_like(x).uniform_(-2, 5),
            "normal": torch.empty_like(x).normal_(1.0, 3.0),
            "around": torch.normal(x + 2.0, x + 0.5),
            "exponential": torch.empty_like(x).exponential_(4.0),
        }

    found = drawn(function, x)
    assert all(value.dtype == dtype for value in found.values())
    assert found["rand"].min() >= 0 and found["rand"].max() < 1
    for name, distribution in (
        ("rand", stats.uniform()),
        ("randn", stats.norm()),
        ("uniform", stats.uniform(-2, 7)),
        ("normal", stats.norm(1, 3)),
        ("around", stats.norm(2, 0.5)),
        ("exponential", stats.expon(scale=0.25)),
    ):
        looks_like(found[name], distribution)
    # Streams have nothing in common, and neighbours neither.
    columns = torch.stack([found["rand"], found["uniform"], found["rand"].roll(1)])
    assert (torch.corrcoef(columns).triu(1).abs() < 5 / math.sqrt(COUNT)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_floats_stay_below_one(dtype):
    found = drawn(
        lambda x: (torch.rand_like(x), torch.randn_like(x)), torch.zeros(COUNT, dtype=dtype)
    )
    assert found[0].dtype == dtype and found[0].max() < 1
    assert abs(found[0].float().mean() - 0.5) < 0.02
    assert abs(found[1].float().var() - 1) < 0.05


def test_integers_and_events_have_their_chances():
    chances = torch.linspace(0, 1, 5).repeat(COUNT, 1)

    def function(chances):
        return {
            "randint": torch.randint(-3, 7, (COUNT,)),
            "wide": torch.randint(-(2**62), 2**62, (COUNT,)),
            "bernoulli": torch.bernoulli(chances),
            "p": torch.bernoulli(torch.empty_like(chances), 0.25),
            "randperm": torch.randperm(100),
        }

    found = drawn(function, chances)
    counts = torch.bincount(found["randint"] + 3, minlength=10)
    assert len(counts) == 10 and stats.chisquare(counts.numpy()).pvalue > 1e-3
    looks_like(found["wide"].double() / 2**63, stats.uniform(-0.5, 1))
    assert found["bernoulli"].unique().tolist() == [0, 1]
    error = 5 * math.sqrt(0.25 / COUNT)
    assert (found["bernoulli"].mean(0) - chances[0]).abs().max() < error
    assert found["bernoulli"][:, 0].max() == 0 and found["bernoulli"][:, 4].min() == 1
    assert abs(found["p"].mean() - 0.25) < error
    assert found["randperm"].sort().values.tolist() == list(range(100))
    assert found["randperm"].tolist() != list(range(100))


@pytest.mark.parametrize("replacement", [False, True])
def test_classes_are_drawn_by_their_weights(replacement):
    weights = torch.tensor([1.0, 0.0, 3.0, 4.0, 2.0]).repeat(8000, 1)

    def function(weights):
        return torch.multinomial(weights, 2, replacement), torch.multinomial(weights[0], 1)

    found, one = drawn(function, weights)
    assert one.shape == (1,) and found.shape == (8000, 2) and found.dtype == torch.int64
    counts = torch.bincount(found[:, 0], minlength=5)
    assert counts[1] == 0 and one[0] != 1
    expected = [0.1, 0.3, 0.4, 0.2]
    assert stats.chisquare(counts[[0, 2, 3, 4]], [8000 * p for p in expected]).pvalue > 1e-3
    twice = (found[:, 0] == found[:, 1]).float().mean()
    assert abs(twice - (sum(p * p for p in expected) if replacement else 0)) < 0.03
    assert (found[:, 1] != 1).all()


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x) + torch.randn(4, 8), torch.rand(3)


def test_manual_seed_repeats_a_compiled_network():
    network = felix.compile(Noisy(), torch.zeros(4, 8), cache=False)
    x = torch.randn(4, 8)
    torch.manual_seed(1)
    first, second = network(x), network(x)
    torch.manual_seed(1)
    again = network(x)
    assert not torch.equal(first[0], second[0]) and not torch.equal(first[1], second[1])
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert len(network.profile().calls) > 0


def test_an_imported_module_takes_its_seed_behind_the_inputs():
    mod = from_module(Noisy(), torch.zeros(4, 8), keep_params_as_input=True)
    assert [str(p.name_hint) for p in mod["main"].params][:2] == ["x", "seed"]
    assert int(mod["main"].attrs["num_input"]) == 2
    mod = from_module(Noisy(), torch.zeros(4, 8))
    main = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"]
    x = as_ndarray(torch.zeros(4, 8))

    def run(seed):
        return main(x, tvm.nd.array(np.array([seed], "int64")))[1].numpy()

    assert (
        (run(5) == run(5)).all() and (run(5) != run(6)).any() and (run(5) != run(5 + 2**32)).any()
    )


def test_torch_compile_draws_anew_and_repeats_by_seed(tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_FELIX_CACHE", str(tmp_path))
    x = torch.randn(4, 8)
    model = Noisy().eval()
    runs = []
    for _ in range(2):
        # The second time, the compiled graph is loaded.
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="felix")
        with torch.no_grad():
            torch.manual_seed(2)
            runs += [compiled(x)[0], compiled(x)[0]]
    assert not torch.equal(runs[0], runs[1])
    assert torch.equal(runs[0], runs[2]) and torch.equal(runs[1], runs[3])


def test_gradients_are_those_of_the_numbers_that_were_drawn():
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: x * torch.rand(64), backend="felix", options={"cache": False}
    )
    x = torch.ones(64, requires_grad=True)
    result = compiled(x)
    result.sum().backward()
    torch.testing.assert_close(x.grad, result.detach())
