"""What the README and the site say: their programs run, their names exist, their links lead on."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def prose(page):
    """The text of a page, or that of a notebook between its programs."""
    if page.suffix != ".ipynb":
        return page.read_text()
    cells = json.loads(page.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def own_words(page):
    """The text without the first column of tables, where names of TVM stand."""
    lines = page.read_text().splitlines()
    return "\n".join(line.split("|", 2)[-1] if line.startswith("|") else line for line in lines)


def programs(page):
    return PYTHON.findall(page.read_text())


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for link in LINK.findall(prose(page)):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_readme_has_a_tutorial_for_each_notebook():
    linked = {Path(link).name for link in LINK.findall((ROOT / "README.md").read_text())}
    assert {notebook.name for notebook in NOTEBOOKS} <= linked
    listed = (ROOT / "docs/index.md").read_text()
    assert all(f"tutorials/{notebook.stem}\n" in listed for notebook in NOTEBOOKS)


def test_the_readme_writes_a_kernel_that_runs(capsys):
    import numpy as np

    import tvm

    (kernel,) = (text for text in programs(ROOT / "README.md") if "te.create_schedule" in text)
    names = {}
    exec(kernel, names)
    assert "blockIdx.x" in capsys.readouterr().out
    a, b = (np.arange(1024, dtype="float32") for _ in range(2))
    result = tvm.nd.empty((1024,))
    names["add"](tvm.nd.array(a), tvm.nd.array(b), result)
    np.testing.assert_array_equal(result.numpy(), a + b)


def test_the_readme_tunes_a_product_by_ansors_search(tmp_path, monkeypatch):
    pytest.importorskip("xgboost")
    monkeypatch.chdir(tmp_path)
    (search,) = (text for text in programs(ROOT / "README.md") if "register_workload" in text)
    smaller = search.replace("(512,)", "(32,)").replace(
        "num_measure_trials=64", "num_measure_trials=2"
    )
    assert smaller.count("32") == 1 and "trials=2" in smaller
    names = {"__name__": "readme"}
    exec(smaller, names)
    assert len((tmp_path / "matmul.json").read_text().splitlines()) == 2
    assert [tensor.op.name for tensor in names["args"]] == ["A", "B", "C"]


def test_the_readme_names_functions_and_options_that_exist():
    import inspect

    pytest.importorskip("pytorch_lightning")
    from tvm import felix

    (search,) = (text for text in programs(ROOT / "README.md") if "felix.Optimizer" in text)
    tree = ast.parse(search)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    known = {
        "felix.extract_tasks": felix.extract_tasks,
        "felix.compile": felix.compile,
        "optim.tune": felix.Optimizer.tune,
    }
    seen = set()
    for call in calls:
        name = ast.unparse(call.func)
        if name in known:
            seen.add(name)
            parameters = inspect.signature(known[name]).parameters
            assert {keyword.arg for keyword in call.keywords} <= set(parameters)
        elif name.startswith("felix."):
            assert callable(getattr(felix, name.removeprefix("felix.")))
    assert seen == set(known)


def test_the_files_a_page_names_exist():
    named = re.compile(r"`((?:src|python|include|benchmarks|scripts|docs|tests|rust)/[\w./-]+)`")
    for page in PAGES:
        for path in named.findall(own_words(page)):
            assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_the_python_names_a_page_gives_exist():
    named = re.compile(r"`(tvm(?:\.\w+)+)(?:\(.*?\))?`")
    for page in PAGES:
        for name in named.findall(own_words(page)):
            # `tvm.tir.transform.Name` stands for all of them.
            assert name.endswith(".Name") or find(name), f"{page.name} names {name}"


def find(name):
    """Whether a dotted name is there, as a module or as what modules have."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:i]))
            except ModuleNotFoundError as error:
                # A module of ours that stands on a package which only an extra installs is there.
                return (error.name or "").split(".")[0] not in ("", parts[0])
    return True
