"""Pictures of relay modules: as text, or in the DOT language of Graphviz.

Parsers and plotters of one's own are subclasses of `VizParser` and of `Plotter` with its
`VizGraph`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir, relay
from tvm.runtime import NDArray

from .dot import DotGraph, DotPlotter, DotVizParser
from .interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode, VizParser
from .terminal import TermGraph, TermPlotter, TermVizParser

__all__ = [
    "DefaultVizParser",
    "DotGraph",
    "DotPlotter",
    "DotVizParser",
    "Plotter",
    "RelayVisualizer",
    "TermGraph",
    "TermPlotter",
    "TermVizParser",
    "VizEdge",
    "VizGraph",
    "VizNode",
    "VizParser",
]


class RelayVisualizer:
    """The picture of a module, made of the expressions of its functions.

    Parameters
    ----------
    relay_mod : the module.
    relay_param : values of parameters by name, which tell them from inputs.
    plotter : draws; by default as text on standard output.
    parser : finds nodes and edges.

    Raises
    ------
    TypeError : something else than a module.
    """

    def __init__(
        self,
        relay_mod: ir.IRModule,
        relay_param: Mapping[str, NDArray] | None = None,
        plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ) -> None:
        if not isinstance(relay_mod, ir.IRModule):
            raise TypeError(
                f"RelayVisualizer: expected an IRModule, got {type(relay_mod).__name__}; make one "
                "of a function with tvm.IRModule.from_expr"
            )
        self._plotter = plotter if plotter is not None else TermPlotter()
        self._parser = parser if parser is not None else DefaultVizParser()
        params = dict(relay_param or {})
        # The main function comes first, as one reads.
        names = sorted(
            (g.name_hint for g in relay_mod.get_global_vars()), key=lambda n: n != "main"
        )
        for name in names:
            function = relay_mod[name]
            if isinstance(function, relay.Function):
                self._add(self._plotter.create_graph(name), name, function, params)

    def _add(
        self, graph: VizGraph, name: str, function: relay.Function, params: Mapping[str, NDArray]
    ) -> None:
        identities: dict[relay.Expr, str] = {}
        order: list[relay.Expr] = []

        def visit(expr: relay.Expr) -> None:
            identities[expr] = f"{name}_{len(order)}"
            order.append(expr)

        relay.analysis.post_order_visit(function, visit)
        for expr in order:
            node, edges = self._parser.get_node_edges(expr, params, identities)
            if node is not None:
                graph.node(node)
            for edge in edges:
                graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Write the picture; where to, says the plotter.

        Raises
        ------
        OSError : the file cannot be written.
        """
        self._plotter.render(filename)
