"""Positions for the nodes and edges of a large directed graph, row by row.

The steps are those of Sugiyama, Tagawa and Toda (1981): nodes get rows, edges over several rows get a bend in
each of them, rows are ordered by the means of their neighbours, and then x is chosen. A few thousand nodes
take about a second: edges that are too long to be worth it are not routed around nodes, and rows that are too
wide are folded.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_GAP: Final = 18.0  # between nodes of a row
_ROW_GAP: Final = 34.0
_COLUMN_GAP: Final = 90.0
_LONGEST: Final = 16  # rows that an edge is routed through; a longer one runs straight
_MOST_BENDS: Final = 20_000
_WIDEST: Final = 12  # nodes of a row, or the square root of their number where it is larger
_SWEEPS: Final = 6

Edge = tuple[int, int]
Point = tuple[float, float]


class Box(NamedTuple):
    """A node to be placed: its size, and which column of the picture it is in."""

    width: float
    height: float
    column: int = 0


@dataclass(frozen=True)
class Layout:
    """Where nodes and edges are; y grows downwards.

    Attributes
    ----------
    centers
        Of the nodes, in their order.
    paths
        Of the edges, in their order: the points that each runs through, first and last on the border of a
        node. An edge between columns, or within a row, runs from side to side: it has two points.
    """

    width: float
    height: float
    centers: tuple[Point, ...]
    paths: tuple[tuple[Point, ...], ...]


def place_nodes(boxes: Sequence[Box], edges: Sequence[Edge], ranks: Sequence[int]) -> Layout:
    """Return positions for nodes whose rows are known.

    Nodes of equal rank are in one row, or in several ones next to each other where they are many. Columns
    are set side by side, and share their rows. Equal input gives an equal layout.

    >>> found = place_nodes([Box(10, 10), Box(10, 10)], [(0, 1)], [0, 1])
    >>> found.centers
    ((5.0, 5.0), (5.0, 49.0))
    """
    rows = _fold(boxes, ranks)
    tops, height = _place_rows(boxes, rows)
    centers: list[Point] = [(0.0, 0.0)] * len(boxes)
    bends: dict[int, list[Point]] = {}
    left = 0.0
    for column in sorted({box.column for box in boxes}):
        grid = _Grid(boxes, rows, column)
        for index, edge in enumerate(edges):
            grid.add(index, edge)
        width = grid.place()
        for key, x in grid.x.items():
            if isinstance(key, int):
                centers[key] = (left + x, tops[rows[key]])
        for index, chain in grid.bends.items():
            bends[index] = [(left + grid.x[key], tops[key[1]]) for key in chain]
        left += width + _COLUMN_GAP
    paths = [_connect(boxes, centers, edge, rows, bends.get(index, [])) for index, edge in enumerate(edges)]
    return Layout(max(left - _COLUMN_GAP, 0.0), height, tuple(centers), tuple(paths))


def rank_by_longest_path(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return a row for every node, so that edges lead downwards; nodes without input stand next to a reader.

    The order of the nodes is taken for that of the program: an edge to an earlier node is passed over.

    >>> rank_by_longest_path(4, [(0, 1), (1, 3), (2, 3)])
    [0, 1, 1, 2]
    """
    ranks, readers = [0] * count, defaultdict[int, list[int]](list)
    fed = set()
    for source, target in sorted(edges):
        if source < target:
            readers[source].append(target)
    for source in range(count):
        for target in readers[source]:
            ranks[target] = max(ranks[target], ranks[source] + 1)
            fed.add(target)
    for source in range(count):
        if source not in fed and readers[source]:
            ranks[source] = min(ranks[target] for target in readers[source]) - 1
    return ranks


def _fold(boxes: Sequence[Box], ranks: Sequence[int]) -> list[int]:
    """Return rows from ranks: a rank of too many nodes becomes several rows."""
    members: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node, (box, rank) in enumerate(zip(boxes, ranks, strict=True)):
        members[rank][box.column].append(node)
    rows, next_row = [0] * len(boxes), 0
    for rank in sorted(members):
        used = 1
        for nodes in members[rank].values():
            widest = max(_WIDEST, math.isqrt(len(nodes)))
            for place, node in enumerate(nodes):
                rows[node] = next_row + place // widest
            used = max(used, 1 + (len(nodes) - 1) // widest)
        next_row += used
    return rows


def _place_rows(boxes: Sequence[Box], rows: Sequence[int]) -> tuple[list[float], float]:
    """Return the y of the middle of every row, and the height of all."""
    heights = [0.0] * (max(rows, default=-1) + 1)
    for box, row in zip(boxes, rows, strict=True):
        heights[row] = max(heights[row], box.height)
    middles, y = [], 0.0
    for height in heights:
        middles.append(y + height / 2)
        y += height + _ROW_GAP
    return middles, max(y - _ROW_GAP, 0.0)


Key = int | tuple[int, int]  # a node, or the bend of an edge in a row


@dataclass
class _Grid:
    """The nodes and bends of one column, in rows."""

    boxes: Sequence[Box]
    rows: Sequence[int]
    column: int
    x: dict[Key, float] = field(default_factory=dict)
    bends: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _rows: dict[int, list[Key]] = field(default_factory=lambda: defaultdict(list))
    _above: dict[Key, list[Key]] = field(default_factory=lambda: defaultdict(list))
    _below: dict[Key, list[Key]] = field(default_factory=lambda: defaultdict(list))
    _count: int = 0

    def __post_init__(self) -> None:
        for node, box in enumerate(self.boxes):
            if box.column == self.column:
                self._rows[self.rows[node]].append(node)

    def add(self, index: int, edge: Edge) -> None:
        """Add an edge if both of its nodes are in the column."""
        if any(self.boxes[node].column != self.column for node in edge):
            return
        upper, lower = sorted(edge, key=lambda node: self.rows[node])
        first, last = self.rows[upper], self.rows[lower]
        if first == last or last - first > _LONGEST or self._count > _MOST_BENDS:
            return
        chain = [(-1 - index, row) for row in range(first + 1, last)]
        for key in chain:
            self._rows[key[1]].append(key)
        path: list[Key] = [upper, *chain, lower]
        for one, other in itertools.pairwise(path):
            self._below[one].append(other)
            self._above[other].append(one)
        self._count += len(chain)
        if chain:
            self.bends[index] = chain if upper == edge[0] else chain[::-1]

    def place(self) -> float:
        """Choose x for all; return the width of the column."""
        order = sorted(self._rows)
        for row in order:
            self._pack(self._rows[row], [0.0] * len(self._rows[row]))
        for sweep in range(_SWEEPS):
            self._sweep(order if sweep % 2 == 0 else order[::-1], reorder=True, down=sweep % 2 == 0)
        for sweep in range(_SWEEPS):
            self._sweep(order if sweep % 2 == 0 else order[::-1], reorder=False, down=sweep % 2 == 0)
        begin = min((x - self._width(key) / 2 for key, x in self.x.items()), default=0.0)
        end = max((x + self._width(key) / 2 for key, x in self.x.items()), default=0.0)
        for key in self.x:
            self.x[key] -= begin
        return end - begin

    def _sweep(self, order: Sequence[int], *, reorder: bool, down: bool) -> None:
        near, far = (self._above, self._below) if down else (self._below, self._above)
        for row in order:
            keys = self._rows[row]
            wanted = {}
            for key in keys:
                others = near.get(key) or ([] if reorder else far.get(key, []))
                wanted[key] = sum(self.x[one] for one in others) / len(others) if others else self.x[key]
            if reorder:
                keys.sort(key=lambda key: wanted[key])  # a stable sort
            self._pack(keys, [wanted[key] for key in keys])

    def _pack(self, keys: Sequence[Key], wanted: Sequence[float]) -> None:
        """Set x of a row in its order: the least squares of the distances to where each wants to be.

        Without the widths, the positions must rise: an isotonic regression, by pooling adjacent violators.
        """
        offsets, end = [], 0.0
        for key in keys:
            width = self._width(key)
            offsets.append(end + width / 2)
            end += width + _GAP
        pools: list[tuple[float, int]] = []  # mean, count
        for want, offset in zip(wanted, offsets, strict=True):
            mean, count = want - offset, 1
            while pools and pools[-1][0] > mean:
                before, number = pools.pop()
                mean, count = (before * number + mean * count) / (number + count), number + count
            pools.append((mean, count))
        shifts = [mean for mean, count in pools for _ in range(count)]
        for key, shift, offset in zip(keys, shifts, offsets, strict=True):
            self.x[key] = shift + offset

    def _width(self, key: Key) -> float:
        return self.boxes[key].width if isinstance(key, int) else 4.0


def _connect(
    boxes: Sequence[Box], centers: Sequence[Point], edge: Edge, rows: Sequence[int], bends: list[Point]
) -> tuple[Point, ...]:
    """Return the points of an edge: from border to border, through its bends."""
    source, target = edge
    (x, y), (to_x, to_y) = centers[source], centers[target]
    if boxes[source].column != boxes[target].column or rows[source] == rows[target]:
        side = 1 if to_x >= x else -1
        return (x + side * boxes[source].width / 2, y), (to_x - side * boxes[target].width / 2, to_y)
    down = 1 if to_y >= y else -1
    begin = x, y + down * boxes[source].height / 2
    return begin, *bends, (to_x, to_y - down * boxes[target].height / 2)
