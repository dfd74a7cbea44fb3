"""Pictures of a te schedule in the DOT language: what is computed, in which loops, from which axes.

Each function writes a file, gives the text back, or shows the picture in a notebook, which needs
Graphviz.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tvm import te, tir
from tvm.runtime.files import write_atomically

from .dot import Digraph, draw

__all__ = ["viz_dataflow_graph", "viz_itervar_relationship_graph", "viz_schedule_tree"]

_KINDS = {
    0: "data parallel",
    1: "thread",
    2: "reduce",
    3: "ordered",
    4: "opaque",
    5: "unrolled",
    6: "vectorized",
    7: "parallel",
    8: "tensorized",
}
_COLORS = {"thread": "#f8cecc", "reduce": "#ffe6cc", "vectorized": "#d5e8d4", "parallel": "#dae8fc"}
_ATTACHED_AT_A_LOOP, _INLINED = 4, 2


def viz_dataflow_graph(
    sch: te.Schedule,
    show_svg: bool = False,
    dot_file_path: str | Path = "",
    output_dot_string: bool = False,
) -> str | None:
    """Stages and the tensors that go between them.

    Parameters
    ----------
    show_svg : show the picture in a notebook.
    dot_file_path : file for the text.
    output_dot_string : give the text back.

    Raises
    ------
    RuntimeError : a picture is asked for where Graphviz is not installed.
    """
    graph = Digraph("Dataflow Graph", node={"shape": "box"})
    names = _names(sch)
    for stage in sch.stages:
        op = stage.op
        outputs = [op.output(i) for i in range(op.num_outputs)]
        tensors = "\n".join(f"{t.name}: {_shape(t)} {t.dtype}" for t in outputs)
        scope = f" in {stage.scope}" if stage.scope else ""
        color = {} if op.input_tensors else {"style": "filled", "fillcolor": "#f5f5f5"}
        graph.node(names[op], f"{op.name} ({type(op).__name__}){scope}\n{tensors}", **color)
        for tensor in op.input_tensors:
            if tensor.op in names:
                graph.edge(names[tensor.op], names[op], label=tensor.name)
    return _answer(graph, show_svg, dot_file_path, output_dot_string)


def viz_schedule_tree(
    sch: te.Schedule,
    show_svg: bool = False,
    dot_file_path: str | Path = "",
    output_dot_string: bool = False,
) -> str | None:
    """The loops of each stage, outermost first, and at which loop of another it is computed.

    Parameters and errors as of `viz_dataflow_graph`.
    """
    graph = Digraph("Schedule Tree", node={"shape": "box"})
    names = _names(sch)
    for stage in sch.stages:
        name = names[stage.op]
        part = Digraph(f"{name} ({type(stage.op).__name__})")
        above = name
        inlined = int(stage.attach_type) == _INLINED
        part.node(name, "inlined" if inlined else f"stage {stage.op.name}", shape="ellipse")
        for loop in stage.leaf_iter_vars:
            at = _loop_name(name, loop)
            label, kind = _loop_label(stage, loop)
            part.node(at, label, style="filled", fillcolor=_COLORS.get(kind, "white"))
            part.edge(above, at)
            above = at
        graph.cluster(part)
        if int(stage.attach_type) == _ATTACHED_AT_A_LOOP:
            host = _loop_name(names[stage.attach_stage.op], stage.attach_ivar)
            graph.edge(host, name, style="dashed", label="compute_at")
    return _answer(graph, show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(
    sch: te.Schedule,
    show_svg: bool = False,
    dot_file_path: str | Path = "",
    output_dot_string: bool = False,
) -> str | None:
    """The axes of each stage, and how splits and fusions made its loops of them.

    Parameters and errors as of `viz_dataflow_graph`.
    """
    graph = Digraph("IterVar Relationship Graph", node={"shape": "box"})
    names = _names(sch)
    for stage in sch.stages:
        if not stage.all_iter_vars:
            continue
        name = names[stage.op]
        part = Digraph(f"{name} ({type(stage.op).__name__})")
        for loop in stage.all_iter_vars:
            part.node(_loop_name(name, loop), _loop_label(stage, loop)[0])
        for number, relation in enumerate(stage.relations):
            what, before, after = _relation(relation)
            node = f"{name}.relation{number}"
            part.node(node, what, shape="ellipse")
            for loop in before:
                part.edge(_loop_name(name, loop), node)
            for loop in after:
                part.edge(node, _loop_name(name, loop))
        graph.cluster(part)
    return _answer(graph, show_svg, dot_file_path, output_dot_string)


def _relation(relation: object) -> tuple[str, list[tir.IterVar], list[tir.IterVar]]:
    """What a relation is called, the loops it starts from and those it makes."""
    what = type(relation).__name__
    if isinstance(relation, te.schedule.Split):
        by = f"factor {relation.factor}" if relation.factor is not None else ""
        by = by or f"nparts {relation.nparts}"
        return f"{what}\n{by}", [relation.parent], [relation.outer, relation.inner]
    if isinstance(relation, te.schedule.Fuse):
        return what, [relation.outer, relation.inner], [relation.fused]
    if isinstance(relation, te.schedule.Rebase):
        return what, [relation.parent], [relation.rebased]
    made = getattr(relation, "iter", None)
    return what, [], [] if made is None else [made]


def _names(sch: te.Schedule) -> dict[te.Operation, str]:
    """A name of its own for each operation."""
    names: dict[te.Operation, str] = {}
    for stage in sch.stages:
        name, number = str(stage.op.name), 1
        while name in names.values():
            name, number = f"{stage.op.name}_{number}", number + 1
        names[stage.op] = name
    return names


def _shape(tensor: te.Tensor) -> str:
    return "[" + ", ".join(map(str, tensor.shape)) + "]"


def _loop_name(stage: str, loop: tir.IterVar) -> str:
    return f"{stage}.{loop.var.name}"


def _loop_label(stage: te.Stage, loop: tir.IterVar) -> tuple[str, str]:
    """What a loop's box says, and its kind."""
    attr = stage.iter_var_attrs.get(loop, None)
    kind = _KINDS.get(int(attr.iter_type if attr is not None else loop.iter_type), "")
    extent = "" if loop.dom is None else f" of {loop.dom.extent}"
    thread = attr.bind_thread if attr is not None else None
    bound = "" if thread is None else f"\non {thread.thread_tag or thread.var.name}"
    return f"{loop.var.name}{extent}\n{kind}{bound}", "thread" if thread is not None else kind


def _answer(
    graph: Digraph, show_svg: bool, dot_file_path: str | Path, output_dot_string: bool
) -> str | None:
    if dot_file_path:
        write_atomically(dot_file_path, str(graph))
    if show_svg:
        _show(graph)
    return str(graph) if output_dot_string else None


def _show(graph: Digraph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.svg"
        if not draw(graph, path, "svg"):
            raise RuntimeError(
                "show_svg: the program dot of Graphviz is not installed; take the text with "
                "output_dot_string=True or dot_file_path"
            )
        from IPython import display

        display.display(display.SVG(str(path)))
