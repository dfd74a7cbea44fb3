"""From a few tensors of which it is said how they lie on a mesh to all of them."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr

from ..dtensor import DeviceMesh, DTensorStructInfo, Placement, dtensor_fields
from ..expr import (
    Binding,
    Call,
    Constant,
    Function,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PyExprMutator
from ..op.calls import call_tir
from ..op.distributed import redistribute
from ..op.rules import known_shape, number
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor_fields
from ..transform.graph_pass import graph_pass
from .call_axes import (
    CallAxes,
    axes_of_call,
    divided_results,
    placement,
    placement_of,
    tensor_operands,
)

__all__ = ["PropagateSharding"]

_ANNOTATION = "relax.dist.annotate_sharding"
# What caches of keys and values are on a mesh, by what they are on one device.
_CACHES = {
    "vm.builtin.attention_kv_cache_append": "vm.builtin.distributed.attention_kv_cache_append",
    "vm.builtin.attention_kv_cache_view": "vm.builtin.distributed.attention_kv_cache_view",
}


def _bindings(body: RelayExpr) -> list[Binding]:
    if not isinstance(body, SeqExpr):
        return []
    return [binding for block in body.blocks for binding in block.bindings]


def _named(call: RelayExpr, name: str) -> bool:
    return isinstance(call, Call) and isinstance(call.op, Op) and str(call.op.name) == name


class _Sharding:
    """How the tensors of a function lie: groups of dimensions that are divided together.

    A dimension is (variable or constant, field of a tuple, dimension); -1 in its place is the
    tensor as a whole, whose group is on one mesh.
    """

    def __init__(self, func: Function, mod: IRModule) -> None:
        self._parent: dict[Any, Any] = {}
        self._meshes: dict[Any, DeviceMesh] = {}
        self._divided: dict[Any, set[int]] = {}
        self.axes: dict[Var, CallAxes | None] = {}
        bindings = _bindings(func.body)
        for binding in bindings:
            self._relate(binding.var, binding.value, mod)
        for binding in bindings:
            if _named(binding.value, _ANNOTATION):
                self._annotate(binding.var, binding.value)

    def _root(self, key: Any) -> Any:
        self._parent.setdefault(key, key)
        while self._parent[key] != key:
            key = self._parent[key]
        return key

    def _join(self, a: Any, b: Any) -> None:
        a, b = self._root(a), self._root(b)
        if a != b:
            self._parent[b] = a

    def _relate(self, var: Var, value: RelayExpr, mod: IRModule) -> None:
        if isinstance(value, TupleGetItem):
            self._same((value.tuple_value, int(value.index)), (var, 0), var.struct_info)
        elif isinstance(value, Tuple):
            for k, field in enumerate(value.fields):
                self._same((field, 0), (var, k), field.struct_info)
        elif isinstance(value, Var):
            for k, info in enumerate(_tensors(var.struct_info)):
                self._same((value, k), (var, k), info)
        elif _named(value, _ANNOTATION):
            self._same((value.args[0], 0), (var, 0), var.struct_info)
        elif isinstance(value, Call):
            self._relate_call(var, value, mod)

    def _same(self, a: Any, b: Any, info: StructInfo) -> None:
        if isinstance(info, TensorStructInfo):
            for dim in range(-1, info.ndim):
                self._join((*a, dim), (*b, dim))

    def _relate_call(self, var: Var, call: Call, mod: IRModule) -> None:
        results = _tensors(var.struct_info)
        operands = tensor_operands(call)
        tensors = [(value, 0) for value in operands] + [(var, k) for k in range(len(results))]
        for each in tensors[1:]:
            self._join((*tensors[0], -1), (*each, -1))
        axes = axes_of_call(call, mod) if operands else None
        self.axes[var] = axes
        for group in axes.groups if axes is not None else ():
            if group.whole:
                continue
            dims = [(*tensors[position], dim) for position, dim in sorted(group.dims)]
            for dim in dims[1:]:
                self._join(dims[0], dim)

    def _annotate(self, var: Var, call: Call) -> None:
        mesh, placed = call.attrs["device_mesh"], call.attrs["placement"]
        DTensorStructInfo(var.struct_info, mesh, placed)
        root = self._root((var, 0, -1))
        if self._meshes.setdefault(root, mesh) != mesh:
            raise error.ValueError(
                f"PropagateSharding: {var.name_hint} is to lie on {mesh}, but tensors that it is "
                f"computed with lie on {self._meshes[root]}"
            )
        for at, axis in enumerate(placed.axes):
            if axis is not None:
                self._divided.setdefault(self._root((var, 0, axis)), set()).add(at)

    def mesh(self, value: RelayExpr, field: int = 0) -> DeviceMesh | None:
        """The mesh of a tensor; None for one that no annotation reaches."""
        return self._meshes.get(self._root((value, field, -1)))

    def placement(self, value: RelayExpr, info: TensorStructInfo, field: int = 0) -> Placement:
        """How a tensor lies.

        Raises
        ------
        ValueError : annotations contradict each other about it.
        """
        mesh = self.mesh(value, field)
        name = getattr(value, "name_hint", "a constant")
        if mesh is None:
            raise error.ValueError(
                f"PropagateSharding: nothing says on which mesh {name} lies; annotate it, or a "
                "tensor that it is computed with"
            )
        axes: list[int | None] = [None] * len(mesh.extents)
        shape = known_shape(info)
        for dim in range(info.ndim):
            places = self._divided.get(self._root((value, field, dim)), set())
            if len(places) > 1:
                raise error.ValueError(
                    f"PropagateSharding: sharding conflict at {name}: dimension {dim} is to be "
                    f"divided along dimensions {sorted(places)} of the mesh"
                )
            for at in places:
                extent = None if shape is None else number(shape[dim])
                if extent is not None and extent < mesh.extents[at]:
                    # Fewer elements than devices, such as one head for all: copies then.
                    continue
                if axes[at] is not None:
                    raise error.ValueError(
                        f"PropagateSharding: sharding conflict at {name}: dimensions {axes[at]} "
                        f"and {dim} are both to be divided along dimension {at} of the mesh"
                    )
                axes[at] = dim
        return placement(axes)

    def info(self, value: RelayExpr) -> StructInfo:
        """The struct info of a value whose tensors lie on a mesh."""
        known = value.struct_info
        if isinstance(known, TensorStructInfo):
            mesh = self.mesh(value)
            return DTensorStructInfo(known, mesh, self.placement(value, known)) if mesh else known
        if isinstance(known, TupleStructInfo) and all(
            isinstance(field, TensorStructInfo) for field in known.fields
        ):
            return TupleStructInfo(
                [
                    DTensorStructInfo(field, mesh, self.placement(value, field, k))
                    if (mesh := self.mesh(value, k))
                    else field
                    for k, field in enumerate(known.fields)
                ]
            )
        return known


def _tensors(info: StructInfo) -> list[TensorStructInfo]:
    try:
        return tensor_fields(info)
    except TypeError:
        return []


class _Distributor(PyExprMutator):
    """Gives every tensor of a function its place, and changes it where kernels need that."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self._mod = mod
        self._sharding: _Sharding | None = None

    def function(self, func: Function) -> Function:
        """The function of tensors on a mesh."""
        self._sharding = _Sharding(func, self._mod)
        params = []
        for param in func.params:
            new = Var(str(param.name_hint), self._sharding.info(param))
            self.set_var_remap(param, new)
            params.append(new)
        body = self.visit_with_new_scope(func.body, params)
        return Function(params, body, None, func.is_pure, func.attrs)

    def visit_var_binding_(self, binding: Any) -> None:
        sharding, value = self._sharding, binding.value
        assert sharding is not None
        if not isinstance(value, Call) or not _tensors(binding.var.struct_info):
            super().visit_var_binding_(binding)
            return
        wanted = sharding.info(binding.var)
        if not dtensor_fields(wanted):
            super().visit_var_binding_(binding)
            return
        if _named(value, _ANNOTATION):
            new = self._placed(self.visit_expr(value.args[0]), wanted)
        else:
            new = self._lying(self._call(value, binding.var, wanted), wanted)
        if isinstance(new, Var):
            self.set_var_remap(binding.var, new)
        else:
            self.reemit_binding(binding, self.builder_.normalize(new))

    def _placed(self, value: RelayExpr, info: StructInfo) -> RelayExpr:
        """A tensor, as it is to lie."""
        if value.struct_info == info:
            return value
        return redistribute(value, info.device_mesh, info.placement)

    def _lying(self, call: Call, wanted: StructInfo) -> RelayExpr:
        """The results of a call as they are to lie."""
        if call.struct_info == wanted or isinstance(wanted, DTensorStructInfo):
            if call.struct_info == wanted:
                return call
            return self._placed(self.builder_.emit(call), wanted)
        made = self.builder_.emit(call)
        return Tuple(
            [
                self.builder_.normalize_argument(self._placed(TupleGetItem(made, k), field))
                for k, field in enumerate(wanted.fields)
            ]
        )

    def _call(self, call: Call, var: Var, wanted: StructInfo) -> Call:
        """The call with operands that lie as it needs them."""
        assert self._sharding is not None
        axes = self._sharding.axes.get(var)
        mesh = dtensor_fields(wanted)[0].device_mesh
        operands = tensor_operands(call)
        new = [self._operand(value, mesh) for value in operands]
        targets = _fitting(axes, new, mesh)
        moved = [
            self.builder_.normalize_argument(
                self._placed(value, DTensorStructInfo(_whole(value), mesh, placement(target)))
            )
            for value, target in zip(new, targets)
        ]
        made = self._with_operands(call, iter(moved))
        if _named(call, "relax.call_tir"):
            count = len(_tensors(call.struct_info))
            found = (
                divided_results(made, axes, mesh, count)
                if operands
                else [list(part.placement.axes) for part in dtensor_fields(wanted)]
            )
            infos = [
                DTensorStructInfo(info, mesh, placement(place))
                for info, place in zip(_tensors(call.struct_info), found)
            ]
            extents = made.args[2] if len(made.args) > 2 else None
            assert extents is None or isinstance(extents, ShapeExpr)
            assert isinstance(made.args[0], GlobalVar)
            return call_tir(made.args[0], made.args[1], infos, extents)
        if not isinstance(call.op, Op):
            return _of_runtime(made, wanted)
        return self.builder_.normalize(made)

    def _operand(self, value: RelayExpr, mesh: DeviceMesh) -> RelayExpr:
        if isinstance(value, Constant):
            replica = placement([None] * len(mesh.extents))
            return Constant(value.data, DTensorStructInfo(value.struct_info, mesh, replica))
        return self.visit_expr(value)

    def _with_operands(self, call: Call, moved: Any) -> Call:
        def replaced(arg: RelayExpr) -> RelayExpr:
            if isinstance(arg, Tuple):
                return Tuple([replaced(field) for field in arg.fields])
            if isinstance(arg.struct_info, TensorStructInfo):
                return next(moved)
            return self.visit_expr(arg)

        if _named(call, "relax.call_tir"):
            args = [call.args[0], replaced(call.args[1]), *call.args[2:]]
        else:
            args = [replaced(arg) for arg in call.args]
        return Call(call.op, args, call.attrs, call.sinfo_args)


def _whole(value: RelayExpr) -> TensorStructInfo:
    info = value.struct_info
    return info.tensor_sinfo if isinstance(info, DTensorStructInfo) else info


def _of_runtime(call: Call, wanted: StructInfo) -> Call:
    """A call of a function of the runtime, which gives what it is said to give."""
    from_name = str(getattr(call.op, "global_symbol", ""))
    callee = type(call.op)(_CACHES[from_name]) if from_name in _CACHES else call.op
    return Call(callee, call.args, call.attrs, [wanted], wanted)


def _fitting(
    axes: CallAxes | None, operands: list[RelayExpr], mesh: DeviceMesh
) -> list[list[int | None]]:
    """How operands have to lie for a call that parts of them can be given to.

    Each dimension of the mesh is for one group at most, the first that an operand is divided by;
    other operands are divided with it, and what else is divided is made whole.
    """
    targets: list[list[int | None]] = [[None] * len(mesh.extents) for _ in operands]
    for at, parts in enumerate(mesh.extents):
        chosen = None
        for position, value in enumerate(operands):
            axis = placement_of(value)[at] if placement_of(value) else None
            if axes is None or axis is None:
                continue
            group = axes.group_of(position, axis)
            if chosen is None and not group.why_not(parts):
                chosen = group
        for position in range(len(operands)):
            dims = [dim for place, dim in chosen.dims if place == position] if chosen else []
            targets[position][at] = min(dims) if dims else None
    return targets


def _is_annotated(func: Function) -> bool:
    return any(_named(binding.value, _ANNOTATION) for binding in _bindings(func.body))


@graph_pass("distributed.PropagateSharding")
def PropagateSharding(mod: IRModule) -> IRModule:
    """The module with the tensors of annotated functions on meshes.

    What `R.dist.annotate_sharding` says of a tensor goes on to the dimensions that are divided with
    it by the kernels that read and write it, forwards and backwards. Where a kernel cannot be given
    the parts that there are, `R.dist.redistribute` stands in front of it.

    Raises
    ------
    ValueError : annotations contradict each other, or a tensor beside an annotated one has no mesh.
    """
    mutator = _Distributor(mod)
    for var, func in mod.functions.items():
        if isinstance(func, Function) and _is_annotated(func):
            if any(isinstance(binding, MatchCast) for binding in _bindings(func.body)):
                raise error.ValueError(
                    f"PropagateSharding: {var.name_hint} has R.match_cast, whose shape would be "
                    "that of a part; take it out"
                )
            mutator.builder_.update_func(var, mutator.function(func))
    return mutator.builder_.finalize()
