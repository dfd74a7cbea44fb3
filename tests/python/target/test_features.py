"""What a target knows of its processor's instructions."""

from __future__ import annotations

import pytest

import testing_processors
from tvm.target import Target, codegen
from tvm.target.features import cpu_features, known_features


@pytest.mark.parametrize(
    ("cpu", "widest"),
    [
        ("nehalem", "sse4.2"),
        ("sandybridge", "avx"),
        ("haswell", "avx2"),
        ("skylake-avx512", "avx512bw"),
        ("cascadelake", "avx512vnni"),
        ("sapphirerapids", "amx-int8"),
    ],
)
def test_a_processor_has_the_features_of_its_name(cpu, widest):
    ladder = ["sse4.2", "avx", "avx2", "avx512bw", "avx512vnni", "amx-int8"]
    with Target(f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu={cpu}"):
        found = [name for name in ladder if codegen.target_has_features(name)]
    assert found == ladder[: ladder.index(widest) + 1]


def test_options_switch_features_on_and_off():
    base = f"llvm -mtriple={testing_processors.X86_TRIPLE}"
    assert codegen.llvm_cpu_has_features("avx2,fma", Target(f"{base} -mattr=+avx2,+fma"))
    assert not codegen.llvm_cpu_has_features(["fma"], Target(f"{base} -mcpu=haswell -mattr=-fma"))


def test_an_unknown_feature_is_not_there():
    assert not codegen.target_has_features("avx1024", Target("llvm"))
    assert not codegen.target_has_features("avx2", Target("cuda"))


def test_the_list_of_features_agrees_with_single_questions():
    target = Target(f"llvm -mtriple={testing_processors.X86_TRIPLE} -mcpu=haswell")
    listed = codegen.llvm_get_cpu_features(target)
    asked = ("avx2", "bmi2", "avx512f", "sha")
    single = cpu_features(testing_processors.X86_TRIPLE, "haswell", "", asked)
    assert single == set(asked) & set(listed) == {"avx2", "bmi2"}
    assert set(listed) <= set(known_features(testing_processors.X86_TRIPLE))


@pytest.mark.parametrize(
    ("options", "some"),
    [
        ("-mtriple=riscv64-linux-gnu -mattr=+v", {"d", "v"}),
        ("-mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7", {"neon", "vfp4"}),
        ("-mtriple=aarch64-linux-gnu", {"neon", "fp-armv8"}),
    ],
)
def test_features_of_any_processor_are_listed(options, some):
    assert some <= set(codegen.llvm_get_cpu_features(Target(f"llvm {options}")))


def test_names_of_processors_are_listed():
    names = codegen.llvm_get_cpu_archlist(Target("llvm -mtriple=aarch64-linux-gnu"))
    assert {"cortex-a76", "neoverse-n1"} <= set(names)
    with pytest.raises(ValueError, match="LLVM knows nothing of the target cuda"):
        codegen.llvm_get_cpu_archlist(Target("cuda"))


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ("-mtriple=aarch64-linux-gnu", {"is_aarch64", "has_asimd"}),
        (
            "-mtriple=aarch64-linux-gnu -mcpu=cortex-a76",
            {"is_aarch64", "has_asimd", "has_dotprod", "has_fp16_simd"},
        ),
        (
            "-mtriple=aarch64-linux-gnu -mattr=+v8.2a,+sve,+i8mm",
            {"is_aarch64", "has_asimd", "has_sve", "has_fp16_simd", "has_matmul_i8"},
        ),
        ("-mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a75", {"has_asimd", "has_dotprod"}),
    ],
)
def test_arm_processors_have_features_by_tvms_names(options, features):
    target = Target(f"llvm {options}")
    names = {"is_aarch64", "has_asimd", "has_sve", "has_dotprod", "has_matmul_i8", "has_fp16_simd"}
    assert {name for name in names if getattr(target.features, name)} == features
    assert [str(key) for key in target.keys] == ["arm_cpu", "cpu"]


@pytest.mark.parametrize(
    ("options", "dsp", "mve"),
    [
        ("-mcpu=cortex-m3", False, False),
        ("-mcpu=cortex-m7", True, False),
        ("-mcpu=cortex-m55", True, True),
        ("-mcpu=cortex-m55+nomve", True, False),
        ("-mcpu=cortex-m85 -mattr=+nodsp", False, False),
    ],
)
def test_small_arm_processors_say_what_they_can(options, dsp, mve):
    target = Target(f"c {options}")
    assert (target.features.has_dsp, target.features.has_mve) == (dsp, mve)
    assert [str(key) for key in target.keys] == ["arm_cpu", "cpu"]


def test_keys_that_are_given_stay_in_front():
    target = Target("llvm -keys=mine -mtriple=aarch64-linux-gnu")
    assert [str(key) for key in target.keys] == ["mine", "arm_cpu", "cpu"]


def test_an_unknown_fact_is_none():
    assert Target("llvm").features.has_sve is None
    assert Target("cuda").features.thread_warp_size == 32


def test_floats_of_arm_go_in_registers_or_not():
    soft = Target("llvm -mtriple=armv7l-linux-gnueabihf -mfloat-abi=soft")
    assert soft.get_attr("code_triple") == "armv7l-linux-gnueabi"
    hard = Target("llvm -mtriple=armv7l-linux-gnueabi -mfloat-abi=hard")
    assert hard.get_attr("code_triple") == "armv7l-linux-gnueabihf"
    with pytest.raises(ValueError, match='mfloat-abi is "soft" or "hard", got "softfp"'):
        Target("llvm -mfloat-abi=softfp")


def test_an_unnamed_board_is_no_board():
    assert str(Target("cuda -model=unknown")) == str(Target("cuda"))
    assert Target("cuda -model=unknown").model == "unknown"
