"""Devices that modules list, and the tensors that live on them."""

import pytest

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Copies:
    I.module_attrs({"devices": 2})
    I.module_global_infos(
        {"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0), I.vdevice("cuda", 1)]}
    )

    @R.function
    def main(x: R.Tensor((2, 3), "float32", "cuda:1"), y: R.Tensor((2, 3), "float32", "llvm")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.to_vdevice(a, "llvm")
            c = R.multiply(b, y)
            R.output(c)
        return c


def _devices(mod):
    return list(mod.global_infos["vdevice"])


def test_a_module_lists_devices():
    cpu, _, gpu = _devices(Copies)
    main = Copies["main"]
    assert main.params[0].struct_info.vdevice == gpu
    assert main.ret_struct_info.vdevice == cpu
    assert int(gpu.vdevice_id) == 1 and str(gpu.target.kind.name) == "cuda"


def test_the_text_of_a_module_has_them():
    text = Copies.script()
    assert "I.module_global_infos({" in text
    assert 'vdevice="cuda:1:global"' in text and 'dst_vdevice="llvm:0:global"' in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), Copies)
    again = tvm.ir.load_json(tvm.ir.save_json(Copies))
    tvm.ir.assert_structural_equal(again, Copies)


def test_global_infos_are_part_of_a_module():
    other = tvm.IRModule(Copies.functions, attrs=Copies.attrs)
    assert not tvm.ir.structural_equal(other, Copies)
    other.update_global_info("vdevice", _devices(Copies))
    assert tvm.ir.structural_equal(other, Copies)
    built = relax.BlockBuilder(Copies).get()
    assert tvm.ir.structural_equal(built, Copies)
    assert len(transform.Normalize()(Copies).global_infos["vdevice"]) == 3


def test_a_device_that_is_not_listed():
    with pytest.raises(tvm.error.DiagnosticError, match="no device `cuda:2`; its devices are"):
        tvm.script.from_source(
            """
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice(T.target("cuda"), 0, "global")]})

    @R.function
    def main(x: R.Tensor((2,), "float32", "cuda:2")):
        return x
"""
        )


def test_the_builder_of_scripts():
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import ir as B

    with IRBuilder() as builder, B.ir_module():
        B.module_set_attr("x", 1)
        B.module_global_infos({"vdevice": [B.vdevice("llvm")], "other": [B.dummy_global_info()]})
        assert B.module_get_attr("x") == 1 and B.module_get_attrs() == {"x": 1}
        assert B.lookup_vdevice("llvm", 0) == B.lookup_vdevice("vdevice", 0)
        with pytest.raises(ValueError, match="no device `cuda:0`"):
            B.lookup_vdevice("cuda", 0)
    assert set(map(str, builder.get().global_infos)) == {"vdevice", "other"}


def test_hints_become_copies_where_devices_differ():
    @I.ir_module
    class Hinted:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.hint_on_device(x, tvm.cuda(0))
                b = R.add(a, y)
                c = R.hint_on_device(b, tvm.cpu(0))
                d = R.multiply(c, c)
                R.output(d)
            return d

    @I.ir_module
    class Realized:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(
            x: R.Tensor((2, 3), "float32", "cuda:0"), y: R.Tensor((2, 3), "float32", "cuda:0")
        ):
            with R.dataflow():
                a = x
                b = R.add(a, y)
                c = R.to_vdevice(b, "llvm")
                d = R.multiply(c, c)
                R.output(d)
            return d

    tvm.ir.assert_structural_equal(transform.RealizeVDevice()(Hinted), Realized)


def test_devices_reach_calls_and_tuples():
    @I.ir_module
    class Before:
        I.module_global_infos({"vdevice": [I.vdevice("cuda", 0)]})

        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32", "cuda:0")):
            a = R.call_dps_packed("f", (x, y), out_sinfo=R.Tensor((2, 3), "float32"))
            b = (a, x)
            return b[1]

    after = transform.RealizeVDevice()(Before)
    (device,) = _devices(after)
    bindings = after["main"].body.blocks[0].bindings
    assert after["main"].params[0].struct_info.vdevice == device
    assert bindings[0].value.sinfo_args[0].vdevice == device
    assert after["main"].ret_struct_info.vdevice == device


def test_devices_that_contradict_each_other():
    @I.ir_module
    class Before:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(x: R.Tensor((2, 3), "float32", "llvm"), y: R.Tensor((2, 3), "float32")):
            a = R.hint_on_device(y, tvm.cuda(0))
            return R.call_dps_packed("f", (x, a), out_sinfo=R.Tensor((2, 3), "float32"))

    with pytest.raises(ValueError, match="copy one of them by to_vdevice"):
        transform.RealizeVDevice()(Before)
    plain = tvm.IRModule(Before.functions)
    assert transform.RealizeVDevice()(plain).same_as(plain)


def test_another_device_in_the_place_of_one():
    new = tvm.ir.VDevice("vulkan", 0, "global")
    after = transform.UpdateVDevice(new, 2)(Copies)
    assert _devices(after)[2] == new
    assert after["main"].params[0].struct_info.vdevice == new
    assert after["main"].ret_struct_info.vdevice == _devices(Copies)[0]
    other = transform.UpdateVDevice(tvm.ir.VDevice("llvm", 1), 0)(Copies)
    copy = other["main"].body.blocks[0].bindings[1].value
    assert copy.attrs["dst_vdevice"] == _devices(other)[0]
    with pytest.raises(IndexError, match="3 devices"):
        transform.UpdateVDevice(new, 3)(Copies)
