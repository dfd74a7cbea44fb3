"""Passes, contexts, options, instruments."""

from __future__ import annotations

import threading

import pytest

import tvm
from tvm.instrument import PassTimingInstrument, PrintAfter, PrintBefore, pass_instrument
from tvm.transform import PassContext, Sequential, module_pass


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

    assert Mark("k")(tvm.IRModule()).get_attr("k") == PassContext.current().opt_level


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
    name = next(key for key, kind in PassContext.list_configs().items() if kind in ("bool", "int"))
    with pytest.raises(TypeError, match=f'option "{name}": expected .*, got str'):
        PassContext(config={name: "maybe"})
    assert PassContext(config={name: 1}).config[name] == 1


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
