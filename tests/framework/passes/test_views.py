"""Programs as networkx graphs."""

from __future__ import annotations

import paddlelike as fluid

L = fluid.layers


def test_the_graph_holds_operators_and_variables(main: fluid.Program) -> None:
    import networkx as nx

    graph = main.graph()
    assert graph.nodes["fc_0.w_0"] == {"kind": "parameter", "shape": (4, 3), "dtype": "FP32"}
    assert graph.nodes["fc_0.w_0_velocity_0"]["kind"] == "persistable"
    assert graph.nodes["x"]["kind"] == "temporary"
    assert graph.nodes[0, 0] == {"kind": "operator", "type": "mul", "role": 0}
    assert list(graph.predecessors((0, 0))) == ["x", "fc_0.w_0"]
    assert nx.has_path(graph, "x", "mean_0.tmp_0")
    operators = [node for node, facts in graph.nodes(data=True) if facts.get("kind") == "operator"]
    assert len(operators) == len(main.global_block().ops)
