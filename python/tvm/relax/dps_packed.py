"""Calls by name that write into outputs: each becomes a call of a kernel."""

from __future__ import annotations

from tvm import te, tir
from tvm.driver import schedule_to_module
from tvm.ir import GlobalVar, IRModule, RelayExpr

from .block_builder import NameSupply
from .expr import Call, Function, Var
from .op import call_tir
from .rewriter import FunctionRewriter, graph_functions
from .struct_info import static_shape, tensor_fields

__all__ = ["lower_dps_packed"]


def lower_dps_packed(mod: IRModule) -> IRModule:
    """The module with every ``call_dps_packed`` turned into a ``call_tir``.

    The callee is the module's own ``PrimFunc`` of the name, if there is one, else a new kernel
    for these shapes, which calls the function that the runtime's registry has under the name when
    the program runs.

    Raises
    ------
    ValueError : a shape of a function outside the module is not fixed.
    """
    kernels = _Kernels(mod)
    functions = dict(mod.functions.items())
    calling = {g: f for g, f in graph_functions(mod).items() if _has_packed_call(f)}
    if not calling:
        return mod
    for gvar, func in calling.items():
        functions[gvar] = _PackedCalls(func, kernels).run()
    return mod.with_functions({**functions, **kernels.added})


def _is_packed_call(value: RelayExpr) -> bool:
    if not isinstance(value, Call):
        return False
    return str(getattr(value.op, "name", "")) == "relax.call_dps_packed"


def _has_packed_call(func: Function) -> bool:
    return any(_is_packed_call(b.value) for block in func.body.blocks for b in block.bindings)


class _Kernels:
    """The functions to call, one for each name and choice of shapes."""

    def __init__(self, mod: IRModule) -> None:
        self.added: dict[GlobalVar, tir.PrimFunc] = {}
        self._mod = mod
        self._known: dict[tuple[str, ...], GlobalVar] = {}
        self._names = NameSupply()
        for gvar in mod.get_global_vars():
            self._names.fresh(str(gvar.name_hint))

    def callee(self, call: Call) -> GlobalVar:
        """What a call by name calls."""
        symbol = str(call.args[0].global_symbol)
        if symbol in self._mod and isinstance(self._mod[symbol], tir.PrimFunc):
            return self._mod.get_global_var(symbol)
        inputs = tensor_fields(call.args[1].struct_info)
        outputs = tensor_fields(call.struct_info)
        key = (symbol, *(str(info) for info in [*inputs, *outputs]))
        if key not in self._known:
            hint = "".join(c if c.isalnum() else "_" for c in symbol)
            gvar = GlobalVar(self._names.fresh(f"packed_{hint}"))
            placeholders = [
                te.placeholder(static_shape(info), str(info.dtype), f"p{i}")
                for i, info in enumerate(inputs)
            ]
            made = te.extern(
                [static_shape(info) for info in outputs],
                placeholders,
                lambda ins, outs: tir.call_packed(symbol, *ins, *outs),
                name="packed",
                dtype=[str(info.dtype) for info in outputs],
            )
            results = [made] if isinstance(made, te.Tensor) else list(made)
            name = str(gvar.name_hint)
            schedule = te.create_schedule(results[0].op)
            module = schedule_to_module(schedule, [*placeholders, *results], name=name)
            self.added[gvar] = module[name]
            self._known[key] = gvar
        return self._known[key]


class _PackedCalls(FunctionRewriter):
    def __init__(self, func: Function, kernels: _Kernels) -> None:
        super().__init__(func)
        self._kernels = kernels

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not _is_packed_call(value):
            return value
        return call_tir(self._kernels.callee(value), value.args[1], value.sinfo_args[0])
