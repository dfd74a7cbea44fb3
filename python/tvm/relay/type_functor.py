"""Walks over types: one that looks, and one that builds anew."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import (
    FuncType,
    GlobalTypeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
)

from .ty import IncompleteType, RefType

__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]

_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var",
    IncompleteType: "visit_incomplete_type",
    TensorType: "visit_tensor_type",
    FuncType: "visit_func_type",
    TupleType: "visit_tuple_type",
    RefType: "visit_ref_type",
    GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
    TypeRelation: "visit_type_relation",
}


class TypeFunctor:
    """Calls the method for a type's kind; classes define those that they meet."""

    def visit(self, typ: Type) -> Any:
        """What the method for this kind of type gives.

        Raises
        ------
        TypeError : it is no type of relay.
        """
        name = _METHODS.get(type(typ))
        if name is None:
            raise error.TypeError(f"relay.TypeFunctor: {type(typ).__name__} is no type of relay")
        return getattr(self, name)(typ)

    def _undefined(self, typ: Type) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} does not define {_METHODS[type(typ)]}, which it needs for {typ}"
        )

    def visit_type_var(self, tv: TypeVar) -> Any:
        """A type parameter."""
        return self._undefined(tv)

    def visit_incomplete_type(self, it: IncompleteType) -> Any:
        """A type that inference has to find."""
        return self._undefined(it)

    def visit_tensor_type(self, tt: TensorType) -> Any:
        """The type of tensors."""
        return self._undefined(tt)

    def visit_func_type(self, ft: FuncType) -> Any:
        """The type of functions."""
        return self._undefined(ft)

    def visit_tuple_type(self, tt: TupleType) -> Any:
        """The type of tuples."""
        return self._undefined(tt)

    def visit_ref_type(self, rt: RefType) -> Any:
        """The type of cells."""
        return self._undefined(rt)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Any:
        """The name of a type that a module defines."""
        return self._undefined(gtv)

    def visit_type_call(self, tc: TypeCall) -> Any:
        """A defined type with its arguments."""
        return self._undefined(tc)

    def visit_type_data(self, td: TypeData) -> Any:
        """The definition of a type."""
        return self._undefined(td)

    def visit_type_relation(self, tr: TypeRelation) -> Any:
        """Types of which one follows from the others."""
        return self._undefined(tr)


class TypeVisitor(TypeFunctor):
    """Looks at every part of a type."""

    def visit_type_var(self, tv: TypeVar) -> None:
        pass

    def visit_incomplete_type(self, it: IncompleteType) -> None:
        pass

    def visit_tensor_type(self, tt: TensorType) -> None:
        pass

    def visit_func_type(self, ft: FuncType) -> None:
        for part in [*ft.arg_types, ft.ret_type, *ft.type_params, *ft.type_constraints]:
            self.visit(part)

    def visit_tuple_type(self, tt: TupleType) -> None:
        for field in tt.fields:
            self.visit(field)

    def visit_ref_type(self, rt: RefType) -> None:
        self.visit(rt.value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> None:
        pass

    def visit_type_call(self, tc: TypeCall) -> None:
        for part in [tc.func, *tc.args]:
            self.visit(part)

    def visit_type_data(self, td: TypeData) -> None:
        self.visit(td.header)
        for var in td.type_vars:
            self.visit(var)
        for constructor in td.constructors:
            for part in constructor.inputs:
                self.visit(part)

    def visit_type_relation(self, tr: TypeRelation) -> None:
        for arg in tr.args:
            self.visit(arg)


class TypeMutator(TypeFunctor):
    """Builds a type anew of what its parts become."""

    def visit_type_var(self, tv: TypeVar) -> Type:
        return TypeVar(str(tv.name_hint), tv.kind)

    def visit_incomplete_type(self, it: IncompleteType) -> Type:
        return IncompleteType(it.kind)

    def visit_tensor_type(self, tt: TensorType) -> Type:
        return TensorType(tt.shape, str(tt.dtype))

    def visit_func_type(self, ft: FuncType) -> Type:
        args = [self.visit(arg) for arg in ft.arg_types]
        result = self.visit(ft.ret_type)
        params = [self.visit(var) for var in ft.type_params]
        return FuncType(args, result, params, [self.visit(c) for c in ft.type_constraints])

    def visit_tuple_type(self, tt: TupleType) -> Type:
        return TupleType([self.visit(field) for field in tt.fields])

    def visit_ref_type(self, rt: RefType) -> Type:
        return RefType(self.visit(rt.value))

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Type:
        return gtv

    def visit_type_call(self, tc: TypeCall) -> Type:
        return TypeCall(self.visit(tc.func), [self.visit(arg) for arg in tc.args])

    def visit_type_data(self, td: TypeData) -> Type:
        return td

    def visit_type_relation(self, tr: TypeRelation) -> Type:
        args = [self.visit(arg) for arg in tr.args]
        return TypeRelation(tr.func, args, tr.num_inputs, tr.attrs)
