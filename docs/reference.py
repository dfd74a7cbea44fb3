"""Directive `reference`: a table of names, and under it everything their docstrings say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.autosummary import Autosummary, import_by_name


class Reference(Autosummary):
    """Like `autosummary`, with the names of the table leading to the texts that follow it.

    One page for each name would be an alternative; several hundred of them take minutes to write.
    """

    def run(self) -> list[nodes.Node]:
        table = super().run()
        prefix = self.env.ref_context.get("py:module")
        lines = StringList()
        names = [line.strip() for line in self.content if line.strip()]
        for name in names:
            # A class shows its methods; a method listed beside it is there for the table.
            if name.rpartition(".")[0] in names:
                continue
            full_name, obj, parent, _ = import_by_name(name, [prefix])
            for line in _directive(full_name, obj, parent):
                lines.append(line, f"<reference of {name}>")
        details = nodes.container(classes=["reference"])
        self.state.nested_parse(lines, self.content_offset, details)
        return [*table, details]


def _directive(name: str, obj: Any, parent: Any) -> list[str]:
    if inspect.isclass(obj):
        return [f".. autoclass:: {name}", "   :members:", ""]
    if inspect.ismodule(obj):
        return []
    if isinstance(obj, property):
        return [f".. autoproperty:: {name}", ""]
    if callable(obj):
        return [f".. auto{'method' if inspect.isclass(parent) else 'function'}:: {name}", ""]
    return [f".. autodata:: {name}", ""]


_LISTS = ("Parameters", "Attributes", "Returns", "Raises")
_TEXTS = ("Examples", "Notes")
# ``a, b : what they are``; an error may follow another one on its line.
_ENTRY = re.compile(r"(\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*) : ")
_NEXT_ERROR = re.compile(r"(?<=[.;]) (?=[A-Z]\w*Error : )")


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each section of a docstring; the first one has no title."""
    title, body = "", []
    for i, line in enumerate(lines):
        is_rule = line.startswith("---") and not line.strip("- ")
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line in _LISTS + _TEXTS and following.startswith("---"):
            yield title, body
            title, body = line, []
        elif not (is_rule and not body):
            body.append(line)
    yield title, body


def _listed(title: str, body: list[str]) -> list[str]:
    """A section as a field: a bullet for each entry, or else the text as it is."""
    text = "\n".join(body).strip("\n")
    if title == "Raises":
        text = _NEXT_ERROR.sub("\n", text)
    bullets = [""]
    for line in dedent(text).splitlines():
        entry = _ENTRY.match(line)
        if entry is None:
            bullets.append("     " + line.strip() if line.strip() else "")
        else:
            names = ", ".join(f"``{name}``" for name in entry[1].split(", "))
            bullets.append(f"   - {names} – {line[entry.end() :]}")
    if not any(line.startswith("   - ") for line in bullets):
        bullets = ["   " + line.strip() for line in bullets]
    return ["", f":{title}:", *bullets, ""]


def lay_out(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the sections of a docstring as fields, which the theme knows how to show."""
    result: list[str] = []
    for title, body in _sections(lines):
        if title in _LISTS:
            result += _listed(title, body)
        else:
            result += ["", f"**{title}**", ""] if title else []
            result += body
    lines[:] = result


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("reference", Reference)
    app.connect("autodoc-process-docstring", lay_out)
    return {"parallel_read_safe": True}
