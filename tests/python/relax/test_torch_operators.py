"""Each ATen operator that is imported, against PyTorch; and the documented table of them."""

import re
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree as pytree

import tvm
from testing_torch_operators import FIRST_RESULT, GROUPS
from tvm import relax
from tvm.relax.frontend.torch import (
    CallSignature,
    export_for_inference,
    from_exported_program,
    operators_table,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "torch_operators.md"


def imported(function, *args, **kwargs):
    """What the imported function returns for the inputs, in its structure."""
    program = export_for_inference(function, args, kwargs)
    signature = CallSignature(program)
    executable = relax.build(from_exported_program(program), "llvm")
    inputs = [tvm.nd.from_dlpack(t.contiguous()) for t in signature.tensors(args, kwargs)]
    result = relax.VirtualMachine(executable, tvm.cpu())["main"](*inputs)
    arrays = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
    return signature.results([torch.from_dlpack(array) for array in arrays])


def check(function, *args, rtol=1e-4, atol=1e-5, **kwargs):
    with torch.no_grad():
        expected = function(*args, **kwargs)
    torch.testing.assert_close(imported(function, *args, **kwargs), expected, rtol=rtol, atol=atol)


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
            results[label] = result[0] if label[0] in FIRST_RESULT else result
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


def core_operators():
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in getattr(packet, "overloads", list)():
            if torch.Tag.core in getattr(packet, overload).tags:
                yield f"aten.{name}.{overload}"


def test_every_core_operator_is_imported_or_refused_with_a_reason():
    table = operators_table()
    assert [name for name in core_operators() if name not in table] == []


def test_every_imported_core_operator_is_tried():
    tried = {f"aten.{name}" for group in GROUPS.values() for name in group}
    tried |= {"aten.empty.memory_format", "aten.empty_strided.default"}
    tried |= {"aten.sym_size.int", "aten.sym_numel.default"}
    table = operators_table()
    missing = [n for n in core_operators() if table[n] is None and n not in tried]
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
    with pytest.raises(ValueError, match=r"aten.rand.default \(draws random numbers"):
        imported(lambda x: x + torch.rand(3), torch.eye(3))
