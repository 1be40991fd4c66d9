"""Whether journals of a crank, bores of block and rods, pistons and bearings fit each other.

A size is checked if both parts have it: a film or a clearance has its size, and an interface of a
reduced body that is a whole bore or journal has that of its surface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.joints import JointClearance
from dolfinx_mbd.mechanism.mechanisms.crank_parts import rod_ends
from dolfinx_mbd.mechanism.mechanisms.engine_block import EngineBlock
from dolfinx_mbd.mechanism.mechanisms.engine_crank import EngineCrank
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign

_TOLERANCE = 1e-3  # largest relative error of a radius or a length
_MAX_SHELL = 0.25  # largest ratio of the thickness of a bearing shell to the radius of the journal


def check_fits(
    design: EngineDesign,
    shaft: EngineCrank | None,
    case: EngineBlock | None,
    rods: Sequence[ReducedBody],
    ends: tuple[str, str],
    bearings: Mapping[str, Sequence[JointClearance | None]],
) -> None:
    """Raise an error if a bore or a bearing does not fit its journal, or if bearings overlap."""
    journals = [] if shaft is None else [shaft.body.interface(name) for name in shaft.mains]
    bores = [] if case is None else [case.body.interface(name) for name in case.mains]
    for k, bearing in enumerate(bearings["main"]):
        journal = journals[k] if journals else None
        _check(f"main bearing {k + 1}", bearing, journal, bores[k] if bores else None)
    for k, rod in enumerate(rods):
        pin, distance = None, 0.0
        if shaft is not None:
            pin = shaft.body.interface(shaft.pins[k * len(shaft.pins) // len(rods)])
            distance = abs(float(design.positions[k] - pin.point[2]))
        big, small = rod_ends(rod, ends)
        _check(f"big end of cylinder {k + 1}", bearings["big_end"][k], pin, big, distance)
        _check(f"small end of cylinder {k + 1}", bearings["small_end"][k], None, small)
    _check_overlap(design, bearings["big_end"])
    for k, name in enumerate(() if case is None else case.cylinders):
        _check_cylinder(k + 1, design, case.body.interface(name))  # type: ignore[union-attr]


def _check(
    label: str,
    bearing: JointClearance | None,
    journal: Interface | None,
    bore: Interface | None,
    distance: float = 0.0,
) -> None:
    """Raise an error if a bearing, its journal and its bore do not fit.

    `distance` is the distance of the middle of the bearing from that of the journal, m.
    """
    # Sizes that are unknown are zero
    radius, length, clearance = (0.0, 0.0, 0.0) if bearing is None else bearing.size
    pin, width = (0.0, 0.0) if journal is None else (journal.radius, journal.length)
    hole, depth = (0.0, 0.0) if bore is None else (bore.radius, bore.length)
    text = ""
    if radius and pin and abs(radius - pin) > max(clearance, _TOLERANCE * radius):
        text = f"its radius of {radius:.6g} m does not fit the journal of {pin:.6g} m"
    elif length and width and 2 * distance + length > (1 + _TOLERANCE) * width:
        text = f"its length of {length:.6g} m does not fit on the journal of {width:.6g} m"
        text += f", whose middle is {distance:.3g} m away" if distance > _TOLERANCE * width else ""
    elif length and depth and length > (1 + _TOLERANCE) * depth:
        text = f"its length of {length:.6g} m does not fit into the bore of {depth:.6g} m"
    elif hole and (inner := pin or radius):
        part = "journal" if pin else "bearing"
        if hole < (1 - _TOLERANCE) * inner:
            text = f"the {part} has a radius of {inner:.6g} m, and the bore only {hole:.6g} m"
        elif hole > (1 + _MAX_SHELL) * inner:
            text = (
                f"the bore has a radius of {hole:.6g} m, and the {part} only {inner:.6g} m; a "
                f"bearing shell between them is at most {_MAX_SHELL:g} times the radius thick"
            )
    if text:
        where = "" if bore is None else f" (interface {bore.name!r})"
        argument, value = ("crank", journal) if bearing is None else ("bearings", bearing)
        raise InputError(f"{label}{where}: {text}", argument=argument, value=value)


def _check_cylinder(cylinder: int, design: EngineDesign, bore: Interface) -> None:
    """Raise an error if a bore of the block is smaller than the piston, or much larger."""
    smallest, largest = 0.5 * design.bore, 0.5 * (1 + _MAX_SHELL) * design.bore  # with a liner
    if bore.radius and not (1 - _TOLERANCE) * smallest <= bore.radius <= largest:
        raise InputError(
            f"cylinder {cylinder} (interface {bore.name!r}): its bore in the block is "
            f"{2 * bore.radius:.6g} m, that of the design {design.bore:.6g} m",
            argument="bore",
            value=design.bore,
        )


def _check_overlap(design: EngineDesign, bearings: Sequence[JointClearance | None]) -> None:
    """Raise an error if the big ends of two cylinders are in the same place of one pin."""
    throws: Any = np.exp(1j * np.asarray(design.throw_angles))
    sizes = [(0.0, 0.0, 0.0) if bearing is None else bearing.size for bearing in bearings]
    lengths = [length for _, length, _ in sizes]
    for i, j in combinations(range(design.cylinders), 2):
        distance = abs(float(design.positions[i] - design.positions[j]))
        required = 0.5 * (lengths[i] + lengths[j])
        if lengths[i] and lengths[j] and abs(throws[i] - throws[j]) < _TOLERANCE:
            if distance < (1 - _TOLERANCE) * required:
                raise InputError(
                    f"the big ends of cylinders {i + 1} and {j + 1} are {distance:.6g} m apart on "
                    f"one pin; their bearings need {required:.6g} m",
                    argument="bearings",
                    value=bearings[i],
                )
