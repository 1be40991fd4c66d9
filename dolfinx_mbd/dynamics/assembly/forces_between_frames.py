"""Assembly of force elements between two frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Index
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.load_terms import LoadDerivatives, StatesOfLoads
from dolfinx_mbd.kernels.columns import ELASTIC, ETA, ON_FIRST, ON_SECOND, OTHERS
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.force_elements import FilmElement, PairElement


class ForcesBetweenFrames:
    """Loads with the port ``pair``."""

    def __init__(self, frames: Frames, states: StatesOfLoads, loads: Iterable[PairElement]) -> None:
        self._frames, self._states, index = frames, states, frames.system.frame_index
        self.items = [(_for_run(load), index(load.first), index(load.second)) for load in loads]
        self.contacts = [item for item in self.items if item[0].has_contacts]
        self.films = [
            (cast("FilmElement", load), one, two) for load, one, two in self.items if load.has_film
        ]
        self.elastic_films = [item for item in self.films if item[0].surface is not None]
        elastic = {film.name for film, *_ in self.elastic_films}
        self._of_elastic_films = [
            k for k, (load, *_) in enumerate(self.items) if load.name in elastic
        ]
        self._contents = [film for film, *_ in self.films if film.has_content]
        # views of the poses and velocities of both frames of each load
        self._pairs = {(one, two): frames.pair(one, two) for _, one, two in self.items}
        # results of the last call of `wrenches`
        self._last: list[Array] = [np.zeros(12)] * len(self.items)
        self.surface_forces: dict[str, tuple[int, Array]] = {}  # body and force on η, by load
        # angular velocities of the bodies in contacts
        self._spins = [part for _, *ends in self.contacts for part in self._spins_of(ends)]

    def _spins_of(self, frames: Iterable[int]) -> list[slice]:
        """Return the slices of v with the angular velocities of the bodies of some frames."""
        s = self._frames.system
        bodies = {int(s.frame_body[frame]) for frame in frames}
        starts = [s.v_slices[k].start for k in bodies if isinstance(s.bodies[k], FloatingBody)]
        return [slice(start + 3, start + 6) for start in starts]

    def groups(self) -> list[set[int]]:
        """Return, for each load, the bodies on whose motion or states it depends or acts."""
        return [
            {*self._frames.bodies_of((first, second)), *self._states.body(load.name)}
            for load, first, second in self.items
        ]

    def arguments(self, element: PairElement, first: int, second: int) -> tuple[Any, ...]:
        """Return the arguments of the methods of an element; see `PairElement`."""
        pair = self._pairs[first, second]
        if element.timed:
            return pair, self._frames.time, self._states.values(element.name)
        if element.surface is None:
            return (pair,)
        view = self._frames.views[int(self._frames.system.frame_body[first])]
        surface = np.empty((2, len(element.surface)))
        element.surface.dot(view.q[ETA], out=surface[0])
        element.surface.dot(view.v[ELASTIC], out=surface[1])
        return pair, surface

    def wrenches(self, t: float) -> Iterator[tuple[PairElement, tuple[int, ...], Array]]:
        """Yield each load with its frames and the wrenches on the frames, (12,)."""
        for index, (element, first, second) in enumerate(self.items):
            wrenches = element.wrenches(*self.arguments(element, first, second))
            self._last[index] = wrenches
            if element.timed:
                self._states.set_rates(element.name, wrenches[OTHERS])
            if element.surface is not None:
                body = int(self._frames.system.frame_body[first])
                self.surface_forces[element.name] = body, wrenches[OTHERS] @ element.surface
            yield element, (first, second), wrenches[:12]

    def subtract_surface_forces(self) -> None:
        """Subtract the forces on elastic surfaces from the residual."""
        for k, force in self.surface_forces.values():
            view = self._frames.views[k]
            view.rows[ELASTIC] -= force
            view.scale[ELASTIC] += np.abs(force)

    def power_of_surface(self, load: str) -> float:
        """Return the power of a load on elastic coordinates, W."""
        k, force = self.surface_forces[load]
        return float(force @ self._frames.views[k].v[ELASTIC])

    def energy(self, *, elastic: bool) -> float:
        """Return the stored energy, J; if `elastic`, only that of elastic elements."""
        return sum(
            load.energy(*self.arguments(load, *ends))
            for load, *ends in self.items
            if load.is_elastic or not elastic
        )

    def power(self) -> tuple[float, float]:
        """Return the elastic and the total power of the elastic elements, W.

        The total power is that of the last `wrenches`.
        """
        elastic, total = 0.0, 0.0
        for wrenches, (load, *ends) in zip(self._last, self.items, strict=True):
            if load.is_elastic:
                pair, *others = self.arguments(load, *ends)
                total += float(wrenches[ON_FIRST] @ pair.u1 + wrenches[ON_SECOND] @ pair.u2)
                if load.surface is not None:
                    total += float(wrenches[OTHERS] @ others[0][1])
                elastic += load.elastic_power(pair, *others)
        return elastic, total

    def film_gaps(self) -> Array:
        """Return smallest gaps and clearances of the oil films at present, (films, 2), m."""
        films = [
            (load.smallest_gap(*self.arguments(load, *ends)), load.clearance)
            for load, *ends in self.films
        ]
        return np.array(films).reshape(-1, 2)

    def gap_stiffness(self, k: int, rate_factor: float, *, assembled: bool) -> Array:
        """Return the derivatives of an elastic film by the gap; see `Loads.gap_stiffness`."""
        film, *ends = self.elastic_films[k]
        arguments = () if assembled else self.arguments(film, *ends)
        return film.gap_stiffness(rate_factor, *arguments)

    def gap_forces(self) -> list[Array]:
        """Return the forces of elastic films on the gaps; see `Loads.gap_forces`."""
        return [self._last[k][OTHERS] for k in self._of_elastic_films]

    def write_gap_gradients(self, delay: float, gradients: Array, changes: Array) -> None:
        """Write the derivatives of the coefficients of all elastic gaps by the poses of frames."""
        first = 0
        for film, one, two in self.elastic_films:
            last = first + len(np.asarray(film.surface))
            film.write_gap_gradients(
                self._pairs[one, two], delay, gradients[first:last], changes[first:last]
            )
            first = last

    @property
    def has_content(self) -> bool:
        """Whether the oil in a gap before a step affects a film."""
        return bool(self._contents)

    @property
    def content_size(self) -> int:
        """Number of nodes of all films with a content."""
        return sum(film.content.size for film in self._contents)

    def content(self) -> Array:
        """Return the contents of the films at the last `wrenches`, one after the other, m."""
        return np.concatenate([np.zeros(0), *(film.content for film in self._contents)])

    def oil_thickness(self) -> dict[str, Array]:
        """Return the oil thickness divided by the clearance at the last `wrenches`, by film."""
        return {film.name: film.oil_thickness for film in self._contents}

    def begin_step(self, content: Array, dt: float) -> None:
        """Set the contents before a step of length `dt` (s), or steady contents if dt = 0."""
        sizes = np.cumsum([film.content.size for film in self._contents])[:-1]
        for film, part in zip(self._contents, np.split(content, sizes), strict=True):
            film.begin_step(part, dt)

    def contact_spin(self, v: Array) -> float:
        """Return the largest angular speed of the bodies in contacts at velocities v, rad/s."""
        parts = (v[part] for part in self._spins)
        return math.sqrt(max((float(omega @ omega) for omega in parts), default=0.0))

    def add_derivatives(self, target: LoadDerivatives) -> None:
        """Add the derivatives of the loads."""
        groups: dict[tuple[int, ...], list[_Extended]] = {}
        for element, first, second in self.items:
            D, E = element.derivatives(*self.arguments(element, first, second))
            if len(D) == 12:
                target.add_pair(np.array([[first, second]]), -D, -E)
                continue
            bodies = *self._frames.bodies_of((first, second)), *self._states.body(element.name)
            part = _Extended(element, (first, second), -D, -E)
            groups.setdefault(bodies, []).append(part)
        if groups:
            frame_derivatives = self._frames.last_derivatives()
            for bodies, group in groups.items():
                self._add_extended(bodies, group, frame_derivatives, target)

    def _add_extended(
        self,
        bodies: tuple[int, ...],
        group: list[_Extended],
        frame_derivatives: tuple[list[Array], list[Array]],
        target: LoadDerivatives,
    ) -> None:
        """Add the derivatives of elements that also act on elastic coordinates or states.

        All elements of the group act on the same bodies: those of both frames, and that of states.
        """
        ports = [self._ports(item, frame_derivatives) for item in group]
        edges = list(accumulate((left.shape[1] for _, left, _ in ports[0]), initial=0))
        blocks = [slice(*edges[i : i + 2]) for i in range(len(bodies))]
        starts = list(accumulate((len(item.D) for item in group), initial=0))
        # derivatives of all wrenches with respect to the increments and rates of the bodies
        by_pose, by_rate = np.empty((2, starts[-1], edges[-1]))
        for item, start, stop, parts in zip(group, starts[:-1], starts[1:], ports, strict=True):
            for columns, (rows, left, change) in zip(blocks, parts, strict=True):
                D, E = item.D[:, rows], item.E[:, rows]
                np.matmul(E, left, out=by_rate[start:stop, columns])
                np.matmul(D, left, out=by_pose[start:stop, columns])
                by_pose[start:stop, columns] += E[:, : len(change)] @ change
        for k, (row, size) in enumerate(zip(bodies, np.diff(edges), strict=True)):
            if not size:
                continue
            # One product for all elements instead of one for each
            left = np.concatenate([parts[k][1] for parts in ports]).T
            rows = np.concatenate(
                [parts[k][0] + start for parts, start in zip(ports, starts[:-1], strict=True)]
            )
            for matrix, by in ((target.K, by_pose), (target.C, by_rate)):
                product = left @ by[rows]
                for column, columns in zip(bodies, blocks, strict=True):
                    if columns.start < columns.stop:
                        matrix.add(row, column, product[:, columns])

    def _ports(
        self, item: _Extended, frame_derivatives: tuple[list[Array], list[Array]]
    ) -> list[tuple[Index, Array, Array]]:
        """Return, for each body of an element, which columns of D and E it moves.

        The columns are the poses of both frames (12), then the coefficients s of the elastic
        surface or the states. The result contains, for each body, the indices of the poses (6) and
        of s, or of the states; their derivatives by the increments of the body; and those of the
        velocities by the increments, for the poses only, because they are zero for s and states.

        The rows of states in D and E are multiplied by the mass of the body of the states.
        """
        element, ends, D, E = item
        # Jacobians J and R of both frames, and derivatives S and T of their velocities
        (_, J), (_, R), (_, S), (_, T) = (
            self._frames.frame_jacobian(end, matrices)
            for matrices in frame_derivatives
            for end in ends
        )
        others = np.arange(12, len(D))
        if element.surface is None:
            first = np.arange(6), J, S
        else:
            left = np.zeros((6 + len(others), J.shape[1]))
            left[:6], left[6:, ELASTIC] = J, element.surface
            first = np.concatenate([np.arange(6), others]), left, S
        ports: list[tuple[Index, Array, Array]] = [first, (np.arange(6, 12), R, T)]
        for body in self._states.body(element.name):
            D[OTHERS] *= self._states.mass(body)
            E[OTHERS] *= self._states.mass(body)
            ports.append((others, np.eye(len(others)), np.zeros((0, len(others)))))
        return ports


class _Extended(NamedTuple):
    """An element that also acts on elastic coordinates or states, with its negative derivatives.

    `ends` are its frames; D and E are the derivatives of its wrenches by poses and rates; see
    `PairElement`.
    """

    element: PairElement
    ends: tuple[int, int]
    D: Array
    E: Array


def _for_run(load: PairElement) -> PairElement:
    """Return the load, or a copy whose content belongs to one assembler."""
    return cast("FilmElement", load).for_run() if load.has_film else load
