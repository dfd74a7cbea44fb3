"""What is known of GPUs that are not there."""

from __future__ import annotations

import pytest

from tvm.target import Target, emulated


@pytest.mark.parametrize(
    ("arch", "multiprocessors", "threads", "shared_kib", "multiply_adds", "tensor_multiply_adds"),
    [
        ("sm_70", 80, 2048, 96, 64, 512),
        ("sm_75", 40, 1024, 64, 64, 512),
        ("sm_80", 108, 2048, 164, 64, 1024),
        ("sm_86", 82, 1536, 100, 128, 256),
        ("sm_89", 128, 1536, 100, 128, 256),
        ("sm_90", 132, 2048, 228, 128, 2048),
        # Variants are their number; what is newer or older than the table gets its ends.
        ("sm_90a", 132, 2048, 228, 128, 2048),
        ("sm_120", 170, 1536, 100, 128, 256),
        ("sm_61", 80, 2048, 96, 64, 0),
    ],
)
def test_architectures_have_their_facts(
    arch, multiprocessors, threads, shared_kib, multiply_adds, tensor_multiply_adds
):
    facts = Target(f"cuda -arch={arch}").gpu_facts
    assert facts["multiprocessors"] == multiprocessors
    assert facts["threads_per_multiprocessor"] == threads
    assert facts["shared_memory_per_multiprocessor"] == shared_kib << 10
    assert facts["multiply_adds_per_cycle"] == multiply_adds
    assert facts["tensor_multiply_adds_per_cycle"] == tensor_multiply_adds
    # The number is that of the target, even where the table ends.
    assert facts["compute_capability"] == int(arch.removeprefix("sm_").rstrip("a"))
    assert facts["max_threads_per_block"] == 1024
    assert facts["registers_per_block"] == 65536


def test_options_come_before_the_table():
    facts = Target(
        "cuda -arch=sm_80 -num-cores=7 -l2_cache_size_bytes=1024 -max_threads_per_block=256"
    ).gpu_facts
    assert (facts["multiprocessors"], facts["l2_bytes"]) == (7, 1024)
    assert facts["max_threads_per_block"] == 256


def test_an_emulated_gpu_has_the_facts_of_the_one_it_stands_for():
    assert emulated("cuda -arch=sm_75").gpu_facts == Target("cuda -arch=sm_75").gpu_facts


@pytest.mark.parametrize("arch", ["ampere", "sm_", "sm_8x", "80"])
def test_what_is_no_architecture_is_refused(arch):
    with pytest.raises(ValueError, match=f"-arch={arch} is no architecture of a GPU"):
        _ = Target(f"cuda -arch={arch}").gpu_facts


def test_a_processor_has_no_facts_of_a_gpu():
    with pytest.raises(ValueError, match="is no GPU"):
        _ = Target("llvm").gpu_facts
