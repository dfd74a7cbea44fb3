"""Where variables are read for the last time."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform

_HEAD = '#[version = "0.0.5"]\n'


def _agrees(before, after):
    found = transform.ManifestLifetimes()(tvm.relay.parse(_HEAD + before))
    wanted = transform.InferType()(tvm.relay.parse(_HEAD + after))
    tvm.ir.assert_structural_equal(found, wanted, map_free_vars=True)


def test_variables_end_behind_their_last_use():
    _agrees(
        """def @main(%x: int32, %unread: int32) {
             let %y = %x + %x;
             let %z = %y * %y;
             let %w = %z + %y;
             %w
           }""",
        """def @main(%x: int32, %unread: int32) {
             let %_0 = memory.kill(%unread);
             let %y = %x + %x;
             let %_1 = memory.kill(%x);
             let %z = %y * %y;
             let %w = %z + %y;
             let %_2 = memory.kill(%z);
             let %_3 = memory.kill(%y);
             %w
           }""",
    )


def test_branches_end_what_the_other_one_reads():
    _agrees(
        """def @main(%x: int32) {
             let %c = cast(%x, dtype="bool");
             let %z = if (%c) { let %a = %x + %x; let %b = %a * 2; %b } else { %x };
             %z
           }""",
        """def @main(%x: int32) {
             let %c = cast(%x, dtype="bool");
             let %z = if (%c) {
               let %_0 = memory.kill(%c);
               let %a = %x + %x;
               let %_1 = memory.kill(%x);
               let %b = %a * 2;
               let %_2 = memory.kill(%a);
               %b
             } else { let %_3 = memory.kill(%c); %x };
             %z
           }""",
    )


def test_a_variable_that_is_read_behind_a_choice_lives_in_it():
    _agrees(
        """def @main(%c: bool, %x: int32) {
             let %z = if (%c) { %x } else { let %a = %x + %x; %a };
             let %w = %z + %x;
             %w
           }""",
        """def @main(%c: bool, %x: int32) {
             let %z = if (%c) { let %_0 = memory.kill(%c); %x }
                      else { let %_1 = memory.kill(%c); let %a = %x + %x; %a };
             let %w = %z + %x;
             let %_2 = memory.kill(%z);
             let %_3 = memory.kill(%x);
             %w
           }""",
    )


def test_parts_of_a_match_end_where_they_are_not_read():
    types = "type List[A] { Cons(A, List[A]), Nil }\n"
    _agrees(
        types
        + """def @main(%l: List[int32], %d: int32) -> int32 {
               let %r = match (%l) { Cons(%h: int32, %t: List[int32]) => %h, Nil => %d };
               %r
             }""",
        types
        + """def @main(%l: List[int32], %d: int32) -> int32 {
               let %r = match (%l) {
                 Cons(%h: int32, %t: List[int32]) => {
                   let %_0 = memory.kill(%l);
                   let %_1 = memory.kill(%d);
                   let %_2 = memory.kill(%t);
                   %h
                 },
                 Nil => { let %_3 = memory.kill(%l); %d }
               };
               %r
             }""",
    )


@pytest.mark.parametrize("kind", ["vm", "debug", "graph"])
def test_programs_compute_the_same(kind):
    x = relay.var("x", shape=(3,))
    body = relay.exp(relay.add(x, relay.negative(x))) * x
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    mod = transform.ManifestLifetimes()(transform.ToANormalForm()(transform.InferType()(mod)))
    assert mod.astext(False).count("memory.kill") == 4
    data = np.array([1, 2, 3], "float32")
    np.testing.assert_allclose(relay.create_executor(kind, mod).evaluate()(data).numpy(), data)


def test_loops_compute_the_same():
    mod = tvm.relay.parse(
        _HEAD
        + """def @power(%n: int32, %x: float32) -> float32 {
               let %c = equal(%n, 0);
               if (%c) { 1f } else {
                 let %m = %n - 1; let %r = @power(%m, %x); let %p = %r * %x; %p } }
             def @main(%x: float32) { @power(3, %x) }"""
    )
    mod = transform.ManifestLifetimes()(mod)
    assert "memory.kill" in mod.astext(False)
    assert relay.create_executor("vm", mod).evaluate()(np.float32(2)).numpy() == 8
