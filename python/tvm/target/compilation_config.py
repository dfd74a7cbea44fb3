"""The targets and devices of a program that is compiled for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error
from tvm.runtime import Device

from .target import Target
from .virtual_device import VirtualDevice

__all__ = ["CompilationConfig", "make_compilation_config"]

_CPU = 1
# What stands for any device, and for a device that does not exist, in settings.
_UNSET = (-1, 0, None)


class CompilationConfig:
    """What a program is compiled for, and where its parts live that say nothing.

    Attributes
    ----------
    primitive_targets : targets of kernels, each with its host.
    host_target : target of what runs around kernels.
    host_virtual_device : where shapes and conditions live: the first device of the host.
    default_primitive_virtual_device : where everything else lives that a program does not place:
        on the device of the only target; with several, on that of the setting
        "relay.fallback_device_type", or else on a processor.
    optional_homogeneous_target : the only target of kernels; None if there are several.
    """

    def __init__(self, targets: Sequence[Target], fallback_device_type: int | None = None) -> None:
        if not targets:
            raise error.ValueError("CompilationConfig: at least one target is needed")
        host = next((t.host for t in targets if t.host is not None), None)
        if host is None:
            processors = (t for t in targets if t.get_target_device_type() == _CPU)
            host = next(processors, Target("llvm"))
        self.host_target = Target(host)
        self.primitive_targets = [t if t.host is not None else Target(t, host) for t in targets]
        self._by_type: dict[int, Target] = {}
        for target in self.primitive_targets:
            kind = target.get_target_device_type()
            if kind in self._by_type:
                raise error.ValueError(
                    f"CompilationConfig: '{self._by_type[kind].kind.name}' and "
                    f"'{target.kind.name}' are for one type of device, "
                    f"{_device_text(kind)}; give one target for each type"
                )
            self._by_type[kind] = target
        only = self.primitive_targets[0] if len(self.primitive_targets) == 1 else None
        self.optional_homogeneous_target = only
        kind = int(host.get_target_device_type())
        self.host_virtual_device = VirtualDevice(Device(kind, 0), self.host_target)
        if fallback_device_type not in _UNSET:
            default = int(fallback_device_type)  # type: ignore[arg-type]
        else:
            default = _CPU if only is None else only.get_target_device_type()
        self.default_primitive_virtual_device = VirtualDevice(
            Device(default, 0), self.find_primitive_target(default)
        )

    def find_primitive_target(self, device_type: int) -> Target:
        """The target of kernels for a type of device.

        Raises
        ------
        ValueError : there is none.
        """
        found = self._by_type.get(int(device_type))
        if found is None:
            known = ", ".join(_device_text(kind) for kind in self._by_type)
            raise error.ValueError(
                f"CompilationConfig: there is no target for {_device_text(device_type)}, only for "
                f"{known}; add one to the targets"
            )
        return found

    def canonical_virtual_device(self, device: VirtualDevice) -> VirtualDevice:
        """The device with the target that code for it is compiled for.

        A device of any type stays as it is, and the host's device, where no kernel is compiled for
        it, has the host's target.

        Raises
        ------
        ValueError : there is no target for a device of this type.
        """
        if device.target is not None or device.device_type == -1:
            return device
        kind = device.device_type
        if kind not in self._by_type and kind == self.host_virtual_device.device_type:
            target = self.host_target
        else:
            target = self.find_primitive_target(kind)
        return VirtualDevice.default(device, VirtualDevice(target=target))

    def __repr__(self) -> str:
        kinds = [str(t.kind.name) for t in self.primitive_targets]
        default = self.default_primitive_virtual_device.device_type
        return (
            f"CompilationConfig(targets={kinds}, host={self.host_target.kind.name}, "
            f"default={_device_text(default)})"
        )


def _device_text(device_type: int) -> str:
    return Device.MASK2STR.get(int(device_type), f"device type {device_type}")


def make_compilation_config(
    ctxt: Any, target: Any, target_host: Any = None
) -> CompilationConfig:  # fmt: skip
    """What a program is compiled for, from what `relay.build` takes.

    Parameters
    ----------
    ctxt : a `tvm.transform.PassContext`, whose setting "relay.fallback_device_type" counts.
    target : a target, several, or a table of them by device.
    target_host : target of the host; by default the targets say it, or a processor among them.

    Raises
    ------
    ValueError : there is no target, two are for one type of device, or none is for the device that
        the setting names.
    """
    settings: Mapping[str, Any] = ctxt.config if ctxt is not None else {}
    fallback = settings.get("relay.fallback_device_type", None)
    if target is None:
        raise error.ValueError("make_compilation_config: give a target, such as 'llvm'")
    return CompilationConfig(
        Target.canon_multi_target_and_host(target, target_host),
        None if fallback is None else int(fallback),
    )
