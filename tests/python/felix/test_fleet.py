"""Tuning on a Ray cluster of several node processes; nothing measured is lost with a node."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest
import torch
from torch import nn

from tvm import auto_scheduler, felix
from tvm.auto_scheduler import MeasureInput
from tvm.felix.tuning import tune
from tvm.target import Target

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")

# Nodes take seconds to start and to end.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def add_node(made):
    """A node with a processor and a device."""
    return made.add_node(num_cpus=1, resources={"tvm_device": 1}, wait=False)


@pytest.fixture(scope="module")
def cluster():
    """A head that offers nothing, and two nodes."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        made.nodes = [add_node(made), add_node(made)]
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False, logging_level="error")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("TVM_FELIX_CACHE", "off")


@pytest.fixture
def task():
    (made,) = felix.extract_tasks(nn.Linear(32, 16), torch.ones(8, 32))
    return made.instances[0].ansor_task


# First: a process that has a cluster asks for no other one.
def test_a_cluster_that_is_not_there_is_one_line():
    with pytest.raises(ConnectionError, match="no Ray cluster at 127.0.0.1:1: .*ray start --head"):
        felix.tune(nn.Linear(8, 4), torch.ones(2, 8), 1, runner="ray", fleet="127.0.0.1:1")
    with pytest.raises(ValueError, match='runner must be "local" or "ray"'):
        felix.tune(nn.Linear(8, 4), torch.ones(2, 8), 1, runner="rays")
    assert Target("llvm") and os.environ.get("RAY_ADDRESS") is None


def test_candidates_that_crash_or_hang_cost_neither_node_nor_device(cluster, task):
    from tvm.felix.fleet import Fleet, _do
    from tvm.runtime.workers import Job

    with Fleet() as fleet:
        do = ray.remote(_do)
        crashed, late = ray.get(
            [
                do.remote(Job("os:_exit", {}, b""), 5.0, 0),
                do.remote(Job("tvm.runtime.workers.pool:time.sleep", {}), 5.0, 0),
            ]
        )
        assert crashed.status in ("died", "error") and late.status == "error"
        runner = fleet.runner(number=1, min_repeat_ms=0)
        candidate = MeasureInput(task, task.compute_dag.get_init_state())
        measurer = auto_scheduler.ProgramMeasurer(fleet.builder(), runner)
        results = measurer.measure([candidate] * 4)
        assert [int(result.error_no) for result in results] == [0] * 4
        with pytest.raises(ValueError, match="5 devices are asked for and the cluster has 2"):
            fleet.runner(devices=5)
        runner.close()


def test_a_network_is_tuned_on_the_nodes_and_lost_ones_lose_nothing(cluster, tmp_path):
    layer, x = nn.Linear(32, 16), torch.randn(8, 32)
    records = tmp_path / "records.json"

    def kill_a_node():
        while not records.exists() or len(records.read_text().splitlines()) < 2:
            time.sleep(0.02)
        cluster.remove_node(cluster.nodes[0], allow_graceful=False)

    killer = threading.Thread(target=kill_a_node, daemon=True)
    killer.start()
    network = tune(layer, x, trials=8, folder=tmp_path, progress=False, runner="ray")
    killer.join(60)
    assert not killer.is_alive()
    lines = records.read_text().splitlines()
    assert len(lines) == 8 and len({json.dumps(json.loads(line)["i"]) for line in lines}) == 8
    assert all(json.loads(line)["r"][1] == 0 for line in lines)
    torch.testing.assert_close(network(x), layer(x).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("count", "processors"), [(0, 4), (1, 4), (48, 4), (64, 1), (5, 100)])
def test_shares_of_tasks_end_with_single_jobs(count, processors):
    from tvm.felix.fleet import _shares

    shares = _shares(count, processors)
    assert sum(shares) == count
    assert shares == sorted(shares, reverse=True)
    assert not shares or (max(shares) <= 8 and shares[-1] == 1)
    assert len(shares) <= count
