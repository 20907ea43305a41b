"""Tiles as the nodes of a graph and overlaps as its edges: walking it, and solving sparse least squares on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.sparse.linalg import splu

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Network:
    """``nodes`` nodes; edge e joins ``first[e]`` to ``second[e]`` and is worth ``strength[e]``.

    Nothing relates nodes that no path of edges joins. Such islands each have a free constant, which is fixed at an
    island's root: its node of the lowest number.
    """

    nodes: int
    first: IntArray
    second: IntArray
    strength: FloatArray

    @cached_property
    def islands(self) -> IntArray:
        """The number of each node's island."""
        edges = coo_matrix((np.ones(len(self.first)), (self.first, self.second)), shape=(self.nodes, self.nodes))
        return np.asarray(connected_components(edges, directed=False)[1], np.intp)

    @cached_property
    def roots(self) -> IntArray:
        """The first node of each island."""
        return np.unique(self.islands, return_index=True)[1]

    def centred(self, values: FloatArray) -> FloatArray:
        """``values`` of the nodes (along the first axis) minus the mean of their island.

        >>> network = Network(3, np.array([0]), np.array([2]), np.ones(1))
        >>> network.centred(np.array([1.0, 5.0, 3.0])).tolist()
        [-1.0, 0.0, 1.0]
        """
        sums = np.zeros((len(self.roots), *values.shape[1:]))
        np.add.at(sums, self.islands, values)
        means = (sums.T / np.bincount(self.islands)).T
        return np.asarray(values - means[self.islands])

    def integrate(self, differences: FloatArray) -> FloatArray:
        """Values with value[second] − value[first] = ``differences`` along the maximum spanning tree; 0 at roots.

        The tree joins each island by its strongest edges: where edges contradict each other, the weak ones lose.

        >>> triangle = Network(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([2.0, 1.0, 3.0]))
        >>> triangle.integrate(np.array([1.0, 1.0, 9.0])).tolist()
        [0.0, 1.0, 9.0]
        """
        # A node of its own joins all roots, so that one walk visits all islands.
        start, virtual = self.nodes, np.full(len(self.roots), self.nodes)
        ends = np.concatenate([self.first, virtual]), np.concatenate([self.second, self.roots])
        lengths = np.concatenate([1 / np.maximum(self.strength, _TINY), np.ones(len(self.roots))])
        tree = minimum_spanning_tree(coo_matrix((lengths, ends), shape=(start + 1, start + 1)).tocsr())
        order, parents = breadth_first_order(tree, start, directed=False)

        steps = {}
        for first, second, step in zip(self.first.tolist(), self.second.tolist(), differences.tolist(), strict=True):
            steps[first, second], steps[second, first] = step, -step
        values = np.zeros(self.nodes)
        for node in order[1:].tolist():
            parent = int(parents[node])
            if parent != start:
                values[node] = values[parent] + steps[parent, node]
        return values

    def least_squares(
        self,
        jacobians: FloatArray,
        weights: FloatArray,
        pulls: FloatArray,
        damping: FloatArray,
        offset: FloatArray,
        *,
        free: bool = True,
    ) -> FloatArray:
        """Minimise Σ_e (½ rᵀ W_e r + p_eᵀ r) + ½ Σ_k (v_k + x_k)ᵀ Λ (v_k + x_k) over the nodes' x, r = J_e (x_a, x_b).

        ``jacobians`` J: edges × residuals × (2 · unknowns per node), ``weights`` W: edges × residuals × residuals,
        ``pulls`` p: edges × residuals, ``damping``: the diagonal of Λ, ``offset`` v: nodes × unknowns. If ``free``, the
        first unknown is a constant that an island may share: x = 0 at its root, which costs nothing as residuals know
        differences only. Otherwise all unknowns must be damped.

        The normal equations have one block per node and two per edge. Their graph is planar, like the tiles, so the
        cost of the elimination grows little faster than the number of tiles.
        """
        unknowns = offset.shape[1]
        each = np.arange(unknowns)
        places = np.concatenate([self.first[:, None] * unknowns + each, self.second[:, None] * unknowns + each], axis=1)
        blocks = jacobians.transpose(0, 2, 1) @ weights @ jacobians
        rows, columns = np.broadcast_arrays(places[:, :, None], places[:, None, :])
        gradients = (jacobians.transpose(0, 2, 1) @ pulls[:, :, None])[:, :, 0]

        diagonal = np.tile(damping, (self.nodes, 1))
        gradient = np.bincount(places.ravel(), gradients.ravel(), minlength=offset.size) + (diagonal * offset).ravel()
        # Any weight holds a root's constant at 0; one like the edges' own keeps the equations well scaled.
        if free:
            diagonal[self.roots, 0] += max(1.0, float(weights[:, 0, 0].mean())) if len(weights) else 1.0
        every = np.arange(offset.size)
        values = np.concatenate([blocks.ravel(), diagonal.ravel()])
        where = np.concatenate([rows.ravel(), every]), np.concatenate([columns.ravel(), every])
        matrix = coo_matrix((values, where), shape=(offset.size, offset.size)).tocsc()
        factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return np.asarray(-factors.solve(gradient)).reshape(offset.shape)
