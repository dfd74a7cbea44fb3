"""Names of well-known machines, which stand for the options of a target."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import tvm._ffi

__all__ = ["list_tags", "register_tag", "tagged"]


# Boards by compute capability, from NVIDIA's list of GPUs that run CUDA.
_BOARDS = {
    "sm_30": "tesla-k10 quadro-k5000 quadro-k4200 quadro-k4000 quadro-k2000 quadro-k600 quadro-k420"
    " geforce-gtx-770 geforce-gtx-760 geforce-gtx-690 geforce-gtx-680 geforce-gtx-670"
    " geforce-gtx-660 geforce-gtx-650 geforce-gt-740",
    "sm_35": "tesla-k40 tesla-k20 quadro-k6000 quadro-k5200 geforce-gtx-titan geforce-gtx-titan-z"
    " geforce-gtx-titan-black geforce-gtx-780 geforce-gtx-780-ti geforce-gt-730 geforce-gt-720",
    "sm_37": "tesla-k80",
    "sm_50": "quadro-k2200 quadro-k1200 quadro-k620 geforce-gtx-750 geforce-gtx-750-ti"
    " geforce-gtx-960m geforce-gtx-950m",
    "sm_52": "tesla-m60 tesla-m40 quadro-m6000 quadro-m5000 quadro-m4000 quadro-m2000"
    " geforce-gtx-titan-x geforce-gtx-980-ti geforce-gtx-980 geforce-gtx-970 geforce-gtx-960"
    " geforce-gtx-950",
    "sm_53": "jetson-nano jetson-tx1 tegra-x1",
    "sm_60": "tesla-p100 quadro-gp100",
    "sm_61": "tesla-p40 tesla-p4 nvidia-titan-x nvidia-titan-xp quadro-p6000 quadro-p5000"
    " quadro-p4000 quadro-p2200 quadro-p2000 quadro-p1000 quadro-p620 quadro-p600 quadro-p400"
    " geforce-gtx-1080-ti geforce-gtx-1080 geforce-gtx-1070-ti geforce-gtx-1070"
    " geforce-gtx-1060 geforce-gtx-1050",
    "sm_62": "jetson-tx2",
    "sm_70": "nvidia-v100 nvidia-titan-v quadro-gv100",
    "sm_72": "jetson-xavier-nx jetson-agx-xavier",
    "sm_75": "nvidia-t4 nvidia-titan-rtx quadro-rtx-8000 quadro-rtx-6000 quadro-rtx-5000"
    " quadro-rtx-4000 geforce-rtx-2080-ti geforce-rtx-2080 geforce-rtx-2070 geforce-rtx-2060"
    " t2000 t1000",
    "sm_80": "nvidia-a100 nvidia-a30",
    "sm_86": "nvidia-a40 nvidia-a16 nvidia-a10 nvidia-a10g nvidia-a2 rtx-a6000 geforce-rtx-3090-ti"
    " geforce-rtx-3090 geforce-rtx-3080-ti geforce-rtx-3080 geforce-rtx-3070-ti"
    " geforce-rtx-3070 geforce-rtx-3060",
    "sm_87": "jetson-orin-nano jetson-agx-orin jetson-agx-orin-32gb jetson-agx-orin-64gb",
    "sm_89": "nvidia-l4 nvidia-l40 geforce-rtx-4090 geforce-rtx-4080 geforce-rtx-4070-ti"
    " geforce-rtx-4070 geforce-rtx-4060",
    "sm_90": "nvidia-h100 nvidia-h200",
}

# Limits that all of these boards share.
_NVIDIA = {
    "max_shared_memory_per_block": 49152,
    "max_threads_per_block": 1024,
    "thread_warp_size": 32,
}
# Bytes of the second cache, from NVIDIA's data sheets.
_L2_CACHES = {
    "geforce-rtx-3090": 6 << 20,
    "geforce-rtx-4090": 72 << 20,
    "nvidia-v100": 6 << 20,
    "nvidia-t4": 4 << 20,
    "nvidia-a100": 40 << 20,
    "nvidia-h100": 50 << 20,
    "nvidia-h200": 50 << 20,
}
# Architectures whose blocks have half of the registers that others have.
_FEW_REGISTERS = {"sm_53", "sm_62"}
# Boards that are computers of their own: the processor beside the GPU, and its cores.
_HOSTS = {
    "jetson-xavier-nx": ("carmel", 6),
    "jetson-agx-xavier": ("carmel", 8),
    "jetson-orin-nano": ("cortex-a78", 6),
    "jetson-agx-orin": ("cortex-a78", 12),
    "jetson-agx-orin-32gb": ("cortex-a78", 8),
    "jetson-agx-orin-64gb": ("cortex-a78", 12),
}


def _gpus() -> dict[str, dict[str, Any]]:
    found = {}
    for arch, names in _BOARDS.items():
        for name in names.split():
            config: dict[str, Any] = {"kind": "cuda", "arch": arch, **_NVIDIA}
            config["registers_per_block"] = 32768 if arch in _FEW_REGISTERS else 65536
            if name in _L2_CACHES:
                config["l2_cache_size_bytes"] = _L2_CACHES[name]
            if name in _HOSTS:
                mcpu, cores = _HOSTS[name]
                triple = "aarch64-linux-gnu"
                config["host"] = {
                    "kind": "llvm",
                    "mtriple": triple,
                    "mcpu": mcpu,
                    "num-cores": cores,
                }
            found[f"nvidia/{name}"] = config
    return found


def _cpus(family: str, mcpu: str, cores: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    return {
        f"{family}.{size}": {"kind": "llvm", "mcpu": mcpu, "num-cores": count}
        for size, count in cores.items()
    }


def _apple(chip: str, threads: int) -> dict[str, Any]:
    return {
        "kind": "metal",
        "max_threads_per_block": threads,
        "max_shared_memory_per_block": 32768,
        "thread_warp_size": 32,
        "host": {"kind": "llvm", "mtriple": "arm64-apple-macos", "mcpu": f"apple-{chip}"},
    }


_LINUX_ON_ARM = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}

_TAGS: dict[str, dict[str, Any]] = {
    **_gpus(),
    **_cpus(
        "aws/cpu/c5",
        "skylake-avx512",
        {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18, "18xlarge": 36},
    ),
    **_cpus("aws/cpu/c5", "cascadelake", {"12xlarge": 24, "24xlarge": 48}),
    "raspberry-pi/4b-aarch64": {**_LINUX_ON_ARM, "mcpu": "cortex-a72", "num-cores": 4},
    "raspberry-pi/5-aarch64": {**_LINUX_ON_ARM, "mcpu": "cortex-a76", "num-cores": 4},
    "apple/m1-gpu": _apple("m1", 1024),
    "apple/m1-gpu-restricted": _apple("m1", 256),
    "apple/m2-gpu": _apple("m2", 1024),
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


def _meant(name: str) -> str:
    close = difflib.get_close_matches(name, _TAGS, n=4, cutoff=0.5)
    return f"close to it are {', '.join(close)}" if close else "no name is close to it"


@tvm._ffi.register_func("target.Tagged")
def tagged(name: str) -> dict[str, Any] | None:
    """The options a name stands for, the name among them; None for other text.

    Raises
    ------
    ValueError : the text can only be such a name, and there is none; the message has close ones.
    """
    config = _TAGS.get(name.strip())
    if config is not None:
        return {**config, "tag": name.strip()}
    if "/" in name.split(" ")[0]:
        raise ValueError(
            f'Target: there is no tag "{name}"; {_meant(name)}. tvm.target.list_tags() has them '
            "all; add one with tvm.target.register_tag, or write the options"
        )
    return None
