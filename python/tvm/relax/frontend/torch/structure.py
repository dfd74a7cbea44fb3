"""Inputs and results of any structure: nested containers, dataclasses, objects that hold tensors.

PyTorch's pytrees know tuples, lists, dicts and the classes that somebody registered. Any other
object with tensors among its attributes travels through an export as `ObjectParts`, which is
registered.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .arguments import draws_random_numbers

__all__ = ["CallSignature", "ObjectParts", "assembled", "drawn_seed", "taken_apart"]


class ObjectParts:
    """An object by its attributes: those that hold tensors, and the rest of it.

    Attributes
    ----------
    template : the object, whose tensors count for nothing.
    names : of the attributes that hold tensors.
    values : theirs.
    """

    def __init__(self, template: Any, names: tuple[str, ...], values: list[Any]) -> None:
        self.template = template
        self.names = names
        self.values = values

    def assemble(self) -> Any:
        """A new object with the values."""
        made = copy.copy(self.template)
        for name, value in zip(self.names, self.values):
            # Frozen dataclasses too.
            object.__setattr__(made, name, assembled(value))
        return made


class _Template:
    """An object of which only the class counts where structures are compared."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Template) and type(other.value) is type(self.value)

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __deepcopy__(self, memo: dict[int, Any]) -> _Template:
        # The export copies structures when it decomposes operators; the object's tensors, which
        # count for nothing, may be those of the tracing, which cannot be copied.
        return self

    def __repr__(self) -> str:
        return type(self.value).__name__


def _flatten_parts(parts: ObjectParts) -> tuple[list[Any], Any]:
    return parts.values, (_Template(parts.template), parts.names)


def _flatten_parts_with_keys(parts: ObjectParts) -> tuple[list[Any], Any]:
    values, context = _flatten_parts(parts)
    return [(pytree.GetAttrKey(n), v) for n, v in zip(parts.names, values)], context


def _unflatten_parts(values: Any, context: Any) -> ObjectParts:
    template, names = context
    return ObjectParts(template.value, names, list(values))


pytree.register_pytree_node(
    ObjectParts,
    _flatten_parts,
    _unflatten_parts,
    flatten_with_keys_fn=_flatten_parts_with_keys,
    serialized_type_name="tvm.relax.frontend.torch.ObjectParts",
)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, torch.nn.Module, bool, int, float, complex, str, bytes,
                              type, type(None), torch.dtype, torch.device))  # fmt: skip


def _attributes(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return dict(getattr(value, "__dict__", {}))


def _holds_tensors(value: Any, depth: int = 8) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if _is_plain(value) or callable(value) or not depth:
        return False
    if _is_registered(value):
        children = pytree.SUPPORTED_NODES[pytree._get_node_type(value)].flatten_fn(value)[0]
    else:
        children = list(_attributes(value).values())
    return any(_holds_tensors(child, depth - 1) for child in children)


def _is_registered(value: Any) -> bool:
    return pytree._get_node_type(value) in pytree.SUPPORTED_NODES


def taken_apart(value: Any) -> Any:
    """The value with every object that only its class can make replaced by its parts."""
    if _is_plain(value):
        return value
    if _is_registered(value):
        node = pytree.SUPPORTED_NODES[pytree._get_node_type(value)]
        children, context = node.flatten_fn(value)
        parts = [taken_apart(child) for child in children]
        if all(new is old for new, old in zip(parts, children)):
            return value
        return node.unflatten_fn(parts, context)
    if not _holds_tensors(value):
        return value
    found = {name: v for name, v in _attributes(value).items() if _holds_tensors(v)}
    return ObjectParts(value, tuple(found), [taken_apart(v) for v in found.values()])


def assembled(value: Any) -> Any:
    """The inverse of :func:`taken_apart`."""
    return pytree.tree_map(
        lambda leaf: leaf.assemble() if isinstance(leaf, ObjectParts) else leaf,
        value,
        is_leaf=lambda leaf: isinstance(leaf, ObjectParts),
    )


def _assembler(spec: pytree.TreeSpec) -> Callable[[Iterator[Any]], Any]:
    """Makes a structure of its leaves, which come in order, as ``assembled(tree_unflatten(...))``.

    What a structure is made of is looked at here, once, and not at each call.
    """
    if spec.is_leaf():
        return next
    make, context = pytree.SUPPORTED_NODES[spec.type].unflatten_fn, spec.context
    # Newer versions of PyTorch have `children`, and warn of `children_specs`.
    specs = spec.children() if hasattr(spec, "children") else spec.children_specs
    children = [_assembler(child) for child in specs]
    if spec.type is ObjectParts:
        return lambda leaves: make([child(leaves) for child in children], context).assemble()
    return lambda leaves: make([child(leaves) for child in children], context)


def _complex_names(program: torch.export.ExportedProgram) -> set[str]:
    """Names of the values of a program that hold complex numbers."""
    values = ((node.name, node.meta.get("val")) for node in program.graph.nodes)
    return {name for name, v in values if isinstance(v, torch.Tensor) and v.is_complex()}


def _pick(k: int, is_complex: bool) -> Callable[[Sequence[Any]], Any]:
    """Takes one result out of all; complex numbers come in pairs."""
    if is_complex:
        return lambda tensors: torch.view_as_complex(tensors[k])
    return lambda tensors: tensors[k]


def drawn_seed() -> torch.Tensor:
    """A seed for one run of a program that draws random numbers, from PyTorch's generator."""
    return torch.randint(-(2**63), 2**63 - 1, (1,), dtype=torch.int64)


class CallSignature:
    """How the tensors of an exported program stand in the inputs and results of its module.

    Attributes
    ----------
    complex_results : places, among the program's results, of those that hold complex numbers, which
        the imported program gives as pairs of real ones.
    takes_seed : whether the imported program draws random numbers, and takes a seed behind its
        tensors.
    """

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self._in_spec = program.call_spec.in_spec
        self._out_spec = program.call_spec.out_spec
        args, kwargs = program.example_inputs or ((), {})
        self._example = pytree.tree_leaves((args, kwargs))
        self._count = len(args)
        self.takes_seed = draws_random_numbers(program.graph)
        self._names = list(kwargs)
        signature = program.graph_signature
        self._user_inputs = list(signature.user_inputs)
        self._outputs: list[Callable[[Sequence[Any]], Any]] = []
        results = 0
        complex_ones = _complex_names(program)
        self.complex_results: list[int] = []
        for spec in signature.output_specs:
            if isinstance(spec.arg, torch.export.graph_signature.ConstantArgument):
                self._outputs.append(lambda _, value=spec.arg.value: value)  # type: ignore[misc]
            else:
                is_complex = spec.arg.name in complex_ones
                self._outputs.append(_pick(results, is_complex))
                self.complex_results += [results] if is_complex else []
                results += 1
        # Walking a structure costs more than a small network; most are positional tensors.
        positional = pytree.tree_flatten(((0,) * self._count, {}))[1]
        self._takes_tensors = self._in_spec == positional and all(
            isinstance(leaf, torch.Tensor) for leaf in self._example
        )
        self._assemble = None if self._out_spec is None else _assembler(self._out_spec)

    @property
    def example_tensors(self) -> list[torch.Tensor]:
        """The tensors that the program was exported with, and a seed where it takes one."""
        return self._seeded([leaf for leaf in self._example if isinstance(leaf, torch.Tensor)])

    def _seeded(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [*tensors, drawn_seed()] if self.takes_seed else tensors

    def tensors(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """The tensors of a call, in the program's order.

        A seed is drawn from PyTorch's generator, so that ``torch.manual_seed`` decides it.

        Raises
        ------
        TypeError : the inputs are not structured like the example.
        ValueError : a number that is part of the program has another value.
        """
        self._check_count(args, kwargs)
        if self._takes_tensors and all(isinstance(arg, torch.Tensor) for arg in args):
            return self._seeded(list(args))
        ordered = {name: kwargs[name] for name in self._names}
        leaves, spec = pytree.tree_flatten(taken_apart((tuple(args), ordered)))
        if spec != self._in_spec:
            raise TypeError(
                "compiled network: the inputs must be structured like the example; expected "
                f"{_outline(self._in_spec)}, got {_outline(spec)}"
            )
        tensors = []
        for given, example in zip(leaves, self._example):
            if isinstance(example, torch.Tensor):
                if not isinstance(given, torch.Tensor):
                    raise TypeError(
                        f"compiled network: expected a tensor, got {type(given).__name__}"
                    )
                tensors.append(given)
            elif given is not example and given != example:
                raise ValueError(
                    f"compiled network: {example!r} is part of the program, got {given!r}; "
                    "compile again for another value"
                )
        return self._seeded(tensors)

    def _check_count(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        if len(args) == self._count and set(kwargs) == set(self._names):
            return
        wanted = [f"{self._count} input{'s' * (self._count != 1)}", *self._names]
        given = [f"{len(args)} input{'s' * (len(args) != 1)}", *kwargs]
        raise TypeError(
            f"compiled network: takes {' and '.join(wanted)} like the example, got "
            f"{' and '.join(given)}"
        )

    def results(self, tensors: Sequence[Any]) -> Any:
        """What the module returns, given the program's results in order."""
        values = [pick(tensors) for pick in self._outputs]
        if self._assemble is None:
            return values[0] if len(values) == 1 else tuple(values)
        return self._assemble(iter(values))


def _outline(spec: pytree.TreeSpec) -> str:
    """A structure as text: ``(tensor, {'x': tensor})``."""
    leaf = type("Leaf", (), {"__repr__": lambda _: "*"})()
    args, kwargs = pytree.tree_unflatten([leaf] * spec.num_leaves, spec)
    parts = [repr(assembled(a)) for a in args]
    parts += [f"{name}={assembled(value)!r}" for name, value in kwargs.items()]
    return f"({', '.join(parts)})"
