"""Names that nothing has yet."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.ir import GlobalVar, GlobalVarSupply, IRModule, NameSupply


def test_names_are_given_out_once():
    names = NameSupply()
    assert [names.fresh_name("f") for _ in range(3)] == ["f", "f_1", "f_2"]
    assert names.fresh_name("f_1") == "f_1_1"
    assert names.fresh_name("f", add_underscore=False) == "f3"
    assert names.contains_name("f3")
    assert not names.contains_name("g")
    names.reserve_name("g")
    assert names.fresh_name("g") == "g_1"


def test_names_are_identifiers_with_the_prefix():
    names = NameSupply("net")
    assert names.fresh_name("a.b") == "net_a_b"
    assert names.fresh_name("a.b", add_prefix=False) == "a_b"
    assert names.contains_name("a.b")
    assert not names.contains_name("net_a_b")


def test_variables_are_those_of_their_names():
    variables = GlobalVarSupply(NameSupply("net"))
    first = variables.fresh_global("f")
    assert str(first.name_hint) == "net_f"
    assert variables.unique_global_for("f").same_as(first)
    assert str(variables.fresh_global("f").name_hint) == "net_f_1"


def test_functions_of_modules_keep_their_names():
    func = tir.PrimFunc([], tir.Evaluate(0))
    mod = IRModule({"main": func})
    variables = GlobalVarSupply(mod)
    assert variables.unique_global_for("main").same_as(mod.get_global_var("main"))
    assert str(variables.fresh_global("main").name_hint) == "main_1"
    variables.reserve_global(mod.get_global_var("main"))
    with pytest.raises(ValueError, match='two variables are called "main"'):
        variables.reserve_global(GlobalVar("main"))
    variables.reserve_global(GlobalVar("main"), allow_conflict=True)
    with pytest.raises(tvm.error.TVMError, match="two variables"):
        GlobalVarSupply([mod, IRModule({"main": func})])
