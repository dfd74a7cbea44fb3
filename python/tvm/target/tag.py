"""Names of well-known machines, which stand for the options of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["list_tags", "register_tag", "tagged"]


def _gpus(**archs: str) -> dict[str, dict[str, Any]]:
    return {
        f"nvidia/{name.replace('_', '-')}": {"kind": "cuda", "arch": arch}
        for name, arch in archs.items()
    }


def _cpus(family: str, mcpu: str, cores: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    return {
        f"{family}.{size}": {"kind": "llvm", "mcpu": mcpu, "num-cores": count}
        for size, count in cores.items()
    }


_LINUX_ON_ARM = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}

_TAGS: dict[str, dict[str, Any]] = {
    **_gpus(
        geforce_gtx_1080_ti="sm_61",
        geforce_rtx_2080_ti="sm_75",
        geforce_rtx_3070="sm_86",
        geforce_rtx_3080="sm_86",
        geforce_rtx_3080_ti="sm_86",
        geforce_rtx_3090="sm_86",
        geforce_rtx_4090="sm_89",
        nvidia_v100="sm_70",
        nvidia_t4="sm_75",
        nvidia_a100="sm_80",
        nvidia_a10g="sm_86",
        nvidia_h100="sm_90",
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
