"""Round trips through text, for the tests of scripts."""

from __future__ import annotations

import tvm
from tvm.instrument import pass_instrument


def check_round_trip(program):
    """A function or module is what its text, with and without the prelude, reads as."""
    for text in (str(program), program.script(show_meta=True)):
        again = tvm.script.from_source(text)
        assert type(again) is type(program)
        tvm.ir.assert_structural_equal(program, again)
        assert str(again) == str(program)


@pass_instrument
class RoundTrips:
    """Checks every module that goes into or comes out of a pass.

    Errors are kept: raised here, they would be taken for errors of the pass.
    """

    def __init__(self):
        self.count = 0
        self.errors = []
        self.texts = set()

    def run_before_pass(self, mod, info):
        self.run_after_pass(mod, info)

    def run_after_pass(self, mod, info):
        self.count += 1
        text = str(mod)
        if text in self.texts:
            return
        self.texts.add(text)
        try:
            tvm.ir.assert_structural_equal(mod, tvm.script.from_source(text))
        except Exception as reason:
            self.errors.append(reason)
