"""A parametric crankcase of inline and V engines: main bearings, cylinders, decks and skirt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, integer, metres, number, reject
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.geometry.gmsh_model import is_bore, mesh_volumes, name_groups

_MAX_BAYS = 12
_NO_LENGTHS = ("bays", "bank_angles", "order", "per_circle")  # fields that are not lengths
_BORE_START = 0.6  # distance of the lower end of the cylinder bores from the shaft / crank_space
_OPENING = 0.85  # half width of the opening to the pan / crank_space; 1 would give slivers


@dataclass(frozen=True, kw_only=True)
class Crankcase:
    """A crankcase that adds itself to a gmsh model: `crankcase(gmsh.model)`.

    The axis of the crankshaft is the z axis, and the middle of the crankcase is at z = 0. Bulkheads
    with the bores of the main bearings separate the bays; each bay has one cylinder of each bank.
    The bearing caps are bonded to the bulkheads. The physical groups are the volume "crankcase",
    the surfaces of the bores "main_1", "main_2", ... and "cylinder_1", "cylinder_2", ..., the flat
    surfaces "deck_1", ... of the banks, "front" (smallest z), "rear" and "pan". The cylinders are
    numbered along z, and by bank in each bay. Lengths are in metres, or have a unit.

    Attributes:
        bays: Number of bays.
        bank_angles: Angle of each bank about z from the x axis, rad, at most π/2; by default one
            bank along x.
        spacing: Distance between the bays along z.
        stagger: Distance of the second bank from the first along z.
        main_bore: Diameter of the main bores.
        bulkhead: Thickness of the bulkheads.
        crank_space: Radius of the space for the crank about z.
        cylinder_bore: Diameter of the cylinders.
        deck_height: Distance of the decks from the shaft.
        skirt: Depth of the crankcase below the shaft, along −x.
        wall: Thickness of the walls.
        size: Largest element size.
        order: Order of the elements, 1 (straight) or 2 (curved).
        per_circle: Smallest number of elements around a circle.

    Raises:
        InputError: A parameter is invalid or incompatible with the others.

    Example:
        >>> from mpi4py import MPI
        >>> case = mbd.geometry.Crankcase(bays=1, size=0.03, order=1)
        >>> mesh = mbd.build_mesh(case, MPI.COMM_SELF)
        >>> sorted(mesh.groups)
        ['crankcase', 'cylinder_1', 'deck_1', 'front', 'main_1', 'main_2', 'pan', 'rear']
    """

    bays: int = 3
    bank_angles: Sequence[float] = (0.0,)
    spacing: float | str = 0.080
    stagger: float | str = 0.0
    main_bore: float | str = 0.050
    bulkhead: float | str = 0.022
    crank_space: float | str = 0.072
    cylinder_bore: float | str = 0.070
    deck_height: float | str = 0.200
    skirt: float | str = 0.060
    wall: float | str = 0.008
    size: float | str = 0.012
    order: int = 2
    per_circle: int = 8

    def __post_init__(self) -> None:
        integer("bays", self.bays, low=1, high=_MAX_BAYS)
        integer("order", self.order, low=1, high=2)
        integer("per_circle", self.per_circle, low=4, high=200)
        banks = array("bank_angles", self.bank_angles, (None,))
        if len(banks) not in (1, 2) or np.abs(banks).max() > math.radians(90) + 1e-9:
            reject("bank_angles", self.bank_angles, "one or two angles from −90° to 90°, in rad")
        assign(self, bank_angles=tuple(map(float, banks)))
        for field in fields(self):
            if field.name not in _NO_LENGTHS:
                value = metres(getattr(self, field.name))
                low = -1e6 if field.name == "stagger" else 1e-6
                assign(self, **{field.name: number(field.name, value, low=low, high=1e6, unit="m")})
        for argument, valid, expected in self._conditions():
            if not valid:
                reject(argument, getattr(self, argument), expected)

    def _lengths(self, *names: str) -> tuple[float, ...]:
        """Return several dimensions as numbers."""
        return tuple(float(getattr(self, name)) for name in names)

    def _conditions(self) -> Iterator[tuple[str, bool, str]]:
        """Yield for each condition a parameter, whether it is valid, and a text for the error."""
        names = "spacing", "main_bore", "bulkhead", "crank_space", "cylinder_bore", "wall"
        spacing, main, bulkhead, space, bore, wall = self._lengths(*names)
        limit = 0.9 * spacing
        yield "bulkhead", bulkhead < limit, f"less than {limit:.4g} m, 0.9 times spacing"
        limit = 2 * (_BORE_START * space - wall)
        text = f"at most {limit:.4g} m, so that the cylinders leave {wall:g} m around it"
        yield "main_bore", main <= limit, text
        # Half a wall remains at the ends and between the cylinders of neighbouring bays
        limit = min(2 * space, spacing + bulkhead - wall - abs(float(self.stagger)))
        limit = min(limit, spacing - 0.5 * wall)
        text = f"at most {limit:.4g} m, from spacing, stagger and crank_space"
        yield "cylinder_bore", bore <= limit, text
        least = space + 2 * wall
        yield "deck_height", float(self.deck_height) >= least, f"at least {least:.4g} m"
        slope = max(abs(math.sin(angle)) for angle in self.bank_angles)
        least = wall + max(0.5 * main, (0.5 * bore + wall) * slope)
        text = f"at least {least:.4g} m, a wall below the main bores and the cylinders"
        yield "skirt", float(self.skirt) >= least, text
        if len(self.bank_angles) == 2:
            between = abs(self.bank_angles[1] - self.bank_angles[0])
            least = 2 * math.atan2(0.5 * bore + 0.5 * wall, space)
            text = f"at least {math.degrees(least):.4g}° apart, so that the cylinders do not meet"
            yield "bank_angles", between >= least, text

    @property
    def main_positions(self) -> Array:
        """Position of the middle of each main bore along z, shape (bays + 1,), m."""
        return float(self.spacing) * (np.arange(self.bays + 1) - 0.5 * self.bays)

    @property
    def cylinder_positions(self) -> Array:
        """Position of each cylinder along z, in the order of their numbers, shape (n,), m."""
        bays = float(self.spacing) * (np.arange(self.bays) - 0.5 * (self.bays - 1))
        half = 0.5 * float(self.stagger)
        shifts = [0.0] if len(self.bank_angles) == 1 else [-half, half]
        return np.asarray(np.add.outer(bays, shifts).ravel())

    def __call__(self, model: Any) -> None:
        """Add the crankcase to a gmsh model, mesh it and name its groups.

        Args:
            model: `gmsh.model`. Options of gmsh are restored afterwards.

        Raises:
            SolverError: The walls are too thin for the bores, or elements are nearly inverted in
                all meshes, down to a third of the requested size.
        """
        volume = self._add_volume(model.occ)
        name_groups(model, "crankcase", volume, self._named_surfaces)
        mesh_volumes(model, [volume], float(self.size), self.order, self.per_circle)

    def _add_volume(self, occ: Any) -> int:
        """Add walls, cut the spaces and bores, and return the tag of the volume."""
        names = "spacing", "main_bore", "bulkhead", "crank_space", "cylinder_bore"
        spacing, main, bulkhead, space, bore = self._lengths(*names)
        deck, skirt, wall = self._lengths("deck_height", "skirt", "wall")
        length = self.bays * spacing + bulkhead
        start, half = -0.5 * length, space + wall
        solids = [(3, occ.addBox(-skirt, -half, start, skirt + half, 2 * half, length))]
        half_width = 0.5 * bore + wall
        for angle in self.bank_angles:
            box = (3, occ.addBox(0.0, -half_width, start, deck, 2 * half_width, length))
            occ.rotate([box], 0, 0, 0, 0, 0, 1, angle)
            solids.append(box)
        body, _ = occ.fuse(solids[:1], solids[1:])
        tools, gap = [], spacing - bulkhead  # solids to cut, and distance between bulkheads
        for z in self.main_positions[:-1] + 0.5 * bulkhead:
            inside = (3, occ.addCylinder(0, 0, float(z), 0, 0, gap, space))
            depth, half_opening = 2 * skirt + space, _OPENING * space
            box = occ.addBox(-depth, -half_opening, float(z), depth, 2 * half_opening, gap)
            # One solid, whose outline on the bulkheads has no arc inside the opening
            opened, _ = occ.fuse([inside], [(3, box)])
            tools += opened
        tools.append((3, occ.addCylinder(0, 0, 2 * start, 0, 0, 2 * length, 0.5 * main)))
        for k, z in enumerate(self.cylinder_positions):
            angle = self.bank_angles[k % len(self.bank_angles)]
            x, y = math.cos(angle), math.sin(angle)
            low, high = _BORE_START * space, 1.1 * deck  # the cylinder projects from the deck
            base, axis = (low * x, low * y, float(z)), ((high - low) * x, (high - low) * y, 0.0)
            tools.append((3, occ.addCylinder(*base, *axis, 0.5 * bore)))
        result, _ = occ.cut(body, tools)
        if len(result) != 1:
            raise SolverError(f"the crankcase consists of {len(result)} pieces; use thicker walls")
        ((_, volume),) = result
        return int(volume)

    def _named_surfaces(self, model: Any, surfaces: list[int]) -> dict[str, list[int]]:
        """Return the surfaces of bores, decks, ends and pan by name."""
        main, bore = self._lengths("main_bore", "cylinder_bore")
        centres = {s: model.occ.getCenterOfMass(2, s) for s in surfaces}
        groups: dict[str, list[int]] = {}
        for k, z in enumerate(self.main_positions):
            groups[f"main_{k + 1}"] = [
                s
                for s in surfaces
                if is_bore(model, s, x=0.0, radius=main / 2)
                and abs(centres[s][2] - z) < 0.5 * float(self.spacing)
            ]
        for k, z in enumerate(self.cylinder_positions):
            angle = self.bank_angles[k % len(self.bank_angles)]
            axis = math.cos(angle), math.sin(angle)
            groups[f"cylinder_{k + 1}"] = [
                s
                for s in surfaces
                if is_bore(model, s, x=0.0, radius=bore / 2, axis=axis, z=float(z))
                and centres[s][0] * axis[0] + centres[s][1] * axis[1] > 0
            ]
        half = 0.5 * (self.bays * float(self.spacing) + float(self.bulkhead))
        planes: dict[str, tuple[float, float, float, float]] = {
            f"deck_{k + 1}": (math.cos(b), math.sin(b), 0.0, float(self.deck_height))
            for k, b in enumerate(self.bank_angles)
        }
        planes |= {"front": (0, 0, -1, half), "rear": (0, 0, 1, half)}
        planes["pan"] = (-1, 0, 0, float(self.skirt))
        for name, (*normal, distance) in planes.items():
            groups[name] = [
                s
                for s in surfaces
                if model.getType(2, s) == "Plane"
                and self._is_on(model, s, np.array(normal), distance)
            ]
        return groups

    def _is_on(self, model: Any, surface: int, normal: Array, distance: float) -> bool:
        """Return whether a flat surface lies in the plane at a distance from the origin."""
        points = [model.getValue(0, tag, []) for _, tag in _corners(model, surface)]
        error = np.abs(np.array(points) @ normal - distance)
        return bool(error.max() < 1e-6 * float(self.deck_height))


def _corners(model: Any, surface: int) -> list[tuple[int, int]]:
    """Return the corners of a surface."""
    return list(model.getBoundary([(2, surface)], combined=False, oriented=False, recursive=True))
