"""What follows from weights alone, as a function of its own that runs once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import error, tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr, structural_equal

from ..analysis import contains_impure_call, free_vars
from ..analysis.dead_code import without_dead_code
from ..expr import (
    Binding,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op
from ..struct_info import TupleStructInfo
from ..struct_info_relations import (
    definable_tir_vars_in_struct_info,
    substitute_struct_info,
    tir_vars_in_struct_info,
    unify_struct_info,
)
from .bind import bind_values
from .bundle_params import inputs_of
from .graph_pass import graph_pass

__all__ = ["LiftTransformParams"]


class _Split:
    """The bindings of a function that follow from its weights alone, and the rest.

    Attributes
    ----------
    lifted : those bindings, in order. outputs : the weights and the variables of such bindings that
        the rest reads: weights first.
    """

    def __init__(self, func: Function, inputs: int) -> None:
        self.weights = list(func.params)[inputs:]
        known: set[Var] = set(self.weights)
        extents: set[tir.Var] = set()
        for weight in self.weights:
            extents.update(definable_tir_vars_in_struct_info(weight.struct_info))
        self.lifted: list[Binding] = []
        for block in func.body.blocks:
            for binding in block.bindings if isinstance(block, DataflowBlock) else ():
                if self._may_lift(binding, known, extents):
                    known.add(binding.var)
                    self.lifted.append(binding)
        self.outputs = self._read_by_rest(func)

    def _read_by_rest(self, func: Function) -> list[Var]:
        lifted = {b.var for b in self.lifted}
        read: set[Var] = set(free_vars(func.body.body))
        for block in func.body.blocks:
            for binding in block.bindings:
                if binding.var not in lifted:
                    read.update(free_vars(binding.value))
        return [var for var in [*self.weights, *(b.var for b in self.lifted)] if var in read]

    def keep(self, wanted: set[Var], func: Function) -> None:
        """Lift bindings of these variables only."""
        self.lifted = [b for b in self.lifted if b.var in wanted]
        self.outputs = self._read_by_rest(func)

    @staticmethod
    def _may_lift(binding: Binding, known: set[Var], extents: set[tir.Var]) -> bool:
        value = binding.value
        if isinstance(binding, MatchCast) or contains_impure_call(value):
            return False
        if isinstance(value, Call) and value.op.same_as(get_op("builtin.stop_lift_params")):
            return False
        read = free_vars(value)
        if not read or not all(var in known for var in read):
            return False
        used = [*tir_vars_in_struct_info(binding.var.struct_info)]
        if isinstance(value, Call):
            for part in [*value.args, *value.sinfo_args]:
                info = getattr(part, "struct_info", part)
                used += [] if info is None else tir_vars_in_struct_info(info)
        return all(extent in extents for extent in used)


def _match(one: _Split, other: _Split, name: str) -> dict[Var, Var]:
    """By variable of one function, the variable of the other one that is the same of equal weights.

    Weights are the same by name, and what is lifted if it is computed in the same way.
    """
    own = {str(w.name_hint): w for w in other.weights}
    if set(own) != {str(w.name_hint) for w in one.weights}:
        raise error.ValueError(
            f"LiftTransformParams: '{name}' has the weights {', '.join(own)}; a shared function "
            f"needs those of the others, {', '.join(str(w.name_hint) for w in one.weights)}"
        )
    found = {w: own[str(w.name_hint)] for w in one.weights}
    extents: dict[tir.Var, PrimExpr] = {}
    for weight, var in found.items():
        unify_struct_info(var.struct_info, weight.struct_info, extents)
        if not structural_equal(
            substitute_struct_info(var.struct_info, extents), weight.struct_info
        ):
            raise error.ValueError(
                f"LiftTransformParams: the weight '{weight.name_hint}' of '{name}' is "
                f"{var.struct_info}, that of the others is {weight.struct_info}"
            )
    values: dict[Var, RelayExpr] = {var: weight for weight, var in found.items()}
    for binding in other.lifted:
        value = bind_values(binding.value, values, extents)
        for candidate in one.lifted:
            if candidate.var not in found and structural_equal(candidate.value, value):
                found[candidate.var] = binding.var
                values[binding.var] = candidate.var
                break
    return found


def _share(splits: dict[GlobalVar, _Split], functions: dict[GlobalVar, Function]) -> _Split:
    """Let functions lift what they have in common only, as results of one order.

    Returns
    -------
    The split of the first function, of which the shared one is made.
    """
    first = next(iter(splits.values()))
    matches = {g: _match(first, split, str(g.name_hint)) for g, split in splits.items()}
    common = [v for v in [*first.weights, *(b.var for b in first.lifted)]
              if all(v in match for match in matches.values())]  # fmt: skip
    for gvar, split in splits.items():
        split.keep({matches[gvar][v] for v in common}, functions[gvar])
    needed = [v for v in common if any(matches[g][v] in s.outputs for g, s in splits.items())]
    for gvar, split in splits.items():
        split.outputs = [matches[gvar][v] for v in needed]
    return first


@mutator
class _Rest(PyExprMutator):
    """The function without what was lifted; what that gives are parameters."""

    def __init__(self, mod: IRModule, split: _Split, inputs: int) -> None:
        super().__init__(mod)
        self._inputs = inputs
        self._outputs = split.outputs
        self._lifted = {b.var for b in split.lifted}

    def visit_function_(self, op: Function) -> Function:
        made = []
        for var in self._outputs:
            new = var if not isinstance(var, DataflowVar) and var not in self._lifted else Var(
                str(var.name_hint), var.struct_info
            )  # fmt: skip
            self.set_var_remap(var, new)
            made.append(new)
        params = [*list(op.params)[: self._inputs], *made]
        body = self.visit_with_new_scope(op.body, params)
        return Function(params, body, op.ret_struct_info, op.is_pure, op.attrs)

    def visit_binding(self, binding: Binding) -> None:
        if binding.var not in self._lifted:
            super().visit_binding(binding)

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if call.op.same_as(get_op("builtin.stop_lift_params")):
            return call.args[0]
        return call


@mutator
class _Lifted(PyExprMutator):
    """What was lifted, as a function of a tuple of weights."""

    def build(self, split: _Split) -> Function:
        bundle = Var("params", TupleStructInfo([w.struct_info for w in split.weights]))
        self._fields = {w: TupleGetItem(bundle, i) for i, w in enumerate(split.weights)}
        self.builder_.begin_scope([bundle])
        self.builder_.begin_dataflow_block()
        for weight in split.outputs:
            if weight in self._fields:
                self.visit_var_(weight)
        for binding in split.lifted:
            value = self.builder_.normalize(self.visit_expr(binding.value))
            var = DataflowVar(str(binding.var.name_hint), value.struct_info)
            self.builder_.emit_normalized(VarBinding(var, value))
            self.set_var_remap(binding.var, var)
        result = Tuple([self.visit_expr(var) for var in split.outputs])
        output = self.builder_.emit_output(result)
        block = self.builder_.end_block()
        self.builder_.end_scope()
        func = Function([bundle], SeqExpr([block], output), None, True, {"num_input": 0})
        return without_dead_code(func)

    def visit_var_(self, op: Var) -> RelayExpr:
        new = self.get_var_remap(op)
        if new.same_as(op) and op in self._fields:
            new = self.builder_.emit(self._fields[op], str(op.name_hint))
            self.set_var_remap(op, new)
        return new

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        return self.visit_var_(op)


@graph_pass("LiftTransformParams")
def LiftTransformParams(
    mod: IRModule, shared_transform: bool | str | Sequence[str] = False
) -> IRModule:
    """The module with what follows from weights alone in functions that run once.

    Weights are the parameters behind those that "num_input" counts; functions without that
    attribute stay as they are. For ``main`` there is a function ``main_transform_params`` then,
    which takes the weights as a tuple and gives what ``main`` takes behind its inputs from now on:
    weights that it reads as they are, then what was lifted, in order. What reads the result of
    ``builtin.stop_lift_params`` stays, and so do casts, calls that may have effects and what is
    outside of dataflow blocks.

    Parameters
    ----------
    shared_transform : True, or the names of functions: one function ``transform_params`` for all of
        these, of the weights that they have in common by name, with the bindings that all of them
        have. Each takes all of its results.

    Raises
    ------
    ValueError : a named function is not there or has no "num_input", or functions that share have
        other weights than each other.
    """
    functions = dict(mod.functions.items())
    counted = {
        gvar: inputs
        for gvar, func in mod.functions.items()
        if isinstance(func, Function) and (inputs := inputs_of(func)) is not None
    }
    shared = _sharing(shared_transform, counted)
    splits = {gvar: _Split(mod[gvar], inputs) for gvar, inputs in counted.items()}
    made: dict[str, tuple[_Split, list[GlobalVar]]] = {
        f"{gvar.name_hint}_transform_params": (split, [gvar])
        for gvar, split in splits.items()
        if gvar not in shared
    }
    if shared:
        first = _share({gvar: splits[gvar] for gvar in shared}, functions)
        made["transform_params"] = (first, shared)
    for name, (split, users) in made.items():
        func = _Lifted(mod).build(split)
        if any("global_symbol" in (mod[gvar].attrs or {}) for gvar in users):
            func = func.with_attr("global_symbol", name)
        functions[GlobalVar(name)] = func
        for gvar in users:
            functions[gvar] = _Rest(mod, splits[gvar], counted[gvar]).visit_expr(mod[gvar])
    return mod.with_functions(functions)


def _sharing(
    shared_transform: bool | str | Sequence[str], counted: Mapping[GlobalVar, int]
) -> list[GlobalVar]:
    """The functions that share what is lifted, of those with a number of inputs."""
    if isinstance(shared_transform, bool):
        return list(counted) if shared_transform else []
    names = [shared_transform] if isinstance(shared_transform, str) else list(shared_transform)
    by_name = {str(gvar.name_hint): gvar for gvar in counted}
    for name in names:
        if name not in by_name:
            raise error.ValueError(
                f"LiftTransformParams: no function '{name}' with the attribute \"num_input\" is "
                f"there; there are {', '.join(by_name) or 'none'}"
            )
    return [by_name[name] for name in names]
