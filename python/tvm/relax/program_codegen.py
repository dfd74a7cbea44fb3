"""Graph functions over values of any kind, as programs of the virtual machine.

Where :mod:`compile_fused` lists kernel calls over memory planned beforehand, these programs
allocate when they run, so shapes may follow from arguments, and values may be tuples, shapes,
functions and objects of the runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error, tir
from tvm.arith import Analyzer
from tvm.ir import GlobalVar, IRModule, Op, PrimExpr, RelayExpr

from .analysis import defined_symbolic_vars, free_symbolic_vars
from .block_builder import NameSupply
from .exec_builder import Argument, ExecBuilder
from .expr import (
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from .op import has_op, op_spec
from .shape_codes import MakeShapeCode, MatchShapeCode
from .struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor_fields,
)

__all__ = ["ROW_KERNELS", "ROW_KERNEL_NAMES", "write_programs"]

# Attributes of a kernel that is called for blocks of rows: the leading axes that rows are places
# in, the tensors that have them as bits, and the rows that each kernel takes; the names of these.
ROW_KERNELS = "relax.row_kernels"
ROW_KERNEL_NAMES = "relax.row_kernel_names"


def write_programs(mod: IRModule, builder: ExecBuilder) -> dict[GlobalVar, tir.PrimFunc]:
    """Write every graph function of a legal module; returns the kernels that this adds.

    Raises
    ------
    ValueError : an operator is left that no kernel computes, or an extent has no value.
    """
    names = NameSupply()
    for gvar in mod.get_global_vars():
        names.fresh(str(gvar.name_hint))
    kernels: dict[GlobalVar, tir.PrimFunc] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            kernels.update(_Writer(mod, builder, names).write(str(gvar.name_hint), func))
    return kernels


# What the runtime takes for no bound.
_UNBOUNDED = 2**63 - 1


def _bounds_of(func: Function, name: str) -> dict[str, int]:
    """An attribute of a function that gives numbers to names of symbolic extents."""
    attrs = func.attrs if func.attrs is not None else {}
    return {str(var): int(bound) for var, bound in dict(attrs.get(name, {})).items()}


def _extents_in(expr: PrimExpr) -> list[tir.Var]:
    return [expr] if isinstance(expr, tir.Var) else list(tir.analysis.undefined_vars(expr))


class _Extents:
    """The slots of a function's heap: symbolic extents, and what is computed from them.

    Parameters
    ----------
    names : of kernels that compute extents.
    """

    def __init__(self, names: NameSupply) -> None:
        self._names = names
        self._slots: dict[Any, int] = {}
        self._known: set[tir.Var] = set()
        self._pending: list[tuple[GlobalVar, int, PrimExpr]] = []

    @property
    def count(self) -> int:
        """How many slots there are."""
        return len(self._slots)

    def slot(self, var: tir.Var) -> int:
        """Where the value of an extent is."""
        return self._slots.setdefault(var, len(self._slots))

    def is_known(self, expr: PrimExpr) -> bool:
        """Whether all extents in an expression have a value by now."""
        return all(var in self._known for var in _extents_in(expr))

    def define(self, var: tir.Var) -> None:
        """Say that an extent has a value from now on."""
        self._known.add(var)

    def snapshot(self) -> tuple[dict[Any, int], set[tir.Var]]:
        """What has a value by now; :meth:`restore` forgets what came after."""
        return dict(self._slots), set(self._known)

    def restore(self, state: tuple[dict[Any, int], set[tir.Var]]) -> None:
        """Forget values that only one branch computed; their slots stay theirs."""
        slots, self._known = state
        for key in [k for k in self._slots if isinstance(k, str) and k not in slots]:
            # The number is used up: another expression gets another slot.
            self._slots[f"{key} of a branch {self._slots[key]}"] = self._slots.pop(key)

    def computed(self, expr: PrimExpr) -> tuple[int, GlobalVar | None]:
        """Where the value of an expression is, and the kernel that must be called first."""
        # Extents of one name are told apart by their slots.
        key = f"{expr} of {[self.slot(var) for var in _extents_in(expr)]}"
        if key in self._slots:
            return self._slots[key], None
        slot = self._slots[key] = len(self._slots)
        kernel = GlobalVar(self._names.fresh("shape_func"))
        self._pending.append((kernel, slot, expr))
        return slot, kernel

    def kernels(self) -> dict[GlobalVar, tir.PrimFunc]:
        """The kernels that compute extents; each takes the heap."""
        made = {}
        for gvar, slot, expr in self._pending:
            heap = tir.decl_buffer((tir.const(self.count, "int64"),), "int64", name="heap")
            values = {
                var: tir.BufferLoad(heap, [tir.const(self.slot(var), "int64")])
                for var in _extents_in(expr)
            }
            value = tir.stmt_functor.substitute(expr, values).astype("int64")
            body = tir.BufferStore(heap, value, [tir.const(slot, "int64")])
            handle = tir.Var("heap", "handle")
            func = tir.PrimFunc([handle], body, buffer_map={handle: heap})
            made[gvar] = func.with_attr("global_symbol", str(gvar.name_hint))
        return made


class _Writer:
    """The program of one function."""

    def __init__(self, mod: IRModule, builder: ExecBuilder, names: NameSupply) -> None:
        self._mod = mod
        self._builder = builder
        self._extents = _Extents(names)
        self._heap = builder.void_arg()
        self._values: dict[Var, Argument] = {}
        self._registers = 0
        # Checks of extents that depend on extents of later parameters.
        self._late: list[tuple[Argument, int, int, PrimExpr, str]] = []

    def write(self, name: str, func: Function) -> dict[GlobalVar, tir.PrimFunc]:
        """Write the function; returns the kernels that compute extents."""
        builder = self._builder
        inputs = [str(param.name_hint) for param in func.params]
        with builder.function(name, param_names=inputs):
            self._registers = len(inputs)
            heap_step = None
            if defined_symbolic_vars(func) or free_symbolic_vars(func):
                self._heap = self._new()
                heap_step = builder.emit_call(
                    "vm.builtin.alloc_shape_heap", [builder.vm_state(), 0], self._heap
                )
            for i, param in enumerate(func.params):
                self._values[param] = builder.r(i)
                self._match(builder.r(i), param.struct_info, f"{name}: input '{inputs[i]}'")
            self._finish_matching()
            self._check_bounds(name, func)
            result = self._sequence(func.body)
            builder.emit_ret(self._in_register(result))
            if heap_step is not None:
                builder.replace_argument(heap_step, 1, builder.imm(self._extents.count))
        return self._extents.kernels()

    def _new(self) -> Argument:
        register = self._builder.r(self._registers)
        self._registers += 1
        return register

    def _call(self, name: str, *args: Any) -> Argument:
        result = self._new()
        self._builder.emit_call(name, args, result)
        return result

    def _do(self, name: str, *args: Any) -> None:
        self._builder.emit_call(name, args)

    def _in_register(self, value: Argument) -> Argument:
        is_register = value.kind == self._heap.kind
        return value if is_register else self._call("vm.builtin.copy", value)

    # Extents

    def _match(self, value: Argument, info: StructInfo | None, context: str) -> None:
        """Check what is known of a value, and give its symbolic extents their values."""
        if isinstance(info, TensorStructInfo):
            dtype = [] if str(info.dtype) == "void" else [str(info.dtype)]
            self._do("vm.builtin.check_tensor_info", value, info.ndim, *dtype, context)
            self._match_shape(value, None if info.shape is None else info.shape, context)
        elif isinstance(info, ShapeStructInfo):
            self._do("vm.builtin.check_shape_info", value, info.ndim, context)
            self._match_shape(value, info, context)
        elif isinstance(info, PrimStructInfo):
            self._match_number(value, info, context)
        elif isinstance(info, TupleStructInfo):
            self._do("vm.builtin.check_tuple_info", value, len(info.fields), context)
            for i, part in enumerate(info.fields):
                item = self._call("vm.builtin.tuple_getitem", value, i)
                self._match(item, part, f"{context}[{i}]")
        elif isinstance(info, FuncStructInfo):
            self._do("vm.builtin.check_func_info", value, context)

    def _match_shape(self, value: Argument, shape: Any, context: str) -> None:
        extents = getattr(getattr(shape, "struct_info", shape), "values", None)
        if extents is None:
            return
        codes: list[int] = []
        stored: set[Any] = set()
        for axis, extent in enumerate(extents):
            if extent in stored:
                codes += [MatchShapeCode.ASSERT_EQUAL_TO_LOAD, self._extents.slot(extent)]
            elif self._extents.is_known(extent):
                codes += self._expected(extent)
            elif isinstance(extent, tir.Var):
                codes += [MatchShapeCode.STORE_TO_HEAP, self._extents.slot(extent)]
                stored.add(extent)
            else:
                codes += [MatchShapeCode.NO_OP, 0]
                self._late.append((value, axis, len(extents), extent, context))
        self._do("vm.builtin.match_shape", value, self._heap, len(extents), *codes, context)
        # Not before: a kernel that computes an extent of these would run before they are stored.
        for var in stored:
            self._extents.define(var)

    def _check_bounds(self, name: str, func: Function) -> None:
        """Refuse extents of parameters outside of what the function says of its variables."""
        lower, upper = (_bounds_of(func, f"tir_var_{end}_bound") for end in ("lower", "upper"))
        for param in func.params:
            info = param.struct_info
            shape = info.shape if isinstance(info, TensorStructInfo) else None
            values = None if shape is None else shape.struct_info.values
            for axis, extent in enumerate(values or ()):
                var = str(extent.name) if isinstance(extent, tir.Var) else ""
                least, most = lower.pop(var, 0), upper.pop(var, _UNBOUNDED)
                if (least, most) != (0, _UNBOUNDED):
                    where = f"{name}: input '{param.name_hint}'"
                    self._do("vm.builtin.check_extent", self._values[param], axis, least, most,
                             where)  # fmt: skip

    def _match_number(self, value: Argument, info: PrimStructInfo, context: str) -> None:
        self._do("vm.builtin.check_prim_value_info", value, str(info.dtype), context)
        number = info.value
        if number is None or not str(info.dtype).startswith(("int", "uint", "bool")):
            return
        if isinstance(number, tir.Var) and not self._extents.is_known(number):
            codes = [MatchShapeCode.STORE_TO_HEAP, self._extents.slot(number)]
            self._extents.define(number)
        else:
            codes = self._expected(number)
        self._do("vm.builtin.match_prim_value", value, self._heap, *codes, context)

    def _finish_matching(self) -> None:
        for value, axis, count, extent, context in self._late:
            codes = [MatchShapeCode.NO_OP, 0] * count
            codes[2 * axis : 2 * axis + 2] = self._expected(extent)
            self._do("vm.builtin.match_shape", value, self._heap, count, *codes, context)
        self._late.clear()

    def _expected(self, extent: PrimExpr) -> list[int]:
        code, operand = self._extent(extent)
        is_number = code == MakeShapeCode.USE_IMM
        match = MatchShapeCode
        return [match.ASSERT_EQUAL_TO_IMM if is_number else match.ASSERT_EQUAL_TO_LOAD, operand]

    def _extent(self, extent: Any) -> tuple[int, int]:
        """An extent as a number, or as a slot that holds it by now."""
        if isinstance(extent, PrimExpr) and not _extents_in(extent):
            # Numbers that were not folded need no kernel, and no heap for it.
            extent = Analyzer().simplify(extent)
        number = extent if isinstance(extent, int) else getattr(extent, "value", None)
        if isinstance(number, int):
            return MakeShapeCode.USE_IMM, int(number)
        if not self._extents.is_known(extent):
            raise error.ValueError(
                f"relax.build: nothing gives the extent {extent} a value before it is needed; "
                "take it from the shape of a parameter, or from a match_cast"
            )
        if isinstance(extent, tir.Var):
            return MakeShapeCode.LOAD_SHAPE, self._extents.slot(extent)
        slot, kernel = self._extents.computed(extent)
        if kernel is not None:
            self._do(str(kernel.name_hint), self._heap)
        return MakeShapeCode.LOAD_SHAPE, slot

    def _shape(self, extents: Sequence[Any]) -> Argument:
        pairs = [self._extent(extent) for extent in extents]
        if all(code == MakeShapeCode.USE_IMM for code, _ in pairs):
            return self._builder.convert_constant(tuple(number for _, number in pairs))
        flat = [number for pair in pairs for number in pair]
        return self._call("vm.builtin.make_shape", self._heap, len(pairs), *flat)

    # Values

    def _sequence(self, expr: RelayExpr) -> Argument:
        if not isinstance(expr, SeqExpr):
            return self._value(expr)
        for block in expr.blocks:
            for binding in block.bindings:
                value = self._value(binding.value)
                if isinstance(binding, MatchCast):
                    self._match(value, binding.struct_info, f"'{binding.var.name_hint}'")
                    self._finish_matching()
                self._values[binding.var] = value
        return self._value(expr.body)

    def _value(self, expr: RelayExpr) -> Argument:
        if isinstance(expr, Var):
            return self._values[expr]
        if isinstance(expr, Call):
            return self._called(expr)
        if isinstance(expr, Constant):
            return self._builder.convert_constant(expr.data)
        if isinstance(expr, ShapeExpr):
            return self._shape(expr.values)
        if isinstance(expr, PrimValue):
            return self._number(expr.value)
        if isinstance(expr, (StringImm, DataTypeImm)):
            return self._builder.convert_constant(str(expr.value))
        if isinstance(expr, Tuple):
            return self._call("vm.builtin.make_tuple", *map(self._value, expr.fields))
        if isinstance(expr, TupleGetItem):
            return self._call("vm.builtin.tuple_getitem", self._value(expr.tuple_value), expr.index)
        if isinstance(expr, If):
            return self._chosen(expr)
        if isinstance(expr, GlobalVar):
            return self._builder.f(str(expr.name_hint))
        if isinstance(expr, ExternFunc):
            return self._builder.f(str(expr.global_symbol))
        raise error.ValueError(f"relax.build: a {type(expr).__name__} is no value of a program")

    def _number(self, value: PrimExpr) -> Argument:
        literal = getattr(value, "value", None)
        if isinstance(literal, (int, float)):
            return self._builder.convert_constant(literal)
        code, operand = self._extent(value)
        return self._call("vm.builtin.make_prim_value", self._heap, code, operand)

    def _chosen(self, expr: If) -> Argument:
        builder = self._builder
        result = self._new()
        condition = self._call("vm.builtin.read_if_cond", self._value(expr.cond))
        to_else = builder.emit_if(condition, 1)
        self._branch(expr.true_branch, result)
        to_end = builder.emit_goto(1)
        builder.set_target(to_else, builder.position())
        self._branch(expr.false_branch, result)
        builder.set_target(to_end, builder.position())
        return result

    def _branch(self, body: RelayExpr, result: Argument) -> None:
        known = self._extents.snapshot()
        self._builder.emit_call("vm.builtin.copy", [self._sequence(body)], result)
        self._extents.restore(known)

    def _fields(self, args: RelayExpr) -> list[Argument]:
        """The parts of a tuple: an expression, or a variable that holds one."""
        if isinstance(args, Tuple):
            return [self._value(item) for item in args.fields]
        whole = self._value(args)
        count = len(args.struct_info.fields)
        return [self._call("vm.builtin.tuple_getitem", whole, i) for i in range(count)]

    # Calls

    def _called(self, call: Call) -> Argument:
        callee = call.op
        if isinstance(callee, Op):
            return self._operator(call, str(callee.name).removeprefix("relax."))
        args = [self._value(arg) for arg in call.args]
        if isinstance(callee, GlobalVar):
            return self._call(str(callee.name_hint), *args)
        if isinstance(callee, ExternFunc):
            return self._call(str(callee.global_symbol), *args)
        return self._call(
            "vm.builtin.invoke_closure", self._builder.vm_state(), self._value(callee), *args
        )

    def _operator(self, call: Call, name: str) -> Argument:
        known = _OPERATORS.get(name)
        if known is not None:
            return known(self, call)
        if has_op(call.op) and op_spec(call.op).is_view:
            shape = self._shape(call.struct_info.shape.struct_info.values)
            return self._call("vm.builtin.reshape", self._value(call.args[0]), shape)
        raise error.ValueError(
            f"relax.build: operator '{call.op.name}' has no kernel for operands "
            f"{', '.join(str(arg.struct_info) for arg in call.args)}; their shapes must be known "
            "up to symbolic extents"
        )

    def _allocated(self, info: TensorStructInfo) -> Argument:
        shape = None if info.shape is None else info.shape.struct_info.values
        if shape is None:
            raise error.ValueError(
                f"relax.build: memory for {info} cannot be allocated; its shape is unknown"
            )
        return self._call("vm.builtin.new_tensor", self._shape(shape), str(info.dtype))

    def _destinations(self, info: StructInfo) -> tuple[list[Argument], Callable[[], Argument]]:
        """Memory for results, and what makes them the value of the call."""
        outputs = [self._allocated(field) for field in tensor_fields(info)]
        if isinstance(info, TensorStructInfo):
            return outputs, lambda: outputs[0]
        return outputs, lambda: self._call("vm.builtin.make_tuple", *outputs)

    def _call_tir(self, call: Call) -> Argument:
        inputs = self._fields(call.args[1])
        outputs, result = self._destinations(call.struct_info)
        self._kernel(call, [*inputs, *outputs])
        return result()

    def _call_tir_inplace(self, call: Call) -> Argument:
        inputs = self._fields(call.args[1])
        fresh, results = [], []
        indices = [int(index) for index in call.attrs["inplace_indices"]]
        for index, info in zip(indices, tensor_fields(call.struct_info)):
            if index == -1:
                fresh.append(self._allocated(info))
            results.append(fresh[-1] if index == -1 else inputs[index])
        self._kernel(call, [*inputs, *fresh])
        if isinstance(call.struct_info, TensorStructInfo):
            return results[0]
        return self._call("vm.builtin.make_tuple", *results)

    def _kernel(self, call: Call, args: Sequence[Argument]) -> None:
        name = str(call.args[0].name_hint)
        attrs = self._mod[call.args[0]].attrs if call.args[0] in self._mod.functions else None
        if attrs is not None and ROW_KERNELS in attrs:
            leading, mask, *sizes = (int(number) for number in attrs[ROW_KERNELS])
            pairs = zip(sizes, map(str, attrs[ROW_KERNEL_NAMES]))
            flat = [item for size, each in pairs for item in (size, self._builder.f(each))]
            self._do("vm.builtin.call_tir_rows", leading, mask, len(sizes), *flat, *args)
        elif len(call.args) > 2:
            self._dynamic(name, args, self._value(call.args[2]))
        else:
            self._do(name, *args)

    def _dynamic(self, name: str, args: Sequence[Argument], extents: Argument) -> None:
        machine, function = self._builder.vm_state(), self._builder.f(name)
        self._do("vm.builtin.call_tir_dyn", machine, function, *args, extents)

    def _call_dps_packed(self, call: Call) -> Argument:
        inputs = self._fields(call.args[1])
        outputs, result = self._destinations(call.struct_info)
        self._do(self._symbol(call.args[0]), *inputs, *outputs)
        return result()

    def _call_packed(self, call: Call) -> Argument:
        callee, *args = call.args
        return self._call(self._symbol(callee), *map(self._value, args))

    def _call_builtin(self, call: Call) -> Argument:
        args = self._fields(call.args[1])
        return self._call(self._symbol(call.args[0]), self._builder.vm_state(), *args)

    def _symbol(self, callee: RelayExpr) -> str:
        return str(callee.global_symbol if isinstance(callee, ExternFunc) else callee.name_hint)

    def _invoke(self, call: Call) -> Argument:
        closure, args = self._value(call.args[0]), self._fields(call.args[1])
        return self._call("vm.builtin.invoke_closure", self._builder.vm_state(), closure, *args)

    def _make_closure(self, call: Call) -> Argument:
        function, args = self._value(call.args[0]), self._fields(call.args[1])
        return self._call("vm.builtin.make_closure", self._builder.vm_state(), function, *args)

    def _alloc_tensor(self, call: Call) -> Argument:
        shape, dtype = (self._value(arg) for arg in call.args[:2])
        return self._call("vm.builtin.new_tensor", shape, dtype)

    def _alloc_storage(self, call: Call) -> Argument:
        size, device, *rest = (self._value(arg) for arg in call.args)
        # The two forms differ in the order of element type and memory scope.
        dtype = rest[1] if str(call.op.name) == "relax.memory.alloc_storage" else rest[0]
        machine = self._builder.vm_state()
        return self._call("vm.builtin.alloc_storage", machine, size, device, dtype)

    def _tensor_in_storage(self, call: Call) -> Argument:
        return self._call("vm.builtin.alloc_tensor", *map(self._value, call.args))

    def _call_tir_dyn(self, call: Call) -> Argument:
        *args, extents = self._fields(call.args[1])
        self._dynamic(str(call.args[0].name_hint), args, extents)
        return self._builder.convert_constant(None)

    def _view(self, call: Call) -> Argument:
        """What the call leaves out is an empty tuple."""
        left_out = self._builder.convert_constant(None)
        args = [
            left_out if isinstance(a, Tuple) and not len(a.fields) else self._value(a)
            for a in call.args
        ]
        return self._call("runtime.TVMArrayCreateView", *args)

    def _nothing(self, call: Call) -> Argument:
        """Memory is given back when no register holds it."""
        return self._builder.convert_constant(None)

    def _first(self, call: Call) -> Argument:
        return self._value(call.args[0])


def _builtin(name: str) -> Callable[[_Writer, Call], Argument]:
    def write(writer: _Writer, call: Call) -> Argument:
        return writer._call(name, *map(writer._value, call.args))

    return write


_OPERATORS: dict[str, Callable[[_Writer, Call], Argument]] = {
    "call_tir": _Writer._call_tir,
    "call_tir_with_grad": _Writer._call_tir,
    "call_tir_inplace": _Writer._call_tir_inplace,
    "call_dps_packed": _Writer._call_dps_packed,
    "call_pure_packed": _Writer._call_packed,
    "call_inplace_packed": _Writer._call_packed,
    "call_builtin_with_ctx": _Writer._call_builtin,
    "invoke_closure": _Writer._invoke,
    "invoke_pure_closure": _Writer._invoke,
    "make_closure": _Writer._make_closure,
    "null_value": _Writer._nothing,
    "shape_of": _builtin("vm.builtin.shape_of"),
    "tensor_to_shape": _builtin("vm.builtin.tensor_to_shape"),
    "shape_to_tensor": _builtin("relax.run.shape_to_tensor"),
    **{
        f"inspect.tensor_{field}": _builtin(f"relax.run.tensor_{field}")
        for field in (
            "dtype_code",
            "dtype_bits",
            "dtype_lanes",
            "ndim",
            "shape_i",
            "stride_i",
            "byte_offset",
            "elem_offset",
        )
    },  # fmt: skip
    "print": _builtin("relax.run.print"),
    "assert_op": _builtin("relax.run.assert_op"),
    "builtin.alloc_tensor": _Writer._alloc_tensor,
    "builtin.stop_lift_params": _Writer._first,
    "hint_on_device": _Writer._first,
    "memory.alloc_storage": _Writer._alloc_storage,
    "memory.alloc_tensor": _Writer._tensor_in_storage,
    "memory.ensure_zero_offset": _builtin("vm.builtin.ensure_zero_offset"),
    "memory.kill_storage": _Writer._nothing,
    "memory.kill_tensor": _Writer._nothing,
    "memory.view": _Writer._view,
    "vm.alloc_storage": _Writer._alloc_storage,
    "vm.alloc_tensor": _Writer._tensor_in_storage,
    "vm.kill_object": _Writer._nothing,
    "vm.call_tir_dyn": _Writer._call_tir_dyn,
}
