"""Pictures of schedules and of relay modules, as text."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay, te
from tvm.contrib import relay_viz, tedd
from tvm.relay import testing as networks


@pytest.fixture
def schedule():
    a = te.placeholder((8, 8), name="a")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((8,), lambda i: te.sum(b[i, k], axis=k), name="c")
    sch = te.create_schedule(c.op)
    outer, inner = sch[c].split(c.op.axis[0], factor=4)
    sch[c].bind(outer, te.thread_axis("blockIdx.x"))
    sch[c].unroll(inner)
    sch[b].compute_at(sch[c], outer)
    return sch


def test_dataflow_shows_stages_and_tensors(schedule):
    text = tedd.viz_dataflow_graph(schedule, output_dot_string=True)
    assert text.startswith('digraph "Dataflow Graph" {')
    assert '"b" [label="b (ComputeOp)\\nb: [8, 8] float32"];' in text
    assert '"a" -> "b" [label="a"];' in text and '"b" -> "c" [label="b"];' in text


def test_schedule_trees_show_loops_and_places(schedule, tmp_path):
    path = tmp_path / "tree.dot"
    assert tedd.viz_schedule_tree(schedule, dot_file_path=path) is None
    text = path.read_text()
    assert '"c.i.outer" [label="i.outer\\ndata parallel\\non blockIdx.x"' in text
    assert '"c" -> "c.i.outer";' in text and '"c.i.outer" -> "c.i.inner";' in text
    assert 'label="i.inner\\nunrolled"' in text and 'label="k of 8\\nreduce"' in text
    assert '"c.i.outer" -> "b" [style="dashed", label="compute_at"];' in text
    bounded = tedd.viz_schedule_tree(schedule.normalize(), output_dot_string=True)
    assert "i.outer" in bounded


def test_relations_show_what_loops_are_made_of(schedule):
    text = tedd.viz_itervar_relationship_graph(schedule, output_dot_string=True)
    assert '"c.relation0" [label="Split\\nfactor 4", shape="ellipse"];' in text
    assert '"c.i" -> "c.relation0";' in text and '"c.relation0" -> "c.i.inner";' in text


def test_a_picture_needs_graphviz(schedule, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="Graphviz is not installed; take the text"):
        tedd.viz_dataflow_graph(schedule, show_svg=True)


def test_networks_are_printed_as_trees(capsys):
    mod, params = networks.mlp.get_workload(1)
    relay_viz.RelayVisualizer(mod, relay_param=params).render()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "@main" and "Func" in lines[1] and "Call nn.softmax (axis: -1)" in lines[2]
    assert sum("Var(Param)" in line for line in lines) == len(params)
    assert sum("Var(Input) (name_hint: data" in line for line in lines) == 1


def test_shared_values_are_printed_once(tmp_path):
    x = relay.var("x", shape=(2, 3))
    shared = relay.nn.relu(x)
    body = relay.Tuple([relay.add(shared, shared), relay.exp(shared)])
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    path = tmp_path / "network.txt"
    relay_viz.RelayVisualizer(mod).render(str(path))
    text = path.read_text()
    assert text.count("Call nn.relu") == 1 and text.count(" above") == 2


def test_networks_are_written_as_dot(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")  # the text alone
    mod, params = networks.mlp.get_workload(1)

    def color(node):
        return {"fillcolor": "green"} if "nn.dense" in node.type_name else {}

    plotter = relay_viz.DotPlotter(graph_attr={"color": "red"}, get_node_attr=color)
    parser = relay_viz.DotVizParser()
    relay_viz.RelayVisualizer(mod, params, plotter, parser).render(str(tmp_path / "mlp"))
    text = (tmp_path / "mlp.dot").read_text()
    assert 'subgraph "cluster_main"' in text and 'graph [color="red"];' in text
    assert text.count('fillcolor="green"') == text.count("Call nn.dense") == 3
    with pytest.raises(ValueError, match="unknown option 'engine' of render_kwargs; known are"):
        relay_viz.DotPlotter(render_kwargs={"engine": "neato"})
    with pytest.raises(TypeError, match="expected an IRModule, got Function"):
        relay_viz.RelayVisualizer(mod["main"])


def test_parsers_of_ones_own_choose_nodes():
    class OnlyCalls(relay_viz.DefaultVizParser):
        def get_node_edges(self, node, relay_param, node_to_id):
            found, edges = super().get_node_edges(node, relay_param, node_to_id)
            return (found, edges) if isinstance(node, relay.Call) else (None, [])

    seen = []

    class Collect(relay_viz.VizGraph, relay_viz.Plotter):
        def node(self, viz_node):
            seen.append(viz_node.type_name)

        def edge(self, viz_edge):
            pass

        def create_graph(self, name):
            return self

        def render(self, filename):
            seen.append(filename)

    mod, _ = networks.mlp.get_workload(1)
    relay_viz.RelayVisualizer(mod, plotter=Collect(), parser=OnlyCalls()).render("there")
    assert seen[0] == "Call nn.batch_flatten" and seen[-1] == "there"
    assert {name.split()[0] for name in seen[:-1]} == {"Call"}


def test_plotters_of_ones_own_add_nodes(capsys):
    class Doubled(relay_viz.terminal.TermGraph):
        def node(self, viz_node):
            super().node(viz_node)
            if viz_node.type_name.startswith("Var"):
                twin = f"twin of {viz_node.identity}"
                super().node(relay_viz.VizNode(twin, "Twin", ""))
                super().edge(relay_viz.VizEdge(twin, viz_node.identity))

    class Plotter(relay_viz.TermPlotter):
        def create_graph(self, name):
            self._name_to_graph[name] = Doubled(name)
            return self._name_to_graph[name]

    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.abs(x)))
    relay_viz.RelayVisualizer(mod, {}, Plotter()).render()
    assert capsys.readouterr().out.count("Twin") == 1
