"""Showing programs as text."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.runtime import Object, ObjectPath

from . import _ffi_api

__all__ = ["Scriptable", "show_text", "with_imports"]


class Scriptable:
    """What programs and their parts share: their text, and printing it."""

    __slots__ = ()

    def script(
        self,
        *,
        name: str | None = None,
        show_meta: bool = False,
        ir_prefix: str = "I",
        tir_prefix: str = "T",
        relax_prefix: str = "R",
        module_alias: str = "cls",
        buffer_dtype: str = "float32",
        int_dtype: str = "int32",
        float_dtype: str = "void",
        verbose_expr: bool = False,
        indent_spaces: int = 4,
        print_line_numbers: bool = False,
        num_context_lines: int | None = None,
        syntax_sugar: bool = True,
        show_object_address: bool = False,
        show_all_struct_info: bool = True,
        path_to_underline: Sequence[ObjectPath] | None = None,
        path_to_annotate: Mapping[ObjectPath, str] | None = None,
        obj_to_underline: Sequence[Object] | None = None,
        obj_to_annotate: Mapping[Object, str] | None = None,
    ) -> str:
        """The program as text, which `tvm.script.from_source` reads if nothing but `show_meta`,
        `syntax_sugar` and `show_all_struct_info` differs from the defaults.

        Parameters
        ----------
        name : of the module, or of a function that has no name of its own.
        show_meta : write the objects that are no text, such as the constants of networks, in front
            of the program; otherwise a line at the end says that they are missing.
        ir_prefix, tir_prefix, relax_prefix : what the languages are called.
        module_alias : what a function calls its module; with "" by the module's own name.
        buffer_dtype : element type that ``T.match_buffer`` leaves out.
        int_dtype, float_dtype : types whose literals are plain numbers; "void" for none.
        verbose_expr : begin the text of an expression or another part of a program with the
            variables and buffers that it names.
        indent_spaces : spaces of one level.
        print_line_numbers : number the lines.
        num_context_lines : show this many lines around each line with marks, and not the others.
        syntax_sugar : write T.grid, T.axis.remap and buffers as types of parameters; without, every
            loop, axis and match_buffer has a line of its own.
        show_object_address : append the addresses of variables and buffers to their names.
        show_all_struct_info : annotate every variable of a graph, not only those whose value does
            not say as much.
        path_to_underline, obj_to_underline : places and objects with marks under them.
        path_to_annotate, obj_to_annotate : notes behind the lines of places and objects.

        Raises
        ------
        ValueError : a prefix is no name, or a number is negative.
        """
        prefixes = {"I": ir_prefix, "T": tir_prefix, "R": relax_prefix}
        _check_layout(prefixes, indent_spaces, num_context_lines)
        notes = {**(path_to_annotate or {}), **(obj_to_annotate or {})}
        underlined = [*(path_to_underline or ()), *(obj_to_underline or ())]
        style = {
            "syntax_sugar": syntax_sugar,
            "verbose_expr": verbose_expr,
            "show_all_struct_info": show_all_struct_info,
            "show_object_address": show_object_address,
            "name": name or "",
            "module_alias": module_alias,
            "int_dtype": int_dtype,
            "float_dtype": float_dtype,
            "buffer_dtype": buffer_dtype,
        }
        metadata, text = _ffi_api.Script(
            self, show_meta, style, underlined, list(notes), [str(note) for note in notes.values()]
        )
        lines = text.split("\n")
        if num_context_lines is not None:
            lines = _around_marks(lines, num_context_lines)
        if indent_spaces != 4:
            lines = [_indented(line, indent_spaces) for line in lines]
        head = _header(text) if text.startswith("@") else []
        if metadata:
            # Raw, so that the backslashes of JSON stay what they are.
            head += [f'metadata = tvm.ir.load_json(r"""{metadata}""")', ""]
        whole = [*head, *lines]
        if list(prefixes) != list(prefixes.values()):
            whole = [_prefixed(line, prefixes) for line in whole]
        if print_line_numbers:
            width = len(str(len(whole)))
            whole = [f"{number:>{width}} {line}".rstrip() for number, line in enumerate(whole, 1)]
        return "\n".join(whole)

    def astext(self) -> str:
        """The program as text with everything in it, which `tvm.parser.parse` reads."""
        return self.script(show_meta=True)

    def show(self, style: str | None = None, black_format: bool = False, **options: Any) -> None:
        """Print the program, in colour where the output is a terminal and pygments is there.

        Parameters
        ----------
        style : name of a style of pygments; "light", "dark" and "ansi" are TVM's.
        black_format : lay the lines out with black, which must be installed.
        options : those of `script`.
        """
        show_text(self.script(**options), style, black_format)


def with_imports(text: str) -> str:
    """The text of a program behind the imports that it needs, as comments; other texts as they
    are."""
    return "\n".join([*_header(text), text]) if text.startswith("@") else text


def show_text(text: str, style: str | None = None, black_format: bool = False) -> None:
    """Print Python, in colour where the output is a terminal, see `Scriptable.show`."""
    if black_format:
        text = _laid_out(text)
    print(_highlighted(text, style) if sys.stdout.isatty() else text)


_LANGUAGES = {"I": "ir", "T": "tir", "R": "relax"}
# A text, which is skipped, or the name of a language where something of it is named.
_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|(?<![\w.])([ITR])(?=\.)')
_IMPORT = re.compile(r"^# from tvm\.script import (ir|tir|relax) as ([ITR])$")


def _check_layout(prefixes: Mapping[str, str], indent: int, context: int | None) -> None:
    for prefix in prefixes.values():
        if not prefix.isidentifier():
            raise ValueError(f"script: '{prefix}' is no name for a language")
    if len(set(prefixes.values())) != len(prefixes):
        raise ValueError("script: the languages need different prefixes")
    if indent < 1 or (context is not None and context < 0):
        raise ValueError("script: indent_spaces and num_context_lines are numbers of spaces, lines")


def _header(text: str) -> list[str]:
    used = {match[1] for match in _TOKENS.finditer(text)}
    lines = [f"# from tvm.script import {_LANGUAGES[c]} as {c}" for c in _LANGUAGES if c in used]
    return [*lines, ""]


def _prefixed(line: str, prefixes: Mapping[str, str]) -> str:
    imported = _IMPORT.match(line)
    if imported:
        return f"# from tvm.script import {imported[1]} as {prefixes[imported[2]]}"
    return _TOKENS.sub(lambda m: prefixes[m[1]] if m[1] else m[0], line)


def _indented(line: str, spaces: int) -> str:
    content = line.lstrip(" ")
    levels, rest = divmod(len(line) - len(content), 4)
    return " " * (levels * spaces + rest) + content


def _around_marks(lines: Sequence[str], context: int) -> list[str]:
    marked = [at for at, line in enumerate(lines) if line.strip() and not line.strip(" ^")]
    # Of a marked line and the marks below it, the line counts.
    shown = {at for m in marked for at in range(m - 1 - context, m + 1 + context)}
    if not shown:
        return list(lines)
    kept: list[str] = []
    skipped = 0
    for at, line in enumerate([*lines, ""]):
        if at == len(lines) or at in shown:
            if skipped:
                kept.append(f"(... {skipped} line{'s' if skipped > 1 else ''} skipped ...)")
            skipped = 0
            kept += [line] if at < len(lines) else []
        else:
            skipped += 1
    return kept


def _laid_out(text: str) -> str:
    try:
        import black
    except ImportError as reason:
        raise ImportError("show: black_format needs the package black") from reason
    return str(black.format_str(text, mode=black.FileMode()))


def _highlighted(text: str, style: str | None) -> str:
    try:
        from pygments import highlight
        from pygments.formatters import Terminal256Formatter, TerminalFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return text
    if style in (None, "ansi"):
        formatter: Any = TerminalFormatter()
    else:
        known = {"light": "default", "dark": "monokai"}
        formatter = Terminal256Formatter(style=known.get(str(style), style))
    return highlight(text, PythonLexer(), formatter).rstrip("\n")
