"""Assembly of force elements between two frames."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Index
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.load_terms import LoadDerivatives, StatesOfLoads
from dolfinx_mbd.kernels.columns import ELASTIC, ETA, ON_FIRST, ON_SECOND, OTHERS
from dolfinx_mbd.mechanism.bearings.film_group import FilmGroup
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.force_elements import FilmElement, PairElement


class ForcesBetweenFrames:
    """Loads with the port ``pair``."""

    def __init__(self, frames: Frames, states: StatesOfLoads, loads: Iterable[PairElement]) -> None:
        self._frames, self._states, index = frames, states, frames.system.frame_index
        self._copies: list[tuple[FilmElement, FilmElement]] = []  # films, and copies of this object
        self.items = [
            (self._for_run(load), index(load.first), index(load.second)) for load in loads
        ]
        self.contacts = [item for item in self.items if item[0].has_contacts]
        self.films = [
            (cast("FilmElement", load), one, two) for load, one, two in self.items if load.has_film
        ]
        self.elastic_films = [item for item in self.films if item[0].surface is not None]
        self._of_elastic_films = [
            k for k, (load, *_) in enumerate(self.items) if load.has_film and load.acts_on_modes
        ]
        self._contents = [film for film, *_ in self.films if film.has_content]
        # views of the poses and velocities of both frames of each load
        self._pairs = {(one, two): frames.pair(one, two) for _, one, two in self.items}
        # results of the last call of `wrenches` or `apply`
        self._last: list[Array] = [np.zeros(12)] * len(self.items)
        self._groups = self._film_groups()
        grouped = {film.name for group in self._groups for film in group.films}
        # indices of the loads that are evaluated one by one, and of those that act on surfaces
        self._single = [k for k, (load, *_) in enumerate(self.items) if load.name not in grouped]
        self._on_surfaces = [k for k in self._single if self.items[k][0].acts_on_modes]
        self.acts_on_modes = bool(self._groups or self._on_surfaces)
        # angular velocities of the bodies in contacts
        self._spins = [part for _, *ends in self.contacts for part in self._spins_of(ends)]

    def _for_run(self, load: PairElement) -> PairElement:
        """Return the load, or a copy whose solution belongs to this object."""
        if not load.has_film:
            return load
        film = cast("FilmElement", load)
        copy = film.for_run()
        if copy is not film:
            self._copies.append((film, copy))
        return copy

    def _film_groups(self) -> list[FilmGroup]:
        """Return groups of films that are evaluated together, with their wrenches in `_last`."""
        s = self._frames.system
        keys: dict[Hashable, list[tuple[int, Any, tuple[int, int, int, int]]]] = {}
        for index, (load, one, two) in enumerate(self.items):
            if load.has_film and (key := cast("FilmElement", load).group_key):
                body = int(s.frame_body[one])
                starts = s.q_slices[body].start + ETA.start, s.v_slices[body].start + ELASTIC.start
                keys.setdefault(key, []).append((index, load, (one, two, *starts)))
        groups = []
        for members in keys.values():
            indices, films, places = zip(*members, strict=True)
            groups.append(FilmGroup(films, places))
            for index, wrenches in zip(indices, groups[-1].wrenches, strict=True):
                self._last[index] = wrenches
        return groups

    def _follow_inputs(self) -> None:
        """Renew the copies of films after inputs of a simulation have changed the films."""
        if any([copy.follow(film) for film, copy in self._copies]):
            self._groups = self._film_groups()

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

    def _evaluate_groups(self) -> None:
        """Evaluate the films of all groups."""
        self._follow_inputs()
        for group in self._groups:
            group.evaluate(self._point)

    def _evaluate(self, index: int) -> Array:
        """Return the wrenches of a load outside of groups, and the forces on its surface."""
        element, first, second = self.items[index]
        wrenches = self._last[index] = element.wrenches(*self.arguments(element, first, second))
        if element.timed:
            self._states.set_rates(element.name, wrenches[OTHERS])
        return wrenches

    def wrenches(self, t: float) -> Iterator[tuple[PairElement, tuple[int, ...], Array]]:
        """Yield each load with its frames and the wrenches on the frames, (12,)."""
        self._evaluate_groups()
        single = set(self._single)
        for index, (element, first, second) in enumerate(self.items):
            wrenches = self._evaluate(index) if index in single else self._last[index].copy()
            yield element, (first, second), wrenches[:12]

    def apply(self, total: Array) -> None:
        """Add the wrenches of all loads to those of the frames, (frames, 6)."""
        self._evaluate_groups()
        for group in self._groups:
            group.add_to(total)
        for index in self._single:
            wrenches, (_, first, second) = self._evaluate(index), self.items[index]
            total[first] += wrenches[ON_FIRST]
            total[second] += wrenches[ON_SECOND]

    def subtract_surface_forces(self) -> None:
        """Subtract the last forces on elastic surfaces from the residual."""
        for group in self._groups:
            group.subtract_forces_on_modes(self._frames.rows, self._frames.scale)
        for index in self._on_surfaces:
            element, first, _ = self.items[index]
            view = self._frames.views[int(self._frames.system.frame_body[first])]
            force = self._last[index][OTHERS] @ np.asarray(element.surface)
            view.rows[ELASTIC] -= force
            view.scale[ELASTIC] += np.abs(force)

    def power_on_modes(self, load: str | None = None) -> float:
        """Return the power of the last forces of one load, or all, on elastic coordinates, W."""
        power = 0.0
        for wrenches, (element, first, _) in zip(self._last, self.items, strict=True):
            if element.acts_on_modes and load in (None, element.name):
                view = self._frames.views[int(self._frames.system.frame_body[first])]
                power += float(wrenches[OTHERS] @ (np.asarray(element.surface) @ view.v[ELASTIC]))
        return power

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
        self._follow_inputs()
        gaps = {
            film.name: gap
            for group in self._groups
            for film, gap in zip(group.films, group.smallest_gaps(self._point), strict=True)
        }
        films = [
            (gaps[load.name] if load.name in gaps
             else load.smallest_gap(*self.arguments(load, *ends)), load.clearance)
            for load, *ends in self.films
        ]  # fmt: skip
        return np.array(films).reshape(-1, 2)

    def gap_stiffness(self, k: int, rate_factor: float, *, assembled: bool) -> Array:
        """Return the derivatives of an elastic film by the gap; see `Loads.gap_stiffness`."""
        film, *_ = self.elastic_films[k]
        return film.gap_stiffness(rate_factor, assembled=assembled)

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
    def _point(self) -> tuple[Array, Array, Array, Array, Array]:
        """Poses and velocities of all frames, coordinates and velocities."""
        frames = self._frames
        return frames.position, frames.rotation, frames.velocities, frames.q, frames.v

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
        self._follow_inputs()
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
