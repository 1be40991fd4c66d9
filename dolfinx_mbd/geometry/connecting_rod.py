"""A parametric connecting rod: two rings and an I-section shank.

The defaults are a rod for the three-cylinder engine whose rods weigh 0.153 kg with 137 mm between
the centres, on a crank radius of 40 mm. Usual proportions weigh about 0.45 kg in steel, so that
such a mass means an aluminium alloy: forged 7075-T6 (E = 71.7 GPa, ν = 0.33, 2810 kg/m³), as in
racing engines. The proportions follow from it, and weigh 0.1531 kg:

- big end: 42 mm bore for the crank pin with its shells, 8 mm wall, 20 mm wide;
- small end: 19 mm bore for a floating gudgeon pin, 5.5 mm wall, 20 mm wide;
- shank: an I of 15 mm width, whose height tapers from 26 mm to 20 mm; flanges of 5 mm and a web of
  4 mm, so that the least section, at the small end, has 194 mm² and carries the 40 kN of a gas
  pressure of 90 bar on a 75 mm piston at 205 MPa, well below the yield point of 500 MPa;
- fillets between shank and rings, pockets with round ends, no edge thinner than the web.

With `split_big_end` the big end is cut at the plane x = 0 into rod and cap, which share the nodes
of the cut. Bolts, oil holes and draft are left out. The fillets meet the rings at an angle: where a
ring is wider than the shank, a tangent fillet leaves a cusp that no mesh resolves, with nearly
degenerate curved elements in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from dolfinx_mbd.checks import flag, integer, number
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.geometry.tools import extrude, is_bore, mesh_volumes

__all__ = ["ConnectingRod"]

_MEETING = math.radians(25)
"""Angle at which the fillets meet the outer circles of the rings."""

_HIGHEST, _WALL, _STEP, _SHARPEST = 0.87, 0.93, 0.95, 0.015
"""Limits that keep slivers away: height of the shank over the outer diameter of a ring, bore over
outer diameter, flange over the width of a ring unless equal, end radius of a pocket over length."""


@dataclass(frozen=True, kw_only=True)
class ConnectingRod:
    """A connecting rod that adds itself to a gmsh model: `rod(gmsh.model)`.

    The centre of the big-end bore is the origin, that of the small end is at (length, 0, 0), the
    bore axes are along z and the rod is symmetric about the planes z = 0 and y = 0. The physical
    groups are the volume "rod" and the whole bore surfaces "big_end" and "small_end"; with a split
    big end also the volume "cap" and the surface "parting" between the two. All lengths are in
    metres.

    A combination of parameters within these ranges, given as shares of the length, either is
    refused or makes a mesh whose least scaled Jacobian is above 0.1 (hundreds were tried):

    ================  ===========    ================  ============
    parameter         over length    parameter         over length
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
        length: Distance of the bore axes.
        big_bore: Diameter of the big-end bore.
        big_outer: Outer diameter of the big-end ring.
        big_width: Width of the big end along z.
        small_bore: Diameter of the small-end bore.
        small_outer: Outer diameter of the small-end ring.
        small_width: Width of the small end along z.
        shank_big: Height of the shank (along y), extrapolated to the big-end axis.
        shank_small: Height of the shank, extrapolated to the small-end axis.
        flange_width: Width of the shank's flanges along z.
        flange_thickness: Thickness of the flanges in the plane.
        web_thickness: Thickness of the web along z.
        fillet_big: Radius of the fillets between shank and big end.
        fillet_small: Radius of the fillets between shank and small end.
        pocket_margin: Least distance of the pockets beside the web from the rings' outer circles.
        size: Largest size of an element. The default gives 5,107 tetrahedra and, of second order,
            30,327 displacements; 0.008 gives 14,000, 0.003 gives 63,000, 0.0015 gives 390,000.
        order: Order of the elements, 1 (straight) or 2 (curved).
        split_big_end: Whether the half of the big end at x < 0 is a volume of its own, the "cap".

    Raises:
        ValueError: A parameter is not possible, alone or with the others; the message says why.
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
    size: float = 0.0045
    order: int = 2
    split_big_end: bool = False

    def __post_init__(self) -> None:
        flag("split_big_end", self.split_big_end)
        integer("order", self.order, low=1, high=2)
        for field in fields(self):
            if field.name not in ("order", "split_big_end"):
                length = number(field.name, getattr(self, field.name), low=1e-6, high=1e6, unit="m")
                object.__setattr__(self, field.name, length)
        for holds, why in self._conditions():
            if not holds:
                raise InputError(why)

    def _conditions(self) -> Iterator[tuple[bool, str]]:
        """What must hold between the parameters, and what to say if it does not."""

        def less(small: str, large: str, why: str, share: float = 1.0) -> tuple[bool, str]:
            a, b = getattr(self, small), getattr(self, large)
            times = "" if share == 1 else f"{share:.3g} times "
            return a < share * b, (
                f"{small} must be less than {times}{large} ({why}); got {a:g} and {b:g} m"
            )

        for end in ("big", "small"):
            yield less(f"{end}_bore", f"{end}_outer", "a ring needs a wall", _WALL)
            why = "so that a fillet fits between shank and ring"
            yield less(f"shank_{end}", f"{end}_outer", why, _HIGHEST / math.cos(self._slope()))
            a, b = self.flange_width, getattr(self, f"{end}_width")
            yield a <= b, f"flange_width must not exceed {end}_width; got {a:g} and {b:g} m"
            yield (
                a == b or a <= _STEP * b,
                f"flange_width must equal {end}_width or be less than {_STEP} times as much, as a "
                f"tiny step leaves slivers; got {a:g} and {b:g} m",
            )
        yield less("web_thickness", "flange_width", "the section is an I")
        rings = (self.big_outer + self.small_outer) / 2
        yield (
            rings < self.length,
            "length must exceed the outer radii of both rings, (big_outer + small_outer)/2; "
            f"got {self.length:g} and {rings:g} m",
        )
        if rings < self.length:
            big, small = self._fillets()
            yield (
                big.tangent[0] < small.tangent[0],
                "the fillets meet on the shank: decrease fillet_big, fillet_small or the rings, or "
                f"increase length (they end at x = {big.tangent[0]:g}, {small.tangent[0]:g} m)",
            )
            yield from self._pocket_conditions()

    def _pocket_conditions(self) -> Iterator[tuple[bool, str]]:
        x0, r0, x1, r1 = self._pocket()
        yield (
            min(r0, r1) > 0,
            "flange_thickness leaves no web: it must be less than half the height of the "
            f"shank; got {self.flange_thickness:g} m",
        )
        yield (
            min(r0, r1) >= _SHARPEST * self.length,
            f"flange_thickness leaves a pocket with an end radius of {min(r0, r1):.3g} m only; it "
            f"must be at least {_SHARPEST} times length: decrease flange_thickness",
        )
        yield (
            x1 - x0 > abs(r1 - r0),
            "the shank is too short for a pocket: decrease pocket_margin, the rings or the "
            f"height of the shank, or increase length (ends at x = {x0:g} and {x1:g} m)",
        )

    def __call__(self, model: Any) -> None:
        """Add the rod to a gmsh model, mesh it and name its groups.

        Args:
            model: `gmsh.model`. gmsh's options are as before afterwards.

        Raises:
            RuntimeError: Elements are nearly inverted even at a third of the size.
        """
        volumes = self._add_volumes(model)
        model.occ.synchronize()
        # Every face once, also the one between two volumes.
        found = model.getBoundary(
            [(3, v) for v in volumes.values()], combined=False, oriented=False
        )
        surfaces = sorted({tag for _, tag in found})
        bores = {
            "big_end": (0.0, self.big_bore / 2),
            "small_end": (self.length, self.small_bore / 2),
        }
        for name, (x, radius) in bores.items():
            faces = [s for s in surfaces if is_bore(model, s, x, radius)]
            model.addPhysicalGroup(2, faces, name=name)
        if self.split_big_end:
            shared = [s for s in surfaces if len(model.getAdjacencies(2, s)[0]) == 2]
            model.addPhysicalGroup(2, shared, name="parting")
        for name, volume in volumes.items():
            model.addPhysicalGroup(3, [volume], name=name)
        mesh_volumes(model, volumes.values(), self.size, self.order)

    def _slope(self) -> float:
        """Angle of the flanks: half the difference of the heights over the length, rad."""
        return math.atan2(self.shank_small - self.shank_big, 2 * self.length)

    def _fillets(self) -> tuple[_Fillet, _Fillet]:
        """Fillets of the upper flank at the big and at the small end."""
        slope = self._slope()
        big = _fillet(0.0, self.big_outer / 2, self.shank_big / 2, slope, self.fillet_big, 1)
        small = _fillet(
            self.length, self.small_outer / 2, self.shank_small / 2, slope, self.fillet_small, -1
        )
        return big, small

    def _pocket(self) -> tuple[float, float, float, float]:
        """Pocket as the hull of two circles that touch the flanges: x and radius of both."""
        slope = self._slope()

        def radius(x: float) -> float:
            height = self.shank_big / 2 + x * math.tan(slope)
            return height * math.cos(slope) - self.flange_thickness

        # The end circle's own radius depends on where it stands: x ∓ radius(x) = the end wanted.
        start = self.big_outer / 2 + self.pocket_margin
        end = self.length - self.small_outer / 2 - self.pocket_margin
        rate = math.sin(slope)
        x0 = (start + radius(0.0)) / (1 - rate)
        x1 = (end - radius(0.0)) / (1 + rate)
        return x0, radius(x0), x1, radius(x1)

    def _add_volumes(self, model: Any) -> dict[str, int]:
        """Add rings, shank, pockets and bores; the tags of the volumes by name."""
        occ = model.occ

        def cylinder(x: float, diameter: float, width: float) -> tuple[int, int]:
            return 3, occ.addCylinder(x, 0, -width / 2, 0, 0, width, diameter / 2)

        big = cylinder(0.0, self.big_outer, self.big_width)
        small = cylinder(self.length, self.small_outer, self.small_width)
        shank = self._add_shank(occ)
        pockets = [self._add_pocket(occ, side) for side in (-1, 1)]
        beam, _ = occ.cut([shank], pockets)
        body, _ = occ.fuse([big], [small, *beam])
        bores = [
            cylinder(0.0, self.big_bore, 2 * self.big_width),
            cylinder(self.length, self.small_bore, 2 * self.small_width),
        ]
        result, _ = occ.cut(body, bores)
        if len(result) != 1:
            raise SolverError(f"the rod came out in {len(result)} pieces")
        return self._split(occ, result) if self.split_big_end else {"rod": int(result[0][1])}

    def _split(self, occ: Any, body: list[tuple[int, int]]) -> dict[str, int]:
        """Cut the big end at x = 0; the two parts share the faces of the cut.

        (The fillets end well before: 25° from tangent, they meet the ring at x > 0.2 big_outer.)
        """
        d = self.big_outer
        half = (3, occ.addBox(-d, -d, -self.big_width, d, 2 * d, 2 * self.big_width))
        cap, _ = occ.intersect(body, [half], removeObject=False, removeTool=False)
        rod, _ = occ.cut(body, [half])
        parts, _ = occ.fragment(rod, cap)
        if len(parts) != 2:
            raise SolverError(f"rod and cap came out in {len(parts)} pieces")
        cap_tag, rod_tag = sorted(
            (int(t) for _, t in parts), key=lambda t: occ.getCenterOfMass(3, t)
        )
        return {"rod": rod_tag, "cap": cap_tag}

    def _add_shank(self, occ: Any) -> tuple[int, int]:
        """Shank as a plate of the flanges' width, with the fillets, into the rings."""
        big, small = self._fillets()
        z = -self.flange_width / 2

        def point(xy: tuple[float, float], sign: int = 1) -> int:
            return int(occ.addPoint(xy[0], sign * xy[1], z))

        # Points in the rings, beyond the fillets and outside the bores, close the outline.
        in_big = (self.big_bore + self.big_outer) / 4 / (self.big_outer / 2)
        in_small = (self.small_bore + self.small_outer) / 4 / (self.small_outer / 2)
        deep_big = (in_big * big.contact[0], in_big * big.contact[1])
        deep_small = (
            self.length + in_small * (small.contact[0] - self.length),
            in_small * small.contact[1],
        )
        lines: list[int] = []
        first = last = 0
        for sign in (1, -1):
            corners = [deep_big, big.contact, big.tangent, small.tangent, small.contact, deep_small]
            tags = [point(p, sign) for p in corners]
            centres = [point(big.centre, sign), point(small.centre, sign)]
            side = [
                occ.addLine(tags[0], tags[1]),
                occ.addCircleArc(tags[1], centres[0], tags[2]),
                occ.addLine(tags[2], tags[3]),
                occ.addCircleArc(tags[3], centres[1], tags[4]),
                occ.addLine(tags[4], tags[5]),
            ]
            if sign == 1:
                first, last, lines = tags[0], tags[-1], side
            else:
                lines += [occ.addLine(last, tags[-1]), *side[::-1], occ.addLine(tags[0], first)]
        outline = occ.addPlaneSurface([occ.addCurveLoop(lines)])
        return extrude(occ, outline, self.flange_width)

    def _add_pocket(self, occ: Any, side: int) -> tuple[int, int]:
        """Pocket beside the web at z < 0 or z > 0: hull of two circles."""
        x0, r0, x1, r1 = self._pocket()
        depth = (self.flange_width - self.web_thickness) / 2
        z = side * self.web_thickness / 2
        # The common tangent touches both circles where the radius makes this angle with x.
        angle = math.acos((r0 - r1) / (x1 - x0))
        c, s = math.cos(angle), math.sin(angle)
        centre0, centre1 = occ.addPoint(x0, 0, z), occ.addPoint(x1, 0, z)
        p = [
            occ.addPoint(x0 + r0 * c, r0 * s, z),
            occ.addPoint(x0 - r0, 0, z),
            occ.addPoint(x0 + r0 * c, -r0 * s, z),
            occ.addPoint(x1 + r1 * c, -r1 * s, z),
            occ.addPoint(x1 + r1, 0, z),
            occ.addPoint(x1 + r1 * c, r1 * s, z),
        ]
        loop = occ.addCurveLoop(
            [
                occ.addCircleArc(p[0], centre0, p[1]),
                occ.addCircleArc(p[1], centre0, p[2]),
                occ.addLine(p[2], p[3]),
                occ.addCircleArc(p[3], centre1, p[4]),
                occ.addCircleArc(p[4], centre1, p[5]),
                occ.addLine(p[5], p[0]),
            ]
        )
        # Twice the depth: out through the side, so that no two faces coincide.
        return extrude(occ, occ.addPlaneSurface([loop]), 2 * side * depth)


@dataclass(frozen=True)
class _Fillet:
    """An arc from an outer circle to a flank, at y > 0: its centre and end points."""

    centre: tuple[float, float]
    contact: tuple[float, float]
    tangent: tuple[float, float]


def _fillet(
    x: float, outer: float, height: float, slope: float, radius: float, side: int
) -> _Fillet:
    """Fillet at the circle of radius `outer` about (x, 0) and the flank through (x, height).

    Args:
        x: Centre of the circle.
        outer: Its radius.
        height: Height of the flank above the centre.
        slope: Angle of the flank.
        radius: Radius of the fillet.
        side: Where the fillet is: 1 at greater x, -1 at smaller.
    """
    t, n = (math.cos(slope), math.sin(slope)), (-math.sin(slope), math.cos(slope))
    # The arc's centre: `radius` from the flank, and from the circle's centre such that they cross
    # at the meeting angle.
    across = height * n[1] + radius
    distance2 = outer**2 + radius**2 + 2 * outer * radius * math.cos(_MEETING)
    along = side * math.sqrt(distance2 - across**2)
    dx, dy = along * t[0] + across * n[0], along * t[1] + across * n[1]
    tangent = (x + dx - radius * n[0], dy - radius * n[1])
    # Of the two points where they cross, the arc comes first to the one towards the shank.
    turn = -side * math.acos((distance2 + outer**2 - radius**2) / (2 * outer * distance2**0.5))
    angle = math.atan2(dy, dx) + turn
    contact = (x + outer * math.cos(angle), outer * math.sin(angle))
    return _Fillet((x + dx, dy), contact, tangent)
