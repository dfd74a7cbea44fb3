"""relax.frontend.nn.llm: attention over pages against attention over whole sequences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tvm import relax, te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache
from tvm.relax.frontend.nn.llm.position_embedding import llama_rope, llama_rope_with_position_map
from tvm.runtime import ShapeTuple

HEADS, KV_HEADS, DIM, LAYERS, THETA = 4, 2, 8, 2, 100.0
STATE = "vm.builtin.kv_state_"
CACHE = "vm.builtin.attention_kv_cache_"


def state(name, *args):
    return tvm.get_global_func(STATE + name)(*args)


def turned(x, positions, scale=1.0):
    """Rows of heads (token, head, element), turned as PyTorch's models of Llama do it."""
    frequencies = THETA ** (-np.arange(0, DIM, 2) / DIM)
    angle = np.concatenate([positions[:, None] * scale * frequencies] * 2, axis=1)[:, None]
    half = DIM // 2
    rotated = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * np.cos(angle) + rotated * np.sin(angle)


def attention(queries, keys, values, first, factor):
    """Causal attention of the last tokens, which look at no token before their `first` one."""
    group = HEADS // KV_HEADS
    keys, values = (np.repeat(x, group, axis=1) for x in (keys, values))
    scores = np.einsum("qhd,khd->hqk", queries, keys) * factor
    n, m = len(queries), len(keys)
    for q in range(n):
        scores[:, q, : first[q]] = -np.inf
        scores[:, q, m - n + q + 1 :] = -np.inf
    weights = torch.softmax(torch.tensor(scores), -1).numpy()
    return np.einsum("hqk,khd->qhd", weights, values)


class Only(nn.Module):
    """Attention of one layer, and the cache's maker."""

    def __init__(self, rope_mode, windows=0, dtype="float32"):
        self.rope_mode, self.windows, self.dtype = rope_mode, windows, dtype

    def attend(self, qkv: Tensor, cache: PagedKVCache):
        return cache.attention_with_fused_qkv(1, qkv, HEADS, 0.5)

    def positions(self, like: Tensor, cache: PagedKVCache):
        return cache.get_query_positions(like.shape[0])

    def create(self, sequences, total, step, page):
        return TIRPagedKVCache(
            sequences, total, step, page, self.windows, LAYERS, HEADS, KV_HEADS, DIM,
            self.rope_mode, 2, THETA, self.dtype, "llvm",
        )  # fmt: skip


def machine(module):
    bare = {"param_mode": "none", "effect_mode": "none"}
    fused = nn.spec.Tensor(["b", "n", HEADS + 2 * KV_HEADS, DIM], module.dtype)
    cache = nn.spec.Object(object_type=PagedKVCache)
    like = nn.spec.Tensor(["n"], "float32")
    mod, _ = module.export_tvm(
        {
            "attend": {"qkv": fused, "cache": cache, "$": bare},
            "positions": {"like": like, "cache": cache, "$": bare},
            "create": {**dict.fromkeys(("sequences", "total", "step", "page"), int), "$": bare},
        }
    )
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


@pytest.fixture(scope="module", params=list(RopeMode), ids=lambda mode: mode.name)
def modes(request):
    return request.param, machine(Only(request.param, windows=1))


def make(vm, sequences=4, total=200, step=64, page=4):
    return vm["create"](*(ShapeTuple([n]) for n in (sequences, total, step, page)))


class Model:
    """What a cache must do, on whole sequences of fused tensors."""

    def __init__(self, vm, mode, seed=0, **limits):
        self.vm, self.mode, self.cache = vm, mode, make(vm, **limits)
        self.rng = np.random.default_rng(seed)
        self.kept, self.windows = {}, {}

    def add(self, i):
        state("add_sequence", self.cache, i)
        self.kept[i] = np.zeros((0, HEADS + 2 * KV_HEADS, DIM), "float32")

    def fork(self, parent, child, position=-1):
        state("fork_sequence", self.cache, parent, child, position)
        self.kept[child] = self.kept[parent][: None if position < 0 else position]
        self.windows[child] = self.windows.get(parent, 0)

    def popn(self, i, count):
        state("popn", self.cache, i, count)
        self.kept[i] = self.kept[i][: len(self.kept[i]) - count]

    def remove(self, i):
        state("remove_sequence", self.cache, i)
        del self.kept[i]

    def step(self, lengths):
        state("begin_forward", self.cache, ShapeTuple(list(lengths)), ShapeTuple(lengths.values()))
        fresh = {
            i: self.rng.normal(size=(n, HEADS + 2 * KV_HEADS, DIM)).astype("float32")
            for i, n in lengths.items()
        }
        fused = np.concatenate(list(fresh.values()))[None]
        got = self.vm["attend"](tvm.nd.array(fused), self.cache).numpy()[0]
        state("end_forward", self.cache)
        wanted = [self.expected(i, rows) for i, rows in fresh.items()]
        np.testing.assert_allclose(got, np.concatenate(wanted), rtol=1e-4, atol=1e-5)

    def expected(self, i, rows):
        self.kept[i] = whole = np.concatenate([self.kept[i], rows])
        positions = np.arange(len(whole))
        queries, keys, values = np.split(whole, [HEADS, HEADS + KV_HEADS], axis=1)
        if self.mode != RopeMode.NONE:
            queries, keys = turned(queries, positions, 2), turned(keys, positions, 2)
        last = positions[-len(rows) :]
        window = self.windows.get(i, 0)
        first = np.maximum(0, last - window + 1) if window else np.zeros_like(last)
        return attention(queries[-len(rows) :], keys, values, first, 0.5 * DIM**-0.5)


def test_prefill_decode_fork_popn_and_mixed_steps_give_attention_over_whole_sequences(modes):
    mode, vm = modes
    model = Model(vm, mode)
    model.add(0)
    model.add(7)
    model.step({0: 9, 7: 3})
    model.step({7: 1, 0: 1})
    model.fork(0, 2)
    model.step({2: 3, 0: 1, 7: 18})
    model.fork(7, 3, 5)
    model.popn(0, 4)
    model.step({3: 1, 0: 2})
    model.remove(7)
    model.step({2: 1, 3: 6})
    assert tvm.get_global_func(CACHE + "get_total_sequence_length")(model.cache) == 9 + 14 + 12


def test_random_uses_of_a_cache_never_show_tokens_of_another_sequence():
    vm = machine(Only(RopeMode.NORMAL))
    rng = np.random.default_rng(3)
    model = Model(vm, RopeMode.NORMAL, sequences=5, total=100, page=3)
    for _ in range(60):
        known = list(model.kept)
        action = rng.integers(5)
        if action == 0 and len(known) < 5:
            model.add(int(max(known, default=-1)) + 1)
        elif action == 1 and known and len(known) < 5:
            parent = int(rng.choice(known))
            model.fork(parent, max(known) + 1, int(rng.integers(len(model.kept[parent]) + 1)))
        elif action == 2 and known:
            i = int(rng.choice(known))
            model.popn(i, int(rng.integers(len(model.kept[i]) + 1)))
        elif action == 3 and len(known) > 3:
            model.remove(int(rng.choice(known)))
        elif known and sum(map(len, model.kept.values())) < 80:
            some = rng.permutation(known)[: rng.integers(1, len(known) + 1)]
            model.step({int(i): int(rng.integers(1, 5)) for i in some})
    for i in list(model.kept):
        model.remove(i)
    assert tvm.get_global_func(CACHE + "get_num_available_pages")(model.cache) == 34 + 5


def test_a_sliding_window_shows_the_last_tokens_and_gives_up_pages(modes):
    mode, vm = modes
    model = Model(vm, mode)
    pages = tvm.get_global_func(CACHE + "get_num_available_pages")
    before = pages(model.cache)
    model.add(0)
    tvm.get_global_func(CACHE + "enable_sliding_window_for_seq")(model.cache, 0, 6, 0)
    model.windows[0] = 6
    model.step({0: 10})
    for _ in range(12):
        model.step({0: 1})
    assert before - pages(model.cache) <= 3
    model.popn(0, 1)
    with pytest.raises(ValueError, match="window has moved on"):
        model.popn(0, 9)
    with pytest.raises(ValueError, match="was 6 tokens, and those that one of 20 shows are gone"):
        tvm.get_global_func(CACHE + "enable_sliding_window_for_seq")(model.cache, 0, 20, 0)
    model.step({0: 2})


def test_positions_of_the_step_are_those_in_the_sequences():
    vm = machine(Only(RopeMode.NONE))
    cache = make(vm)
    for i, length in ((0, 3), (1, 2)):
        state("add_sequence", cache, i)
        state("begin_forward", cache, ShapeTuple([i]), ShapeTuple([length]))
    state("begin_forward", cache, ShapeTuple([1, 0]), ShapeTuple([3, 1]))
    like = tvm.nd.array(np.zeros(4, "float32"))
    assert vm["positions"](like, cache).numpy().tolist() == [2, 3, 4, 3]


@pytest.mark.parametrize("mode", [RopeMode.NORMAL, RopeMode.INLINE])
def test_keys_and_values_can_be_read_back(mode):
    vm = machine(Only(mode, dtype="float16"))
    cache = make(vm)
    state("add_sequence", cache, 0)
    state("begin_forward", cache, ShapeTuple([0]), ShapeTuple([6]))
    fused = np.random.default_rng(0).normal(size=(1, 6, HEADS + 2 * KV_HEADS, DIM))
    vm["attend"](tvm.nd.array(fused.astype("float16")), cache)
    keys, values = (tvm.nd.empty((LAYERS, 4, KV_HEADS, DIM), "float16") for _ in range(2))
    tvm.get_global_func(CACHE + "debug_get_kv")(cache, 0, 1, 5, keys, values)
    wanted = fused[0, :, HEADS : HEADS + KV_HEADS]
    if mode == RopeMode.NORMAL:
        wanted = turned(wanted, np.arange(6), 2)
    np.testing.assert_allclose(keys.numpy()[1], wanted[1:5], rtol=2e-3, atol=4e-3)
    np.testing.assert_allclose(values.numpy()[1], fused[0, 1:5, -KV_HEADS:], rtol=1e-3, atol=1e-3)


def test_a_cache_refuses_what_it_has_no_room_for():
    vm = machine(Only(RopeMode.NONE))
    cache = make(vm, sequences=2, total=8, step=40)
    state("add_sequence", cache, 0)
    with pytest.raises(ValueError, match="sequence 0 is there already"):
        state("add_sequence", cache, 0)
    with pytest.raises(ValueError, match="there is no sequence 5"):
        state("begin_forward", cache, ShapeTuple([5]), ShapeTuple([1]))
    with pytest.raises(ValueError, match="a step of 41 tokens; the cache was made for 40"):
        state("begin_forward", cache, ShapeTuple([0]), ShapeTuple([41]))
    with pytest.raises(ValueError, match="needs 5 pages, 4 are free"):
        state("begin_forward", cache, ShapeTuple([0]), ShapeTuple([17]))
    with pytest.raises(ValueError, match="sequence 0 is there twice"):
        state("begin_forward", cache, ShapeTuple([0, 0]), ShapeTuple([1, 1]))
    with pytest.raises(ValueError, match="has 0 tokens, 1 cannot be taken"):
        state("popn", cache, 0, 1)
    with pytest.raises(ValueError, match="made without support_sliding_window"):
        tvm.get_global_func(CACHE + "enable_sliding_window_for_seq")(cache, 0, 4, 0)
    fused = tvm.nd.array(np.zeros((1, 2, HEADS + 2 * KV_HEADS, DIM), "float32"))
    with pytest.raises(ValueError, match="only between begin_forward and end_forward"):
        vm["attend"](fused, cache)
    state("begin_forward", cache, ShapeTuple([0]), ShapeTuple([1]))
    with pytest.raises(ValueError, match="attention of 1 tokens takes float32"):
        vm["attend"](fused, cache)
    state("popn", cache, 0, 1)
    one = tvm.nd.array(np.zeros((1, 1, HEADS + 2 * KV_HEADS, DIM), "float32"))
    with pytest.raises(ValueError, match="only between begin_forward and end_forward"):
        vm["attend"](one, cache)
    with pytest.raises(ValueError, match="are more than 2147483647 places"):
        make(vm, sequences=1 << 20, page=1 << 20)
    state("add_sequence", cache, 1)
    with pytest.raises(ValueError, match="there are 2 sequences, as many as"):
        state("fork_sequence", cache, 0, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "cuda"}, "kernels for processors, not for cuda"),
        ({"num_attention_heads": 3}, "3 heads over 2 of keys"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rope_scaling of the kind 'llama3'"),
        ({"enable_disaggregation": True}, "enable_disaggregation"),
        ({"layer_partition": relax.ShapeExpr([0, 1, 2])}, "one stage has all layers"),
    ],
)
def test_makers_refuse_what_there_is_not(change, message):
    class Maker(nn.Module):
        def create(self, n):
            options = {
                "target": "llvm", "num_attention_heads": 4, "num_key_value_heads": 2,
                "head_dim": 8, "rope_mode": RopeMode.NORMAL, "rope_scale": 1, "rope_theta": 1e4,
                "dtype": "float32", "num_hidden_layers": 2, "support_sliding_window": 0,
                **dict.fromkeys(
                    ("max_batch_size", "max_total_seq_len", "prefill_chunk_size", "page_size"), n
                ),
            }  # fmt: skip
            return TIRPagedKVCache(**options | change)

    with pytest.raises(ValueError, match=message):
        Maker().export_tvm({"create": {"n": int}})


def test_llama_rope_splits_and_turns_by_positions_behind_what_was_before():
    class Rope(nn.Module):
        def forward(self, qkv: Tensor, total: int):
            return llama_rope(qkv, total, THETA, HEADS, KV_HEADS, 0.5)

    fused = nn.spec.Tensor([1, "n", HEADS + 2 * KV_HEADS, DIM], "float32")
    mod, _ = Rope().export_tvm({"forward": {"qkv": fused, "total": int}})
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = np.random.default_rng(1).normal(size=(1, 5, HEADS + 2 * KV_HEADS, DIM)).astype("float32")
    q, k, v = vm["forward"](tvm.nd.array(x), ShapeTuple([12]))
    positions = np.arange(7, 12)
    want = turned(x[0, :, : HEADS + KV_HEADS], positions, 0.5)
    np.testing.assert_allclose(q.numpy()[0], want[:, :HEADS], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(k.numpy()[0], want[:, HEADS:], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(v.numpy()[0], x[0, :, HEADS + KV_HEADS :])


@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_rope_with_a_map_of_positions_turns_each_token_by_its_own(rotary_dim):
    kernel = llama_rope_with_position_map(THETA, 1.0, DIM, HEADS, KV_HEADS, "float32", rotary_dim)
    run = tvm.build(kernel, target="llvm")
    x = np.random.default_rng(1).normal(size=(4, HEADS + 2 * KV_HEADS, DIM)).astype("float32")
    positions = np.array([3, 0, 17, 5], "int32")
    outputs = [tvm.nd.empty((4, n, DIM)) for n in (HEADS, KV_HEADS, KV_HEADS)]
    run(tvm.nd.array(x), tvm.nd.array(positions), *outputs, 0)
    np.testing.assert_array_equal(outputs[0].numpy(), x[:, :HEADS])
    run(tvm.nd.array(x), tvm.nd.array(positions), *outputs, 1)
    want = turned(x, positions)
    if rotary_dim is not None:
        frequencies = THETA ** (-np.arange(0, 4, 2) / 4)
        angle = np.concatenate([positions[:, None] * frequencies] * 2, axis=1)[:, None]
        swapped = np.concatenate([-x[..., 2:4], x[..., :2]], axis=-1)
        part = x[..., :4] * np.cos(angle) + swapped * np.sin(angle)
        want = np.concatenate([part, x[..., 4:]], axis=-1)
    np.testing.assert_allclose(outputs[0].numpy(), want[:, :HEADS], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(outputs[2].numpy(), x[:, HEADS + KV_HEADS :])


class Block(nn.Module):
    def __init__(self):
        self.norm = nn.RMSNorm(32, -1, 1e-5, bias=False)
        self.qkv = nn.Linear(32, (HEADS + 2 * KV_HEADS) * DIM, bias=False)
        self.out = nn.Linear(HEADS * DIM, 32, bias=False)
        self.up = nn.Linear(32, 80, bias=False)
        self.down = nn.Linear(40, 32, bias=False)

    def forward(self, x: Tensor, cache: PagedKVCache, layer: int):
        b, n, _ = x.shape
        fused = op.reshape(self.qkv(self.norm(x)), (b, n, HEADS + 2 * KV_HEADS, DIM))
        seen = cache.attention_with_fused_qkv(layer, fused, HEADS, sm_scale=DIM**-0.5)
        x = x + self.out(op.reshape(seen, (b, n, HEADS * DIM)))
        gate, up = op.split(self.up(self.norm(x)), 2, axis=-1)
        return x + self.down(op.silu(gate) * up)


class Language(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(30, 32)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.head = nn.Linear(32, 30, bias=False)

    def embed(self, ids: Tensor):
        return self.embedding(ids)

    def prefill(self, x: Tensor, cache: PagedKVCache):
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, layer)

        def last(x: te.Tensor):
            b, n, d = x.shape
            return te.compute((b, 1, d), lambda i, _, k: x[i, n - 1, k], name="last")

        return self.head(op.tensor_expr_op(last, "last", [x])), cache

    def decode(self, x: Tensor, cache: PagedKVCache):
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, layer)
        return self.head(x), cache

    def create(self, sequences, total, step, page):
        return TIRPagedKVCache(
            sequences, total, step, page, 0, LAYERS, HEADS, KV_HEADS, DIM, RopeMode.NORMAL, 1,
            THETA, "float32", "llvm", layer_partition=relax.ShapeExpr([0, LAYERS]),
            rope_scaling={}, rope_ext_factors=relax.PrimValue(0), enable_disaggregation=False,
        )  # fmt: skip


def language_model(params, ids):
    """Logits of all tokens by PyTorch."""
    x = params["embedding.weight"][ids]
    positions = np.arange(len(ids))

    def norm(x, weight):
        return torch.nn.functional.rms_norm(x, (32,), weight, 1e-5)

    for layer in range(LAYERS):
        p = {k.split(".", 2)[2]: v for k, v in params.items() if f"blocks.{layer}." in k}
        fused = (norm(x, p["norm.weight"]) @ p["qkv.weight"].T).view(len(ids), -1, DIM)
        q, k, v = fused.split([HEADS, KV_HEADS, KV_HEADS], dim=1)
        q, k = (torch.tensor(turned(t.numpy(), positions)).float() for t in (q, k))
        q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
        seen = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
        x = x + seen[0].transpose(0, 1).reshape(len(ids), -1) @ p["out.weight"].T
        gate, up = (norm(x, p["norm.weight"]) @ p["up.weight"].T).chunk(2, dim=-1)
        x = x + (torch.nn.functional.silu(gate) * up) @ p["down.weight"].T
    return x @ params["head.weight"].T


def test_a_language_model_prefills_and_decodes_as_pytorch():
    packed = {"param_mode": "packed", "effect_mode": "none"}
    cache = nn.spec.Object(object_type=PagedKVCache)
    sizes = dict.fromkeys(("sequences", "total", "step", "page"), int)
    mod, named = Language().export_tvm(
        {
            "embed": {"ids": nn.spec.Tensor([1, "n"], "int32"), "$": packed},
            "prefill": {"x": nn.spec.Tensor([1, "n", 32], "float32"), "cache": cache, "$": packed},
            "decode": {"x": nn.spec.Tensor(["b", 1, 32], "float32"), "cache": cache, "$": packed},
            "create": {**sizes, "$": {"param_mode": "none", "effect_mode": "none"}},
        }
    )
    torch.manual_seed(0)
    params = {name: torch.randn(*p.shape) * 0.2 for name, p in named}
    weights = [tvm.nd.array(params[name].numpy()) for name, _ in named]
    vm = relax.VirtualMachine(relax.build(mod, "llvm", pipeline="zero"), tvm.cpu())
    cache = make(vm)
    texts = torch.randint(0, 30, (2, 12))
    logits = {0: [], 1: []}
    for i, length in ((0, 7), (1, 4)):
        state("add_sequence", cache, i)
        state("begin_forward", cache, ShapeTuple([i]), ShapeTuple([length]))
        ids = tvm.nd.array(texts[i : i + 1, :length].int().numpy())
        result, cache = vm["prefill"](vm["embed"](ids, weights), cache, weights)
        state("end_forward", cache)
        logits[i].append(result.numpy()[0, 0])
    for step in range(4):
        ids = np.array([[texts[0, 7 + step], texts[1, 4 + step]]], "int32")
        state("begin_forward", cache, ShapeTuple([0, 1]), ShapeTuple([1, 1]))
        embedded = vm["embed"](tvm.nd.array(ids), weights).numpy().reshape(2, 1, 32)
        result, cache = vm["decode"](tvm.nd.array(embedded), cache, weights)
        state("end_forward", cache)
        for i in range(2):
            logits[i].append(result.numpy()[i, 0])
    for i, length in ((0, 7), (1, 4)):
        want = language_model(params, texts[i])[length - 1 : length + 4]
        np.testing.assert_allclose(np.array(logits[i]), want.numpy(), rtol=1e-4, atol=1e-4)
