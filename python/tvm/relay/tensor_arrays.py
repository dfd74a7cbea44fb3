"""Text of the library's tensor arrays: lists whose elements are tensors, or are not there yet.

An element is a value of a defined type. That of :func:`any_rank` has a constructor for each number
of axes, that of :func:`type_of_shape` one for tensors of one shape; both have one for an element
without a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir

from .ty import Any as AnyExtent

__all__ = [
    "any_rank",
    "get_data",
    "name_of",
    "name_static",
    "of_shape",
    "results",
    "scatter",
    "split",
    "type_of_shape",
]

_MAX_RANK = 6


def name_of(canonical: str, dtype: str) -> str:
    """The name of a type, constructor or function for elements of any number of axes."""
    return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"


def name_static(canonical: str, dtype: str, shape: Sequence[Any]) -> str:
    """The name of a type, constructor or function for elements of one shape."""
    sizes = "_".join("any" if e == "?" else e for e in _extents(shape)) or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{sizes}_t"
    return f"{canonical}_{dtype}_{sizes}"


def _extents(shape: Sequence[Any]) -> list[str]:
    texts = []
    for extent in shape:
        if isinstance(extent, AnyExtent):
            texts.append("?")
        elif isinstance(extent, (int, tir.IntImm)) and int(extent) >= 0:
            texts.append(str(int(extent)))
        else:
            raise error.ValueError(
                f"relay: an extent of a tensor array is a number or relay.Any(), got {extent!r}"
            )
    return texts


def _tensor(dtype: str, extents: Sequence[str]) -> str:
    return f"Tensor[({', '.join(extents)}), {dtype}]"


def _over_lists(name: Any, element: str) -> str:
    """What does not look into elements. `name` gives a function's whole name."""
    return f"""
def @{name("tensor_array")}(%n: int32) -> List[{element}] {{
  if (%n == 0) {{ Nil }} else {{ Cons({name("tensor_nil")}, @{name("tensor_array")}(%n - 1)) }}
}}

def @{name("tensor_array_read")}(%ta: List[{element}], %n: int32) -> {element} {{ @nth(%ta, %n) }}

def @{name("tensor_array_write")}(
  %ta: List[{element}], %n: int32, %v: {element}
) -> List[{element}] {{
  @update(%ta, %n, %v)
}}
"""


def _unstack(name: str, stacked: str, element: str, made: str) -> str:
    return f"""
def @{name}_from(%i: int32, %end: int32, %x: {stacked}) -> List[{element}] {{
  if (%i == %end) {{ Nil }}
  else {{ Cons({made}(take(%x, %i, axis=0)), @{name}_from(%i + 1, %end, %x)) }}
}}

def @{name}(%x: {stacked}) -> List[{element}] {{
  @{name}_from(0, take(shape_of(%x, dtype="int32"), 0), %x)
}}
"""


def _gathered(gather: str, element: str, result: str, stack: str) -> str:
    return f"""
def @{gather}_from(
  %ta: List[{element}], %i: int32, %end: int32, %indices: Tensor[(?), int32]
) -> List[{element}] {{
  if (%i == %end) {{ Nil }}
  else {{ Cons(@nth(%ta, take(%indices, %i)), @{gather}_from(%ta, %i + 1, %end, %indices)) }}
}}

def @{gather}(%ta: List[{element}], %indices: Tensor[(?), int32]) -> {result} {{
  @{stack}(@{gather}_from(%ta, 0, take(shape_of(%indices, dtype="int32"), 0), %indices))
}}
"""


def scatter(name: str, element: str, indices: Sequence[Any] | None = None) -> str:
    """Writing the elements of a list to places of an array.

    Parameters
    ----------
    name : of the function.
    indices : shape of the tensor of places, by default of any length.
    """
    places = _tensor("int32", _extents([AnyExtent()] if indices is None else indices))
    return f"""
def @{name}_from(
  %ta: List[{element}], %i: int32, %end: int32, %indices: {places}, %values: List[{element}]
) -> List[{element}] {{
  if (%i == %end) {{ %ta }}
  else {{
    let %written = @update(%ta, take(%indices, %i), @hd(%values));
    @{name}_from(%written, %i + 1, %end, %indices, @tl(%values))
  }}
}}

def @{name}(
  %ta: List[{element}], %indices: {places}, %values: List[{element}]
) -> List[{element}] {{
  @{name}_from(%ta, 0, take(shape_of(%indices, dtype="int32"), 0), %indices, %values)
}}
"""


def _split(name: str, element: str, value: str, part: str, places: str) -> str:
    """`part` is the element that holds the rows of %value from %start to %stop."""
    return f"""
def @{name}_from(
  %ta: List[{element}], %value: {value}, %start: int32, %i: int32, %end: int32, %lengths: {places}
) -> List[{element}] {{
  if (%i == %end) {{ %ta }}
  else {{
    let %stop = %start + take(%lengths, %i);
    let %written = @update(%ta, %i, {part});
    @{name}_from(%written, %value, %stop, %i + 1, %end, %lengths)
  }}
}}

def @{name}(%ta: List[{element}], %value: {value}, %lengths: {places}) -> List[{element}] {{
  @{name}_from(%ta, %value, 0, 0, take(shape_of(%lengths, dtype="int32"), 0), %lengths)
}}
"""


_ROWS = 'take(%x, arange(%start, %stop, 1, dtype="int32"), axis=0)'


def split(
    name: str,
    dtype: str,
    shape: Sequence[Any],
    value: Sequence[Any] | None = None,
    lengths: Sequence[Any] | None = None,
) -> str:
    """Cutting the rows of an element into elements of one shape.

    Parameters
    ----------
    name : of the function.
    shape : of the elements written.
    value : shape of what is cut, whose type is defined already; by default any number of rows.
    lengths : shape of the tensor that says how many rows each part has; by default any length.
    """
    whole = [AnyExtent(), *shape[1:]] if value is None else value
    made, taken = (name_static("tensor_constructor", dtype, s) for s in (shape, whole))
    places = _tensor("int32", _extents([AnyExtent()] if lengths is None else lengths))
    part = f"match? (%value) {{ {taken}(%x) => {made}({_ROWS}) }}"
    element, of = (name_static("tensor_t", dtype, s) for s in (shape, whole))
    return _split(name, element, of, part, places)


def get_data(
    name: str, dtype: str, shape: Sequence[Any], data_shape: Sequence[Any] | None = None
) -> str:
    """The tensor that an element of one shape has, known to be of another that the type allows."""
    made = name_static("tensor_constructor", dtype, shape)
    tensor = _tensor(dtype, _extents(shape if data_shape is None else data_shape))
    return f"""
def @{name}(%t: {name_static("tensor_t", dtype, shape)}) -> {tensor} {{
  match? (%t) {{ {made}(%x) => %x }}
}}
"""


def any_rank(dtype: str) -> tuple[str, str]:
    """The text of the type of elements with up to six axes, and that of its functions."""

    def name(canonical: str) -> str:
        return name_of(canonical, dtype)

    element = name("tensor_t")
    made = [name(f"tensor{rank}") for rank in range(_MAX_RANK + 1)]
    types = [_tensor(dtype, ["?"] * rank) for rank in range(_MAX_RANK + 1)]
    cases = "".join(f"  {con}({type_}),\n" for con, type_ in zip(made, types))
    definition = f"type {element} {{\n  {name('tensor_nil')},\n{cases}}}\n"
    parts = [_over_lists(name, element)]
    taken = ", ".join(f"{con}(%x) => {con}({_ROWS})" for con in made[1:])
    joined = ", ".join(
        f"({con}(%x), {con}(%y)) => {con}(concatenate((%x, %y), axis=0))" for con in made[1:]
    )
    wider = ", ".join(
        f"{con}(%x) => {more}(expand_dims(%x, axis=0))" for con, more in zip(made, made[1:])
    )
    take, concatenate, expand = map(name, ("tensor_take", "tensor_concatenate",
                                           "tensor_expand_dims"))  # fmt: skip
    concat, stack = name("tensor_array_concat"), name("tensor_array_stack")
    parts.append(f"""
def @{take}(%t: {element}, %start: int32, %stop: int32) -> {element} {{
  match? (%t) {{ {taken} }}
}}

def @{concatenate}(%a: {element}, %b: {element}) -> {element} {{
  match? (%a, %b) {{ {joined} }}
}}

def @{expand}(%t: {element}) -> {element} {{ match? (%t) {{ {wider} }} }}

def @{concat}(%ta: List[{element}]) -> {element} {{
  match? (%ta) {{
    Cons(%x, Nil) => %x,
    Cons(%x, %rest) => @{concatenate}(%x, @{concat}(%rest)),
  }}
}}

def @{stack}(%ta: List[{element}]) -> {element} {{ @{concat}(@map(@{expand}, %ta)) }}
""")
    parts.append(_gathered(name("tensor_array_gather"), element, element, stack))
    parts.append(scatter(name("tensor_array_scatter"), element))
    part = f"@{take}(%value, %start, %stop)"
    places = _tensor("int32", ["?"])
    parts.append(_split(name("tensor_array_split"), element, element, part, places))
    parts += [
        _unstack(name(f"tensor_array_unstack_tensor{rank}"), types[rank], element, made[rank - 1])
        for rank in range(1, _MAX_RANK + 1)
    ]
    return definition, "".join(parts)


def type_of_shape(dtype: str, shape: Sequence[Any]) -> str:
    """The text of the type of elements of one shape."""
    nil, made = (name_static(n, dtype, shape) for n in ("tensor_nil", "tensor_constructor"))
    tensor = _tensor(dtype, _extents(shape))
    return f"type {name_static('tensor_t', dtype, shape)} {{\n  {nil},\n  {made}({tensor}),\n}}\n"


def results(shape: Sequence[Any]) -> list[list[Any]]:
    """The shapes of what is made of elements of one: stacked ones, one with an axis of one in
    front, and, unless they are scalars, any number of rows."""
    stacked = [[AnyExtent(), *shape], [1, *shape]]
    return [*stacked, [AnyExtent(), *shape[1:]]] if shape else stacked


def of_shape(dtype: str, shape: Sequence[Any]) -> str:
    """The text of the functions of elements of one shape.

    It names the types of :func:`type_of_shape` for the shape itself and for its `results`.
    """

    def name(canonical: str) -> str:
        return name_static(canonical, dtype, shape)

    made, element = name("tensor_constructor"), name("tensor_t")
    stacked, one, *rows = results(shape)
    of = {n: name_static("tensor_t", dtype, s) for n, s in (("stacked", stacked), ("one", one))}
    to = {n: name_static("tensor_constructor", dtype, s)
          for n, s in (("stacked", stacked), ("one", one))}  # fmt: skip
    tensor = _tensor(dtype, _extents(stacked))
    stack = name("tensor_array_stack")
    parts = [_over_lists(name, element), get_data(name("tensor_get_data"), dtype, shape)]
    parts.append(_unstack(name("tensor_array_unstack"), tensor, element, made))
    parts.append(scatter(name("tensor_array_scatter"), element))
    parts.append(f"""
def @{name("tensor_expand_dims")}(%t: {element}) -> {of["one"]} {{
  match? (%t) {{ {made}(%x) => {to["one"]}(expand_dims(%x, axis=0)) }}
}}

{_all_of(stack, element, made, tensor, "expand_dims(%x, axis=0)")}

def @{stack}(%ta: List[{element}]) -> {of["stacked"]} {{ {to["stacked"]}(@{stack}_of(%ta)) }}
""")
    parts.append(_gathered(name("tensor_array_gather"), element, of["stacked"], stack))
    for some in rows:
        result, con = (name_static(n, dtype, some) for n in ("tensor_t", "tensor_constructor"))
        concat = name("tensor_array_concat")
        parts.append(f"""
def @{name("tensor_take")}(%t: {element}, %start: int32, %stop: int32) -> {result} {{
  match? (%t) {{ {made}(%x) => {con}({_ROWS}) }}
}}

def @{name("tensor_concatenate")}(%a: {element}, %b: {element}) -> {result} {{
  match? (%a, %b) {{ ({made}(%x), {made}(%y)) => {con}(concatenate((%x, %y), axis=0)) }}
}}

{_all_of(concat, element, made, _tensor(dtype, _extents(some)), "%x")}

def @{concat}(%ta: List[{element}]) -> {result} {{ {con}(@{concat}_of(%ta)) }}
""")
        parts.append(split(name("tensor_array_split"), dtype, shape))
    return "".join(parts)


def _all_of(name: str, element: str, made: str, tensor: str, part: str) -> str:
    """Function `name`_of: what `part` is for each element %x, one after the other."""
    return f"""def @{name}_of(%ta: List[{element}]) -> {tensor} {{
  match? (%ta) {{
    Cons({made}(%x), Nil) => {part},
    Cons({made}(%x), %rest) => concatenate(({part}, @{name}_of(%rest)), axis=0),
  }}
}}"""
