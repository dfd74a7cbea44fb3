"""Weights that are asked for where they are read, and results that are handed over when ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import tir
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..analysis import free_vars
from ..analysis.dead_code import without_dead_code
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PyExprMutator, mutator
from ..op.builtin import vm
from ..struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TupleStructInfo,
)
from ..struct_info_relations import tir_vars_in_struct_info
from .bundle_params import inputs_of
from .dataflow import ToNonDataflow
from .graph_pass import graph_pass

__all__ = ["LazyGetInput", "LazySetOutput", "LazyTransformParams"]


def _number(value: int) -> PrimValue:
    return PrimValue(tir.const(value, "int64"))


def _plain_where(mod: IRModule, wanted: Callable[[Function], bool]) -> IRModule:
    """The module with plain blocks in some functions: calls of the host have effects."""
    changed = {g: f for g, f in mod.functions.items() if isinstance(f, Function) and wanted(f)}
    plain = ToNonDataflow()(IRModule(changed))
    functions = {g: plain[g] if g in changed else f for g, f in mod.functions.items()}
    return mod.with_functions(functions)


def _extents(info: StructInfo | None) -> list[tir.Var]:
    return [] if info is None else tir_vars_in_struct_info(info)


@mutator
class _Getter(PyExprMutator):
    """A function whose weights come from calls of its first parameter."""

    def __init__(self, mod: IRModule, weights: Sequence[Var], callback: Var) -> None:
        super().__init__(mod)
        self._places = {w: i for i, w in enumerate(weights)}
        self._callback = callback

    def fetch(self, weight: Var) -> RelayExpr:
        """The weight, asked for when it is read first."""
        given = self.get_var_remap(weight)
        if not given.same_as(weight):
            return given
        name = str(weight.name_hint)
        args = [_number(self._places[weight]), StringImm(name)]
        untyped = self.builder_.emit(Call(self._callback, args), f"{name}_untyped")
        typed = self.builder_.match_cast(untyped, weight.struct_info, name)
        self.set_var_remap(weight, typed)
        return typed

    def visit_var_(self, op: Var) -> RelayExpr:
        return self.fetch(op) if op in self._places else super().visit_var_(op)


def _shaping(params: Sequence[Var], weights: Sequence[Var]) -> list[Var]:
    """Weights whose shapes give extents their values that no input gives."""
    inputs = [p for p in params if p not in weights]
    known = {e for p in inputs for e in _extents(p.struct_info)}
    return [w for w in weights if any(e not in known for e in _extents(w.struct_info))]


def _callback(name: str, gives: StructInfo, purity: bool) -> Var:
    """A function of a number and an object."""
    params = [PrimStructInfo("int64"), ObjectStructInfo()]
    return Var(name, FuncStructInfo(params, gives, purity=purity))


@graph_pass("LazyGetInput")
def LazyGetInput(mod: IRModule) -> IRModule:
    """The module with weights that functions ask for when they read them first.

    Weights are the parameters behind those that "num_input" counts; functions without that
    attribute stay as they are. In their place a function takes ``fget_param`` behind its inputs: a
    function of a weight's number and name that gives the weight. A weight that is needed for a
    symbolic extent is asked for at the beginning. Asking has no effects, so dataflow blocks stay.
    """
    functions = dict(mod.functions.items())
    for gvar, func in mod.functions.items():
        count = inputs_of(func) if isinstance(func, Function) else None
        if count is None:
            continue
        weights = list(func.params)[count:]
        callback = _callback("fget_param", ObjectStructInfo(), purity=True)
        getter = _Getter(mod, weights, callback)
        params = [*list(func.params)[:count], callback]
        getter.builder_.begin_scope(params)
        getter.builder_.begin_binding_block()
        for weight in _shaping(func.params, weights):
            getter.fetch(weight)
        first = getter.builder_.end_block()
        body = getter.visit_expr(func.body)
        getter.builder_.end_scope()
        blocks = [first, *body.blocks] if len(first.bindings) else list(body.blocks)
        functions[gvar] = Function(
            params, SeqExpr(blocks, body.body), func.ret_struct_info, func.is_pure, func.attrs
        )
    return mod.with_functions(functions)


def _joined(blocks: Sequence[BindingBlock]) -> list[BindingBlock]:
    return [BindingBlock([b for block in blocks for b in block.bindings])]


def _results(func: Function) -> list[RelayExpr]:
    """What a function gives: the fields of a tuple that it makes, or its one result."""
    result = func.body.body
    values = {b.var: b.value for block in func.body.blocks for b in block.bindings}
    while isinstance(result, Var) and isinstance(values.get(result), Var):
        result = values[result]
    whole = values.get(result) if isinstance(result, Var) else result
    if isinstance(whole, Tuple):
        return list(whole.fields)
    return [result]


@mutator
class _Setter(PyExprMutator):
    """A function that hands results over when they are bound."""

    def __init__(self, mod: IRModule, results: Sequence[RelayExpr], callback: Var) -> None:
        super().__init__(mod)
        self._callback = callback
        self._places: dict[RelayExpr, list[int]] = {}
        for i, result in enumerate(results):
            if isinstance(result, Var):
                self._places.setdefault(result, []).append(i)

    def hand_over(self, value: RelayExpr, places: Sequence[int]) -> None:
        """Call the callback with a value, once for each place among the results."""
        for place in places:
            self.builder_.emit(Call(self._callback, [_number(place), value]), "_")

    def visit_binding(self, binding: Binding) -> None:
        super().visit_binding(binding)
        if binding.var in self._places:
            self.hand_over(self.get_var_remap(binding.var), self._places[binding.var])


def _is_exported(func: Function) -> bool:
    return func.attrs is not None and "global_symbol" in func.attrs


@graph_pass("LazySetOutput")
def LazySetOutput(mod: IRModule) -> IRModule:
    """The module with results that exported functions hand over when they are ready.

    Behind its inputs a function takes ``fset_output``, a function of the number of a result and the
    result, which is called after the binding that makes it; the function itself gives an empty
    tuple. Results that are parameters are handed over at the beginning, constants at the end.
    """
    mod = _plain_where(mod, _is_exported)
    functions = dict(mod.functions.items())
    for gvar, func in mod.functions.items():
        if not isinstance(func, Function) or not _is_exported(func):
            continue
        results = _results(func)
        callback = _callback("fset_output", TupleStructInfo([]), purity=False)
        count = inputs_of(func)
        at = len(func.params) if count is None else count
        params = [*list(func.params)[:at], callback, *list(func.params)[at:]]
        setter = _Setter(mod, results, callback)
        setter.builder_.begin_scope(params)
        setter.builder_.begin_binding_block()
        for param in func.params:
            setter.hand_over(param, [i for i, r in enumerate(results) if r.same_as(param)])
        first = setter.builder_.end_block()
        body = setter.visit_expr(func.body)
        setter.builder_.begin_binding_block()
        for i, result in enumerate(results):
            if not isinstance(result, Var):
                setter.hand_over(setter.visit_expr(result), [i])
        last = setter.builder_.end_block()
        setter.builder_.end_scope()
        attrs = dict(func.attrs)
        if count is not None:
            attrs["num_input"] = count + 1
        sequence = SeqExpr(_joined([first, *body.blocks, last]), Tuple([]))
        functions[gvar] = without_dead_code(Function(params, sequence, None, False, attrs))
    return mod.with_functions(functions)


class _LastReaders:
    """For each variable of a body the binding that reads it last."""

    def __init__(self, blocks: Sequence[BindingBlock], names: Mapping[Var, list[Var]]) -> None:
        self.released: dict[Var, list[Var]] = {}
        last: dict[Var, Var] = {}
        for block in blocks:
            for binding in block.bindings:
                for var in free_vars(binding.value):
                    for owner in [var, *names.get(var, [])]:
                        last[owner] = binding.var
        for var, reader in last.items():
            self.released.setdefault(reader, []).append(var)


@mutator
class _Transformer(PyExprMutator):
    """A function of a tuple of weights as one that asks for them, and hands over what it makes."""

    def __init__(
        self, mod: IRModule, fget: str, fset: str | None,
        extra_get: Sequence[RelayExpr], extra_set: Sequence[RelayExpr],
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self._fget, self._fset = ExternFunc(fget), None if fset is None else ExternFunc(fset)
        self._extra_get, self._extra_set = list(extra_get), list(extra_set)
        self._bundle: Var | None = None
        self._loaded: dict[int, Var] = {}
        self._released: dict[Var, list[Var]] = {}
        self._places: dict[Var, list[int]] = {}
        self._handed: dict[int, RelayExpr] = {}

    def build(self, func: Function) -> Function:
        self._bundle = func.params[-1]
        inputs = list(func.params)[:-1]
        results = _results(func)
        for i, result in enumerate(results):
            if isinstance(result, Var) and self._fset is not None:
                self._places.setdefault(result, []).append(i)
        self._results = {r for r in results if isinstance(r, Var)}
        self._released = _LastReaders(func.body.blocks, {}).released
        self.builder_.begin_scope(inputs)
        body = self.visit_expr(SeqExpr(func.body.blocks, Tuple([])))
        self.builder_.begin_binding_block()
        fields = []
        for i, result in enumerate(results):
            if i not in self._handed:
                value = self.visit_expr(result)
                self._handed[i] = value if self._fset is None else self._hand_over(value, i)
            fields.append(self._handed[i])
        given = self.builder_.emit(Tuple(fields), "output")
        last = self.builder_.end_block()
        self.builder_.end_scope()
        attrs = {k: v for k, v in func.attrs.items() if k != "num_input"}
        sequence = SeqExpr(_joined([*body.blocks, last]), given)
        return without_dead_code(Function(inputs, sequence, None, False, attrs))

    def _load(self, place: int, info: StructInfo, name: str) -> Var:
        if place not in self._loaded:
            args = [*self._extra_get, _number(place)]
            untyped = self.builder_.emit(Call(self._fget, args, None, [ObjectStructInfo()]))
            self._loaded[place] = self.builder_.match_cast(untyped, info, name)
        return self._loaded[place]

    def _hand_over(self, value: RelayExpr, place: int) -> RelayExpr:
        assert self._fset is not None
        args = [*self._extra_set, _number(place), value]
        return self.builder_.emit(Call(self._fset, args, None, [ObjectStructInfo()]))

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelayExpr:
        if self._bundle is not None and op.tuple_value.same_as(self._bundle):
            place = int(op.index)
            return self._load(place, self._bundle.struct_info.fields[place], "param")
        return super().visit_tuple_getitem_(op)

    def visit_binding(self, binding: Binding) -> None:
        super().visit_binding(binding)
        var = binding.var
        new = self.get_var_remap(var)
        for place in self._places.get(var, ()):
            self._handed[place] = self._hand_over(new, place)
        for read in self._released.get(var, ()):
            kept = read in self._results and self._fset is None
            if read.same_as(self._bundle) or kept:
                continue
            self.builder_.emit(vm.kill_object(self.get_var_remap(read)), "_")


@graph_pass("LazyTransformParams")
def LazyTransformParams(
    mod: IRModule,
    fget_item: str = "get_item",
    fset_item: str | None = "set_item",
    extra_get_item_params: Sequence[RelayExpr] | None = None,
    extra_set_item_params: Sequence[RelayExpr] | None = None,
) -> IRModule:
    """The module with functions ``*_transform_params`` that load weights when they need them.

    Such a function takes a tuple of weights (`LiftTransformParams`) and gives a tuple. From now on
    it asks the global function ``fget_item`` for a weight by its number when that is read first,
    hands each result to ``fset_item`` with its number when it is ready, and lets go of what is read
    no more, so weights that do not fit into memory together can be transformed.

    Parameters
    ----------
    fget_item, fset_item : names of functions of the runtime. With None for the second, results are
        given as a tuple.
    extra_get_item_params, extra_set_item_params : arguments that come before the number.
    """

    def wanted(gvar: GlobalVar, func: object) -> bool:
        return isinstance(func, Function) and str(gvar.name_hint).endswith("transform_params")

    chosen = [f for g, f in mod.functions.items() if wanted(g, f)]
    mod = _plain_where(mod, lambda func: any(func.same_as(f) for f in chosen))
    functions = dict(mod.functions.items())
    for gvar, func in mod.functions.items():
        if wanted(gvar, func):
            transformer = _Transformer(
                mod, fget_item, fset_item, extra_get_item_params or (), extra_set_item_params or ()
            )
            functions[gvar] = transformer.build(func)
    return mod.with_functions(functions)
