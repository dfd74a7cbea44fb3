"""Kernels without a record are scheduled by the registry of topi."""

from __future__ import annotations

from tvm import relax, topi
from tvm.relax import op
from tvm.topi import schedule_registry
from tvm.topi.generic import default_schedule


def test_a_rule_of_the_user_serves_networks(monkeypatch, make_module):
    monkeypatch.setattr(schedule_registry, "_RULES", dict(schedule_registry._RULES))
    asked = []

    @topi.register_schedule("softmax_output", "cpu", override=True)
    def rule(anchor, outputs, target):
        asked.append(str(anchor.op.name))
        return default_schedule(outputs, target)

    relax.build(make_module(lambda bb, x: op.nn.softmax(x), (2, 8)))
    assert asked == ["T_softmax_norm"]
    assert ("softmax_output", "cpu") in topi.registered_schedules()
