"""Positions for the nodes and edges of a large directed graph, row by row.

The steps follow Sugiyama, Tagawa and Toda (1981): nodes get rows, edges over several rows get a bend in each
row, rows are ordered by the means of their neighbours, and then x is chosen. Edges never run behind nodes: an
edge that crosses rows has its own place in each row. An edge that is too long for that, or leads to another
column, runs between the rows and beside the columns. Ten thousand nodes take half a second.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from operator import gt
from typing import Final, NamedTuple

from paddlelike.lazy import dataclass

_GAP: Final = 18.0  # between nodes of a row
_ROW_GAP: Final = 34.0
_COLUMN_GAP: Final = 90.0
_LONGEST: Final = 16  # rows in which an edge has a place; a longer one runs beside its column
_MOST_BENDS: Final = 20_000
_BEND: Final = 4.0  # the width of an edge in a row
_LANES: Final = 9  # beside a column, and in the gap between two rows
_WIDEST: Final = 12  # nodes of a row, or the square root of their number where it is larger
_SWEEPS: Final = 6

Edge = tuple[int, int]
Point = tuple[float, float]


class Box(NamedTuple):
    """A node to be placed: its size, and the column of the picture that it belongs to."""

    width: float
    height: float
    column: int = 0


@dataclass(frozen=True)
class Layout:
    """The positions of nodes and edges; y grows downwards.

    Attributes
    ----------
    centers
        The centers of the nodes, in their order.
    paths
        For each edge, in their order, the points that it runs through, from the upper or lower border of
        its source to the border of its target. It leaves and enters each point vertically, or runs
        horizontally between two of equal y.
    """

    width: float
    height: float
    centers: tuple[Point, ...]
    paths: tuple[tuple[Point, ...], ...]


def place_nodes(boxes: Sequence[Box], edges: Sequence[Edge], ranks: Sequence[int]) -> Layout:
    """Return positions for nodes whose rows are known.

    Nodes of equal rank are in one row, or in several neighbouring rows if there are many. Columns stand side
    by side and share their rows. Equal input gives an equal layout.

    >>> found = place_nodes([Box(10, 10), Box(10, 10)], [(0, 1)], [0, 1])
    >>> found.centers
    ((5.0, 5.0), (5.0, 49.0))
    """
    rows = _fold(boxes, ranks)
    tops, bottoms = _place_rows(boxes, rows)
    grid = _Grid(boxes, rows)
    for index, edge in enumerate(edges):
        grid.add(index, edge)
    sides = grid.place()
    centers = tuple((x, (tops[row] + bottoms[row]) / 2) for x, row in zip(grid.x, rows, strict=False))
    paths: list[tuple[Point, ...]] = []
    whole = [box.height == bottoms[row] - tops[row] for box, row in zip(boxes, rows, strict=True)]
    for index, (source, target) in enumerate(edges):
        from_row, to_row = rows[source], rows[target]
        if whole[source] and whole[target] and to_row == from_row + 1 and index in grid.bends:
            paths.append(((centers[source][0], bottoms[from_row]), (centers[target][0], tops[to_row])))
            continue
        lower, upper = to_row >= from_row, to_row <= from_row  # the borders that it touches
        if (chain := grid.bends.get(index)) is not None:
            through = [(grid.x[key], row) for key, row in chain]
            path = [
                (x, side[row])
                for x, row in through
                for side in ((tops, bottoms) if lower else (bottoms, tops))
            ]
            path = path[1:-1]
        else:
            lane = (index % _LANES + 1) / (_LANES + 1)
            first, last = (
                bottoms[rows[node]] + lane * _ROW_GAP if below else tops[rows[node]] - lane * _ROW_GAP
                for node, below in ((source, lower), (target, upper))
            )
            if abs(rows[source] - rows[target]) < 2:  # one gap is between them
                last = first
            side = sides[min(boxes[source].column, boxes[target].column)] + lane * _COLUMN_GAP
            path = [(centers[source][0], first), (side, first), (side, last), (centers[target][0], last)]
        ends = (
            (centers[node][0], centers[node][1] + (1 if below else -1) * boxes[node].height / 2)
            for node, below in ((source, lower), (target, upper))
        )
        paths.append(_straighten([next(ends), *path, next(ends)]))
    points = [point for path in paths for point in path]
    width, height = (max((point[axis] for point in points), default=0.0) for axis in (0, 1))
    return Layout(max(width, *sides.values(), 0.0), max(height, *bottoms, 0.0), centers, tuple(paths))


def _straighten(path: list[Point]) -> tuple[Point, ...]:
    """Return a path without the points in the middle of a straight part, and without repeated ones."""
    kept = path[:1]
    for point, after in itertools.islice(itertools.pairwise(path), 1, None):
        (x, y), (u, v), (to_x, to_y) = kept[-1], point, after
        across, down = (abs(x - u), abs(u - to_x)), (abs(y - v), abs(v - to_y))
        if min(across[0] + down[0], across[1] + down[1], sum(across), sum(down)) > 0.5:
            kept.append(point)
    return (*kept, path[-1])


def rank_by_longest_path(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return a row for every node, so that edges lead downwards; nodes without input are one row above a
    reader.

    The order of the nodes counts as the order of the program: an edge to an earlier node is ignored.

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
    """Return rows from ranks; a rank with too many nodes becomes several rows."""
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


def _place_rows(boxes: Sequence[Box], rows: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return the y of the upper and of the lower border of every row."""
    heights = [0.0] * (max(rows, default=-1) + 1)
    for box, row in zip(boxes, rows, strict=True):
        heights[row] = max(heights[row], box.height)
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y += height + _ROW_GAP
    return tops, [top + height for top, height in zip(tops, heights, strict=True)]


class _Grid:
    """Nodes, and the bends of edges, by row and column. The keys of bends come after the keys of nodes."""

    def __init__(self, boxes: Sequence[Box], rows: Sequence[int]) -> None:
        self.boxes, self.rows = boxes, rows
        self.widths = [box.width for box in boxes]
        self.x = [0.0] * len(boxes)
        self.bends: dict[int, list[tuple[int, int]]] = {}  # of edges, their keys with the row of each
        self._above: list[list[int]] = [[] for _ in boxes]
        self._below: list[list[int]] = [[] for _ in boxes]
        self._groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for node, box in enumerate(boxes):
            self._groups[box.column, rows[node]].append(node)

    def add(self, index: int, edge: Edge) -> None:
        """Give an edge a bend in every row that it crosses, unless it is long or leaves its column."""
        column = self.boxes[edge[0]].column
        upper, lower = edge if self.rows[edge[0]] <= self.rows[edge[1]] else edge[::-1]
        first, last = self.rows[upper], self.rows[lower]
        crossed = last - first - 1
        if self.boxes[edge[1]].column != column or not 0 <= crossed < _LONGEST:
            return
        if len(self.widths) - len(self.boxes) > _MOST_BENDS and crossed:
            return
        chain = [(upper, first)]
        for row in range(first + 1, last):
            key = len(self.widths)
            self._groups[column, row].append(key)
            self.widths.append(_BEND)
            self.x.append(0.0)
            self._above.append([])
            self._below.append([])
            chain.append((key, row))
        chain.append((lower, last))
        for (one, _), (other, _) in itertools.pairwise(chain):
            self._below[one].append(other)
            self._above[other].append(one)
        self.bends[index] = chain if upper == edge[0] else chain[::-1]

    def place(self) -> dict[int, float]:
        """Choose x for all nodes and bends; return where each column ends."""
        order = [self._groups[key] for key in sorted(self._groups)]
        for keys in order:
            self._pack(keys, [0.0] * len(keys))
        for _ in range(_SWEEPS // 2):
            changed = [self._sweep(order, down=True), self._sweep(order[::-1], down=False)]
            if not any(changed):
                break
        self._sweep(order, down=True)
        self._center()
        sides, left = {}, 0.0
        for column in sorted({column for column, _ in self._groups}):
            keys = [key for (own, _), some in self._groups.items() if own == column for key in some]
            shift = left - min(self.x[key] - self.widths[key] / 2 for key in keys)
            for key in keys:
                self.x[key] += shift
            sides[column] = max(self.x[key] + self.widths[key] / 2 for key in keys)
            left = sides[column] + _COLUMN_GAP
        return sides

    def _sweep(self, order: Sequence[list[int]], *, down: bool) -> bool:
        """Sort each row by the means of its neighbours and move it there; return whether an order changed."""
        x, (near, far) = self.x, (self._above, self._below) if down else (self._below, self._above)
        changed = False
        for keys in order:
            wanted = []
            for key in keys:
                others = near[key] or far[key] or [key]
                if len(others) == 1:  # most have one
                    wanted.append(x[others[0]])
                else:
                    wanted.append(sum([x[one] for one in others]) / len(others))
            if len(keys) == 1:
                x[keys[0]] = wanted[0]
                continue
            if any(map(gt, wanted, wanted[1:])):
                places = sorted(range(len(keys)), key=wanted.__getitem__)  # equal ones keep their order
                keys[:], wanted = [keys[place] for place in places], [wanted[place] for place in places]
                changed = True
            self._pack(keys, wanted)
        return changed

    def _center(self) -> None:
        """Shift rows with a single key that lie between two others with one key, so that these keys are
        aligned.

        Otherwise small shifts of the parts of a deep network add up.
        """
        shift, column = 0.0, None
        for at in sorted(self._groups):
            keys = self._groups[at]
            if len(keys) == 1 or at[0] != column:
                shift, column = -self.x[keys[0]], at[0]
            for key in keys:
                self.x[key] += shift

    def _pack(self, keys: Sequence[int], wanted: Sequence[float]) -> None:
        """Set the x of a row's nodes, in their order, as near to the wanted positions as possible (least
        squares).

        After the widths are subtracted, the positions must not decrease: this is an isotonic regression,
        solved by pooling adjacent violators.
        """
        offsets, end, x, widths = [], 0.0, self.x, self.widths
        pools: list[tuple[float, int]] = []  # mean, count
        for key, want in zip(keys, wanted, strict=True):
            half = widths[key] / 2
            offset = end + half
            offsets.append(offset)
            mean, count = want - offset, 1
            end = offset + half + _GAP
            while pools and pools[-1][0] > mean:
                before, number = pools.pop()
                mean, count = (before * number + mean * count) / (number + count), number + count
            pools.append((mean, count))
        places = zip(keys, offsets, strict=True)
        for mean, count in pools:
            for key, offset in itertools.islice(places, count):
                x[key] = mean + offset
