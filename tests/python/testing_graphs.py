"""Object graphs of all rooms, and damage done to their JSON."""

from __future__ import annotations

import copy
import json
import random

import numpy as np

import tvm
from tvm import arith, auto_scheduler, relax, te, tir


def matmul_tensors():
    a = te.placeholder((16, 16), name="a")
    b = te.placeholder((16, 16), name="b")
    k = te.reduce_axis((0, 16), "k")
    product = te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    out = te.compute((16, 16), lambda i, j: tir.max(product[i, j], 0.0), name="out")
    return a, b, product, out


def scheduled_matmul():
    a, b, product, out = matmul_tensors()
    schedule = te.create_schedule(out.op)
    row, column = schedule[out].op.axis
    outer, inner = schedule[out].split(row, factor=4)
    left, right = schedule[out].split(column, factor=3)
    schedule[out].reorder(outer, left, inner, right)
    schedule[out].fuse(outer, left)
    schedule[product].compute_root()
    schedule[product].pragma(schedule[product].op.axis[0], "auto_unroll_max_step", 16)
    schedule[out].parallel(schedule[out].leaf_iter_vars[0])
    return schedule, (a, b, out)


def relax_module():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
    weight = relax.const(np.ones((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.matmul(x, weight))
            z = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(z)
    return builder.get()


def graphs() -> dict[str, object]:
    """One graph of each kind that users save, by name."""
    schedule, arguments = scheduled_matmul()
    lowered = tvm.lower(schedule, list(arguments))
    dag = auto_scheduler.ComputeDAG(list(arguments))
    n, x = tir.SizeVar("n", "int32"), tir.Var("x", "int32")
    weights = tvm.nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    expressions = [
        tir.Select(x < n, tir.floordiv(x, 2), tir.floormod(x, n)),
        tir.Let(x, n * 2, x + 1),
        tir.Ramp(x, 1, 4),
        tir.Broadcast(tir.FloatImm("float64", 1.5), 2),
        tir.call_intrin("float32", "tir.exp", tir.FloatImm("float32", 2.0)),
        tir.StringImm("text"),
        tir.Cast("int64", x),
        tir.Not(tir.And(x < n, x > 2)),
        tir.Shuffle([tir.Ramp(x, 1, 2)], [tir.IntImm("int32", 1)]),
    ]
    return {
        "expressions": expressions,
        "containers": {"a": [1, 2.5, None, True, "t"], "b": {"c": []}, "dtype": weights},
        "schedule": schedule,
        "tensor": arguments[-1],
        "lowered": lowered,
        "relax": relax_module(),
        "dag": dag,
        "target": tvm.target.Target("llvm -num-cores=2"),
        "sets": [arith.IntervalSet(0, n), arith.ConstIntBound(0, 3), arith.ModularSet(2, 1)],
        "types": [
            tvm.ir.FuncType([tvm.ir.TensorType((2, n)), tvm.ir.TypeVar("t")], tvm.ir.TupleType([])),
            tvm.ir.PointerType(tvm.ir.PrimType("int8"), "shared"),
        ],
    }


def damage(document: dict, rng: random.Random) -> dict:
    """A copy of a saved graph with one to three values replaced, removed or redirected."""
    damaged = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        node = rng.choice(damaged["nodes"])
        holder = rng.choice(
            [part for part in (node, *node.values()) if isinstance(part, (dict, list))]
        )
        if not holder:
            continue
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        action = rng.randrange(4)
        if action == 0:
            del holder[key]
        elif action == 1:
            holder[key] = {"node": rng.randrange(-2, len(damaged["nodes"]) + 2)}
        elif action == 2:
            other = rng.choice(damaged["nodes"])
            holder[key] = copy.deepcopy(rng.choice(list(other.values())))
        else:
            holder[key] = copy.deepcopy(rng.choice(_WRONG_VALUES))
    return damaged


def damage_gently(document: dict, rng: random.Random) -> dict:
    """A copy of a saved graph with one value replaced by another of the same kind."""
    damaged = copy.deepcopy(document)
    nodes = damaged["nodes"]
    while True:
        position = rng.randrange(len(nodes))
        node = nodes[position]
        holder = node.get("fields") or node.get("items")
        if not holder:
            continue
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        value = holder[key]
        if isinstance(value, dict) and "node" in value:
            kind = nodes[value["node"]]["type"]
            others = [i for i in range(position) if nodes[i]["type"] == kind]
            action = rng.randrange(5)
            if action == 0:
                holder[key] = None
            elif action == 1 and isinstance(holder, list):
                del holder[key]
            else:
                holder[key] = {"node": rng.choice(others)}
        elif isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int):
            holder[key] = rng.choice([-1, 0, 1, 2, 3, 5, 100, value + 1, value - 1, 2**31 - 1])
        elif isinstance(value, dict) and "dtype" in value:
            holder[key] = {"dtype": rng.choice(["int8", "int64", "float32", "bool", "float32x4"])}
        elif isinstance(value, str):
            holder[key] = rng.choice(["", "shared", "i", "global", "vectorize"])
        else:
            continue
        return damaged


_WRONG_VALUES = [
    None, True, 0, -1, 7, 2**31, -(2**63), 2**63 - 1, 1e300, "", "x", "\ud83d", [], {}, [[1, 2]],
    {"dtype": "float32x4"}, {"dtype": "int1"}, {"dtype": "handle"}, {"device": [1, 0]},
    {"float": "nan"}, {"node": 0},
]  # fmt: skip


def damaged_text(text: str, rng: random.Random) -> str:
    """A copy of a text, cut off or with some characters replaced, doubled or removed."""
    if rng.randrange(4) == 0:
        return text[: rng.randrange(len(text))]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        piece = rng.choice(["", text[at] * 2, chr(rng.randrange(1, 300)), '"', "[", "}", "9" * 30])
        text = text[:at] + piece + text[at + 1 :]
    return text


def use(value: object) -> None:
    """What a reader does first with a graph: print it, hash it, compare it, save it again."""
    repr(value)
    tvm.ir.structural_hash(value)
    tvm.ir.structural_equal(value, value)
    tvm.ir.save_json(value)


def types_in(value: object) -> set[str]:
    """Keys of all types in a graph."""
    return {node["type"] for node in json.loads(tvm.ir.save_json(value))["nodes"]}
