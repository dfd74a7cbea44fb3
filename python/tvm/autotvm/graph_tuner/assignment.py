"""Assignments of least cost: a choice for each node, costs of choices and of pairs of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

__all__ = ["Assignment"]

# Entries of the largest table that the exact method makes, 64 MB.
_LARGEST_TABLE = 1 << 23


class Assignment:
    """Nodes with a cost vector each, and matrices of costs between pairs of nodes.

    Parameters
    ----------
    costs : of each choice of each node, in seconds.
    """

    def __init__(self, costs: Mapping[int, np.ndarray]) -> None:
        self._costs = {node: np.array(cost, dtype=np.float64) for node, cost in costs.items()}
        self._pairs: dict[int, dict[int, np.ndarray]] = {node: {} for node in costs}

    def add_to(self, node: int, costs: np.ndarray) -> None:
        """Add costs of a node's choices."""
        self._costs[node] += costs

    def add(self, one: int, other: int, costs: np.ndarray) -> None:
        """Add costs of pairs, shape (choices of `one`, choices of `other`)."""
        if one == other:
            self.add_to(one, np.diagonal(costs))
            return
        for node, neighbour, matrix in ((one, other, costs), (other, one, costs.T)):
            known = self._pairs[node].get(neighbour)
            self._pairs[node][neighbour] = matrix + (0 if known is None else known)

    def cost_of(self, chosen: Mapping[int, int]) -> float:
        """Seconds of one choice a node."""
        total = sum(float(cost[chosen[node]]) for node, cost in self._costs.items())
        for node, neighbours in self._pairs.items():
            for other, matrix in neighbours.items():
                if node < other:
                    total += float(matrix[chosen[node], chosen[other]])
        return total

    def exact(self) -> dict[int, int]:
        """A best assignment, by dynamic programming: node after node is minimised away.

        Raises
        ------
        RuntimeError : too many nodes depend on each other for that.
        """
        factors: list[tuple[tuple[int, ...], np.ndarray]] = [
            ((node,), cost) for node, cost in self._costs.items()
        ]
        for node, neighbours in self._pairs.items():
            factors += [((node, other), m) for other, m in neighbours.items() if node < other]
        order: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        left = set(self._costs)
        while left:
            node = min(left, key=lambda n: (len(_scope(factors, n)), n))
            scope = (node, *sorted(_scope(factors, node) - {node}))
            shape = [len(self._costs[n]) for n in scope]
            if np.prod(shape, dtype=float) > _LARGEST_TABLE:
                raise RuntimeError(
                    f"graph tuner: {len(scope)} operators depend on each other, which is too many "
                    "for dynamic programming; take PBQPTuner, or fewer schedules an operator "
                    "(max_sch_num)"
                )
            table = np.zeros(shape)
            for nodes, values in factors:
                if node in nodes:
                    table += _aligned(values, nodes, scope)
            factors = [entry for entry in factors if node not in entry[0]]
            if len(scope) > 1:
                factors.append((scope[1:], table.min(axis=0)))
            order.append((node, scope[1:], table.argmin(axis=0)))
            left.remove(node)
        chosen: dict[int, int] = {}
        for node, others, best in reversed(order):
            chosen[node] = int(best[tuple(chosen[other] for other in others)])
        return chosen

    def reduced(self) -> dict[int, int]:
        """A good assignment, by the reductions of partitioned boolean quadratic programming.

        Nodes with at most two neighbours are removed without loss; of the others, the one with the
        most neighbours takes what is best for it and them (Scholz and Eckstein, LCTES 2002).
        """
        costs = {node: cost.copy() for node, cost in self._costs.items()}
        pairs = {node: dict(neighbours) for node, neighbours in self._pairs.items()}
        order: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        while costs:
            node = min(costs, key=lambda n: (len(pairs[n]), n))
            if len(pairs[node]) > 2:
                node = max(costs, key=lambda n: (len(pairs[n]), -n))
            around = sorted(pairs.pop(node))
            matrices = {other: pairs[other].pop(node) for other in around}
            cost = costs.pop(node)
            if len(around) <= 2:
                order.append((node, tuple(around), _folded(cost, around, matrices, costs, pairs)))
                continue
            local = cost + sum((costs[o] + matrices[o].T).min(axis=1) for o in around)
            best = int(np.argmin(local))
            for other in around:
                costs[other] += matrices[other][:, best]
            order.append((node, (), np.array(best)))
        chosen: dict[int, int] = {}
        for node, others, best_of in reversed(order):
            chosen[node] = int(best_of[tuple(chosen[other] for other in others)])
        return chosen


def _scope(factors: Iterable[tuple[tuple[int, ...], np.ndarray]], node: int) -> set[int]:
    """The nodes that a node shares factors with, itself included."""
    return {node}.union(*(nodes for nodes, _ in factors if node in nodes))


def _aligned(values: np.ndarray, nodes: tuple[int, ...], scope: tuple[int, ...]) -> np.ndarray:
    """A factor with an axis for every node of a scope."""
    order = sorted(range(len(nodes)), key=lambda k: scope.index(nodes[k]))
    shape = [values.shape[nodes.index(n)] if n in nodes else 1 for n in scope]
    return values.transpose(order).reshape(shape)


def _folded(
    cost: np.ndarray,
    around: list[int],
    matrices: Mapping[int, np.ndarray],
    costs: dict[int, np.ndarray],
    pairs: dict[int, dict[int, np.ndarray]],
) -> np.ndarray:
    """Give a node's costs to its neighbours; its best choice for each of theirs comes back."""
    if not around:
        return np.array(np.argmin(cost))
    if len(around) == 1:
        [other] = around
        table = matrices[other] + cost
        costs[other] += table.min(axis=1)
        return table.argmin(axis=1)
    one, other = around
    table = matrices[one][:, None, :] + matrices[other][None, :, :] + cost
    joint = table.min(axis=2)
    for node, neighbour, matrix in ((one, other, joint), (other, one, joint.T)):
        pairs[node][neighbour] = pairs[node].get(neighbour, 0) + matrix
    return table.argmin(axis=2)
