"""The library of programs in relay: lists, options, trees, arrays, and functions over them."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import error
from tvm.ir import Constructor, GlobalTypeVar, GlobalVar, IRModule

from . import tensor_arrays
from .parser import parse

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps"]

_LIBRARY = pathlib.Path(__file__).parent / "std"
_HEADER = '#[version = "0.0.5"]\n'


def _add(mod: IRModule, name: str, text: str, replace: bool = False) -> None:
    """Take definitions from a text into a module, those that it has not, or all functions."""
    own = set(re.findall(r"^(?:type |def @)(\w+)", text, re.MULTILINE))
    # What the text defines is read from it, whatever of it is there already.
    others = IRModule(
        {gv: f for gv, f in mod.functions.items() if str(gv.name_hint) not in own},
        type_definitions={n: d for n, d in mod.type_definitions.items() if n not in own},
    )
    found = parse(text, name, others)
    for header in found.get_global_type_vars():
        if str(header.name_hint) not in mod.type_definitions:
            mod[header] = found[header]
    for gvar, func in found.functions.items():
        if gvar not in mod or (replace and str(gvar.name_hint) in own):
            mod.update_func(gvar, func)


@tvm._ffi.register_func("relay.ImportFromStd")
def _import_from_std(mod: IRModule, name: str) -> None:
    files = {path.name: path for path in _LIBRARY.glob("*.rly")}
    if name not in files:
        raise error.ValueError(
            f"relay: the library has no file '{name}'; it has {', '.join(sorted(files))}"
        )
    _add(mod, name, files[name].read_text())


class TensorArrayOps:
    """Tensor arrays of one element type, whose elements have any number of axes up to six.

    Parameters
    ----------
    prelude : whose module gets them.
    dtype : the element type.
    """

    def __init__(self, prelude: Prelude, dtype: str) -> None:
        self.prelude = prelude
        self.dtype = dtype

    def get_name(self, canonical: str) -> str:
        """The name in the module: "tensor_array_read" is "tensor_array_read_float32"."""
        return tensor_arrays.name_of(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """The variable of a function, such as "tensor_array_read"."""
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """The name of a type: "tensor_t" is that of elements."""
        return self.prelude.mod.get_global_type_var(self.get_name(canonical))

    def get_ctor(self, canonical: str) -> Constructor:
        """A constructor of elements: "tensor_nil", or "tensor2" of those with two axes."""
        return self.prelude.get_tensor_ctor(canonical, self.dtype)

    def register(self) -> None:
        """Define the type of elements and the functions, unless the module has them."""
        mod = self.prelude.mod
        definition, functions = tensor_arrays.any_rank(self.dtype)
        if self.get_name("tensor_array") not in mod:
            _add(mod, "tensor_array.rly", _HEADER + definition + functions)


class StaticTensorArrayOps:
    """Tensor arrays whose elements are all of one shape.

    Parameters
    ----------
    prelude : whose module gets them.
    dtype : the element type.
    shape : of the elements; extents are numbers or ``relay.Any()``.
    """

    def __init__(self, prelude: Prelude, dtype: str, shape: Sequence[Any]) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.shape = list(shape)

    def get_name(self, canonical: str) -> str:
        """The name in the module: "tensor_array" is "tensor_array_float32_2_any"."""
        return tensor_arrays.name_static(canonical, self.dtype, self.shape)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """The variable of a function, such as "tensor_array_unstack"."""
        return self.prelude.get_global_var_static(canonical, self.dtype, self.shape)

    def get_ctor(self, canonical: str) -> Constructor:
        """A constructor of elements: "tensor_constructor" or "tensor_nil"."""
        return self.prelude.get_tensor_ctor_static(canonical, self.dtype, self.shape)

    def register(self) -> None:
        """Define the types and functions, unless the module has them."""
        if self.get_name("tensor_array") in self.prelude.mod:
            return
        shapes = [self.shape, *tensor_arrays.results(self.shape)]
        text = tensor_arrays.of_shape(self.dtype, self.shape)
        self._define(text, shapes)

    def define_tensor_adt(self) -> None:
        """Define the type of elements alone."""
        self._define("", [self.shape])

    def define_tensor_get_data(self, data_shape: Sequence[Any] | None = None) -> None:
        """Define "tensor_get_data", the tensor of an element, again for elements of another shape
        that the type allows."""
        name = self.get_name("tensor_get_data")
        self._define(tensor_arrays.get_data(name, self.dtype, self.shape, data_shape), [self.shape])

    def define_tensor_array_scatter(
        self, indices_shape: Sequence[Any] | None = None, force_update: bool = False
    ) -> None:
        """Define "tensor_array_scatter".

        Parameters
        ----------
        indices_shape : shape of the tensor of places, by default of any length.
        force_update : also if the module has it.
        """
        name = self.get_name("tensor_array_scatter")
        if force_update or name not in self.prelude.mod:
            text = tensor_arrays.scatter(name, self.get_name("tensor_t"), indices_shape)
            self._define(text, [self.shape])

    def define_tensor_array_split(
        self,
        value_shape: Sequence[Any] | None = None,
        lengths_shape: Sequence[Any] | None = None,
        force_update: bool = False,
    ) -> None:
        """Define "tensor_array_split".

        Parameters
        ----------
        value_shape : shape of the tensor that is cut, by default with any number of rows.
        lengths_shape : shape of the numbers of rows of the parts, by default of any length.
        force_update : also if the module has it.
        """
        name = self.get_name("tensor_array_split")
        if force_update or name not in self.prelude.mod:
            text = tensor_arrays.split(name, self.dtype, self.shape, value_shape, lengths_shape)
            value = tensor_arrays.results(self.shape)[-1] if value_shape is None else value_shape
            self._define(text, [self.shape, value])

    def _define(self, functions: str, shapes: Sequence[Sequence[Any]]) -> None:
        types = {
            tensor_arrays.name_static("tensor_t", self.dtype, shape): tensor_arrays.type_of_shape(
                self.dtype, shape
            )
            for shape in shapes
        }
        text = _HEADER + "".join(types.values()) + functions
        _add(self.prelude.mod, "static_tensor_array.rly", text, replace=True)


class Prelude:
    """The library in a module, which gets it if it has not.

    Functions are attributes: ``Prelude(mod).map`` is the variable of "map". Types and constructors
    are those of ``mod.get_type``. Tensor arrays are defined when something of them is asked for.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        if "List" not in self.mod.type_definitions:
            self.mod.import_from_std("prelude.rly")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "mod" or name not in self.mod:
            raise error.AttributeError(f"relay.Prelude: the library has no function '{name}'")
        return self.mod.get_global_var(name)

    def get_name(self, canonical: str, dtype: str) -> str:
        """The name of something of the tensor arrays of an element type; see `TensorArrayOps`."""
        return tensor_arrays.name_of(canonical, dtype)

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """A function of tensor arrays: "tensor_array_read" of "float32", for example."""
        TensorArrayOps(self, dtype).register()
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The name of a type of tensor arrays: "tensor_t" is that of elements."""
        TensorArrayOps(self, dtype).register()
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """A constructor of a type of tensor arrays."""
        TensorArrayOps(self, dtype).register()
        return self._constructor(ty_name, self.get_name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """A constructor of elements: "tensor_nil", or "tensor2" of those with two axes."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> str:
        """The name of something of the arrays of one shape; see `StaticTensorArrayOps`."""
        return tensor_arrays.name_static(canonical, dtype, shape)

    def get_global_var_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> GlobalVar:
        """A function of the tensor arrays of one shape, which have to be registered."""
        return self.mod.get_global_var(self.get_name_static(canonical, dtype, shape))

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> GlobalTypeVar:
        """The name of a type of the tensor arrays of one shape, which have to be registered."""
        return self.mod.get_global_type_var(self.get_name_static(canonical, dtype, shape))

    def get_ctor_static(
        self, ty_name: str, name: str, dtype: str, shape: Sequence[Any]
    ) -> Constructor:
        """A constructor of a type of the tensor arrays of one shape.

        ty_name : as `get_type_static` takes it, "tensor_t".
        """
        whole = self.get_name_static(ty_name, dtype, shape)
        return self._constructor(whole, self.get_name_static(name, dtype, shape))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[Any]) -> Constructor:
        """A constructor of elements of one shape: "tensor_constructor" or "tensor_nil"."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)

    def _constructor(self, type_name: str, name: str) -> Constructor:
        for constructor in self.mod.get_type(type_name)[1:]:
            if str(constructor.name_hint) == name:
                return constructor
        raise error.ValueError(f"relay.Prelude: type '{type_name}' has no constructor '{name}'")
