"""Unknown places of values, which analysis joins until each is a device.

The method is unification, as in "A Unified Device Planner" of TVM's RFC 38: what must live
together shares a domain, and a domain is a device as far as a program has said so. A value that is
a function has a domain for each parameter and for its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import FuncType, Type
from tvm.target import VirtualDevice

__all__ = ["Domain", "domain_of_type"]

_ANYWHERE = VirtualDevice()


class Domain:
    """Where a value lives; joined domains are one.

    Parameters
    ----------
    device : what is known of it.
    parts : for a function, domains of its parameters and then of its result.
    """

    def __init__(
        self, device: VirtualDevice = _ANYWHERE, parts: Sequence[Domain] | None = None
    ) -> None:
        self._device = device
        self._parts = None if parts is None else tuple(parts)
        self._into: Domain | None = None

    def root(self) -> Domain:
        """The domain that this one has become part of, or itself."""
        found = self
        while found._into is not None:
            found = found._into
        walked = self
        while walked._into is not None:
            walked._into, walked = found, walked._into
        return found

    @property
    def params(self) -> tuple[Domain, ...]:
        """Domains of a function's parameters."""
        parts = self.root()._parts
        assert parts is not None, "a domain of a tensor has no parameters"
        return parts[:-1]

    @property
    def result(self) -> Domain:
        """Domain of a function's result."""
        parts = self.root()._parts
        assert parts is not None, "a domain of a tensor is no function's"
        return parts[-1]

    @property
    def is_function(self) -> bool:
        """Whether values are functions."""
        return self.root()._parts is not None

    def leaves(self) -> list[Domain]:
        """The domains of tensors that there are in it."""
        node = self.root()
        if node._parts is None:
            return [node]
        return [leaf for part in node._parts for leaf in part.leaves()]

    def of_result(self) -> Domain:
        """The domain of what a function gives in the end; that of a tensor is itself."""
        node = self.root()
        while node._parts is not None:
            node = node._parts[-1].root()
        return node

    @property
    def device(self) -> VirtualDevice:
        """Where the tensor lives, or what the function gives."""
        return self.of_result()._device

    @property
    def is_placed(self) -> bool:
        """Whether the type of device is known."""
        return self.device.device_type != -1

    def fill(self, device: VirtualDevice) -> None:
        """Take a device for what is still open of the tensors in it."""
        for leaf in self.leaves():
            leaf._device = VirtualDevice.default(leaf._device, device)

    def join(self, other: Domain) -> bool:
        """Make both one; False, and nothing is changed, where they are different devices.

        A function and a tensor, such as a tuple with functions among its fields, are one if all
        parts of the function are.
        """
        pairs: list[tuple[Domain, Domain]] = []
        if not _pair(self, other, pairs):
            return False
        # What becomes of the roots is found out first, so that a failure leaves nothing behind.
        into: dict[Domain, Domain] = {}
        devices: dict[Domain, VirtualDevice] = {}
        for first, second in pairs:
            a, b = first.root(), second.root()
            while a in into:
                a = into[a]
            while b in into:
                b = into[b]
            if a is b:
                continue
            device = VirtualDevice.join(devices.get(a, a._device), devices.get(b, b._device))
            if device is None:
                return False
            into[a], devices[b] = b, device
        for domain, device in devices.items():
            domain._device = device
        for domain, target in into.items():
            domain._into = target
        return True


def _pair(first: Domain, second: Domain, pairs: list[tuple[Domain, Domain]]) -> bool:
    """Domains of tensors that have to be one for two domains to be; False if there are none."""
    a, b = first.root(), second.root()
    if a is b:
        return True
    if a._parts is None or b._parts is None:
        leaves = [*a.leaves(), *b.leaves()]
        pairs.extend((leaves[0], leaf) for leaf in leaves[1:])
        return True
    if len(a._parts) != len(b._parts):
        return False
    return all(_pair(x, y, pairs) for x, y in zip(a._parts, b._parts))


def domain_of_type(type_: Type | None, device: VirtualDevice = _ANYWHERE) -> Domain:
    """A new domain for a value of a type, which, or whose result, lives on a device."""
    if isinstance(type_, FuncType):
        parts = [domain_of_type(arg) for arg in type_.arg_types]
        return Domain(parts=[*parts, domain_of_type(type_.ret_type, device)])
    return Domain(device)
