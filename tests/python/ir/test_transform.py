"""Passes, contexts, options, instruments."""

from __future__ import annotations

import threading

import pytest

import tvm
from tvm.instrument import (
    DumpIR,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfter,
    PrintAfterAll,
    PrintBefore,
    PrintBeforeAll,
    pass_instrument,
)
from tvm.transform import ApplyPassToFunction, Pass, PassContext, Sequential, module_pass


def recorder(log, name, opt_level=0):
    @module_pass(opt_level=opt_level, name=name)
    def run(mod, ctx):
        log.append(name)
        return mod

    return run


def test_sequential_runs_in_order_and_honours_levels():
    log = []
    pipeline = Sequential([recorder(log, "a"), recorder(log, "b", 3), recorder(log, "c")])
    with PassContext(opt_level=2):
        pipeline(tvm.IRModule())
    with PassContext(opt_level=3, disabled_pass=["a"]):
        pipeline(tvm.IRModule())
    with PassContext(opt_level=0, required_pass=["b"]):
        pipeline(tvm.IRModule())
    assert log == ["a", "c", "b", "c", "a", "b", "c"]


def test_python_pass_changes_a_copy():
    @module_pass(opt_level=0)
    def tag(mod, ctx):
        return mod.with_attr("tagged", True)

    mod = tvm.IRModule()
    assert tag(mod).get_attr("tagged") is True
    assert mod.get_attr("tagged") is None
    assert tag.info.name == "tag"


def test_pass_class_takes_constructor_arguments():
    @module_pass(opt_level=1, name="Mark")
    class Mark:
        def __init__(self, key):
            self.key = key

        def transform_module(self, mod, ctx):
            return mod.with_attr(self.key, ctx.opt_level)

    mark = Mark("k")
    assert isinstance(mark, Pass)
    assert mark.key == "k"
    assert mark.info.name == "Mark"
    assert mark(tvm.IRModule()).get_attr("k") == PassContext.current().opt_level


def test_pass_that_returns_nothing_is_reported():
    @module_pass(opt_level=0)
    def forgetful(mod, ctx):
        pass

    with pytest.raises(TypeError, match="pass forgetful returned None"):
        forgetful(tvm.IRModule())


def test_exception_of_a_pass_comes_through_and_closes_the_context():
    @module_pass(opt_level=0)
    def failing(mod, ctx):
        raise ZeroDivisionError("in the pass")

    outside = PassContext.current()
    with pytest.raises(ZeroDivisionError, match="in the pass"), PassContext():
        failing(tvm.IRModule())
    assert PassContext.current().same_as(outside)


def test_contexts_nest_and_are_per_thread():
    with PassContext(opt_level=1) as outer:
        with PassContext(opt_level=3) as inner:
            assert PassContext.current().same_as(inner)
        assert PassContext.current().same_as(outer)
        levels = []
        thread = threading.Thread(target=lambda: levels.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
    assert levels == [2]


def test_unknown_option_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match='unknown option "tir.no_such_option"; the options are:'):
        PassContext(config={"tir.no_such_option": 1})


def test_option_of_the_wrong_type_is_refused():
    configs = PassContext.list_configs().items()
    name = next(key for key, option in configs if option["type"] == "IntImm")
    with pytest.raises(TypeError, match=f'option "{name}": expected .*, got str'):
        PassContext(config={name: "maybe"})
    assert PassContext(config={name: 1}).config[name] == 1


def test_names_of_passes_are_a_list():
    with pytest.raises(
        TypeError, match=r'disabled_pass is a list of names; write \["tir.UnrollLoop"\]'
    ):
        PassContext(disabled_pass="tir.UnrollLoop")
    with pytest.raises(TypeError, match="required_pass is a list"):
        PassContext(required_pass="tir.UnrollLoop")


def test_misspelt_option_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match='did you mean "tir.disable_vectorize"'):
        PassContext(config={"tir.disable_vectorise": True})


def test_timing_lists_passes_under_the_pass_that_ran_them():
    timing = PassTimingInstrument()
    inner = recorder([], "inner")
    with PassContext(instruments=[timing]):
        Sequential([inner, inner], name="outer")(tvm.IRModule())
        text = timing.render()
    lines = text.splitlines()
    assert lines[0].startswith("outer: ")
    assert [line.split(":")[0] for line in lines[1:3]] == ["  inner", "  inner"]
    assert lines[-1].startswith("Total time: ")


def test_instrument_sees_and_may_refuse_passes():
    log = []

    @pass_instrument
    class Guard:
        def __init__(self, refused):
            self.refused = refused

        def enter_pass_ctx(self):
            log.append("enter")

        def exit_pass_ctx(self):
            log.append("exit")

        def should_run(self, mod, info):
            return info.name != self.refused

        def run_before_pass(self, mod, info):
            log.append(f"before {info.name}")

        def run_after_pass(self, mod, info):
            log.append(f"after {info.name}")

    with PassContext(instruments=[Guard("b")]):
        for name in "ab":
            recorder(log, name)(tvm.IRModule())
    assert log == ["enter", "before a", "a", "after a", "exit"]


def test_modules_are_printed_around_named_passes(capfd):
    with PassContext(instruments=[PrintBefore("a"), PrintAfter()]):
        recorder([], "a")(tvm.IRModule())
        recorder([], "b")(tvm.IRModule())
    printed = capfd.readouterr().err
    assert printed.count("before pass a") == 1
    assert "before pass b" not in printed
    assert "after pass a" in printed
    assert "after pass b" in printed


def test_modules_are_printed_around_chosen_passes(capfd):
    chosen = PassPrintingInstrument(
        print_before_pass_names=["a"], print_after_pass_names=["a", "b"]
    )
    with PassContext(instruments=[chosen]):
        for name in "ab":
            recorder([], name)(tvm.IRModule())
    printed = capfd.readouterr().err
    assert "before pass a" in printed
    assert "before pass b" not in printed
    assert "after pass a" in printed
    assert "after pass b" in printed


def test_modules_are_printed_around_all_passes_to_the_output_of_python(capsys):
    with PassContext(instruments=[PrintBeforeAll(), PrintAfterAll()]):
        for name in "ab":
            recorder([], name)(tvm.IRModule())
    printed = capsys.readouterr().out
    for name in "ab":
        assert f"Before Running Pass: pass name: {name}" in printed
        assert f"After Running Pass: pass name: {name}" in printed


def test_dumped_modules_are_numbered_files(tmp_path):
    (tmp_path / "007_old.py").write_text("left from before")
    with PassContext(instruments=[DumpIR(tmp_path, refresh=True)]):
        for name in ("a", "dir/b"):
            recorder([], name)(tvm.IRModule())
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["000_a.py", "001_dir_b.py"]
    assert "class Module" in (tmp_path / names[0]).read_text()


class Noisy:
    """An instrument that logs, and fails at one callback."""

    def __init__(self, log, name, fails_at=""):
        self.log, self.label, self.fails_at = log, name, fails_at

    def note(self, event):
        self.log.append(f"{self.label} {event}")
        if event == self.fails_at:
            raise ZeroDivisionError(event)

    def enter_pass_ctx(self):
        self.note("enter")

    def exit_pass_ctx(self):
        self.note("exit")

    def run_before_pass(self, mod, info):
        self.note("before")


NoisyInstrument = pass_instrument(Noisy)


def test_instrument_that_fails_to_enter_disables_all_and_leaves_those_entered():
    log = []
    context = PassContext(
        instruments=[NoisyInstrument(log, "a"), NoisyInstrument(log, "b", "enter")]
    )
    outside = PassContext.current()
    with pytest.raises(ZeroDivisionError), context:
        pass
    assert log == ["a enter", "b enter", "a exit"]
    assert len(context.instruments) == 0
    assert PassContext.current().same_as(outside)


def test_instrument_that_fails_to_exit_disables_all():
    log = []
    context = PassContext(
        instruments=[NoisyInstrument(log, "a", "exit"), NoisyInstrument(log, "b")]
    )
    with pytest.raises(ZeroDivisionError), context:
        recorder(log, "pass")(tvm.IRModule())
    assert log == ["a enter", "b enter", "a before", "b before", "pass", "a exit"]
    assert len(context.instruments) == 0


def test_instrument_that_fails_before_a_pass_stops_it():
    log = []
    with (
        pytest.raises(ZeroDivisionError),
        PassContext(instruments=[NoisyInstrument(log, "a", "before")]),
    ):
        recorder(log, "pass")(tvm.IRModule())
    assert log == ["a enter", "a before", "a exit"]


def test_instruments_of_the_current_context_can_be_exchanged():
    log = []
    with PassContext(instruments=[NoisyInstrument(log, "a")]) as context:
        context.override_instruments([NoisyInstrument(log, "b")])
        recorder(log, "pass")(tvm.IRModule())
    assert log == ["a enter", "a exit", "b enter", "b before", "pass", "b exit"]


def evaluate(value):
    return tvm.tir.PrimFunc([], tvm.tir.Evaluate(tvm.tir.IntImm("int32", value)))


def test_pass_is_applied_to_functions_whose_name_matches():
    seen = []

    @module_pass(opt_level=0)
    def rename(mod, ctx):
        seen.append(sorted(var.name_hint for var in mod.get_global_vars()))
        return tvm.IRModule({"f1": evaluate(10), "extra": evaluate(3)})

    mod = tvm.IRModule({"f1": evaluate(1), "f2": evaluate(2), "g": evaluate(0)})
    out = ApplyPassToFunction(rename, "f.*")(mod)
    assert seen == [["f1", "f2"]]
    assert sorted(var.name_hint for var in out.get_global_vars()) == ["extra", "f1", "g"]
    assert int(out["f1"].body.value) == 10
    assert int(mod["f1"].body.value) == 1
    assert ApplyPassToFunction(rename, "none")(mod).same_as(mod)
    with pytest.raises(
        ValueError, match="no function matches 'none'; the functions are: f1, f2, g"
    ):
        ApplyPassToFunction(rename, "none", error_if_no_function_matches_regex=True)(mod)


def test_required_passes_run_first():
    log = []
    tvm.register_func("transform.pass.Needed", lambda: recorder(log, "Needed"), override=True)
    try:
        needing = module_pass(
            lambda mod, ctx: log.append("needing") or mod, name="needing", required=["Needed"]
        )
        Sequential([needing])(tvm.IRModule())
        assert log == ["Needed", "needing"]
    finally:
        tvm._ffi.remove_global_func("transform.pass.Needed")
    with pytest.raises(ValueError, match='pass needing requires pass "Needed"'):
        Sequential([needing])(tvm.IRModule())


def test_metadata_is_printed_where_asked_for(capsys):
    func = tvm.tir.PrimFunc([], tvm.tir.Evaluate(0)).with_attr("global_symbol", "main")
    mod = tvm.IRModule({"main": func})
    assert tvm.transform.PrintIR("here", show_meta_data=True)(mod).same_as(mod)
    assert capsys.readouterr().err == f"PrintIR(here)\n{mod.script(show_meta=True)}\n"
