"""From an exported PyTorch program to a module with one graph function, ``main``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec
from torch.utils import _pytree as pytree

import tvm
from tvm import tir
from tvm.ir import IRModule, PrimExpr, RelayExpr
from tvm.relax import op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Constant, Function, SeqExpr, Tuple, Var, VarBinding
from tvm.relax.struct_info import StructInfo, TensorStructInfo, open_shape

from . import operators as operators
from .arguments import (
    COMPLEX_CONVERTERS,
    CONVERTERS,
    REFUSED,
    Arguments,
    Complex,
    UnsupportedUse,
    draws_random_numbers,
    dtype_name,
    operator_name,
)
from .export import explained, export_for_inference
from .fused_layers import FUSED_LAYERS
from .operators.complex_numbers import as_pairs, from_pairs
from .sizes import DynamicSizes, Sizes, concrete
from .special_functions import SPECIAL_FUNCTIONS

__all__ = [
    "Problem",
    "ProgramImporter",
    "UnsupportedOperators",
    "WritesToInputs",
    "can_import",
    "from_exported_program",
    "from_module",
]


def from_module(
    model: torch.nn.Module | Callable[..., Any],
    example_args: Any,
    example_kwargs: Mapping[str, Any] | None = None,
    keep_params_as_input: bool = False,
) -> IRModule:
    """Import a torch module, or a function of tensors, as it behaves in eval mode.

    Under ``torch.autocast("cpu")`` its operators have the types that they have there.

    Parameters
    ----------
    model : left as it was, its training flags included.
    example_args, example_kwargs : inputs of the shapes and types the imported module is for; a
        single tensor stands for a sequence of one.
    keep_params_as_input : see :func:`from_exported_program`.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message.
    """
    program = export_for_inference(model, example_args, example_kwargs)
    return from_exported_program(program, keep_params_as_input=keep_params_as_input)


def from_exported_program(
    program: torch.export.ExportedProgram,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = True,
    no_bind_return_tuple: bool = True,
) -> IRModule:
    """Import what ``torch.export.export`` gave.

    Parameters
    ----------
    program : of a module in eval mode. Sizes that are open by the ``dynamic_shapes`` of its export
        are symbolic extents of the function; see the notes.
    keep_params_as_input : make parameters and buffers inputs of ``main``, after the user's inputs,
        instead of constants. Their values are its attribute "params", see
        ``relax.frontend.detach_params``.
    unwrap_unit_return_tuple : return the tensor where the torch module returns a single one; if
        false, a tuple with it.
    no_bind_return_tuple : return a tuple of variables; if false, a variable that is the tuple.

    Returns
    -------
    A module whose ``main`` takes the user's tensors in order (nested inputs flattened) and returns
    a tensor, or a tuple when the torch module returns anything but a single tensor. A tensor of
    complex numbers has its real and imaginary parts in a last dimension of 2, as
    ``torch.view_as_real`` gives them; those among the parameters stay constants. Where the program
    draws random numbers, `main` takes one more tensor after the user's: `seed`, an int64 of shape
    (1,), on which all of them depend.

    Raises
    ------
    ValueError : operators that cannot be imported: one message names each with the module that
        uses it. Also for programs that write to their inputs or buffers.

    Notes
    -----
    A size of ``torch.export.Dim`` becomes a variable of the export's name for it, ``s0`` for
    instance, and shapes that follow from it are expressions over it. The range that the export says
    is in the attributes "tir_var_lower_bound" and "tir_var_upper_bound" of `main`, by these names;
    the virtual machine refuses sizes outside of it.
    """
    importer = ProgramImporter(program, keep_params_as_input, unwrap_unit_return_tuple)
    sizes = importer.dynamic_sizes()
    variables = sizes.variables()
    mod = importer.at(variables)
    for name, bounds in sizes.bounds(variables).items():
        mod["main"] = mod["main"].with_attr(name, bounds)
    if not no_bind_return_tuple:
        mod["main"] = _with_bound_tuple(mod["main"])
    return mod


def _with_bound_tuple(func: Function) -> Function:
    """The function with its result, if that is a tuple, bound to a variable."""
    result = func.body.body
    if not isinstance(result, Tuple):
        return func
    *before, last = func.body.blocks
    var = Var("out", result.struct_info)
    block = type(last)([*last.bindings, VarBinding(var, result)])
    body = SeqExpr([*before, block], var)
    return Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)


class ProgramImporter:
    """A program that is imported once for each choice of its dynamic sizes.

    The weights are constants that all of these modules share.

    Parameters
    ----------
    program, keep_params_as_input, unwrap_unit_return_tuple : see :func:`from_exported_program`.
    may_write_inputs : take programs that write to the user's inputs. What is written counts in
        what the program computes after it, and the arrays of the caller keep what they hold.
    """

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        keep_params_as_input: bool = False,
        unwrap_unit_return_tuple: bool = True,
        may_write_inputs: bool = False,
    ) -> None:
        # Decomposition takes longer than everything else here, and many programs need none. Under
        # autocast it is what writes the casts into the program.
        if torch.is_autocast_enabled("cpu") or not _is_translatable(program.graph):
            try:
                program = program.run_decompositions(_decompositions(()))
            except AttributeError as error:
                reason = explained(error)
                if reason is None:
                    raise
                raise reason from None
        self._program = program
        self._keep_params = keep_params_as_input
        self._unwrap = unwrap_unit_return_tuple
        self._may_write_inputs = may_write_inputs
        self._constants: dict[str, Constant] = {}

    def dynamic_sizes(self) -> DynamicSizes:
        """The symbols in the shapes of the program's inputs."""
        return DynamicSizes(self._program)

    def at(self, sizes: Sizes) -> IRModule:
        """The module for some sizes, as :class:`DynamicSizes` reads them off the inputs' shapes, or
        for sizes that are open, as its :meth:`~DynamicSizes.variables` says.

        Raises
        ------
        ValueError : operators that cannot be imported, or a size that the program does not allow.
        """
        importer = self._importer(sizes)
        mod = importer.run()
        # Converters refuse some settings that an operator's definition by others allows. That
        # of a special function may be by other special functions.
        for known in (_DEFINITIONS, SPECIAL_FUNCTIONS):
            decomposable = importer.decomposable(known)
            if not decomposable:
                continue
            self._program = self._program.run_decompositions(_decompositions(decomposable))
            importer = self._importer(sizes)
            mod = importer.run()
        importer.raise_problems()
        return mod

    def _importer(self, sizes: Sizes) -> _Importer:
        return _Importer(
            self._program,
            self._keep_params,
            self._unwrap,
            self._may_write_inputs,
            sizes,
            self._constants,
        )


_DEFINITIONS = {**decomposition_table, **FUSED_LAYERS, **SPECIAL_FUNCTIONS}


def _decompositions(wanted: Collection[OpOverload]) -> dict[Any, Any]:
    """How operators without a converter, and the wanted ones, are defined by others."""
    table = dict(torch.export.default_decompositions().items())
    kept = {target: definition for target, definition in table.items() if not can_import(target)}
    return {**kept, **{target: _DEFINITIONS[target] for target in wanted}}


def _is_translatable(graph: torch.fx.Graph) -> bool:
    """Whether every operator has a translation, and values never change after they were made.

    An in-place operator is harmless if it is the only one to see the tensor that it overwrites.
    """
    return all(
        (can_import(node.target) or _is_number(node))
        and (not _is_in_place(node) or _is_private(node.args[0]))
        for node in graph.nodes
        if node.op == "call_function"
    )


def _is_empty(node: torch.fx.Node) -> bool:
    """Whether the node's only result is a tensor of real numbers without elements."""
    result = node.meta.get("val")
    if not isinstance(result, torch.Tensor) or result.is_complex():
        return False
    # What an open size is equal to is no question to ask it.
    return any(isinstance(extent, int) and extent == 0 for extent in result.shape)


def _nothing(arguments: Arguments) -> RelayExpr:
    return arguments.tensor(0, arguments.result_shape, arguments.result_dtype)


def _is_complex(node: torch.fx.Node) -> bool:
    """Whether a result of the node is a tensor of complex numbers."""
    results = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in results)


def _holds_complex(value: Any) -> bool:
    """Whether a value of the importer is, or has among its items, one of complex numbers."""
    return any(isinstance(v, Complex) for v in (value if isinstance(value, list) else [value]))


def _is_for_checks(node: torch.fx.Node) -> bool:
    """Whether what is computed from a number of the program is only looked at by its checks."""
    return all(
        user.op == "call_function"
        and (
            operator_name(user.target) == "aten._assert_scalar.default"
            or (_is_number(user) and _is_for_checks(user))
        )
        for user in node.users
    )


def _is_number(node: torch.fx.Node) -> bool:
    """Whether a node computes with sizes, not with tensors."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))


def _is_in_place(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _is_private(value: Any) -> bool:
    """Whether a node's tensor is memory of its own that only one operator reads."""
    if not isinstance(value, torch.fx.Node) or value.op != "call_function":
        return False
    if not isinstance(value.target, torch._ops.OpOverload) or len(value.users) != 1:
        return False
    results = value.target._schema.returns
    # The result of an in-place operator is its argument, which was private if it got this far.
    return _is_in_place(value) or all(result.alias_info is None for result in results)


# A value about which nothing is known, because an operator before it cannot be imported.
_UNKNOWN = object()


@dataclass(frozen=True)
class Problem:
    """A use of an operator that has no translation.

    Attributes
    ----------
    node : the node of the graph.
    target : the operator.
    module : the module that uses it.
    reason : what of the operator has no translation; empty where it is all of it.
    """

    node: torch.fx.Node
    target: Any
    module: str
    reason: str

    @property
    def operator(self) -> str:
        """The operator's name, as ``aten.conv2d.default``."""
        return operator_name(self.target)


class UnsupportedOperators(ValueError):
    """Operators of a program that cannot be imported, all of them.

    Attributes
    ----------
    problems : one for each use.
    program : the program that they are in: the one given, or one made of simpler operators.
    """

    def __init__(self, problems: Sequence[Problem], program: torch.export.ExportedProgram) -> None:
        self.problems = list(problems)
        self.program = program
        counts = Counter((p.operator, p.reason) for p in self.problems)
        modules = {(p.operator, p.reason): p.module for p in reversed(self.problems)}
        lines = [
            f"  {name}{' ' + reason if reason else ''}, used by "
            f"{modules[name, reason]}{f' and {n - 1} more' if n > 1 else ''}"
            for (name, reason), n in counts.items()
        ]
        super().__init__(
            "relax.frontend.torch: these operators cannot be imported:\n"
            + "\n".join(lines)
            + '\ntorch.compile(model, backend="felix") has PyTorch run them, and compiles the rest'
        )


class WritesToInputs(ValueError):
    """A program writes to its inputs or buffers, which none that is imported may do.

    Attributes
    ----------
    positions : of the inputs, among all inputs of the user; None where it writes to other things.
    """

    def __init__(self, signature: torch.export.ExportGraphSignature) -> None:
        kinds = (OutputKind.USER_OUTPUT, OutputKind.TOKEN)
        writes = [spec for spec in signature.output_specs if spec.kind not in kinds]
        self.positions: list[int] | None = None
        if all(spec.kind is OutputKind.USER_INPUT_MUTATION for spec in writes):
            places = list(signature.user_inputs)
            self.positions = [places.index(str(spec.target)) for spec in writes]
        super().__init__(
            f"relax.frontend.torch: the program writes to '{writes[0].target}'; only programs that "
            "leave their inputs and buffers alone can be imported (is the module in eval mode?)"
        )


def can_import(target: Any) -> bool:
    """Whether an operator of an exported graph has a translation, for some settings at least."""
    name = operator_name(target)
    return name in CONVERTERS or name in COMPLEX_CONVERTERS


class _Importer:
    def __init__(
        self,
        program: torch.export.ExportedProgram,
        keep_params_as_input: bool,
        unwrap_unit_return_tuple: bool,
        may_write_inputs: bool,
        sizes: Sizes,
        constants: dict[str, Constant],
    ) -> None:
        self._program = program
        self._keep_params = keep_params_as_input
        self._unwrap = unwrap_unit_return_tuple
        self._may_write_inputs = may_write_inputs
        self._sizes = sizes
        self._constants = constants
        self._builder = BlockBuilder()
        self._values: dict[torch.fx.Node, Any] = {}
        self._problems: list[Problem] = []
        self._weights: list[str] = []
        self._seed: Var | None = None
        self._streams = 0
        # What is known of inputs beyond the struct info of the parameters.
        self._casts: dict[torch.fx.Node, StructInfo] = {}

    def run(self) -> IRModule:
        params = self._bind_inputs()
        nodes = self._program.graph.nodes
        attrs: dict[str, Any] = {}
        if self._keep_params:
            values = [self._constant(target).data for target in self._weights]
            attrs = {"num_input": len(params) - len(values), "params": values}
        with self._builder.function("main", params, attrs):
            with self._builder.dataflow():
                for node, info in self._casts.items():
                    self._values[node] = self._builder.match_cast(self._values[node], info)
                for node in nodes:
                    if node.op == "placeholder" and _is_complex(node):
                        self._take_apart(node)
                    if node.op == "call_function":
                        self._values[node] = self._convert(node)
                outputs = [
                    item if isinstance(item, Constant) else self._builder.emit_output(item)
                    for item in map(self._joined, self._outputs())
                    if item is not _UNKNOWN
                ]
            single = self._unwrap and self._returns_one_tensor()
            self._builder.emit_func_output(outputs[0] if single and outputs else Tuple(outputs))
        return self._builder.get()

    def decomposable(self, definitions: Collection[OpOverload]) -> set[OpOverload]:
        """Operators that could not be imported and that are defined by others.

        None that draws random numbers: whether the program takes a seed is known by now.
        """
        return {
            p.target
            for p in self._problems
            if p.target in definitions and torch.Tag.nondeterministic_seeded not in p.target.tags
        }

    def raise_problems(self) -> None:
        """Raise the report of the operators that could not be imported, if there are any."""
        if self._problems:
            raise UnsupportedOperators(self._problems, self._program)

    def _bind_inputs(self) -> list[Var]:
        """Parameters of the function: the user's inputs first."""
        placeholders = {n.name: n for n in self._program.graph.nodes if n.op == "placeholder"}
        params: list[Var] = []
        weights: list[Var] = []
        given = self._extents_of_inputs(placeholders)
        for spec in self._program.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT:
                if isinstance(node.meta.get("val"), torch.Tensor):
                    whole = self._struct_info(node)
                    info = _with_variables(whole, given)
                    self._values[node] = Var(node.name, info)
                    params.append(self._values[node])
                    if info is not whole:
                        self._casts[node] = whole
                else:
                    # A number given as an example is part of the exported program.
                    self._values[node] = node.meta.get("val")
                continue
            if spec.kind is InputKind.TOKEN:
                # Orders operators with side effects, which nothing here translates.
                self._values[node] = _UNKNOWN
                continue
            is_input = self._keep_params and spec.kind is not InputKind.CONSTANT_TENSOR
            if is_input and not _is_complex(node):
                self._values[node] = Var(node.name, self._struct_info(node))
                weights.append(self._values[node])
                self._weights.append(str(spec.target))
            else:
                self._values[node] = self._weight(str(spec.target))
        if draws_random_numbers(self._program.graph):
            self._seed = Var("seed", TensorStructInfo([1], "int64"))
            params.append(self._seed)
        return params + weights

    def _extents_of_inputs(self, placeholders: Mapping[str, torch.fx.Node]) -> list[tir.Var]:
        """The variables that are an extent of an input of the user."""
        nodes = [placeholders[name] for name in self._program.graph_signature.user_inputs
                 if isinstance(name, str)]  # fmt: skip
        return [
            extent
            for node in nodes
            if isinstance(node.meta.get("val"), torch.Tensor)
            for extent in open_shape(self._struct_info(node))
            if isinstance(extent, tir.Var)
        ]

    def _next_stream(self) -> tuple[Var, int]:
        assert self._seed is not None
        self._streams += 1
        return self._seed, self._streams - 1

    def _take_apart(self, node: torch.fx.Node) -> None:
        """Complex numbers that come as pairs, as two tensors."""
        value = self._values[node]
        if not isinstance(value, Complex):
            self._values[node] = from_pairs(self._builder.emit, value)

    def _joined(self, value: Any) -> Any:
        """A result as it is given back: complex numbers in pairs."""
        return as_pairs(self._builder.emit, value) if isinstance(value, Complex) else value

    def _weight(self, target: str) -> Constant | Complex:
        if not self._tensor(target).is_complex():
            return self._constant(target)
        return Complex(self._constant(target, "real"), self._constant(target, "imag"))

    def _constant(self, target: str, part: str = "") -> Constant:
        key = f"{target}.{part}" if part else target
        if key not in self._constants:
            tensor = self._tensor(target).detach().cpu()
            if part:
                tensor = getattr(tensor.resolve_conj(), part)
            # A copy: what the model learns later is not the program's.
            shared = tvm.nd.from_dlpack(tensor.contiguous())
            self._constants[key] = Constant(tvm.nd.array(shared))
        return self._constants[key]

    def _tensor(self, target: str) -> torch.Tensor:
        for source in (self._program.state_dict, self._program.constants):
            if target in source:
                return source[target]
        raise ValueError(
            f"relax.frontend.torch: the exported program has no tensor '{target}'; export again"
        )

    def _convert(self, node: torch.fx.Node) -> Any:
        if _is_number(node):
            return self._known(node.meta["val"], node)
        # An operator with side effects comes as an argument, behind the token that orders it.
        target = node.args[1] if node.target is torch.ops.higher_order.with_effects else node.target
        name = operator_name(target)
        inputs = [self._values.get(n) for n in node.all_input_nodes]
        is_complex = _is_complex(node) or any(map(_holds_complex, inputs))
        converter = (COMPLEX_CONVERTERS if is_complex else CONVERTERS).get(name)
        if converter and any(value is _UNKNOWN for value in inputs):
            return _UNKNOWN
        try:
            if converter is None:
                reason = "computes with complex numbers" if is_complex else REFUSED.get(name)
                raise UnsupportedUse(f"({reason})" if reason else "")
            arguments = Arguments(
                self._builder, node, self._values.__getitem__, self._sizes, self._next_stream
            )
            # Nothing to compute has no element whose place or whose value could be asked for.
            value = _nothing(arguments) if _is_empty(node) else converter(arguments)
            if isinstance(value, list):
                for k, item in enumerate(value):
                    arguments.refuse_unless(
                        item is not None or not arguments.reads_result(k),
                        f"whose result {k} is read",
                    )
        except (UnsupportedUse, TypeError, ValueError) as problem:
            is_open = any(isinstance(extent, PrimExpr) for extent in self._sizes.values())
            if not isinstance(problem, (UnsupportedUse, UnsupportedOperators)) and not is_open:
                raise
            text = str(problem)
            if not isinstance(problem, UnsupportedUse):
                text = f"of sizes that are open ({text})"
            self._problems.append(Problem(node, target, _module_path(node), text))
            # A stand-in of the right shape, so that the rest is looked at too.
            return self._stand_in(node)
        if isinstance(value, list):
            results = node.meta.get("val")
            many = results if isinstance(results, (list, tuple)) else [None] * len(value)
            return [self._settled(self._bind(item), seen) for item, seen in zip(value, many)]
        return self._settled(self._bind(value), node.meta.get("val"))

    def _known(self, value: Any, node: torch.fx.Node) -> Any:
        try:
            return concrete(value, self._sizes)
        except KeyError:
            if self._problems or _is_for_checks(node):
                # Sizes of what could not be imported, or numbers that decide nothing.
                return _UNKNOWN
            problem = "whose result depends on the data or on dynamic sizes that were not given"
            self._problems.append(Problem(node, node.target, _module_path(node), problem))
            return _UNKNOWN

    def _bind(self, value: Any) -> Any:
        if isinstance(value, Complex):
            return Complex(self._bind(value.real), self._bind(value.imag))
        # Sizes, and results that nobody reads, are no graph values.
        is_bound = isinstance(value, (Var, Constant)) or not isinstance(value, RelayExpr)
        return value if is_bound else self._builder.emit(value)

    def _settled(self, value: Any, seen: Any) -> Any:
        """A result with open extents as the export writes them, so that equal ones look alike."""
        if not isinstance(value, Var) or not isinstance(seen, torch.Tensor):
            return value
        info = value.struct_info
        if not isinstance(info, TensorStructInfo) or info.shape is None or seen.is_complex():
            return value
        own = open_shape(info)
        if all(isinstance(extent, int) for extent in own):
            return value
        try:
            wanted = open_shape(self._tensor_info(seen, str(value.name_hint)))
        except ValueError:
            return value
        if len(own) != len(wanted) or all(map(_is_same, own, wanted)):
            return value
        return self._builder.emit(op.reshape(value, wanted))

    def _outputs(self) -> list[RelayExpr]:
        signature = self._program.graph_signature
        (output,) = (n for n in self._program.graph.nodes if n.op == "output")
        values = []
        for spec, item in zip(signature.output_specs, output.args[0]):
            if spec.kind is OutputKind.TOKEN:
                continue
            if spec.kind is not OutputKind.USER_OUTPUT:
                if self._is_as_it_was(spec, item):
                    continue
                if self._may_write_inputs and spec.kind is OutputKind.USER_INPUT_MUTATION:
                    continue
                raise WritesToInputs(signature)
            # None and numbers among the results are the caller's to put in.
            if isinstance(item, torch.fx.Node):
                values.append(self._values[item])
        if not values:
            raise ValueError("relax.frontend.torch: the program returns no tensor")
        return values

    def _is_as_it_was(self, spec: OutputSpec, item: Any) -> bool:
        """Whether a buffer is set to itself, as by ``self.table = self.table.to(x.device)``."""
        if spec.kind is not OutputKind.BUFFER_MUTATION:
            return False
        names = {s.target: s.arg.name for s in self._program.graph_signature.input_specs}
        before = next(n for n in self._program.graph.nodes if n.name == names[spec.target])
        return self._values[item] is self._values[before]

    def _struct_info(self, node: torch.fx.Node) -> StructInfo:
        info = self._tensor_info(node.meta["val"], node.name)
        if not _is_complex(node):
            return info
        return TensorStructInfo([*open_shape(info), 2], info.dtype)

    def _tensor_info(self, tensor: torch.Tensor, name: str) -> TensorStructInfo:
        try:
            shape = [concrete(extent, self._sizes) for extent in tensor.shape]
        except KeyError:
            raise ValueError(
                f"relax.frontend.torch: '{name}' has the shape {tuple(tensor.shape)}, of which a "
                "size follows from the data or was not given"
            ) from None
        return TensorStructInfo(shape, dtype_name(tensor.dtype))

    def _stand_in(self, node: torch.fx.Node) -> Any:
        """In place of a value that could not be imported: variables of its shapes, if fixed."""
        value = node.meta.get("val")
        values = [value] if isinstance(value, torch.Tensor) else value
        if not isinstance(values, (tuple, list)) or not all(map(self._is_describable, values)):
            return _UNKNOWN
        made = [self._unknown(v, f"{node.name}_{i}") for i, v in enumerate(values)]
        return made[0] if isinstance(value, torch.Tensor) else made

    def _is_describable(self, value: Any) -> bool:
        """Whether a graph variable can stand for a value."""
        if not isinstance(value, torch.Tensor):
            return False
        try:
            self._tensor_info(value, "")
        except ValueError:
            return False
        return True

    def _unknown(self, value: torch.Tensor, name: str) -> Var | Complex:
        info = self._tensor_info(value, name)
        if value.is_complex():
            return Complex(Var(f"{name}_real", info), Var(f"{name}_imag", info))
        return Var(name, info)

    def _returns_one_tensor(self) -> bool:
        spec = self._program.call_spec.out_spec
        return spec is None or spec.is_leaf()


def _module_path(node: torch.fx.Node) -> str:
    """The innermost module around a node, as ``features.0 (Conv2d)``."""
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return "the top level"
    path, kind = list(stack.values())[-1]
    name = kind if isinstance(kind, str) else kind.__name__
    return f"{path or 'the top level'} ({name.split('.')[-1]})"


def _is_same(a: Any, b: Any) -> bool:
    """Whether two extents are written in the same way."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return bool(tvm.ir.structural_equal(a, b, map_free_vars=False))


def _with_variables(info: TensorStructInfo, given: Sequence[tir.Var]) -> TensorStructInfo:
    """The same where extents that follow from a variable that no input has are that variable."""
    extents: list[Any] = list(open_shape(info))
    for place, extent in enumerate(extents):
        if isinstance(extent, PrimExpr) and not isinstance(extent, tir.Var):
            (*unknown,) = (v for v in tir.analysis.undefined_vars(extent) if v not in given)
            if unknown:
                extents[place] = unknown[0]
    if all(map(_is_same, extents, open_shape(info))):
        return info
    return TensorStructInfo(extents, info.dtype)
