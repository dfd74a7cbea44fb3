"""The kernels of `core.py`: ours as scheduled in `tvm.topi.x86`, and PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Functions = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Candidate:
    """A schedule of a kernel: its register tile, and algorithm and loop order of a convolution.

    Of an elementwise kernel only the vectors count. `winograd` is the tile of Winograd's algorithm,
    0 for the direct one; `chunk_rows` the rows of such tiles that stay in cache.
    """

    rows: int
    columns: int
    vectors: int
    prefetch: int = 0
    rows_outside: bool = False
    winograd: int = 0
    chunk_rows: int | None = None

    def __str__(self) -> str:
        text = f"winograd {self.winograd} " if self.winograd else ""
        text += f"{self.rows}x{self.columns}x{self.vectors}"
        text += f" chunk {self.chunk_rows}" if self.chunk_rows else ""
        text += f" prefetch {self.prefetch}" if self.prefetch else ""
        return text + (" rows outside" if self.rows_outside else "")

    def tile(self) -> Any:
        """The tile as the schedules take it."""
        from tvm.topi import x86

        return x86.RegisterTile(self.rows, self.columns, self.vectors, self.prefetch)


@dataclass(frozen=True)
class Case:
    """One kernel. What `size` holds is said by the function of its kind.

    The best of a case's candidates counts; those that need more vector registers than the target
    has are left out.
    """

    name: str
    kind: str
    size: tuple[int, ...]
    candidates: tuple[Candidate, ...]

    def fitting(self, target: Any) -> list[Candidate]:
        """Candidates that the target's vector registers can hold."""
        available = target.num_vector_registers
        return [c for c in self.candidates if c.tile().registers() <= available]


_IN_TURN = (Candidate(1, 1, 2), Candidate(1, 1, 4))


def _winograd(
    *chunk_rows: int | None, tile_size: int = 4, prefetch: int = 0
) -> tuple[Candidate, ...]:
    """Winograd's algorithm with register tiles for 16 and for 32 vector registers."""
    return tuple(
        Candidate(rows, 1, 2, prefetch, winograd=tile_size, chunk_rows=chunk)
        for chunk in chunk_rows
        for rows in (4, 5, 6, 12)
    )


CASES = (
    Case("conv3x3_64_56", "conv", (56, 64, 64, 3, 1), _winograd(1, None)),
    Case(
        "conv3x3_64_56_direct",
        "conv",
        (56, 64, 64, 3, 1),
        (
            Candidate(3, 2, 2),
            Candidate(2, 3, 2),
            Candidate(2, 3, 2, rows_outside=True),
            Candidate(2, 7, 2),
            Candidate(2, 7, 2, rows_outside=True),
        ),
    ),
    Case("conv3x3_128_28", "conv", (28, 128, 128, 3, 1), _winograd(None)),
    Case(
        "conv3x3_128_28_direct",
        "conv",
        (28, 128, 128, 3, 1),
        (Candidate(3, 2, 2), Candidate(2, 3, 2), Candidate(2, 7, 2)),
    ),
    Case(
        "conv3x3_256_14",
        "conv",
        (14, 256, 256, 3, 1),
        _winograd(None, prefetch=16) + _winograd(None, tile_size=2),
    ),
    Case(
        "conv3x3_256_14_direct",
        "conv",
        (14, 256, 256, 3, 1),
        (Candidate(3, 2, 2), Candidate(2, 3, 2, 16), Candidate(2, 7, 2, 16)),
    ),
    Case(
        "conv3x3_512_7",
        "conv",
        (7, 512, 512, 3, 1),
        _winograd(None, tile_size=2) + _winograd(None, tile_size=2, prefetch=16),
    ),
    Case(
        "conv3x3_512_7_direct",
        "conv",
        (7, 512, 512, 3, 1),
        (Candidate(1, 4, 2, 16), Candidate(2, 3, 2, 16), Candidate(2, 7, 2, 16)),
    ),
    Case(
        "conv1x1_256_64_56",
        "conv",
        (56, 256, 64, 1, 1),
        (Candidate(3, 2, 2), Candidate(2, 2, 2), Candidate(1, 14, 2)),
    ),
    Case(
        "conv1x1_512_2048_7",
        "conv",
        (7, 512, 2048, 1, 1),
        (Candidate(1, 4, 2, 16), Candidate(2, 3, 2, 16), Candidate(2, 7, 2, 16)),
    ),
    Case(
        "conv7x7_stem",
        "conv",
        (224, 3, 64, 7, 2),
        (Candidate(1, 6, 2), Candidate(1, 4, 2), Candidate(1, 7, 2), Candidate(1, 14, 2)),
    ),
    Case("depthwise_144_56", "depthwise", (56, 144, 1), (Candidate(2, 4, 1), Candidate(1, 4, 1))),
    Case("depthwise_144_56", "depthwise", (56, 144, 2), (Candidate(1, 4, 1), Candidate(1, 2, 1))),
    Case(
        "matmul_1024",
        "matmul",
        (1024, 1024, 1024),
        (Candidate(6, 1, 2, 16), Candidate(4, 1, 3), Candidate(6, 1, 4), Candidate(8, 1, 3, 8)),
    ),
    Case(
        "dense_128_768_3072",
        "dense",
        (128, 768, 3072),
        (Candidate(6, 1, 2, 8), Candidate(4, 1, 3), Candidate(8, 1, 3), Candidate(8, 1, 3, 8)),
    ),
    Case("exp", "unary", (1024, 1024), _IN_TURN),
    Case("tanh", "unary", (1024, 1024), _IN_TURN),
    Case("gelu", "unary", (1024, 1024), _IN_TURN),
    Case("softmax", "unary", (1024, 1024), _IN_TURN),
    Case("add_64mb", "add", (16, 1024, 1024), _IN_TURN),
)


def convolution(case: Case, target: Any) -> tuple[Functions, Functions]:
    """Our kernels and PyTorch's.

    size is (height, in, out, kernel, stride), of a depthwise one (height, channels, stride).
    """
    import numpy as np
    import torch
    import torch.nn.functional as F

    import tvm
    from tvm import te
    from tvm.topi import x86

    depthwise = case.kind == "depthwise"
    if depthwise:
        height, inputs, stride = case.size
        outputs, kernel, groups = inputs, 3, inputs
    else:
        height, inputs, outputs, kernel, stride = case.size
        groups = 1
    pad = kernel // 2
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, height, height, inputs)).astype("float32")
    weight = rng.standard_normal((kernel, kernel, inputs // groups, outputs)).astype("float32")

    nchw = torch.tensor(data).permute(0, 3, 1, 2).contiguous()
    filters = torch.tensor(weight).permute(3, 2, 0, 1).contiguous()
    options = {"padding": pad, "stride": stride, "groups": groups}
    expected = F.conv2d(nchw, filters, **options).permute(0, 2, 3, 1).contiguous().numpy()
    last = nchw.contiguous(memory_format=torch.channels_last)
    filters_last = filters.contiguous(memory_format=torch.channels_last)
    theirs = {
        "contiguous": lambda: F.conv2d(nchw, filters, **options),
        "channels_last": lambda: F.conv2d(last, filters_last, **options),
    }

    ours = {}
    for candidate in case.fitting(target):
        tile = candidate.tile()
        A = te.placeholder(data.shape, name="A")
        if depthwise:
            packed_weight = np.ascontiguousarray(weight[:, :, 0])
            W = te.placeholder(packed_weight.shape, name="W")
            C = x86.depthwise_conv2d_nhwc_packed(A, W, stride, pad)
            schedule = x86.schedule_depthwise_conv2d_nhwc_packed(C, tile, target=target)
        else:
            block = tile.vectors * target.vector_width // 32
            if candidate.winograd:
                packed_weight = x86.pack_winograd_weight(weight, candidate.winograd, block)
                W = te.placeholder(packed_weight.shape, name="W")
                C = x86.conv2d_nhwc_winograd_packed(A, W, candidate.winograd, kernel, pad)
                schedule = x86.schedule_conv2d_nhwc_winograd_packed(
                    C, tile, candidate.chunk_rows, target=target
                )
            else:
                packed_weight = x86.pack_conv2d_weight(weight, block)
                W = te.placeholder(packed_weight.shape, name="W")
                C = x86.conv2d_nhwc_packed(A, W, stride, pad)
                schedule = x86.schedule_conv2d_nhwc_packed(
                    C, tile, target=target, rows_outside=candidate.rows_outside
                )
        kernel_function = tvm.build(schedule, [A, W, C], target, name="kernel")["kernel"]
        width = int(C.shape[-1])
        ours[str(candidate)] = checked(kernel_function, (data, packed_weight), expected, width)
    return ours, theirs


def product(case: Case, target: Any) -> tuple[Functions, Functions]:
    """Our kernels and PyTorch's; size is (rows, depth, columns)."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    import tvm
    from tvm import te
    from tvm.topi import x86

    rows, depth, columns = case.size
    rng = np.random.default_rng(0)
    data = rng.standard_normal((rows, depth)).astype("float32")
    weight = rng.standard_normal((depth, columns)).astype("float32")
    x, w = torch.tensor(data), torch.tensor(weight)
    transposed = w.t().contiguous()
    theirs: Functions = {"matmul": lambda: x @ w}
    if case.kind == "dense":
        theirs = {"linear": lambda: F.linear(x, transposed)}
    ours = {}
    for candidate in case.fitting(target):
        tile = candidate.tile()
        block = tile.vectors * target.vector_width // 32
        packed_weight = x86.pack_matmul_weight(weight, block)
        A = te.placeholder(data.shape, name="A")
        W = te.placeholder(packed_weight.shape, name="W")
        C = x86.matmul_packed(A, W)
        schedule = x86.schedule_matmul_packed(C, tile, target=target)
        kernel_function = tvm.build(schedule, [A, W, C], target, name="kernel")["kernel"]
        width = int(C.shape[-1])
        ours[str(candidate)] = checked(
            kernel_function, (data, packed_weight), (x @ w).numpy(), width
        )
    return ours, theirs


def unary(case: Case, target: Any) -> tuple[Functions, Functions]:
    """Our kernels and PyTorch's; size is (rows, columns), softmax along the columns."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    import tvm
    from tvm import te, topi
    from tvm.topi import x86

    data = np.random.default_rng(0).standard_normal(case.size).astype("float32")
    x = torch.tensor(data)
    ours_of, theirs_of = {
        "exp": (topi.exp, torch.exp),
        "tanh": (topi.tanh, torch.tanh),
        "gelu": (topi.nn.gelu, F.gelu),
        "softmax": (topi.nn.softmax, lambda value: torch.softmax(value, -1)),
    }[case.name]
    ours = {}
    for candidate in case.fitting(target):
        A = te.placeholder(data.shape, name="A")
        B = ours_of(A)
        make = x86.schedule_softmax if case.name == "softmax" else x86.schedule_injective
        kernel = tvm.build(make(B, candidate.vectors, target), [A, B], target, name="kernel")[
            "kernel"
        ]
        ours[str(candidate)] = checked(kernel, (data,), theirs_of(x).numpy(), data.shape[-1])
    return ours, {"eager": lambda: theirs_of(x)}


def addition(case: Case, target: Any) -> tuple[Functions, Functions]:
    """Our kernels and PyTorch's, both into memory that exists; size is the shape."""
    import numpy as np
    import torch

    import tvm
    from tvm import te, topi
    from tvm.topi import x86

    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(case.size, "float32") for _ in range(2))
    x, y = torch.tensor(left), torch.tensor(right)
    out = torch.empty_like(x)
    ours = {}
    for candidate in case.fitting(target):
        A, B = (te.placeholder(case.size, name=name) for name in "AB")
        C = topi.add(A, B)
        schedule = x86.schedule_injective(C, candidate.vectors, target)
        kernel = tvm.build(schedule, [A, B, C], target, name="kernel")["kernel"]
        ours[str(candidate)] = checked(kernel, (left, right), left + right, case.size[-1])
    return ours, {"out": lambda: torch.add(x, y, out=out)}


def checked(function: Any, inputs: Sequence[Any], expected: Any, width: int) -> Callable[[], None]:
    """A call of the kernel on arrays of its own, after one run that is compared.

    `width` is the result's last extent: channels come in whole panels, those past the end are zero.
    """
    import numpy as np

    import tvm

    arguments = [tvm.nd.array(array) for array in inputs]
    result = tvm.nd.empty((*expected.shape[:-1], width), "float32")
    function(*arguments, result)
    got = result.numpy()[..., : expected.shape[-1]]
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=5e-3)
    return lambda: function(*arguments, result)


KINDS: dict[str, Callable[[Case, Any], tuple[Functions, Functions]]] = {
    "conv": convolution,
    "depthwise": convolution,
    "matmul": product,
    "dense": product,
    "unary": unary,
    "add": addition,
}
