"""A parametric crankshaft: journals with fillets, webs with counterweights, nose and flange.

A web is the convex hull of a circle about the main axis and a circle about the pin axis; its
counterweight is a sector of a ring about the main axis, opposite to the pin. Journals are solids of
revolution that include their fillets, so that the fillets are exact. If a throw has two pins, the
web between them is the convex hull of two circles about the axes of the pins. A straight oil hole
in the plane of each pin leads from a main journal beside it, opposite to the pin, to the outer side
of the pin.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, integer, metres, number, reject
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.geometry.gmsh_model import extrude, is_bore, mesh_volumes, name_groups, refine

_MAX_THROWS = 24
_OPTIONAL = ("counterweight_radius", "nose_length", "fillet", "oil_holes")  # may be 0
_LARGEST_ANGLE = 4 * math.pi + 1e-9  # of a throw, rad; larger angles are probably in degrees
_NO_LENGTHS = ("throw_angles", "counterweight_angle", "refined", "order", "per_circle")
"""Fields that are not lengths."""


@dataclass(frozen=True, kw_only=True)
class Crankshaft:
    """A crankshaft that adds itself to a gmsh model: `crankshaft(gmsh.model)`.

    The axis of the shaft is the z axis. Between two main journals is one throw: a web, a pin and a
    web; or a web, a pin, another web, a second pin with another angle and a web, as in V engines
    with split pins and in boxer engines. The middle of all throws is at z = 0, and the nose is at
    the end with the smallest z. The physical groups are the volume "crankshaft", the surfaces of
    the journals "main_1", "main_2", ... and "pin_1", "pin_2", ..., numbered along z, the end faces
    "nose" and "flange", "fillets" and "oil_holes". Lengths are in metres, or have a unit, such as
    ``size="5mm"``.

    Attributes:
        throw_angles: Angle of the pin of each throw about z from the x axis, rad, shape (throws,),
            or angles of both pins of each throw, shape (throws, 2); by default those of the engine
            with three cylinders, `EngineDesign()`.
        crank_radius: Distance between the axes of the pins and of the shaft.
        main_diameter: Diameter of the main journals.
        main_length: Length of the main journals between the webs, with their fillets.
        pin_diameter: Diameter of the pins.
        pin_length: Length of the pins between the webs, with their fillets.
        web_thickness: Thickness of the webs between main journals and pins along z.
        pin_web_thickness: Thickness of the web between the two pins of a throw along z.
        main_web_diameter: Diameter of the end of the webs at the shaft.
        pin_web_diameter: Diameter of the end of the webs at the pin.
        fillet: Radius of the fillets between journals and webs; 0 omits them.
        counterweight_radius: Outer radius of the counterweights; 0 omits them.
        counterweight_angle: Half of the angle of the counterweights about the shaft, rad.
        oil_holes: Diameter of the straight holes for oil, one to the middle of each pin on its
            outer side, from the middle of a main journal on the side opposite to the pin; 0 omits
            them. The main journal is the one before the throw, and for the second of two pins the
            one after it.
        nose_diameter: Diameter of the nose before the first main journal.
        nose_length: Length of the nose; 0 omits it.
        flange_diameter: Diameter of the flange after the last main journal.
        flange_thickness: Thickness of the flange.
        size: Largest element size.
        refined: Points, shape (n, 3), m, around which the elements are smaller, for example the
            place of the shortest life; by default none.
        refined_size: Element size at the surface within two fillet radii of these points.
        order: Order of the elements, 1 (straight) or 2 (curved).
        per_circle: Smallest number of elements around a circle, also around that of the fillets.

    Raises:
        InputError: A parameter is invalid or incompatible with the others.

    Example:
        >>> from mpi4py import MPI
        >>> crank = mbd.geometry.Crankshaft(throw_angles=[0.0], size=0.02, order=1)
        >>> mesh = mbd.build_mesh(crank, MPI.COMM_SELF)
        >>> sorted(mesh.groups)
        ['crankshaft', 'fillets', 'flange', 'main_1', 'main_2', 'nose', 'pin_1']
        >>> print(crank.main_positions.round(3), crank.pin_positions)
        [-0.04  0.04] [0.]
        >>> split = mbd.geometry.Crankshaft(throw_angles=np.radians([[0, 60], [240, 300]]))
        >>> print(split.main_positions.round(3), split.pin_positions.round(3))
        [-0.11  0.    0.11] [-0.07 -0.04  0.04  0.07]
    """

    throw_angles: Sequence[float] | Sequence[Sequence[float]] = (
        0.0,
        4 * math.pi / 3,
        2 * math.pi / 3,
    )
    crank_radius: float | str = 0.040
    main_diameter: float | str = 0.050
    main_length: float | str = 0.024
    pin_diameter: float | str = 0.042
    pin_length: float | str = 0.024
    web_thickness: float | str = 0.016
    pin_web_thickness: float | str = 0.006
    main_web_diameter: float | str = 0.066
    pin_web_diameter: float | str = 0.056
    fillet: float | str = 0.0025
    counterweight_radius: float | str = 0.066
    counterweight_angle: float = math.radians(60.0)
    oil_holes: float | str = 0.0
    nose_diameter: float | str = 0.040
    nose_length: float | str = 0.030
    flange_diameter: float | str = 0.080
    flange_thickness: float | str = 0.012
    size: float | str = 0.010
    refined: Sequence[Sequence[float]] = ()
    refined_size: float | str = 0.001
    order: int = 2
    per_circle: int = 6

    def __post_init__(self) -> None:
        integer("order", self.order, low=1, high=2)
        integer("per_circle", self.per_circle, low=4, high=200)
        text = f"1 to {_MAX_THROWS} angles from −4π to 4π, or pairs of angles, in rad"
        angles = array("throw_angles", self.throw_angles, expected=text)
        is_list = angles.ndim > 0 and angles.shape[1:] in ((), (2,))
        if not is_list or not 1 <= len(angles) <= _MAX_THROWS:
            reject("throw_angles", self.throw_angles, text)
        if np.abs(angles).max() > _LARGEST_ANGLE:
            reject("throw_angles", self.throw_angles, text, hint="np.radians converts degrees")
        is_empty = isinstance(self.refined, (list, tuple)) and not self.refined
        points = () if is_empty else array("refined", self.refined, (None, 3))
        throws = angles.tolist() if angles.ndim == 1 else map(tuple, angles.tolist())
        assign(self, throw_angles=tuple(throws))
        assign(self, refined=tuple(tuple(map(float, point)) for point in points))
        for field in fields(self):
            if field.name not in _NO_LENGTHS:
                optional = field.name in _OPTIONAL
                value = metres(getattr(self, field.name))
                low = 0.0 if optional else 1e-6
                assign(self, **{field.name: number(field.name, value, low=low, high=1e6, unit="m")})
        number("counterweight_angle", self.counterweight_angle, low=0.1, high=1.5, unit="rad")
        for argument, valid, expected in self._conditions():
            if not valid:
                reject(argument, getattr(self, argument), expected)

    def _conditions(self) -> Iterator[tuple[str, bool, str]]:
        """Yield for each condition a parameter, whether it is valid, and a text for the error."""
        fillet, margin = float(self.fillet), 0.02 * float(self.main_diameter)
        for end in ("main", "pin"):
            journal, web = getattr(self, f"{end}_diameter"), getattr(self, f"{end}_web_diameter")
            least = journal + 2 * (fillet + margin)
            text = f"at least {least:.4g} m, {end}_diameter and its fillets"
            yield f"{end}_web_diameter", web >= least, text
            length = getattr(self, f"{end}_length")
            text = f"more than {2 * fillet + margin:.4g} m, so that the fillets do not meet"
            yield f"{end}_length", length > 2 * fillet + margin, text
        yield from self._split_conditions(margin)
        main, pin = self.main_web_diameter, self.pin_web_diameter
        limit = abs(float(main) - float(pin)) / 2
        yield (
            "crank_radius",
            float(self.crank_radius) > limit,
            f"more than {limit:.4g} m; one web circle contains the other",
        )
        if self.counterweight_radius:
            least = 0.5 * float(main) + margin
            yield (
                "counterweight_radius",
                float(self.counterweight_radius) >= least,
                f"0, or at least {least:.4g} m, outside the web",
            )
            widest = math.pi - self._tangent_angle()
            yield (
                "counterweight_angle",
                self.counterweight_angle <= widest - 0.02,
                f"at most {widest - 0.02:.4g} rad, so that it ends on the round part of the web",
            )
        yield from self._hole_conditions(fillet, margin)
        yield "refined", not self.refined or fillet > 0, "empty without fillets"
        nose = float(self.nose_diameter)
        text = f"at most main_diameter, {self.main_diameter:g} m"
        yield "nose_diameter", not self.nose_length or nose <= float(self.main_diameter), text
        text = f"more than main_diameter, {self.main_diameter:g} m"
        yield "flange_diameter", float(self.flange_diameter) > float(self.main_diameter), text

    def _split_conditions(self, margin: float) -> Iterator[tuple[str, bool, str]]:
        """Yield the conditions that the pins of each throw differ, and their holes do not meet."""
        radius, pins = float(self.crank_radius), self._pin_angles
        if not self._stagger:
            return
        distance = min(radius * _angle_between(*angles) for angles in pins)
        text = "different angles of the pins of one throw, in rad, or a single angle for each throw"
        yield "throw_angles", distance >= margin, text
        for (_, before), (after, _) in pairwise(pins):
            distance = _angle_between(before, after) * 0.5 * float(self.main_diameter)
            # At equal angles, both holes begin at the same point of the main journal
            valid = distance < 1e-9 * radius or distance >= 2 * float(self.oil_holes)
            text = f"at most {0.5 * distance:.4g} m, so that holes in one main journal do not meet"
            yield "oil_holes", valid, text

    def _hole_conditions(self, fillet: float, margin: float) -> Iterator[tuple[str, bool, str]]:
        """Yield the conditions that the holes stay inside journals, pins and webs."""
        hole = float(self.oil_holes)
        if not hole:
            return
        start, slope = self._hole_line()
        stretch = math.sqrt(1.0 + slope * slope)  # width in a section z = const / diameter
        half = 0.5 * hole * stretch
        for end, centre, z in (
            ("main", 0.0, 0.5 * float(self.main_length)),
            ("pin", float(self.crank_radius), self._pin_distance - 0.5 * float(self.pin_length)),
        ):
            radius = 0.5 * float(getattr(self, f"{end}_diameter"))
            length = float(getattr(self, f"{end}_length"))
            # Distance of the hole from the axis at the web
            eccentricity = abs(start + slope * z - centre)
            thickest = 2.0 * (radius - margin - eccentricity) / stretch
            text = (
                f"at most {max(thickest, 0.0):.4g} m, so that the hole stays in the {end} journal "
                "where it enters the web, or a smaller crank_radius, or thicker webs"
            )
            yield "oil_holes", eccentricity + half <= radius - margin, text
            mouth = half / abs(slope)  # half the length along the journal
            text = f"smaller, so that the hole does not meet the fillets of the {end} journal"
            yield "oil_holes", mouth <= 0.5 * length - fillet - margin, text

    def _hole_line(self) -> tuple[float, float]:
        """Return x of the axis of a hole in the middle of its main journal, m, and dx/dz.

        x is the coordinate from the main axis towards the pin.
        """
        start = -0.5 * float(self.main_diameter)
        end = float(self.crank_radius) + 0.5 * float(self.pin_diameter)
        return start, (end - start) / self._pin_distance

    @property
    def throws(self) -> int:
        """Number of throws."""
        return len(self.throw_angles)

    @property
    def spacing(self) -> float:
        """Distance between two neighbouring throws along the shaft, m."""
        return 2 * self._pin_distance + self._stagger

    @property
    def pin_positions(self) -> Any:
        """Position of the middle of each pin along z, shape (pins,), m."""
        shifts = [-0.5 * self._stagger, 0.5 * self._stagger] if self._stagger else [0.0]
        return np.add.outer(self._throw_positions, shifts).ravel()

    @property
    def _throw_positions(self) -> Any:
        """Position of the middle of each throw along z, shape (throws,), m."""
        return self.spacing * (np.arange(self.throws) - 0.5 * (self.throws - 1))

    @property
    def _pin_angles(self) -> list[tuple[float, ...]]:
        """Angles of the one or two pins of each throw, rad."""
        return [tuple(map(float, np.atleast_1d(angles))) for angles in self.throw_angles]

    @property
    def _pins(self) -> list[tuple[complex, float]]:
        """Position x + iy of the axis of each pin, and z of its middle, m."""
        angles = np.ravel(self.throw_angles).tolist()
        axes = [cmath.rect(float(self.crank_radius), angle) for angle in angles]
        return list(zip(axes, self.pin_positions.tolist(), strict=True))

    @property
    def _stagger(self) -> float:
        """Distance along z between the two pins of a throw, m; 0 if it has one pin."""
        if np.ndim(self.throw_angles) == 1:
            return 0.0
        return float(self.pin_length) + float(self.pin_web_thickness)

    @property
    def _pin_distance(self) -> float:
        """Distance along z between the middles of a pin and of the main journal beside it, m."""
        lengths = 0.5 * (float(self.main_length) + float(self.pin_length))
        return lengths + float(self.web_thickness)

    @property
    def main_positions(self) -> Any:
        """Position of the middle of each main journal along z, shape (throws + 1,), m."""
        return self.spacing * (np.arange(self.throws + 1) - 0.5 * self.throws)

    def __call__(self, model: Any) -> None:
        """Add the crankshaft to a gmsh model, mesh it and name its groups.

        Args:
            model: `gmsh.model`. Options of gmsh are restored afterwards.

        Raises:
            SolverError: The solids cannot be joined, or elements are nearly inverted in all
                meshes, down to a third of the requested size.
        """
        volume = self._add_volume(model.occ)
        name_groups(model, "crankshaft", volume, self._named_surfaces)
        refine(model, self.refined, 2 * float(self.fillet), float(self.refined_size))
        mesh_volumes(model, [volume], float(self.size), self.order, self.per_circle)

    def fillet_distance(self, points: ArrayLike) -> Any:
        """Return the distance of points to the nearest surface of a fillet, shape (n,), m.

        Args:
            points: Points, shape (n, 3), m, for example the places of the shortest lives.

        Raises:
            InputError: The points have another shape, or the shaft has no fillets.

        Example:
            >>> crank = mbd.geometry.Crankshaft(fillet=0.0025, pin_diameter=0.042)
            >>> edge = 0.5 * crank.pin_length - crank.fillet  # where pin and fillet meet
            >>> points = [[0.04 + 0.021, 0, crank.pin_positions[0] + edge]]
            >>> print(crank.fillet_distance(points).round(9))
            [0.]
        """
        p = array("points", points, (None, 3))
        if not self.fillet:
            reject("fillet", self.fillet, "more than 0 for the distance to fillets")
        f, distance = float(self.fillet), np.full(len(p), np.inf)
        for x, y, z, radius, side in self._fillets():
            across = np.hypot(p[:, 0] - x, p[:, 1] - y) - radius - f  # from the centre of the arc
            along = side * (p[:, 2] - z)
            ends = np.hypot(across + f, along), np.hypot(across, along - f)
            on_arc = (across <= 0) & (along >= 0)
            arc = np.where(on_arc, np.abs(np.hypot(across, along) - f), np.inf)
            distance = np.minimum.reduce([distance, arc, *ends])
        return distance

    def _fillets(self) -> Iterator[tuple[float, float, float, float, int]]:
        """Yield axis (x, y), z of the centre of the arc, radius of the journal, and the side."""
        f, last = float(self.fillet), self.throws
        for k, z in enumerate(self.main_positions):
            for side in (-1, 1):
                if (k > 0 or side > 0) and (k < last or side < 0):
                    centre = z + side * (0.5 * float(self.main_length) - f)
                    yield 0.0, 0.0, float(centre), 0.5 * float(self.main_diameter), side
        for p, z in self._pins:
            for side in (-1, 1):
                centre = z + side * (0.5 * float(self.pin_length) - f)
                yield p.real, p.imag, float(centre), 0.5 * float(self.pin_diameter), side

    def _named_surfaces(self, model: Any, surfaces: list[int]) -> dict[str, list[int]]:
        """Return the surfaces of the journals, the ends and the fillets by name."""

        def journal(x: float, y: float, z: float, diameter: float, length: float) -> list[int]:
            """Return the surfaces of the journal with its centre at (x, y, z)."""
            return [
                s
                for s in surfaces
                if is_bore(model, s, x, diameter / 2, y)
                and abs(_height(model, s) - z) < 0.5 * length
            ]

        groups = {
            f"main_{k + 1}": journal(
                0.0, 0.0, z, float(self.main_diameter), float(self.main_length)
            )
            for k, z in enumerate(self.main_positions)
        }
        for k, (p, z) in enumerate(self._pins):
            length, diameter = float(self.pin_length), float(self.pin_diameter)
            groups[f"pin_{k + 1}"] = journal(p.real, p.imag, z, diameter, length)
        first, last = self._ends()
        flat = [s for s in surfaces if model.getType(2, s) == "Plane"]
        for name, z in (("nose", first), ("flange", last)):
            groups[name] = [s for s in flat if abs(_height(model, s) - z) < 1e-6 * self.spacing]
        if self.fillet:
            groups["fillets"] = [s for s in surfaces if model.getType(2, s) == "Torus"]
        if self.oil_holes:
            groups["oil_holes"] = [s for s in surfaces if self._is_hole(model, s)]
        return groups

    def _is_hole(self, model: Any, surface: int) -> bool:
        """Return whether a surface is that of an oil hole: a cylinder oblique to the z axis."""
        if model.getType(2, surface) != "Cylinder":
            return False
        (u0, v0), (u1, v1) = model.getParametrizationBounds(2, surface)
        normals = [
            model.getNormal(surface, [u0 + part * (u1 - u0), 0.5 * (v0 + v1)])
            for part in (0.0, 0.3, 0.7)
        ]
        return bool(max(abs(float(along)) for _, _, along in normals) > 1e-6)

    def _ends(self) -> tuple[float, float]:
        """Return the z coordinates of the end faces of nose and flange."""
        half = 0.5 * float(self.main_length)
        first, *_, last = map(float, self.main_positions)
        return first - half - float(self.nose_length), last + half + float(self.flange_thickness)

    def _tangent_angle(self) -> float:
        """Return the angle between the throw and the normal of the straight edges of a web, rad."""
        difference = float(self.main_web_diameter) - float(self.pin_web_diameter)
        return math.acos(difference / 2 / float(self.crank_radius))

    def _add_volume(self, occ: Any) -> int:
        """Add all solids, join them and return the tag of the volume."""
        thickness = float(self.web_thickness)
        solids, last, has_fillets = [], self.throws, float(self.fillet) > 0
        for k, z in enumerate(self.main_positions):
            ends = (k > 0 and has_fillets, k < last and has_fillets)
            solids.append(self._add_journal(occ, 0j, "main", float(z), ends))
        half, between = 0.5 * float(self.pin_length), float(self.pin_web_thickness)
        for pin, z in self._pins:
            solids.append(self._add_journal(occ, pin, "pin", z, (has_fillets, has_fillets)))
        edge = half + 0.5 * self._stagger  # distance of the outer webs from the middle of a throw
        for angles, z in zip(self._pin_angles, self._throw_positions.tolist(), strict=True):
            solids.append(self._add_web(occ, angles[0], z - edge - thickness))
            solids.append(self._add_web(occ, angles[-1], z + edge))
            if len(angles) == 2:
                solids.append(self._add_pin_web(occ, angles, z - 0.5 * between))
        first, end = self._ends()
        if self.nose_length:
            length, radius = float(self.nose_length), 0.5 * float(self.nose_diameter)
            solids.append((3, occ.addCylinder(0, 0, first, 0, 0, length, radius)))
        thick, radius = float(self.flange_thickness), 0.5 * float(self.flange_diameter)
        solids.append((3, occ.addCylinder(0, 0, end - thick, 0, 0, thick, radius)))
        first_solid, *others = solids
        result, _ = occ.fuse([first_solid], others)
        if self.oil_holes:
            result, _ = occ.cut(result, self._add_holes(occ))
        if len(result) != 1:
            raise SolverError(f"the crankshaft consists of {len(result)} pieces instead of one")
        ((_, volume),) = result
        return int(volume)

    def _add_holes(self, occ: Any) -> list[tuple[int, int]]:
        """Return the cylinders of the oil holes, which project from the journals."""
        (start, slope), distance = self._hole_line(), self._pin_distance
        rise = slope * distance  # along the throw, between the ends of a hole
        beyond = float(self.oil_holes) / rise  # length that projects at each end / length
        holes = []
        for k, (pin, z) in enumerate(self._pins):
            throw, side = pin / abs(pin), -1 if self._stagger and k % 2 else 1  # towards the pin
            first, step = throw * (start - beyond * rise), throw * (1.0 + 2.0 * beyond) * rise
            bottom = z - side * (1.0 + beyond) * distance
            height = side * (1.0 + 2.0 * beyond) * distance
            base, axis = (first.real, first.imag, bottom), (step.real, step.imag, height)
            # Two halves, because gmsh cannot mesh whole surfaces of narrow holes that meet
            radius = 0.5 * float(self.oil_holes)
            half = [(3, int(occ.addCylinder(*base, *axis, radius, angle=math.pi)))]
            other = occ.copy(half)
            occ.rotate(other, *base, *axis, math.pi)
            holes += half + other
        return holes

    def _add_journal(
        self, occ: Any, axis: complex, end: str, z: float, filleted: tuple[bool, bool]
    ) -> tuple[int, int]:
        """Return a journal with its fillets, a solid of revolution about (axis, z)."""
        radius = 0.5 * float(getattr(self, f"{end}_diameter"))
        half, f = 0.5 * float(getattr(self, f"{end}_length")), float(self.fillet)
        x, y = axis.real, axis.imag

        def point(rho: float, height: float) -> int:
            return int(occ.addPoint(x + rho, y, z + height))

        start, stop = point(0.0, -half), point(0.0, half)
        curves, last = [], start
        for side, has_fillet in zip((-1, 1), filleted, strict=True):
            corner = point(radius, side * (half - f if has_fillet else half))
            outer = point(radius + f, side * half) if has_fillet else corner
            centre = point(radius + f, side * (half - f)) if has_fillet else 0
            low, high = (outer, corner) if side < 0 else (corner, outer)
            curves.append(occ.addLine(last, low))
            if has_fillet:
                curves.append(occ.addCircleArc(low, centre, high))
            last = high
        curves += [occ.addLine(last, stop), occ.addLine(stop, start)]
        surface = occ.addPlaneSurface([occ.addCurveLoop(curves)])
        parts = occ.revolve([(2, surface)], x, y, z, 0, 0, 1, 2 * math.pi)
        return next((dim, int(tag)) for dim, tag in parts if dim == 3)

    def _add_pin_web(self, occ: Any, angles: Sequence[float], z: float) -> tuple[int, int]:
        """Return the web between the two pins of a throw, between z and z plus its thickness."""
        first, second = (cmath.rect(float(self.crank_radius), angle) for angle in angles)
        along = (second - first) / abs(second - first)
        across = 0.5j * float(self.pin_web_diameter) * along

        def point(p: complex) -> int:
            return int(occ.addPoint(p.real, p.imag, z))

        curves, start = [], point(first + across)
        corner = start
        for centre, outward in ((first, 1j * across), (second, -1j * across)):
            middle, top = point(centre), point(centre + outward)
            low = point(centre + 1j * outward)
            curves += [occ.addCircleArc(corner, middle, top), occ.addCircleArc(top, middle, low)]
            corner = point(second - across) if centre is first else start
            curves.append(occ.addLine(low, corner))
        surface = occ.addPlaneSurface([occ.addCurveLoop(curves)])
        return extrude(occ, surface, float(self.pin_web_thickness))

    def _add_web(self, occ: Any, angle: float, z: float) -> tuple[int, int]:
        """Return a web with its counterweight between z and z plus the thickness."""
        direction, tangent = cmath.exp(1j * angle), self._tangent_angle()
        pin, main = 0.5 * float(self.pin_web_diameter), 0.5 * float(self.main_web_diameter)
        centre = complex(float(self.crank_radius))

        def point(p: complex) -> int:
            q = p * direction
            return int(occ.addPoint(q.real, q.imag, z))

        def on_circle(c: complex, radius: float, phi: float) -> int:
            return point(c + cmath.rect(radius, phi))

        middle, pin_centre = point(0j), point(centre)
        low, high = on_circle(centre, pin, -tangent), on_circle(centre, pin, tangent)
        top = on_circle(centre, pin, 0.0)
        first, last = on_circle(0j, main, tangent), on_circle(0j, main, -tangent)
        curves = [occ.addCircleArc(low, pin_centre, top), occ.addCircleArc(top, pin_centre, high)]
        curves.append(occ.addLine(high, first))
        radius, gamma = float(self.counterweight_radius), self.counterweight_angle
        if radius:
            start, stop = math.pi - gamma, math.pi + gamma
            start_inside, start_outside = on_circle(0j, main, start), on_circle(0j, radius, start)
            opposite = on_circle(0j, radius, math.pi)
            stop_outside, stop_inside = on_circle(0j, radius, stop), on_circle(0j, main, stop)
            curves += [
                occ.addCircleArc(first, middle, start_inside),
                occ.addLine(start_inside, start_outside),
                occ.addCircleArc(start_outside, middle, opposite),
                occ.addCircleArc(opposite, middle, stop_outside),
                occ.addLine(stop_outside, stop_inside),
                occ.addCircleArc(stop_inside, middle, last),
            ]
        else:
            back = on_circle(0j, main, math.pi)
            curves.append(occ.addCircleArc(first, middle, back))
            curves.append(occ.addCircleArc(back, middle, last))
        curves.append(occ.addLine(last, low))
        surface = occ.addPlaneSurface([occ.addCurveLoop(curves)])
        return extrude(occ, surface, float(self.web_thickness))


def _angle_between(first: float, second: float) -> float:
    """Return the angle from 0 to π between two directions, rad."""
    return abs(cmath.phase(cmath.exp(1j * (second - first))))


def _height(model: Any, surface: int) -> float:
    """Return the coordinate z of the centre of a surface, m."""
    _, _, z = model.occ.getCenterOfMass(2, surface)
    return float(z)
