"""Storage that allocated tensors share one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm import arith, tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr

from ..analysis import free_vars
from ..expr import (
    BindingBlock,
    Call,
    DataTypeImm,
    ExternFunc,
    Function,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from ..op import get_op
from ..op.builtin import memory
from .graph_pass import graph_pass
from .lower_alloc_tensor import bytes_of

__all__ = ["Storage", "StaticPlanBlockMemory", "planned_storage"]

# Memory is reused for tensors of up to this many times its size, and not for smaller ones than that
# share of it: beyond, growing it costs more than memory of one's own.
_RANGE = 16


@dataclass
class Storage:
    """Memory that tensors share.

    Attributes
    ----------
    size : bytes; an expression over extents that nothing bounds.
    dtype : of the first tensor. tensors : variables that are put there.
    """

    size: int | PrimExpr
    dtype: str
    scope: str
    device: int
    tensors: list[Var] = field(default_factory=list)

    def place(self) -> tuple[str, int]:
        """What must be the same for memory to be shared."""
        return self.scope, self.device


def _is_allocation(value: RelayExpr) -> bool:
    return isinstance(value, Call) and value.op.same_as(get_op("builtin.alloc_tensor"))


def _only_looks(call: Call, mod: IRModule) -> bool:
    """Whether a call reads and writes its tensors, and keeps none of them."""
    if isinstance(call.op, GlobalVar):
        return isinstance(mod.functions.get(call.op), tir.PrimFunc)
    names = ("vm.call_tir_dyn", "memory.kill_tensor", "reshape")
    return isinstance(call.op, ExternFunc) or any(call.op.same_as(get_op(n)) for n in names)


class _Uses:
    """How long each tensor that a block allocates is needed.

    Attributes
    ----------
    last : for each, the position of the last binding that reads it, or a name of it.
    kept : those that are needed beyond the block, or by something that may keep them.
    """

    def __init__(self, block: BindingBlock, outside: set[Var], mod: IRModule) -> None:
        self.last: dict[Var, int] = {}
        self.kept: set[Var] = set()
        self._owners: dict[Var, set[Var]] = {}
        for position, binding in enumerate(block.bindings):
            value = binding.value
            if _is_allocation(value):
                self.last[binding.var] = position
                self._owners[binding.var] = {binding.var}
                continue
            owners = {o for var in free_vars(value) for o in self._owners.get(var, ())}
            for owner in owners:
                self.last[owner] = position
            is_name = isinstance(value, (Var, Tuple, TupleGetItem))
            is_view = isinstance(value, Call) and value.op.same_as(get_op("reshape"))
            if is_name or is_view:
                self._owners[binding.var] = owners
            elif not isinstance(value, Call) or not _only_looks(value, mod):
                self.kept |= owners
        for var, owners in self._owners.items():
            if var in outside:
                self.kept |= owners


class _Bounds:
    """Sizes of tensors: numbers where extents are bounded, else expressions over them."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._analyzer = arith.Analyzer()

    def size(self, shape: ShapeExpr, dtype: str) -> int | PrimExpr:
        """Bytes of a tensor, at most."""
        exact = bytes_of(shape, dtype)
        bounds = {
            var: tir.const(self._limits[str(var.name)], var.dtype)
            for extent in shape.values
            for var in tir.analysis.undefined_vars(extent)
            if str(var.name) in self._limits
        }
        size = self._analyzer.simplify(tir.stmt_functor.substitute(exact, bounds))
        return int(size) if isinstance(size, tir.IntImm) else size

    def same(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether two expressions are equal whatever their extents are."""
        return bool(self._analyzer.can_prove_equal(a, b))


class _Pool:
    """Storage whose tensors are needed no more."""

    def __init__(self, bounds: _Bounds) -> None:
        self._bounds = bounds
        self._free: list[Storage] = []

    def give(self, storage: Storage) -> None:
        """Take storage back."""
        self._free.append(storage)

    def take(self, wanted: Storage) -> Storage:
        """Storage for a tensor: the smallest that is large enough, or the largest, which grows."""
        found = self._best(wanted)
        if found is None:
            return wanted
        self._free = [s for s in self._free if s is not found]
        if isinstance(wanted.size, int) and isinstance(found.size, int):
            found.size = max(found.size, wanted.size)
        return found

    def _best(self, wanted: Storage) -> Storage | None:
        alike = [s for s in self._free if s.place() == wanted.place()]
        size = wanted.size
        if not isinstance(size, int):
            for storage in alike:
                if not isinstance(storage.size, int) and self._bounds.same(storage.size, size):
                    return storage
            return None
        sized = [(s.size, s) for s in alike if isinstance(s.size, int)]
        larger = [p for p in sized if size <= p[0] <= size * _RANGE]
        if larger:
            return min(larger, key=lambda pair: pair[0])[1]
        smaller = [p for p in sized if size // _RANGE <= p[0] < size]
        return max(smaller, key=lambda pair: pair[0])[1] if smaller else None


@visitor
class _Planner(PyExprVisitor):
    """Decides for each block of a function, and of its branches, which tensors share storage."""

    def __init__(self, mod: IRModule, func: Function) -> None:
        self._mod = mod
        self._func = func
        attrs = func.attrs if func.attrs is not None else {}
        limits = attrs.get("tir_var_upper_bound", {})
        self._bounds = _Bounds({str(name): int(value) for name, value in limits.items()})
        self.storages: list[Storage] = []

    def visit_binding_block_(self, block: BindingBlock) -> None:
        inner = {b.var for b in block.bindings}
        uses = _Uses(block, self._read_outside(block, inner), self._mod)
        pool = _Pool(self._bounds)
        alive: list[tuple[Storage, Var]] = []
        for position, binding in enumerate(block.bindings):
            for storage, tensor in [pair for pair in alive if uses.last[pair[1]] < position]:
                pool.give(storage)
                alive.remove((storage, tensor))
            wanted = self._wanted(binding.value)
            if wanted is None or binding.var in uses.kept:
                continue
            storage = pool.take(wanted)
            if storage is wanted:
                self.storages.append(storage)
            storage.tensors.append(binding.var)
            alive.append((storage, binding.var))
        super().visit_binding_block_(block)

    visit_dataflow_block_ = visit_binding_block_

    def _read_outside(self, block: BindingBlock, inner: set[Var]) -> set[Var]:
        found: set[Var] = set()

        @visitor
        class Reads(PyExprVisitor):
            def visit_binding_block(self, other: BindingBlock) -> None:
                if not other.same_as(block):
                    super().visit_binding_block(other)

            def visit_var_(self, op: Var) -> None:
                if op in inner:
                    found.add(op)

            def visit_dataflow_var_(self, op: Var) -> None:
                self.visit_var_(op)

        Reads().visit_expr(self._func)
        return found

    def _wanted(self, value: RelayExpr) -> Storage | None:
        if not _is_allocation(value):
            return None
        shape, dtype, device, scope = value.args
        if not isinstance(shape, ShapeExpr) or not isinstance(dtype, DataTypeImm):
            return None
        assert isinstance(device, PrimValue) and isinstance(scope, StringImm)
        kind = str(dtype.value)
        size = self._bounds.size(shape, kind)
        return Storage(size, kind, str(scope.value), int(device.value))


def planned_storage(mod: IRModule, func: Function) -> list[Storage]:
    """The storage that tensors of a function share, in the order in which it is needed."""
    planner = _Planner(mod, func)
    planner.visit_expr(func)
    return planner.storages


@mutator
class _Placer(PyExprMutator):
    def __init__(self, mod: IRModule, storages: list[Storage]) -> None:
        super().__init__(mod)
        self._of = {tensor: storage for storage in storages for tensor in storage.tensors}
        self._made: dict[int, Var] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        storage = self._of.get(binding.var)
        if storage is None:
            super().visit_var_binding_(binding)
            return
        made = self._made.get(id(storage))
        if made is None:
            call = memory.alloc_storage(
                [storage.size], storage.device, storage.scope, storage.dtype
            )
            made = self._made[id(storage)] = self.builder_.emit(call, "storage")
        shape, dtype = binding.value.args[:2]
        self.reemit_binding(binding, memory.alloc_tensor(made, 0, shape, dtype))


@graph_pass("StaticPlanBlockMemory")
def StaticPlanBlockMemory(mod: IRModule) -> IRModule:
    """The module with storage that allocated tensors of a block share one after another.

    Expects kernels to be called on tensors of ``builtin.alloc_tensor`` (`CallTIRRewrite`). Tensors
    that a block's kernels, reshapes and functions of the runtime alone read get a place in storage;
    others, such as results of functions, stay. Memory is reused where its size is within a factor
    of 16; the storage grows to its largest tensor. Extents named by the attribute
    "tir_var_upper_bound" count as their bound; tensors of other symbolic sizes share storage with
    those of equal size.
    """
    functions = dict(mod.functions.items())
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            storages = planned_storage(mod, func)
            functions[gvar] = _Placer(mod, storages).visit_expr(func)
    return mod.with_functions(functions)
