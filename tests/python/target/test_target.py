"""Target descriptions: their forms, what they know, and what they refuse."""

from __future__ import annotations

import json
import platform

import numpy as np
import pytest

import testing_processors
import tvm
from tvm import te, tir
from tvm.target import Target, machine
from tvm.target.machine import vector_unit


@pytest.mark.parametrize(
    "spec",
    [
        "llvm -num-cores=4 -mattr=+avx2,+fma",
        "llvm --num-cores=4 --mattr=+avx2,+fma",
        "llvm -num-cores 4 -mattr +avx2,+fma",
        {"kind": "llvm", "num-cores": 4, "mattr": ["+avx2", "+fma"]},
        {"kind": "llvm", "num_cores": 4, "mattr": "+avx2,+fma"},
        json.dumps({"kind": "llvm", "num-cores": 4, "mattr": ["+avx2", "+fma"]}),
    ],
)
def test_target_forms_mean_the_same(spec):
    target = Target(spec)
    assert str(target) == "llvm -keys=cpu -mattr=+avx2,+fma -num-cores=4"
    assert target.num_cores == 4
    assert target.get_attr("mattr") == ["+avx2", "+fma"]


def test_target_text_parses_back_to_itself():
    target = Target("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu")
    assert str(Target(str(target))) == str(target)
    assert [str(key) for key in target.keys] == ["arm_cpu", "cpu"]
    assert target.vector_width == 128


def test_export_is_json_that_parses_back():
    target = Target("cuda -max_num_threads=512", host="llvm -num-cores=2")
    table = json.loads(json.dumps(target.export()))
    again = Target(table)
    assert str(again) == str(target)
    assert str(again.host) == str(target.host)


def test_plain_llvm_target_describes_this_machine():
    target = Target("llvm")
    assert target.mcpu
    assert target.num_cores >= 1
    assert target.vector_width in (128, 256, 512)
    assert target.num_vector_registers in (8, 16, 32, 64)
    sizes = [target.get_attr(f"l{level}_cache_bytes") for level in (1, 2, 3)]
    assert 8 << 10 <= sizes[0] <= sizes[1] <= sizes[2]
    assert target.get_attr("cache-line-bytes") in (32, 64, 128, 256)
    assert str(target) == "llvm -keys=cpu"


def test_a_named_processor_has_its_own_caches_on_every_machine():
    kib = {
        "haswell": (32, 256, 8192),
        "icelake-server": (48, 1280, 24576),
        "znver4": (32, 1024, 32768),
        "x86-64-v3": (32, 256, 4096),
    }
    kib.pop(Target("llvm").mcpu, None)  # of this machine's processor the system knows better
    for cpu, sizes in kib.items():
        target = Target(f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu={cpu}")
        found = [target.get_attr(f"l{n}_cache_bytes") for n in (1, 2, 3)]
        assert found == [size << 10 for size in sizes], cpu
        assert target.get_attr("cache_line_bytes") == 64


def test_a_target_can_name_the_machine_that_it_means():
    target = Target("llvm -num-cores=3")
    named = target.with_machine()
    assert named.attrs["mcpu"] == target.mcpu
    assert f"-mcpu={target.mcpu} " in str(named)
    assert named.num_cores == 3
    # Code for the two is the same, with all that this machine has.
    assert Target(str(named)).get_attr("mattr_full") == target.get_attr("mattr_full")
    assert str(Target("cuda -arch=sm_80").with_machine()) == "cuda -keys=cuda,gpu -arch=sm_80"


def test_a_machine_that_lacks_vectors_of_its_processor_says_so(monkeypatch):
    flags = "+avx2,+fma,-avx512f,-avx512vl,-avx512dq,-avx512bw,-avx512cd"
    triple = testing_processors.X86_TRIPLE
    monkeypatch.setattr(machine, "host_triple", lambda: triple)
    monkeypatch.setattr(machine, "host_cpu", lambda: ("skylake-avx512", flags))
    machine._missing_vectors.cache_clear()
    try:
        hidden = machine.machine_features(triple)
    finally:
        machine._missing_vectors.cache_clear()
    assert (hidden["vector_width"], hidden["num_vector_registers"]) == (256, 16)
    assert hidden["mattr"] == [flag for flag in flags.split(",") if flag.startswith("-avx512")]
    # Another processor's features are those of its name.
    assert machine.machine_features(triple, "znver4")["vector_width"] == 512


@pytest.mark.parametrize(
    ("recorded", "same"),
    [
        ("llvm", True),
        (f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu=znver3 -num-cores=64", True),
        (f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu=znver4", False),
        (f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu=znver3 -mattr=-avx2", False),
        ("llvm -mtriple=aarch64-linux-gnu", False),
        ("cuda", False),
    ],
)
def test_records_hold_for_the_same_kind_of_machine_only(recorded, same):
    wanted = Target(f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu=znver3 -num-cores=8")
    assert wanted.is_same_machine(Target(recorded)) == same


def test_an_option_overrides_what_the_machine_says():
    target = Target("llvm -vector-width=512 -num-vector-registers=32 -l1-cache-bytes=1024")
    assert target.vector_width == 512
    assert target.num_vector_registers == 32
    assert target.get_attr("l1_cache_bytes") == 1024


@pytest.mark.parametrize(
    ("cpu", "unit"),
    [("x86-64", (128, 16)), *testing_processors.X86.items()],
)
def test_vector_unit_follows_from_the_processor(cpu, unit):
    assert vector_unit(testing_processors.X86_TRIPLE, cpu, "") == unit


@pytest.mark.parametrize(
    ("cpu", "unit"), [*testing_processors.X86.items(), *testing_processors.ARM.items()]
)
def test_a_named_processor_is_described_alike_on_every_machine(cpu, unit):
    target = testing_processors.target_of(cpu)
    assert (target.vector_width, target.num_vector_registers) == unit


def test_host_is_kept_and_replaced():
    target = Target("cuda", host="llvm")
    assert target.host.kind.name == "llvm"
    assert target.with_host("c").host.kind.name == "c"
    assert target.max_num_threads == 1024
    assert target.thread_warp_size == 32


def test_scopes_nest_and_end():
    assert Target.current() is None
    with Target("llvm -num-cores=1") as outer, Target("llvm -num-cores=2") as inner:
        assert Target.current().same_as(inner)
        assert not Target.current().same_as(outer)
    assert Target.current() is None
    with pytest.raises(ValueError, match="no target is in scope"):
        Target.current(allow_none=False)


def test_constructors_equal_the_parsed_text():
    assert str(tvm.target.cuda()) == str(Target("cuda"))
    assert str(tvm.target.cuda("v100", "sm_70", ["-thread_warp_size=32"])) == str(
        tvm.target.cuda("v100", "sm_70", "-thread_warp_size=32")
    )
    assert tvm.target.cuda("v100").model == "v100"
    assert tvm.target.cuda("v100", "sm_70").arch == "sm_70"


def test_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match='unknown kind "nosuch"; known kinds: .*llvm'):
        Target("nosuch")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("llvm -runtime=c", ValueError, "runtime=c is no option of a target; .*Runtime"),
        ("llvm -nosuch=1", ValueError, 'unknown option "nosuch"; this kind has .*num-cores'),
        ("llvm -num-cores=two", ValueError, 'must be an integer, got "two"'),
        ("llvm 4", ValueError, 'expected an option such as -mcpu=name, got "4"'),
        ("", ValueError, "the text is empty"),
        ({"mcpu": "haswell"}, ValueError, 'needs an entry "kind"'),
        ({"kind": "llvm", "num-cores": [1]}, ValueError, "must be of type int"),
        ("{ kind: llvm }", ValueError, "the JSON text does not parse"),
        (3, TypeError, "expected text, a dict or a Target, got int"),
        ("llvm -mcpu", ValueError, "option mcpu needs a value: -mcpu=..."),
        ("llvm -num-cores -mcpu=haswell", ValueError, "option num-cores needs a value"),
        ("llvm -mcpu=nosuchcpu", ValueError, "'nosuchcpu' is not a processor LLVM knows"),
    ],
)
def test_target_refuses_what_it_cannot_mean(spec, error, message):
    with pytest.raises(error, match=message):
        Target(spec)


@pytest.mark.parametrize(
    "words", ["-link-params=0", "-link_params=true", "-runtime=c++ -executor=graph"]
)
def test_options_of_linking_are_no_part_of_a_target(words):
    target = Target(f"llvm -keys=cpu {words} -mcpu=skylake-avx512")
    assert str(target) == str(Target("llvm -mcpu=skylake-avx512"))
    table = {"kind": "llvm", "mcpu": "skylake-avx512", "link-params": False}
    assert str(Target(table)) == str(target)


def test_a_user_registers_a_kind_and_its_generator():
    kind = tvm.target.register_target_kind(
        "testpu", 12, keys=["testpu"], options={"units": "int", "fast": "bool"}
    )
    assert "units" in kind.options
    target = Target("testpu -units=3 -fast")
    assert target.get_attr("units") == 3
    assert target.get_attr("fast") is True
    with pytest.raises(ValueError, match="target.build.testpu is not enabled"):
        tvm.target.build_module(tvm.IRModule(), target)
    calls = []

    @tvm.register_func("target.build.testpu")
    def generate(mod, given):
        calls.append(str(given))
        return tvm.target.build_module(mod, "llvm")

    tvm.target.build_module(tvm.IRModule(), target)
    assert calls == ["testpu -keys=testpu -fast=1 -units=3"]
    with pytest.raises(ValueError, match="this name is taken"):
        tvm.target.register_target_kind("testpu", 12)
    with pytest.raises(ValueError, match='option a has type "list"; the types are'):
        tvm.target.register_target_kind("testpu2", 12, options={"a": "list"})


def test_target_tells_its_limits_and_kinds():
    target = Target("cuda -arch=sm_80")
    assert target.arch == "sm_80"
    assert target.max_shared_memory_per_block == 49152
    assert Target("llvm -mattr=+avx2,-fma").mattr == ["+avx2", "-fma"]
    assert Target("llvm").max_shared_memory_per_block == 0
    assert set(Target.list_kinds()) >= {"llvm", "c", "micro_dev", "stackvm", "cuda"}


def test_boards_without_an_operating_system_get_c():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    module = tvm.build(te.create_schedule(B.op), [A, B], target="micro_dev", name="twice")
    assert module.type_key == "c"
    assert "twice" in module.get_source()


def test_a_tag_stands_for_the_options_of_a_machine():
    board = Target("raspberry-pi/4b-aarch64")
    assert (board.mcpu, board.num_cores, board.get_attr("mtriple")) == (
        "cortex-a72",
        4,
        "aarch64-linux-gnu",
    )
    gpu = Target("nvidia/nvidia-a100", host="llvm")
    assert gpu.arch == "sm_80"
    assert str(gpu.host.kind.name) == "llvm"
    assert Target(str(gpu)).get_attr("tag") == "nvidia/nvidia-a100"
    for tag in tvm.target.list_tags():
        Target(tag)


def test_a_user_registers_a_tag():
    config = {"kind": "llvm", "num-cores": 3}
    tvm.target.register_tag("test/three-cores", config, override=True)
    assert Target("test/three-cores").num_cores == 3
    with pytest.raises(ValueError, match="is taken; choose another name"):
        tvm.target.register_tag("test/three-cores", config)
    with pytest.raises(ValueError, match='needs an entry "kind"'):
        tvm.target.register_tag("test/nothing", {})
    with pytest.raises(
        ValueError, match=r'there is no tag "nvidia/a1"; close to it are .*nvidia/.*register_tag'
    ):
        Target("nvidia/a1")


def test_a_target_knows_its_tag_and_a_board_its_own_processor():
    board = Target("nvidia/jetson-agx-orin-64gb")
    assert board.tag == "nvidia/jetson-agx-orin-64gb"
    assert (board.host.mcpu, board.host.num_cores) == ("cortex-a78", 12)
    assert Target("cuda").tag == ""
    assert Target("apple/m1-gpu").max_shared_memory_per_block == 32768


def test_byte_dot_products_came_with_pascal():
    assert Target("nvidia/geforce-gtx-1080").supports_integer_dot_product
    assert not Target("nvidia/tesla-p100").supports_integer_dot_product
    assert not Target("llvm").supports_integer_dot_product


def test_a_target_is_taken_or_that_in_scope():
    with Target("cuda"):
        assert Target.target_or_current(None).kind.name == "cuda"
        assert Target.target_or_current("llvm").kind.name == "llvm"
    with pytest.raises(ValueError, match="no target is in scope"):
        Target.target_or_current(None)


def test_microcontrollers_are_targets_for_c():
    board = tvm.target.micro("stm32f746xx")
    assert (board.kind.name, board.mcpu, board.model) == ("c", "cortex-m7", "stm32f746xx")
    assert board.features.has_dsp
    with pytest.raises(ValueError, match=r'no board "desk"; the boards are host, .*mcpu'):
        tvm.target.micro("desk")


@pytest.mark.parametrize(
    "spec",
    [
        "composite --host=llvm --devices=cuda,opencl",
        {"kind": "composite", "host": "llvm", "devices": ["cuda", {"kind": "opencl"}]},
        {"kind": "composite", "host": "llvm", "devices": [Target("cuda"), Target("opencl")]},
    ],
)
def test_a_composite_target_has_devices(spec):
    target = Target(spec)
    assert [str(device) for device in target.attrs["devices"]] == [
        str(Target("cuda")),
        str(Target("opencl")),
    ]
    assert target.host.kind.name == "llvm"


def test_a_composite_target_reads_back_from_its_text_and_its_table():
    devices = ["llvm -mcpu=skylake-avx512 -mattr=+avx2,+fma", "cuda -arch=sm_80"]
    target = Target({"kind": "composite", "devices": devices})
    alone = Target({"kind": "composite", "devices": devices[:1]})
    for one in (target, alone, Target("composite")):
        assert tvm.ir.structural_equal(Target(str(one)), one)
        assert tvm.ir.structural_equal(Target(json.loads(json.dumps(one.export()))), one)
    with pytest.raises(ValueError, match="option devices must be of type targets"):
        Target({"kind": "composite", "devices": 3})


def test_an_arm_board_is_a_target():
    target = tvm.target.arm_cpu("rasp4b64")
    assert [str(key) for key in target.keys] == ["arm_cpu", "cpu"]
    assert (target.model, target.device_name, target.mcpu) == ("bcm2711", "arm_cpu", "cortex-a72")
    assert target.get_attr("mtriple") == "aarch64-linux-gnu"
    assert tvm.target.arm_cpu("rasp3b").get_attr("mtriple").startswith("armv7l")
    other = tvm.target.arm_cpu("myboard", "-mcpu=cortex-a55")
    assert (other.model, other.mcpu) == ("myboard", "cortex-a55")


def test_a_riscv_board_and_an_adreno_are_targets():
    small, large = tvm.target.riscv_cpu("sifive-e31"), tvm.target.riscv_cpu()
    assert small.get_attr("mtriple").startswith("riscv32")
    assert (large.mcpu, large.get_attr("mabi")) == ("sifive-u54", "lp64d")
    assert [str(key) for key in tvm.target.adreno().keys] == ["adreno", "opencl", "gpu"]


def test_a_kind_says_its_options_with_their_types():
    options = tvm.target.TargetKind.options_from_name("llvm")
    assert options["mcpu"] == "str" and options["num-cores"] == "int"
    assert options["fast-math"] == "bool" and options["mattr"] == "array"
    assert Target("llvm").kind.options == options
    with pytest.raises(ValueError, match="unknown kind"):
        tvm.target.TargetKind.options_from_name("nosuch")


def test_a_target_knows_the_number_of_its_device():
    assert Target("llvm").get_target_device_type() == tvm.cpu().device_type
    assert Target("cuda").get_target_device_type() == tvm.cuda().device_type


def test_the_version_of_llvm_is_known():
    assert tvm.target.codegen.llvm_version_major() >= 11


def test_doubles_are_not_passed_in_calls_without_sse2():
    a = te.placeholder((8,), "float64", name="a")
    twice = te.compute((8,), lambda i: a[i] * 2.0 + tir.sqrt(tir.abs(a[i])), name="twice")
    target = "llvm -mtriple=x86_64-linux-gnu -mattr=-sse2"
    func = tvm.build(te.create_schedule(twice.op), [a, twice], target=target)
    if platform.machine() == "x86_64":
        x, out = np.linspace(0, 5, 8), tvm.nd.empty((8,), "float64")
        func(tvm.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), x * 2 + np.sqrt(x), rtol=1e-14)
    root = te.compute((8,), lambda i: tir.call_pure_extern("float64", "cbrt", a[i]), name="root")
    with pytest.raises(ValueError, match="passes double in a call of cbrt, .* leave -sse2 out"):
        tvm.build(te.create_schedule(root.op), [a, root], target=target, name="roots")


@pytest.mark.parametrize("feature", ["-sse", "-sse2"])
def test_halves_are_integers_without_sse2(feature):
    a = te.placeholder((37,), "float32", name="a")
    half = te.compute((37,), lambda i: a[i].astype("float16") + tir.const(1, "float16"), name="h")
    out = te.compute((37,), lambda i: half[i].astype("float32"), name="out")
    target = f"llvm -mtriple=x86_64-linux-gnu -mattr={feature}"
    func = tvm.build(te.create_schedule(out.op), [a, out], target=target)
    assert "half" not in func.get_source("ll")
    if platform.machine() != "x86_64":
        return
    x, result = np.linspace(-4, 4, 37).astype("float32"), tvm.nd.empty((37,))
    func(tvm.nd.array(x), result)
    expected = (x.astype("float16").astype("float32") + 1).astype("float16").astype("float32")
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(
    ("cpu", "converts"),
    [("nehalem", False), ("ivybridge", True), ("haswell", True), ("skylake-avx512", True)],
)
def test_a_processor_converts_halves_or_does_not(cpu, converts):
    ask = tvm.get_global_func("target.has_half_conversions")
    target = f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"
    assert ask(Target(target)) == converts
    assert not ask(Target(f"{target} -mattr=-f16c,-avx512f"))
    assert ask(Target("llvm -mtriple=aarch64-linux-gnu"))
    assert ask(Target("c"))


@pytest.mark.parametrize(
    ("cpu", "units"),
    [("sapphirerapids", 2), ("znver4", 1), ("znver3", 2), ("haswell", 2), ("skylake-avx512", 2)],
)
def test_units_follow_from_the_processor_and_its_vectors(cpu, units):
    assert tvm.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}").vector_units == units


def test_the_target_of_a_device_names_its_machine():
    target = tvm.target.Target.from_device("cpu")
    assert target.kind.name == "llvm"
    assert target.mcpu
    assert target.is_same_machine(tvm.target.Target("llvm").with_machine())
    assert target.max_block_size_x == 1
    assert tvm.target.Target("cuda").max_block_size_y == 1024


def test_devices_of_this_machine_are_targets():
    here = Target.from_device("cpu")
    assert here.mcpu and here.num_cores >= 1
    assert str(Target.from_device(tvm.cpu(0))) == str(here)
    gpu = tvm.cuda(0)
    if gpu.exist:
        target = Target.from_device(gpu)
        assert target.arch == "sm_" + gpu.compute_version.replace(".", "")
        assert target.max_shared_memory_per_block == gpu.max_shared_memory_per_block
    else:
        with pytest.raises(ValueError, match=r"no usable cuda\(0\) here"):
            Target.from_device("cuda")


def test_a_kind_prints_as_its_name():
    assert str(Target("cuda -arch=sm_80").kind) == "cuda"
    assert {("resnet", str(Target("llvm").kind)): 1}["resnet", "llvm"] == 1
