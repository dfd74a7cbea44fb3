"""Reports, timers, metrics."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.runtime import profiling
from tvm.runtime.profiling import Count, Duration, Percent, Ratio, Report


@pytest.fixture
def report():
    shapes = "float32[4]"
    calls = [
        {"Name": "add", "Duration (us)": Duration(1.5), "Percent": Percent(15), "Count": Count(1)},
        {
            "Name": "mul",
            "Duration (us)": Duration(6000.25),
            "Percent": Percent(60),
            "Count": Count(1),
        },
        {"Name": "add", "Duration (us)": Duration(2.5), "Percent": Percent(25), "Count": Count(1)},
    ]
    calls = [{**call, "Device": "cpu0", "Argument Shapes": shapes} for call in calls]
    calls[1]["Hits"] = Ratio(0.25)
    return Report(calls, {"cpu0": {"Duration (us)": Duration(10.0)}}, {"Executor": "by hand"})


def lines_of(table):
    return [line.split() for line in table.splitlines()]


def test_table_aggregates_sorts_and_sums(report):
    lines = lines_of(report.table())
    assert lines[0][:4] == ["Name", "Duration", "(us)", "Percent"]
    assert lines[1][:2] == ["mul", "6,000.25"]
    assert lines[2][:3] == ["add", "4.00", "40.00"]
    assert lines[3][:2] == ["Sum", "6,004.25"]
    assert lines[4][:2] == ["Total", "10.00"]
    assert ["Executor:", "by", "hand"] in lines


def test_table_may_keep_every_call_in_order(report):
    lines = lines_of(report.table(sort=False, aggregate=False, col_sums=False))
    assert [line[0] for line in lines[1:4]] == ["add", "mul", "add"]
    assert "Sum" not in str(lines)


def test_csv_has_one_line_a_call_and_quotes_commas(report):
    rows = report.csv().splitlines()
    assert rows[0] == "Name,Duration (us),Percent,Device,Count,Argument Shapes,Hits"
    assert rows[2] == "mul,6000.25,60.00,cpu0,1,float32[4],0.2500"
    quoted = Report([{"Name": 'a "b", c'}]).csv()
    assert quoted == 'Name\n"a ""b"", c"\n'


def test_json_round_trip_prints_the_same_table(report):
    assert json.loads(report.json())["calls"][0]["Duration (us)"] == {"microseconds": 1.5}
    again = Report.from_json(report.json())
    assert again.table() == report.table()
    assert again.json() == report.json()
    assert pickle.loads(pickle.dumps(report)).csv() == report.csv()


def test_names_with_quotes_and_control_characters_survive_json():
    name = 'a "quoted"\\ \n name'
    assert Report.from_json(Report([{"Name": name}]).json()).calls == [{"Name": name}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected '{' at character 0"),
        ('{"calls": [', "expected '{'"),
        ('{"x": 1}', 'one of "calls"'),
        ('{"calls": []} x', "expected the end"),
    ],
)
def test_text_that_is_no_report_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Report.from_json(text)


def test_metrics_have_values():
    assert Duration(2.5).microseconds == 2.5
    assert Count(3).value == 3
    assert Percent(50).percent == 50
    assert Ratio(0.5).ratio == 0.5
    assert Count(3) == Count(3)
    assert Count(3) != Count(4)
    assert profiling.DeviceWrapper(tvm.cpu(1)).device == tvm.cpu(1)


def double():
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * 2.0, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="double")


def test_profile_function_measures_one_call_after_warming_up():
    a, b = tvm.nd.array(np.ones(4, "float32")), tvm.nd.empty((4,), "float32")
    metrics = profiling.profile_function(double(), tvm.cpu(), func_name="double")(a, b)
    assert metrics["Name"] == "double"
    assert metrics["Duration (us)"].microseconds > 0
    assert metrics["Argument Shapes"] == "float32[4], float32[4]"
    assert b.numpy().sum() == 8


def test_profile_function_refuses_unknown_functions():
    with pytest.raises(ValueError, match='no function "triple"'):
        profiling.profile_function(double(), tvm.cpu(), func_name="triple")


def test_counters_are_measured_or_said_to_be_missing():
    a, b = tvm.nd.array(np.ones(4, "float32")), tvm.nd.empty((4,), "float32")
    collector = profiling.PerfMetricCollector(["page-faults"])
    profile = profiling.profile_function(double(), tvm.cpu(), [collector], "double")
    try:
        assert profile(a, b)["page-faults"].value >= 0
    except RuntimeError as error:
        assert '"page-faults" is not available here' in str(error)
    with pytest.raises(ValueError, match='unknown event "flops"; known: cycles'):
        profiling.PerfMetricCollector(["flops"])


def test_timer_measures_its_block():
    with profiling.Timer(tvm.cpu()) as timer:
        np.ones(1000).sum()
    assert timer.seconds > 0
    with pytest.raises(RuntimeError, match="nothing was measured"):
        profiling.Timer(tvm.cpu()).seconds  # noqa: B018
