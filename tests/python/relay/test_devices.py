"""What programs say of where their values live."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.target import VirtualDevice

X = relay.var("x", shape=(3,))


def _module(expr):
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], expr)))


def _marked():
    twice = relay.annotation.on_device(X + X, tvm.cpu(), constrain_result=True)
    moved = relay.device_copy(twice, tvm.cpu(0), tvm.cpu(1))
    return _module(moved * relay.annotation.on_device(relay.const(2.0), "cpu"))


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_marks_for_the_device_of_the_target_change_no_value(kind):
    run = relay.create_executor(kind, _marked(), tvm.cpu(), "llvm").evaluate()
    values = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(run(values).numpy(), 4 * values)


def test_marks_are_read_from_the_text_that_has_them():
    mod = _marked()
    tvm.ir.assert_structural_equal(relay.parse(mod.astext()), mod)


@pytest.mark.parametrize(
    "expr",
    [relay.annotation.on_device(X, tvm.cuda()), relay.device_copy(X, tvm.cpu(), "cuda")],
    ids=["on_device", "device_copy"],
)
def test_marks_for_other_devices_are_refused_with_the_way_out(expr):
    mod = _module(expr)
    message = r"asks for cuda\(0\), and the program is compiled for llvm: .*NDArray.copyto"
    for build in (relay.build, relay.vm.compile):
        with pytest.raises(ValueError, match=message):
            build(mod, "llvm")
    with pytest.raises(ValueError, match=message):
        relay.create_executor("debug", mod, tvm.cpu(), "llvm").evaluate()
    with pytest.raises(TypeError, match="expected a VirtualDevice, a Device or its name"):
        relay.annotation.on_device(X, 1.5)


def test_devices_are_compared_by_what_they_say():
    named, made = VirtualDevice("cpu"), VirtualDevice(tvm.cpu())
    assert tvm.ir.structural_equal(named, made)
    assert (made.device_type, made.virtual_device_id, made.memory_scope) == (1, 0, "")
    anywhere = VirtualDevice()
    assert anywhere.device_type == anywhere.virtual_device_id == -1 and anywhere.target is None
    compiled = VirtualDevice(target="llvm", memory_scope="global")
    assert compiled.device_type == 1 and str(compiled.target.kind.name) == "llvm"
    again = tvm.ir.load_json(tvm.ir.save_json(compiled))
    tvm.ir.assert_structural_equal(again, compiled)
    with pytest.raises(ValueError, match="does not run code for"):
        VirtualDevice(tvm.cuda(), target="llvm")
