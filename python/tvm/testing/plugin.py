"""Plugin of pytest for tests over targets: ``pytest_plugins = ["tvm.testing.plugin"]``.

A test that takes `target` or `dev` runs for each enabled target (`enabled_targets`), with the
target's text and its first device. Tests of targets that a test names itself are skipped where the
target has no device. The marks ``gpu``, ``cuda``, ... select tests, as in ``pytest -m gpu``.
"""

from __future__ import annotations

from typing import Any

import pytest

from tvm.runtime import Device
from tvm.target import Target
from tvm.target.enabled import device_of, enabled_targets

from . import requirements

__all__: list[str] = []

_BY_KIND = {
    "cuda": requirements.requires_cuda,
    "llvm": requirements.requires_llvm,
    "metal": requirements.requires_metal,
    "nvptx": requirements.requires_nvptx,
    "opencl": requirements.requires_opencl,
    "rocm": requirements.requires_rocm,
    "vulkan": requirements.requires_vulkan,
}
_BY_LIBRARY = {"cublas": requirements.requires_cublas, "cudnn": requirements.requires_cudnn}


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    for name in requirements.__all__:
        requirement = getattr(requirements, name)
        if isinstance(requirement, requirements.Requirement):
            config.addinivalue_line("markers", f"{requirement.name}: needs {requirement.what}")


@pytest.fixture
def dev(target: Any) -> Device:
    """The first device of the target that the test runs for."""
    return device_of(target)


def _has_values(metafunc: pytest.Metafunc, name: str) -> bool:
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        if name in (names.replace(" ", "").split(",") if isinstance(names, str) else names):
            return True
    return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `target` the enabled ones, and `parameters` their sets of values."""
    fixtures = metafunc.definition._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    is_open = not _has_values(metafunc, "target") and "target" not in fixtures
    if "target" in metafunc.fixturenames and is_open:
        metafunc.parametrize("target", [target for target, _ in enabled_targets()])
    groups: dict[int, tuple[Any, Any, list[tuple[str, int]]]] = {}
    for name in metafunc.fixturenames:
        function = fixtures[name][-1].func if name in fixtures else None
        if (
            function is not None
            and hasattr(function, "tvm_parameters")
            and not _has_values(metafunc, name)
        ):
            value_sets, ids, position = function.tvm_parameters
            groups.setdefault(id(value_sets), (value_sets, ids, []))[2].append((name, position))
    for value_sets, ids, members in groups.values():
        names = [name for name, _ in members]
        values = [tuple(values[position] for _, position in members) for values in value_sets]
        metafunc.parametrize(names, values, indirect=True, ids=ids)


def _matches(target: Target, names: Any) -> bool:
    return any(str(target) == str(Target(name)) or target.kind.name == name for name in names)


def _target_marks(function: Any, target: Target) -> list[pytest.MarkDecorator]:
    requirement = _BY_KIND.get(str(target.kind.name))
    marks = requirement.marks() if requirement else []
    for library in target.libs:
        marks += _BY_LIBRARY[library].marks() if library in _BY_LIBRARY else []
    if _matches(target, getattr(function, "tvm_excluded_targets", ())):
        marks.append(pytest.mark.skip(reason=f"excludes {target}"))
    if _matches(target, getattr(function, "tvm_known_failing_targets", ())):
        marks.append(pytest.mark.xfail(reason=f"known to fail for {target}"))
    return marks


def _run_marks(function: Any, name: str) -> list[pytest.MarkDecorator]:
    marks = []
    for kind, attribute in (("skip", "tvm_skipped_runs"), ("xfail", "tvm_failing_runs")):
        names, reason = getattr(function, attribute, ((), ""))
        if name in names:
            marks.append(getattr(pytest.mark, kind)(reason=reason))
    return marks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what has no device here, and expect failures that are known."""
    for item in items:
        values = getattr(item, "callspec", None)
        if values is None:
            continue
        function = getattr(item, "function", None)
        marks = _run_marks(function, values.id)
        target = values.params.get("target")
        if isinstance(target, str | Target):
            marks += _target_marks(function, Target(target))
        for mark in marks:
            item.add_marker(mark)
