"""Other kernels for operators, in layouts of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error, te, tir
from tvm.ir import GlobalVar, IRModule, RelayExpr
from tvm.tir import IndexMap, PrimFunc

from ..expr import Call, Function, ShapeExpr, Tuple, TupleGetItem
from ..expr_functor import PyExprMutator
from ..op import call_tir, layout_transform
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .dead_code import DeadCodeElimination
from .graph_pass import graph_pass

__all__ = ["AlterOpImpl"]

Layout = IndexMap | Callable[..., Any]


def _as_map(layout: Layout) -> IndexMap:
    return layout if isinstance(layout, IndexMap) else IndexMap.from_func(layout)


def _keeps(layout: IndexMap) -> bool:
    finals, initials = list(layout.final_indices), list(layout.initial_indices)
    return len(finals) == len(initials) and all(a.same_as(b) for a, b in zip(finals, initials))


def _remove_pad(data: te.Tensor, shape: Sequence[tir.PrimExpr]) -> te.Tensor:
    """The first elements of each dimension."""
    return te.compute(shape, lambda *at: data(*at), "output")


class _Alterer(PyExprMutator):
    def __init__(
        self,
        mod: IRModule,
        kernels: Mapping[str, PrimFunc],
        layouts: Mapping[str, Sequence[Layout]],
        separators: Mapping[str, Sequence[Sequence[int]]],
        input_separators: Mapping[str, Sequence[Sequence[int]]],
    ) -> None:
        super().__init__(mod)
        self._mod = mod
        self._kernels = dict(kernels)
        self._layouts = {name: [_as_map(m) for m in maps] for name, maps in layouts.items()}
        self._separators = dict(separators)
        self._input_separators = dict(input_separators)

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        assert isinstance(call, Call)
        if str(getattr(call.op, "name", "")) != "relax.call_tir":
            return call
        old = self._mod[str(call.args[0].name_hint)]
        name = str(old.attrs.get("operator_name", ""))
        if name not in self._kernels:
            return call
        return self._altered(call, name)

    def _altered(self, call: Call, name: str) -> RelayExpr:
        kernel = self._kernels[name].with_attr("operator_name", name).without_attr("global_symbol")
        inputs = list(call.args[1].fields)
        info = call.sinfo_args[0]
        outputs = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        layouts = self._layouts.get(name, [])
        if layouts and len(layouts) != len(inputs) + len(outputs):
            raise error.ValueError(
                f"AlterOpImpl: '{name}' has {len(inputs)} inputs and {len(outputs)} results, and "
                f"{len(layouts)} layouts are given"
            )
        separators = self._separators.get(name) or [[]] * len(layouts)
        read_separators = self._input_separators.get(name) or [[]] * len(layouts)
        gvar = self.builder_.add_func(kernel, name.replace(".", "_") + "_replacement")
        if not layouts:
            return self._called(gvar, call, inputs, info)
        laid = [
            self._laid(value, layout, axes, read)
            for value, layout, axes, read in zip(inputs, layouts, separators, read_separators)
        ]
        maps = layouts[len(inputs) :]
        fields = [self._laid_info(field, layout) for field, layout in zip(outputs, maps)]
        single = not isinstance(info, TupleStructInfo)
        result = self._called(gvar, call, laid, fields[0] if single else TupleStructInfo(fields))
        if all(_keeps(layout) for layout in maps):
            return result
        whole = self.builder_.emit(result)
        values = [whole] if single else [TupleGetItem(whole, i) for i in range(len(fields))]
        back = [
            self._laid_back(value, field, layout, axes, read)
            for value, field, layout, axes, read in zip(
                values,
                outputs,
                maps,
                separators[len(inputs) :],
                read_separators[len(inputs) :],
            )
        ]
        return back[0] if single else Tuple(back)

    @staticmethod
    def _called(
        gvar: GlobalVar, call: Call, inputs: Sequence[RelayExpr], info: StructInfo
    ) -> RelayExpr:
        extents = call.args[2] if len(call.args) > 2 else None
        infos = list(info.fields) if isinstance(info, TupleStructInfo) else info
        return call_tir(gvar, Tuple(inputs), infos, extents)

    def _laid(
        self,
        value: RelayExpr,
        layout: IndexMap,
        separators: Sequence[int],
        read_separators: Sequence[int],
    ) -> RelayExpr:
        """A value in a layout."""
        if _keeps(layout):
            return value
        call = layout_transform(value, layout, None, separators, read_separators)
        return self.builder_.emit(call)

    def _laid_back(
        self,
        value: RelayExpr,
        info: StructInfo,
        layout: IndexMap,
        separators: Sequence[int],
        read_separators: Sequence[int],
    ) -> RelayExpr:
        """A value in the layout that readers expect, without what the other one pads."""
        if _keeps(layout):
            return value
        shape = _shape(info)
        inverse, padding = layout.non_surjective_inverse(shape)
        call = layout_transform(self._named(value), inverse, None, separators, read_separators)
        laid_back = self.builder_.normalize(call)
        if isinstance(padding, (bool, tir.IntImm)) and not int(padding):
            return laid_back
        kernel = self.builder_.call_te(
            _remove_pad, self._named(laid_back), shape, primfunc_name_hint="remove_pad"
        )
        return self.builder_.normalize(kernel)

    def _named(self, value: RelayExpr) -> RelayExpr:
        return self.builder_.normalize_argument(self.builder_.normalize(value))

    @staticmethod
    def _laid_info(info: StructInfo, layout: IndexMap) -> StructInfo:
        assert isinstance(info, TensorStructInfo)
        if _keeps(layout):
            return info
        return TensorStructInfo(list(layout.map_shape(_shape(info))), str(info.dtype), info.vdevice)


def _shape(info: StructInfo) -> list[tir.PrimExpr]:
    if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
        raise error.ValueError(f"AlterOpImpl: a layout needs a tensor of known shape, got {info}")
    return list(info.shape.values)


@graph_pass("AlterOpImpl")
def AlterOpImpl(
    mod: IRModule,
    op_impl_map: Mapping[str, PrimFunc],
    op_buffer_transforms: Mapping[str, Sequence[Layout]] | None = None,
    op_buffer_axis_separators: Mapping[str, Sequence[Sequence[int]]] | None = None,
    op_buffer_input_axis_separators: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> IRModule:
    """The module with other kernels for those that have an attribute "operator_name".

    Parameters
    ----------
    op_impl_map : by that name, the kernel to call instead.
    op_buffer_transforms : by the name, the layout that the new kernel has for each input and then
        each result, an IndexMap or a function of indices. ``layout_transform`` changes values on
        the way to it and back; those of the identity are left out.
    op_buffer_axis_separators : by the name, axis separators of what each change of layout gives.
    op_buffer_input_axis_separators : the same of what each change of layout reads.

    What the layout of a result pads is cut off by a kernel ``remove_pad``.

    Raises
    ------
    ValueError : the number of layouts is not that of inputs and results, or a shape is unknown.
    """
    alterer = _Alterer(
        mod,
        op_impl_map,
        op_buffer_transforms or {},
        op_buffer_axis_separators or {},
        op_buffer_input_axis_separators or {},
    )
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            alterer.builder_.update_func(gvar, alterer.visit_expr(func))
    return DeadCodeElimination()(alterer.builder_.finalize())
