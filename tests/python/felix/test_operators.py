"""What a computation consists of: every kind of operator is found, with its sizes."""

from __future__ import annotations

import pytest

from tvm import auto_scheduler, felix, relay, te, topi
from tvm.felix import nn as networks
from tvm.felix.operators import RELAY_BUILDERS, operators_of
from tvm.felix.sym_dag import SymbolicDAG

nn = topi.nn
CONV = {"stride": 1, "pad_front": 1, "pad_behind": 1, "dilation": 1}
POOL = {"n": 1, "h": 16, "w": 12, "c": 8, "dilation": 1, "layout": "NHWC"}


def pool(kind: str, window: int, padding: int):
    return lambda x: nn.pool2d(x, [window] * 2, [2, 2], [1, 1], [padding] * 4, kind, layout="NHWC")


# Kind: what computes it, of which inputs, and some of its sizes.
KINDS = {
    "Conv": (
        lambda x, w: nn.conv2d_nhwc(x, w, 1, 1),
        [(1, 14, 10, 8), (3, 3, 8, 12)],
        {"n": 1, "h": 14, "w": 10, "ci": 8, "co": 12, "kh": 3, "kw": 3, "layout": "NHWC", **CONV},
    ),
    "DepthwiseConv2d": (
        lambda x, w: nn.depthwise_conv2d_nchw(x, w, 1, 1),
        [(2, 8, 9, 9), (8, 2, 3, 3)],
        {"n": 2, "ci": 8, "co": 16, "layout": "NCHW", **CONV},
    ),
    "GroupConv2d": (
        lambda x, w: nn.group_conv2d_nhwc(x, w, 1, 1, 1, 2),
        [(1, 8, 8, 8), (3, 3, 4, 12)],
        {"ci": 8, "co": 12, "groups": 2, **CONV},
    ),
    "TransposeConv2d": (
        lambda x, w: nn.conv2d_transpose_nhwc(x, w, 2, 1),
        [(1, 4, 5, 8), (4, 4, 8, 16)],
        {"h": 4, "w": 5, "ci": 8, "co": 16, "kh": 4, "stride": 2, "padding": 1},
    ),
    "Conv2dTensorCore": (
        lambda x, w: topi.cuda.conv2d_nhwc_tensorcore(x, w, 1, 1),
        [(16, 8, 8, 32), (3, 3, 32, 64)],
        {"n": 16, "ci": 32, "co": 64, "out_dtype": "float32", **CONV},
    ),
    "Conv2dWinograd": (
        lambda x, w: nn.conv2d_winograd_nhwc(x, w, 1, 1, tile_size=4),
        [(1, 8, 12, 8), (3, 3, 8, 16)],
        {"h": 8, "w": 12, "ci": 8, "co": 16, "k": 3, "padding": 1, "tile": 4},
    ),
    "Dense": (nn.dense, [(4, 64), (32, 64)], {"n": 4, "m": 32, "k": 64}),
    "BatchMatmul": (
        lambda a, b: nn.batch_matmul(a, b, transpose_b=False),
        [(3, 8, 12), (3, 12, 16)],
        {"b": 3, "n": 8, "m": 16, "k": 12, "transpose_a": 0, "transpose_b": 0},
    ),
    "OnePool": (pool("max", 2, 0), [(1, 16, 12, 8)], {**POOL, "kind": "max", "kh": 2}),
    "TwoOPsPool": (pool("max", 3, 1), [(1, 16, 12, 8)], {**POOL, "kh": 3, "pad_front": 1}),
    "ThreeOPsPool": (pool("avg", 3, 1), [(1, 16, 12, 8)], {**POOL, "kind": "avg", "stride": 2}),
    "AdaptiveAvgPool": (
        lambda x: nn.adaptive_avg_pool2d(x, (3, 2)),
        [(1, 7, 9, 16)],
        {"n": 1, "h": 7, "w": 9, "c": 16, "oh": 3, "ow": 2},
    ),
    "Softmax": (lambda x: nn.softmax(x, 0), [(12, 32)], {"d0": 12, "d1": 32, "axis": 0}),
    "Mean": (lambda x: topi.mean(x, 1), [(12, 32)], {"d0": 12, "axis0": 1, "keepdims": 0}),
    "ConstScalar": (
        lambda x: topi.multiply(x, topi.full((), "float32", 2.0)),
        [(4, 5)],
        {},
    ),
    "Elemwise": (lambda x: topi.exp(x), [(4, 5)], {"d0": 4, "d1": 5}),
    "Broadcast": (topi.add, [(4, 5), (5,)], {"d0": 4, "d1": 5}),
}


def dag_of(kind: str) -> auto_scheduler.ComputeDAG:
    compute, shapes, _ = KINDS[kind]
    dtype = "float16" if kind == "Conv2dTensorCore" else "float32"
    inputs = [te.placeholder(shape, dtype, name=f"x{k}") for k, shape in enumerate(shapes)]
    return auto_scheduler.ComputeDAG([*inputs, compute(*inputs)])


def test_there_are_seventeen_kinds():
    assert [builder.name for builder in RELAY_BUILDERS] == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_found_with_its_sizes(kind):
    found = operators_of(dag_of(kind))
    (operator,) = [each for each in found if each.name == kind]
    assert operator.sizes.items() >= KINDS[kind][2].items()
    assert kind in ("ConstScalar",) or len(found) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_structure_with_its_sizes_is_the_same_operator(kind):
    structure, sizes = SymbolicDAG.from_ansor(dag_of(kind))
    again = operators_of(structure.make_ansor_compute_dag(sizes))
    assert [operator[:2] for operator in again] == [
        operator[:2] for operator in operators_of(dag_of(kind))
    ]


def test_what_reads_a_part_is_no_elementwise_operator():
    x = te.placeholder((4, 8), name="x")
    (operator,) = operators_of(
        auto_scheduler.ComputeDAG([x, topi.strided_slice(x, [0, 0], [4, 4])])
    )
    assert operator.name == "" and operator.operations == ("T_strided_slice",)


def test_a_padding_that_others_read_is_no_part_of_a_convolution():
    x, w = te.placeholder((1, 8, 8, 8), name="x"), te.placeholder((3, 3, 8, 8), name="w")
    padded = nn.pad(x, [0, 1, 1, 0], [0, 1, 1, 0])
    conv = nn.conv2d_nhwc(padded, w, 1, 0)
    both = topi.add(conv, topi.strided_slice(padded, [0, 1, 1, 0], [1, 9, 9, 8]))
    dag = auto_scheduler.ComputeDAG([x, w, both])
    found = operators_of(dag)
    conv2d = next(operator for operator in found if operator.name == "Conv")
    assert (conv2d.sizes["h"], conv2d.sizes["pad_front"]) == (10, 0)
    computed = [str(op.name) for op in dag.ops if isinstance(op, te.ComputeOp)]
    assert sorted(name for op in found for name in op.operations) == sorted(computed)


def test_tasks_of_a_network_are_printed_with_their_operators(capsys):
    model, inputs = networks.load_network("mlp")
    groups = felix.extract_tasks_(model, inputs, progress=False)
    assert "Dense(n=1, m=512, k=784) -> Broadcast" in capsys.readouterr().out
    names = [[operator.name for operator in group.task.operators] for group in groups]
    assert ["Dense", "Broadcast", "Elemwise"] in names


def test_the_operators_of_relay_programs_are_found():
    data = relay.var("data", shape=(1, 8, 16, 16))
    weight = relay.var("weight", shape=(8, 8, 3, 3))
    call = relay.nn.relu(relay.nn.conv2d(data, weight, padding=(1, 1)))
    tasks, _ = auto_scheduler.extract_tasks(relay.Function([data, weight], call), {}, target="llvm")
    (found,) = [operators_of(task.compute_dag) for task in tasks]
    assert [operator.name for operator in found][:1] == ["Conv"]
    assert found[0].sizes["ci"] == 8 and found[0].sizes["pad_front"] == 1
