"""The layering of docs/architecture.md holds: of C++ headers, of Python imports, of the build."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "python"
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
# What stands on top of the rooms: the package itself, and names and programs for its users.
ON_TOP = {"", "_older_names", "exec", "ir_pass", "support", "testing"}
# Of rooms, what stands on top: of contrib what makes, tunes or draws programs, of driver a command,
# of tuners commands and networks to try them.
PARTS_ON_TOP = {
    "auto_scheduler": ("testing",),
    "autotvm": ("testing",),
    "contrib": (
        "cblas",
        "cublas",
        "dnnl",
        "external_products",
        "hipblas",
        "mkl",
        "random",
        "relay_viz",
        "rocblas",
        "tedd",
        "torch",
    ),  # fmt: skip
    "driver": ("tvmc",),
    "meta_schedule": ("testing",),
}


def rooms() -> list[str]:
    """Names of the table of rooms, lowest first."""
    table = ARCHITECTURE.partition("| room | owns |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)


def room_of_package() -> dict[str, str]:
    """The room of each Python package; a table of its own names those called otherwise."""
    table = ARCHITECTURE.partition("| Python package | room |")[2].partition("\n\n")[0]
    others = re.findall(r"^\| (.*?) \| `(\w+)` \|", table, flags=re.MULTILINE)
    named = {name: room for names, room in others for name in re.findall(r"`(\w+)`", names)}
    return {room: room for room in rooms()} | named


ROOMS = rooms()
PACKAGES = room_of_package()


def includes() -> Iterator[tuple[Path, str, str]]:
    """Every include of a file of another room: the file, its room, the other."""
    for base in (ROOT / "include/tvm", ROOT / "src"):
        for path in sorted(base.rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            room = path.relative_to(base).parts[0]
            for quoted in re.findall(r'#include\s+[<"]([^>"]+)[>"]', path.read_text()):
                beside = (path.parent / quoted).resolve()
                if quoted.startswith("tvm/"):
                    other = quoted.split("/")[1]
                elif beside.exists():
                    other = beside.relative_to(base).parts[0]
                elif (ROOT / "src" / quoted).exists():
                    other = quoted.split("/")[0]
                else:  # of the system
                    continue
                if other != room:
                    yield path, room, other


def modules() -> dict[str, Path]:
    found = {}
    for path in PYTHON.rglob("*.py"):
        parts = path.relative_to(PYTHON).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(module: str, path: Path) -> Iterator[str]:
    """Modules of ours that a module imports anywhere, in functions and for annotations too."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) + 1 - node.level]
                base = ".".join([*above, node.module] if node.module else above)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in MODULES:
                name = name.rpartition(".")[0]
            if name:
                yield name


@functools.cache  # not at import: every worker that runs tests imports this file
def import_graph() -> dict[str, set[str]]:
    """What each module imports; a package that runs first counts, unless it holds the importer."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        graph[module] = set()
        for name in imported(module, path):
            while name and not f"{module}.".startswith(f"{name}."):
                graph[module].add(name)
                name = name.rpartition(".")[0]
    return graph


def package_of(module: str) -> str:
    parts = module.split(".") + ["", ""]
    return "" if parts[2] in PARTS_ON_TOP.get(parts[1], ()) else parts[1]


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module, after Tarjan (1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            at = stack.index(node)
            members = stack[at:]
            del stack[at:]
            if len(members) > 1:
                found.append(sorted(members))

    for node in graph:
        if node not in order:
            visit(node)
    return found


def test_the_build_lists_the_rooms_in_the_order_of_the_table():
    text = (ROOT / "CMakeLists.txt").read_text()
    built = re.search(r"set\(TVM_ALL_ROOMS ([\w ]+)\)", text)[1].split()
    in_cpp = {path.name for path in (ROOT / "src").iterdir() if any(path.rglob("*.cc"))}
    assert built == [room for room in ROOMS if room in in_cpp - {"runtime"}]
    assert in_cpp - set(built) == {"bindings", "runtime"}
    assert {path.name for path in (ROOT / "include/tvm").iterdir()} <= {*built, "runtime"}


def test_no_source_includes_a_room_above_its_own():
    edges = list(includes())
    assert len(edges) > 100  # the scan sees the sources
    # The bindings know objects, functions and how nodes are printed, nothing of compilers.
    allowed = {room: set(ROOMS[:at]) for at, room in enumerate(ROOMS)}
    allowed["bindings"] = {"runtime", "node"}
    assert [
        f"{path.relative_to(ROOT)} includes {other}"
        for path, room, other in edges
        if other not in allowed[room]
    ] == []


def test_every_package_has_a_room():
    assert {package_of(module) for module in MODULES} - ON_TOP == set(PACKAGES) - {
        "node",
        "expr",
        "codegen",
    }


def test_no_module_imports_a_room_above_its_own():
    upward = []
    for module, others in import_graph().items():
        if (package := package_of(module)) in ON_TOP:
            continue
        lower = ROOMS[: ROOMS.index(PACKAGES[package]) + 1]
        for other in others:
            # Names of older versions are a table that imports nothing.
            room = PACKAGES.get(package_of(other), "")
            if room not in lower and other != "tvm._older_names":
                upward.append(f"{module} imports {other}")
    assert upward == []


def test_imports_have_no_circles():
    assert circles(import_graph()) == []


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, None),
    ],
)
def test_the_search_for_circles_finds_them(graph, found):
    assert sorted(circles(graph)) == ([["a", "b", "c"], ["d", "e"]] if found is None else found)
