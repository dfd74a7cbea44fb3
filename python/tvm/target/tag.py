"""Names of well-known machines, which stand for the options of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm._ffi

__all__ = ["list_tags", "register_tag", "tagged"]


# Limits that all of these boards share.
_NVIDIA = {
    "max_shared_memory_per_block": 49152,
    "max_threads_per_block": 1024,
    "thread_warp_size": 32,
}
# Bytes of the second cache, from NVIDIA's data sheets.
_L2_CACHES = {
    "geforce_rtx_3090": 6 << 20,
    "geforce_rtx_4090": 72 << 20,
    "nvidia_v100": 6 << 20,
    "nvidia_t4": 4 << 20,
    "nvidia_a100": 40 << 20,
    "nvidia_h100": 50 << 20,
}
# Registers of a block; the boards not named have 65536.
_REGISTERS = {"jetson_nano": 32768, "jetson_tx2": 32768}


def _gpus(**archs: str) -> dict[str, dict[str, Any]]:
    found = {}
    for name, arch in archs.items():
        config = {"kind": "cuda", "arch": arch, **_NVIDIA}
        config["registers_per_block"] = _REGISTERS.get(name, 65536)
        if name in _L2_CACHES:
            config["l2_cache_size_bytes"] = _L2_CACHES[name]
        found[f"nvidia/{name.replace('_', '-')}"] = config
    return found


def _cpus(family: str, mcpu: str, cores: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    return {
        f"{family}.{size}": {"kind": "llvm", "mcpu": mcpu, "num-cores": count}
        for size, count in cores.items()
    }


_LINUX_ON_ARM = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}

_TAGS: dict[str, dict[str, Any]] = {
    **_gpus(
        geforce_gtx_1060="sm_61",
        geforce_gtx_1070="sm_61",
        geforce_gtx_1080="sm_61",
        geforce_gtx_1080_ti="sm_61",
        geforce_rtx_2060="sm_75",
        geforce_rtx_2070="sm_75",
        geforce_rtx_2080="sm_75",
        geforce_rtx_2080_ti="sm_75",
        geforce_rtx_3060="sm_86",
        geforce_rtx_3070="sm_86",
        geforce_rtx_3080="sm_86",
        geforce_rtx_3080_ti="sm_86",
        geforce_rtx_3090="sm_86",
        geforce_rtx_3090_ti="sm_86",
        geforce_rtx_4090="sm_89",
        nvidia_v100="sm_70",
        nvidia_t4="sm_75",
        nvidia_a100="sm_80",
        nvidia_a10g="sm_86",
        nvidia_h100="sm_90",
        jetson_nano="sm_53",
        jetson_tx2="sm_62",
        jetson_xavier_nx="sm_72",
        jetson_agx_xavier="sm_72",
        jetson_agx_orin="sm_87",
    ),
    **_cpus(
        "aws/cpu/c5",
        "skylake-avx512",
        {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18},
    ),
    "raspberry-pi/4b-aarch64": {**_LINUX_ON_ARM, "mcpu": "cortex-a72", "num-cores": 4},
    "raspberry-pi/5-aarch64": {**_LINUX_ON_ARM, "mcpu": "cortex-a76", "num-cores": 4},
}


def list_tags() -> dict[str, dict[str, Any]]:
    """The options that each name stands for."""
    return {name: dict(_TAGS[name]) for name in sorted(_TAGS)}


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> None:
    """Let ``Target(name)`` stand for the target of a dict.

    Raises
    ------
    ValueError : the name is taken and `override` is not given, or `config` has no ``kind``.

    Examples
    --------
    >>> register_tag("office/desk", {"kind": "llvm", "num-cores": 6}, override=True)
    >>> tvm.target.Target("office/desk").num_cores
    6
    """
    if name in _TAGS and not override:
        raise ValueError(
            f'register_tag: "{name}" is taken; choose another name or pass override=True'
        )
    if "kind" not in config:
        raise ValueError(f'register_tag("{name}"): the dict needs an entry "kind"')
    _TAGS[name] = dict(config)


@tvm._ffi.register_func("target.Tagged")
def tagged(name: str) -> dict[str, Any] | None:
    """The options a name stands for, the name among them; None for other text.

    Raises
    ------
    ValueError : the text can only be such a name, and there is none; the message lists them.
    """
    config = _TAGS.get(name.strip())
    if config is not None:
        return {**config, "tag": name.strip()}
    if "/" in name.split(" ")[0]:
        raise ValueError(
            f'Target: there is no tag "{name}"; the tags are {", ".join(sorted(_TAGS))}. Add one '
            "with tvm.target.register_tag, or write the options."
        )
    return None
