"""A parametric connecting rod: two rings and an I-section shank.

The default is a rod of 0.1531 kg for an engine with 137 mm between the axes and a crank radius of
40 mm, made of the forged aluminium alloy 7075-T6 (E = 71.7 GPa, ν = 0.33, 2810 kg/m³). A pressure
of 90 bar on a piston of 75 mm diameter gives a force of 40 kN. The stress in the smallest section
of the shank (194 mm²) is then 205 MPa, well below the yield point of 500 MPa.

Bolts, oil holes and draft are omitted. The fillets intersect the rings at an angle, because a
tangent fillet at a ring wider than the shank would leave a cusp with nearly degenerate elements.
The code represents points in the plane z = 0 by complex numbers x + iy.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import flag, integer, metres, number, reject
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.geometry.gmsh_model import extrude, is_bore, mesh_volumes

_FILLET_ANGLE = math.radians(25)  # angle between the fillets and the outer circles of the rings

# Limits that avoid slivers
_MAX_SHANK = 0.87  # shank height / outer diameter of the ring
_MAX_BORE = 0.93  # bore / outer diameter
_MAX_FLANGE = 0.95  # flange width / ring width, unless they are equal
_MIN_POCKET_RADIUS = 0.015  # end radius of a pocket / length


@dataclass(frozen=True, kw_only=True)
class ConnectingRod:
    """A connecting rod that adds itself to a gmsh model: `rod(gmsh.model)`.

    The axis of the big-end bore is the z axis; the parallel axis of the small-end bore passes
    through (length, 0, 0). The rod is symmetric about the planes z = 0 and y = 0. The physical
    groups are the volume "rod" and the bore surfaces "big_end" and "small_end"; a split big end
    adds the volume "cap" and the surface "parting" between both volumes. Lengths are in metres, or
    have a unit, such as ``size="5mm"``.

    In these ranges, relative to the length, each of several hundred tested combinations of
    parameters either raised an error or gave a mesh with scaled Jacobians above 0.1:

    ================  ===========    ================  ============
    parameter         range          parameter         range
    ================  ===========    ================  ============
    big_bore          0.22 … 0.38    shank_small       0.09 … 0.22
    big_outer         0.34 … 0.55    flange_width      0.05 … 0.16
    big_width         0.08 … 0.25    flange_thickness  0.015 … 0.06
    small_bore        0.08 … 0.18    web_thickness     0.01 … 0.06
    small_outer       0.15 … 0.30    fillet_big        0.04 … 0.30
    small_width       0.08 … 0.25    fillet_small      0.03 … 0.25
    shank_big         0.10 … 0.30    pocket_margin     0.005 … 0.08
    length            any            size              0.015 … 0.25
    ================  ===========    ================  ============

    Attributes:
        length: Distance between the bore axes.
        big_bore: Diameter of the big-end bore.
        big_outer: Outer diameter of the big-end ring.
        big_width: Width of the big end along z.
        small_bore: Diameter of the small-end bore.
        small_outer: Outer diameter of the small-end ring.
        small_width: Width of the small end along z.
        shank_big: Height of the shank (along y), extrapolated to the big-end axis.
        shank_small: Height of the shank, extrapolated to the small-end axis.
        flange_width: Width of the flanges along z.
        flange_thickness: Thickness of the flanges in the plane z = 0.
        web_thickness: Thickness of the web along z.
        fillet_big: Radius of the fillets between shank and big end.
        fillet_small: Radius of the fillets between shank and small end.
        pocket_margin: Smallest distance between the pockets beside the web and the rings.
        size: Largest element size. The default gives 5,107 tetrahedra and, with order 2, 30,327
            degrees of freedom; 0.008 gives 14,000, 0.003 gives 63,000 and 0.0015 gives 390,000.
        order: Order of the elements, 1 (straight) or 2 (curved).
        split_big_end: Whether the half of the big end at x < 0 is a separate volume, the "cap". Rod
            and cap share the nodes of the cut.

    Raises:
        InputError: A parameter is invalid or incompatible with the others.

    Example:
        >>> from mpi4py import MPI
        >>> rod = ConnectingRod(size=0.02, order=1)
        >>> mesh = mbd.build_mesh(rod, MPI.COMM_SELF)
        >>> sorted(mesh.groups)
        ['big_end', 'rod', 'small_end']
    """

    length: float = 0.137
    big_bore: float = 0.042
    big_outer: float = 0.058
    big_width: float = 0.020
    small_bore: float = 0.019
    small_outer: float = 0.030
    small_width: float = 0.020
    shank_big: float = 0.026
    shank_small: float = 0.020
    flange_width: float = 0.015
    flange_thickness: float = 0.005
    web_thickness: float = 0.004
    fillet_big: float = 0.020
    fillet_small: float = 0.015
    pocket_margin: float = 0.003
    size: float | str = 0.0045
    order: int = 2
    split_big_end: bool = False

    def __post_init__(self) -> None:
        flag("split_big_end", self.split_big_end)
        integer("order", self.order, low=1, high=2)
        for field in fields(self):
            if field.name not in ("order", "split_big_end"):
                value = metres(getattr(self, field.name))
                length = number(field.name, value, low=1e-6, high=1e6, unit="m")
                assign(self, **{field.name: length})
        for argument, valid, expected in self._conditions():
            if not valid:
                reject(argument, getattr(self, argument), expected)

    def _conditions(self) -> Iterator[tuple[str, bool, str]]:
        """Yield for each condition a parameter, whether it is valid, and a text for the error."""

        def below(small: str, large: str, factor: float = 1.0) -> tuple[str, bool, str]:
            limit = factor * getattr(self, large)
            times = "" if factor == 1 else f"{factor:.3g} times "
            return small, getattr(self, small) < limit, f"less than {times}{large}, {limit:.4g} m"

        for end in ("big", "small"):
            yield below(f"{end}_bore", f"{end}_outer", _MAX_BORE)
            yield below(f"shank_{end}", f"{end}_outer", _MAX_SHANK / math.cos(self._flank_angle()))
            width, ring_width = self.flange_width, getattr(self, f"{end}_width")
            yield "flange_width", width <= ring_width, f"at most {end}_width, {ring_width:g} m"
            fits = width == ring_width or width <= _MAX_FLANGE * ring_width
            expected = f"equal to {end}_width, {ring_width:g} m, "
            expected += f"or less than {_MAX_FLANGE} times {end}_width"
            yield "flange_width", fits, f"{expected} (a small step causes slivers)"
        yield below("web_thickness", "flange_width")
        least = (self.big_outer + self.small_outer) / 2  # length at which the rings touch
        yield "length", least < self.length, f"above {least:g} m, (big_outer + small_outer)/2"
        first, last = (fillet.tangent.real for fillet in self._fillets())
        expected = f"smaller, as the fillets overlap (they end at x = {first:g} m and {last:g} m)"
        expected += "; or change fillet_small, the rings or length"
        yield "fillet_big", first < last, expected
        x0, r0, x1, r1 = self._pocket()
        end_radius, minimum = min(r0, r1), _MIN_POCKET_RADIUS * self.length
        expected = (
            f"smaller: the end radius of the pockets is {end_radius:.3g} m and must be at least"
        )
        expected += f" {_MIN_POCKET_RADIUS} times length, {minimum:.3g} m"
        yield "flange_thickness", end_radius >= minimum, expected
        expected = (
            f"smaller: the shank is too short for pockets (ends at x = {x0:g} m and {x1:g} m)"
        )
        yield "pocket_margin", x1 - x0 > abs(r1 - r0), expected

    def __call__(self, model: Any) -> None:
        """Add the rod to a gmsh model, mesh it and name its groups.

        Args:
            model: `gmsh.model`. Options of gmsh are restored afterwards.

        Raises:
            SolverError: Elements are nearly inverted in all meshes, down to a third of the
                requested size.
        """
        volumes = self._add_volumes(model)
        model.occ.synchronize()
        solids = [(3, volume) for volume in volumes.values()]
        faces = model.getBoundary(solids, combined=False, oriented=False)
        surfaces = sorted({tag for _, tag in faces})
        big, small = (0.0, self.big_bore), (self.length, self.small_bore)
        for name, (x, bore) in {"big_end": big, "small_end": small}.items():
            inside = [s for s in surfaces if is_bore(model, s, x, bore / 2)]
            model.addPhysicalGroup(2, inside, name=name)
        if self.split_big_end:
            shared = [s for s in surfaces if len(model.getAdjacencies(2, s)[0]) == 2]
            model.addPhysicalGroup(2, shared, name="parting")
        for name, volume in volumes.items():
            model.addPhysicalGroup(3, [volume], name=name)
        mesh_volumes(model, volumes.values(), float(self.size), self.order)

    def _flank_angle(self) -> float:
        """Return the angle between the upper flank of the shank and the x axis, rad."""
        return math.atan2(self.shank_small - self.shank_big, 2 * self.length)

    def _fillets(self) -> tuple[_Fillet, _Fillet]:
        """Return the fillets of the upper flank at the big and at the small end."""
        angle = self._flank_angle()
        big, small = self.big_outer / 2, self.small_outer / 2
        first = _fillet(0.0, big, self.shank_big / 2, angle, self.fillet_big, 1)
        height, radius = self.shank_small / 2, self.fillet_small
        return first, _fillet(self.length, small, height, angle, radius, -1)

    def _pocket(self) -> tuple[float, float, float, float]:
        """Return x and radius of the two circles whose convex hull is the pocket."""
        angle = self._flank_angle()

        def radius(x: float) -> float:
            height = self.shank_big / 2 + x * math.tan(angle)
            return height * math.cos(angle) - self.flange_thickness

        # The circle about x ends at x ∓ radius(x), and radius(x) = radius(0) + x sin(angle).
        start = self.big_outer / 2 + self.pocket_margin
        end = self.length - self.small_outer / 2 - self.pocket_margin
        slope = math.sin(angle)
        x0 = (start + radius(0.0)) / (1 - slope)
        x1 = (end - radius(0.0)) / (1 + slope)
        return x0, radius(x0), x1, radius(x1)

    def _add_volumes(self, model: Any) -> dict[str, int]:
        """Add rings, shank, pockets and bores, and return the tags of the volumes by name."""
        occ = model.occ

        def cylinder(x: float, diameter: float, width: float) -> tuple[int, int]:
            return 3, occ.addCylinder(x, 0, -width / 2, 0, 0, width, diameter / 2)

        big = cylinder(0.0, self.big_outer, self.big_width)
        small = cylinder(self.length, self.small_outer, self.small_width)
        shank = self._add_shank(occ)
        pockets = [self._add_pocket(occ, side) for side in (-1, 1)]
        beam, _ = occ.cut([shank], pockets)
        body, _ = occ.fuse([big], [small, *beam])
        big_bore = cylinder(0.0, self.big_bore, 2 * self.big_width)
        small_bore = cylinder(self.length, self.small_bore, 2 * self.small_width)
        result, _ = occ.cut(body, [big_bore, small_bore])
        if len(result) != 1:
            raise SolverError(f"the rod consists of {len(result)} pieces instead of one")
        ((_, volume),) = result
        return self._cut(occ, result) if self.split_big_end else {"rod": int(volume)}

    def _cut(self, occ: Any, body: list[tuple[int, int]]) -> dict[str, int]:
        """Cut the big end at x = 0, and return both volumes; they share the faces of the cut."""
        d = self.big_outer
        half = (3, occ.addBox(-d, -d, -self.big_width, d, 2 * d, 2 * self.big_width))
        cap, _ = occ.intersect(body, [half], removeObject=False, removeTool=False)
        rod, _ = occ.cut(body, [half])
        parts, _ = occ.fragment(rod, cap)
        if len(parts) != 2:
            raise SolverError(f"rod and cap consist of {len(parts)} pieces instead of two")
        volumes = (int(tag) for _, tag in parts)
        at_cap, at_rod = sorted(volumes, key=lambda tag: occ.getCenterOfMass(3, tag))
        return {"rod": at_rod, "cap": at_cap}

    def _add_shank(self, occ: Any) -> tuple[int, int]:
        """Return the shank, a plate as wide as the flanges that ends inside the rings."""
        big, small = self._fillets()
        # The outline ends at points inside the rings, midway between outer circle and bore. The
        # depths are the distances of these points from the axis, relative to the outer radius
        depth_big = (1 + self.big_bore / self.big_outer) / 2
        depth_small = (1 + self.small_bore / self.small_outer) / 2
        inner_big = depth_big * big.contact
        inner_small = self.length + depth_small * (small.contact - self.length)
        z = -self.flange_width / 2
        corners = [inner_big, big.contact, big.tangent, small.tangent, small.contact, inner_small]
        sides, ends = [], []
        for sign in (1, -1):  # the upper and the lower side
            start, big_contact, big_tangent, small_tangent, small_contact, stop = (
                occ.addPoint(p.real, sign * p.imag, z) for p in corners
            )
            big_centre, small_centre = (
                occ.addPoint(p.real, sign * p.imag, z) for p in (big.centre, small.centre)
            )
            side = [
                occ.addLine(start, big_contact),
                occ.addCircleArc(big_contact, big_centre, big_tangent),
                occ.addLine(big_tangent, small_tangent),
                occ.addCircleArc(small_tangent, small_centre, small_contact),
                occ.addLine(small_contact, stop),
            ]
            sides.append(side)
            ends.append((start, stop))
        (start, stop), (other_start, other_stop) = ends
        upper, lower = sides
        across = occ.addLine(stop, other_stop)
        loop = occ.addCurveLoop([*upper, across, *lower[::-1], occ.addLine(other_start, start)])
        return extrude(occ, occ.addPlaneSurface([loop]), self.flange_width)

    def _add_pocket(self, occ: Any, side: int) -> tuple[int, int]:
        """Return the pocket beside the web at z < 0 or z > 0, the convex hull of two circles."""
        x0, r0, x1, r1 = self._pocket()
        depth = (self.flange_width - self.web_thickness) / 2
        z = side * self.web_thickness / 2
        # The radii to the points of the common tangent on both circles make this angle with x.
        rotation = cmath.exp(1j * math.acos((r0 - r1) / (x1 - x0)))
        p0, p1 = x0 + r0 * rotation, x1 + r1 * rotation
        outline = [p0, x0 - r0, p0.conjugate(), p1.conjugate(), x1 + r1, p1]
        top, back, bottom, far_bottom, front, far_top = (
            occ.addPoint(complex(q).real, complex(q).imag, z) for q in outline
        )
        near, far = (occ.addPoint(x, 0, z) for x in (x0, x1))
        curves = [
            occ.addCircleArc(top, near, back),
            occ.addCircleArc(back, near, bottom),
            occ.addLine(bottom, far_bottom),
            occ.addCircleArc(far_bottom, far, front),
            occ.addCircleArc(front, far, far_top),
            occ.addLine(far_top, top),
        ]
        surface = occ.addPlaneSurface([occ.addCurveLoop(curves)])
        # Twice the depth avoids faces that coincide with the side of the shank.
        return extrude(occ, surface, 2 * side * depth)


class _Fillet(NamedTuple):
    """An arc from the outer circle of a ring to a flank at y > 0; points x + iy, m."""

    centre: complex
    contact: complex  # end on the outer circle
    tangent: complex  # end on the flank


def _fillet(
    x: float, outer: float, height: float, angle: float, radius: float, side: int
) -> _Fillet:
    """Return the fillet between a circle about (x, 0) and a flank at a height above its centre.

    `outer` is the radius of the circle, and `angle` the angle of the flank to the x axis, rad.
    The fillet is at larger x than the centre if `side` is 1, and at smaller x if `side` is -1.
    """
    flank = cmath.exp(1j * angle)
    # The centre of the arc is at the distance `radius` from the flank. Its distance from the centre
    # of the circle follows from the angle `_FILLET_ANGLE` between arc and circle.
    height_of_centre = height * flank.real + radius
    distance = math.sqrt(outer**2 + radius**2 + 2 * outer * radius * math.cos(_FILLET_ANGLE))
    centre = (side * math.sqrt(distance**2 - height_of_centre**2) + 1j * height_of_centre) * flank
    # The arc ends at the intersection of arc and circle that is closer to the shank.
    rotation = -side * math.acos((distance**2 + outer**2 - radius**2) / (2 * outer * distance))
    contact = outer * centre / distance * cmath.exp(1j * rotation)
    return _Fillet(x + centre, x + contact, x + centre - 1j * radius * flank)
