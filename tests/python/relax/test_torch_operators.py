"""Each ATen operator that is imported, against PyTorch; and the documented table of them."""

import math
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import _pytree as pytree

from testing_composite_operators import COMPOSITE_GROUPS, FIRST_RESULTS
from testing_torch_operators import FIRST_RESULT
from testing_torch_operators import GROUPS as CORE_GROUPS
from testing_torch_programs import check, imported
from tvm.relax.frontend.torch import from_module, operators_table
from tvm.relax.frontend.torch.arguments import RANDOM

GROUPS = {**CORE_GROUPS, **COMPOSITE_GROUPS}
DOCUMENT = Path(__file__).parents[3] / "docs" / "torch_operators.md"


class Calls(torch.nn.Module):
    """Many operator calls at once: one export and one build take less time than many."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def forward(self, *tensors):
        supply = iter(tensors)
        results = {}
        for label, operator, spec, leaves, kwargs in self.calls:
            given = [next(supply) if isinstance(x, torch.Tensor) else x for x in leaves]
            result = operator(*pytree.tree_unflatten(given, spec), **kwargs)
            # Operators may give back what they were given, which no program may return as its own.
            results[label] = result[0] if label[0] in FIRST_RESULT | FIRST_RESULTS else result
        return results


def calls_of(group):
    for name, cases in GROUPS[group].items():
        packet, overload = name.rsplit(".", 1)
        operator = getattr(getattr(torch.ops.aten, packet), overload)
        for i, case in enumerate(cases):
            kwargs = case[-1] if isinstance(case[-1], dict) else {}
            leaves, spec = pytree.tree_flatten(case[:-1] if kwargs else case)
            yield (name, i), operator, spec, leaves, kwargs


@pytest.mark.parametrize("group", GROUPS)
def test_operators_equal_torch(group):
    calls = list(calls_of(group))
    tensors = [x for call in calls for x in call[3] if isinstance(x, torch.Tensor)]
    module = Calls(calls)
    results = imported(module, *tensors)
    for label, expected in module(*tensors).items():
        torch.testing.assert_close(
            results[label],
            expected,
            rtol=1e-4,
            atol=1e-5,
            equal_nan=True,
            msg=lambda text, label=label: f"{label}: {text}",
        )


extents = st.integers(1, 6)
few = settings(max_examples=6, deadline=None)


@few
@given(shape=st.lists(extents, min_size=1, max_size=4), data=st.data())
def test_broadcasting_of_random_shapes_equals_torch(shape, data):
    thinner = [data.draw(st.sampled_from([1, n])) for n in shape]
    other = thinner[data.draw(st.integers(0, len(shape) - 1)) :]

    def function(a, b):
        chosen = torch.where(a > b, a, b * 2)
        return chosen - a, (a + b).sum(-1), torch.maximum(a, b).amax(0), (a < b).any()

    check(function, torch.randn(shape), torch.randn(other))


@few
@given(
    rank=st.integers(1, 3),
    groups=st.integers(1, 2),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    kernel=st.integers(1, 4),
    size=st.integers(6, 9),
    transposed=st.booleans(),
)
def test_convolutions_of_random_shapes_equal_torch(
    rank, groups, stride, padding, kernel, size, transposed
):
    name = f"Conv{'Transpose' if transposed else ''}{rank}d"
    make = getattr(torch.nn, name)
    padding = min(padding, kernel - 1)
    module = make(2 * groups, 3 * groups, kernel, stride, padding, groups=groups).eval()
    check(module, torch.randn(2, 2 * groups, *[size] * rank))


@few
@given(
    groups=st.integers(1, 3),
    repeats=st.integers(1, 3),
    length=st.integers(1, 9),
    source=st.integers(1, 9),
    mask=st.sampled_from(["none", "bool", "float", "causal"]),
)
def test_attention_of_random_shapes_equals_torch(groups, repeats, length, source, mask):
    query = torch.randn(2, groups * repeats, length, 8)
    key, value = torch.randn(2, groups, source, 8), torch.randn(2, groups, source, 4)
    kinds = {"bool": torch.rand(length, source) < 0.7, "float": torch.randn(2, 1, length, source)}

    def attention(query, key, value, mask):
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=True
        )

    causal = mask == "causal"
    check(attention, query, key, value, kinds.get(mask))


@few
@given(
    kernel=st.integers(1, 5),
    size=st.integers(1, 7),
    rank=st.integers(1, 3),
    ceil_mode=st.booleans(),
    data=st.data(),
)
def test_pools_of_random_shapes_equal_torch(kernel, size, rank, ceil_mode, data):
    padding = data.draw(st.integers(0, kernel // 2))
    # Windows may be larger than the input, as long as padding makes room for one; but PyTorch's
    # means over volumes do not look at padding there.
    size = max(size, kernel if rank == 3 else kernel - 2 * padding)
    stride = data.draw(st.integers(1, kernel))
    x = torch.randn(1, 2, *[size] * rank)
    largest = getattr(torch.nn, f"MaxPool{rank}d")(kernel, stride, padding, ceil_mode=ceil_mode)
    mean = getattr(torch.nn, f"AvgPool{rank}d")(kernel, stride, padding, ceil_mode)
    adaptive = getattr(torch.nn, f"AdaptiveMaxPool{rank}d")(data.draw(st.integers(1, size)))
    check(lambda x: (largest(x), mean(x), adaptive(x)), x)


def test_a_query_that_sees_nothing_gives_zero():
    mask = torch.tensor([[True, False], [False, False]])
    inputs = [torch.randn(1, 1, 2, 4) for _ in range(3)]
    attention = torch.nn.functional.scaled_dot_product_attention
    check(lambda q, k, v, m: attention(q, k, v, attn_mask=m), *inputs, mask)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_size_are_sums_of_rows(mode):
    bags = torch.nn.EmbeddingBag(20, 8, mode=mode).eval()
    tokens = torch.randint(0, 20, (6, 5))
    check(bags, tokens)
    assert "scatter" not in str(from_module(bags, tokens))


@few
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    is_whole=st.booleans(),
    data=st.data(),
)
def test_order_statistics_of_random_shapes_equal_torch(shape, is_whole, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = torch.randint(-3, 4, shape)
    if not is_whole:
        x = torch.where(torch.rand(shape) < 0.8, x.float(), math.nan)
    k = data.draw(st.integers(1, shape[dim]))

    def function(x):
        # Of equal elements PyTorch may give the place of any one, which has the value.
        found = [x.median(dim, True), x.nanmedian(dim, True), x.kthvalue(k, dim, True)]
        if is_whole:
            found.append(x.mode(dim, True))
        values = [each.values for each in found]
        return [
            *values,
            *(x.gather(dim, each.indices) for each in found),
            x.median(),
            x.nanmedian(),
        ]

    expected, found = function(x), imported(function, x)
    torch.testing.assert_close(found, expected, equal_nan=True)


@few
@given(
    before=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    after=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    mode=st.sampled_from(["bilinear", "bicubic"]),
    is_bytes=st.booleans(),
)
def test_antialiased_images_of_random_sizes_equal_torch(before, after, mode, is_bytes):
    image = torch.randn(1, 3, *before)
    if is_bytes:
        image = torch.randint(0, 256, image.shape, dtype=torch.uint8)

    def resize(x):
        return torch.nn.functional.interpolate(x, size=after, mode=mode, antialias=True)

    check(resize, image)


@few
@given(order=st.permutations(range(3)), data=st.data())
def test_strides_are_those_of_memory_whatever_the_view(order, data):
    start = data.draw(st.integers(0, 1))

    def function(x):
        turned = (x * 2).permute(order)
        return turned.as_strided((2, 3, 2), (7, 2, 5)), (x + 1)[start:].as_strided((2, 2), (3, 4))

    check(function, torch.randn(3, 4, 5))


def test_strides_that_leave_the_tensor_are_refused():
    with pytest.raises(ValueError, match="reads what is around the tensor"):
        imported(lambda x: (x + 1)[1:].as_strided((2, 2), (3, 4), 0), torch.randn(3, 5))


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
def test_scattered_elements_may_take_the_places_of_others(how):
    torch.manual_seed(0)
    x, source = torch.randn(5, 4) * 3, torch.randn(7, 3) * 3
    index, rows = torch.randint(0, 5, (7, 3)), torch.randint(0, 5, (6,))

    def both(x, source):
        kept = x.scatter_reduce(0, index, source, how, include_self=True)
        new = x.scatter_reduce(0, index, source, how, include_self=False)
        if how == "sum":
            return kept, new
        more = source[:6].repeat(1, 2)[:, :4]
        return kept, new, x.index_reduce(0, rows, more, how, include_self=False)

    check(both, x, source)
    check(both, x.int(), source.int())


def test_products_by_einstein_notation_equal_torch():
    a, b, c = torch.randn(2, 3, 4), torch.randn(4, 5), torch.randn(3, 3)
    check(lambda a, b: torch.einsum("bij,jk->bki", a, b), a, b)
    check(lambda a, c: torch.einsum("bij,ii->bj", a, c), a, c)


def core_operators():
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in getattr(packet, "overloads", list)():
            if torch.Tag.core in getattr(packet, overload).tags:
                yield f"aten.{name}.{overload}"


def test_every_core_operator_is_imported_or_refused_with_a_reason():
    table = operators_table()
    assert [name for name in core_operators() if name not in table] == []


# Their results are what happens to be in memory, or numbers, or nothing at all. Random ones are
# looked at in test_torch_random.py.
WITHOUT_RESULT = re.compile(
    r"aten\.((new_)?empty|sym_|_assert|_to_cpu|copy_|detach_|cudnn_batch_norm)\S*"
)


def test_every_imported_operator_is_tried():
    tried = {f"aten.{name}" for group in GROUPS.values() for name in group}
    missing = [
        name
        for name, reason in operators_table().items()
        if reason is None and name not in tried | RANDOM and not WITHOUT_RESULT.fullmatch(name)
    ]
    assert missing == []


def test_the_documented_table_is_true():
    table = operators_table()
    documented = dict(re.findall(r"^\| `(aten\.\S+)` \| (.+) \|$", DOCUMENT.read_text(), re.M))
    assert documented == {
        name: f"refused: it {reason}" if reason else "imported"
        for name, reason in sorted(table.items())
    }


def test_refused_operators_say_why():
    with pytest.raises(ValueError, match=r"aten.nonzero.default \(gives a result whose size"):
        imported(lambda x: x.nonzero(), torch.eye(3))
    # Sizes that follow from it are no operators of their own, and there is a way out.
    with pytest.raises(ValueError, match=r'torch.compile\(model, backend="felix"\)') as info:
        imported(lambda x: x[x > 0].reshape(2, -1) * 2, torch.eye(4))
    assert len(str(info.value).splitlines()) == 3


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_of_infinities_are_reduced_as_in_torch(sign):
    class Reductions(torch.nn.Module):
        def forward(self, x):
            masked = torch.where(x.amax(-1, keepdim=True) == -math.inf, 0.0, torch.softmax(x, -1))
            return (
                *(x.amax(-1), x.amin(-1), x.argmax(-1), x.argmin(-1), *x.max(0), *x.min(0)),
                *(torch.logsumexp(x, -1), torch.logsumexp(x, (0, 1)), x.max(), x.argmin(), masked),
            )

    x = torch.randn(5, 40)
    x[1], x[2, :17], x[3], x[4, 5] = -math.inf, -math.inf, math.inf, math.inf
    x[:, 6] = math.inf
    module, x = Reductions(), sign * x
    for found, wanted in zip(imported(module, x), module(x)):
        torch.testing.assert_close(found, wanted, equal_nan=True)


def test_diagonals_are_written_through_views_of_them():
    def function(x):
        zeroed, scaled = x.clone(), x + 1
        zeroed.diagonal().fill_(0)
        scaled.diagonal(1).mul_(3)
        return zeroed, scaled, x.clone().fill_diagonal_(5)

    check(function, torch.randn(5, 7))
