"""Parts of engines that do not fit each other: bores, bearings, throws, firing orders, tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineCrank, EngineDesign, PressureTable, engine
from tests.mechanism.mechanisms.test_engine_block import mounts, rigid_block
from tests.mechanism.mechanisms.test_engine_cranks import ROD, reduced_crank

SIZES: dict[str, Any] = {"length": 0.02, "clearance": 30e-6, "viscosity": 0.01}
DESIGN = EngineDesign(cylinders=1)


def film(radius: float = 0.021, **changes: Any) -> OilFilm:
    """Return a film on journals with a radius of 21 mm."""
    return OilFilm(ShortBearing, **SIZES | {"radius": radius} | changes)


def with_sizes(body: ReducedBody, **sizes: tuple[float, float]) -> ReducedBody:
    """Return a body whose interfaces are bores or journals with a radius and a length, m."""
    changed = [
        replace(i, radius=sizes[i.name][0], length=sizes[i.name][1]) if i.name in sizes else i
        for i in body.interfaces
    ]
    return body.replace(interfaces=tuple(changed))


CRANK = with_sizes(reduced_crank(DESIGN, mains=(0.1,)), pin_1=(0.021, 0.022), main_1=(0.025, 0.02))


@pytest.mark.parametrize(
    ("bearing", "message"),
    [
        (film(0.0215), r"radius of 0\.0215 m does not fit the journal of 0\.021 m"),
        (film(0.0205), "does not fit the journal"),
        (film(length=0.024), r"length of 0\.024 m does not fit on the journal of 0\.022 m"),
        (mbd.Clearance(radial=3e-5, law=mbd.ContactLaw(1e9), radius=0.02), "does not fit the jour"),
    ],
)
def test_bearing_and_journal(bearing: Any, message: str) -> None:
    for place in ({"big_end": bearing}, {"big_end": [bearing]}):
        with pytest.raises(InputError, match=f"big end of cylinder 1.*{message}") as error:
            engine(ROD, DESIGN, crank=CRANK, speed=1.0, bearings=place)
        assert error.value.argument == "bearings"


def test_bearing_and_bore() -> None:
    """Bores of rods and of the block must fit their films; a bearing shell takes some space."""
    rod = with_sizes(ROD, big_end=(0.024, 0.019), small_end=(0.011, 0.02))
    design = EngineDesign(cylinders=1)
    with pytest.raises(InputError, match=r"length of 0\.02 m does not fit into the bore of 0\.019"):
        engine(rod, design, speed=1.0, bearings={"big_end": film()})
    with pytest.raises(
        InputError, match=r"small end of cylinder 1.*bearing has a radius of 0\.021"
    ):
        engine(rod, design, speed=1.0, bearings={"small_end": film()})
    with pytest.raises(InputError, match=r"big end of cylinder 1.*0\.024 m.*only 0\.018"):
        engine(rod, design, speed=1.0, bearings={"big_end": film(0.018, length=0.01)})
    engine(rod, design, crank=CRANK, speed=1.0, bearings={"big_end": film(length=0.019)})


@pytest.mark.parametrize(("bore", "fits"), [(0.025, True), (0.027, True), (0.0249, False)])
def test_block_and_journal(bore: float, fits: bool) -> None:
    """Without films the bore must not be smaller than the journal."""
    block = with_sizes(rigid_block(DESIGN), main_1=(bore, 0.03))
    parts: dict[str, Any] = {"crank": CRANK, "block": block, "mounts": mounts(1e6, 1e3)}
    if fits:
        engine(ROD, DESIGN, speed=1.0, **parts)
        return
    with pytest.raises(
        InputError, match=r"main bearing 1 .*main_1.*journal has a radius of 0\.025"
    ):
        engine(ROD, DESIGN, speed=1.0, **parts)


def test_two_rods_on_one_pin() -> None:
    """The films of both rods must lie on the pin, and must not overlap."""
    half = np.pi / 4
    design: dict[str, Any] = {
        "cylinders": 2,
        "bank_angles": [-half, half],
        "throw_angles": [0.0, 0.0],
        "firing_angles": [4 * np.pi - half, half],
    }
    for place, message in ((0.012, "middle is 0.012 m away"), (0.009, "0.018 m apart on one pin")):
        V = EngineDesign(**design, cylinder_positions=[-place, place])
        body = reduced_crank(V, mains=(0.1,), pin_1=(0.04, 0.0, 0.0))
        crank = EngineCrank(with_sizes(body, pin_1=(0.021, 0.04)), pins=["pin_1"])
        with pytest.raises(InputError, match=message):
            engine(ROD, V, crank=crank, speed=1.0, bearings={"big_end": film()})


@pytest.mark.parametrize("clearance", [-1e-6, 0.0])
def test_clearance(clearance: float) -> None:
    with pytest.raises(InputError, match="clearance"):
        film(clearance=clearance)
    with pytest.raises(InputError, match="clearance"):
        mbd.Clearance(radial=clearance, law=mbd.ContactLaw(1e9))


def test_firing_order_that_repeats_a_cylinder() -> None:
    with pytest.raises(InputError, match="each cylinder from 1 to 4 once"):
        EngineDesign(cylinders=4, firing_order=[1, 3, 3, 2])


def test_throws_that_do_not_match_the_banks() -> None:
    with pytest.raises(InputError, match="cylinder 2 fires at"):
        EngineDesign(cylinders=2, throw_angles=[0.0, 0.3])
    banks = np.radians([-30.0, 30.0])
    with pytest.raises(InputError, match=r"needs a throw of 30° or another firing order"):
        EngineDesign(
            cylinders=2, bank_angles=banks, firing_angles=[0, 0], throw_angles=[banks[0], 0.0]
        )
    crank = reduced_crank(EngineDesign(cylinders=2), mains=(0.1,))
    with pytest.raises(InputError, match="the throw of cylinder"):
        V = EngineDesign(cylinders=2, bank_angles=banks, spacing=0.08)
        engine(ROD, V, crank=crank, speed=1.0)


def test_table_that_does_not_close() -> None:
    angle = np.radians(np.arange(0.0, 721.0, 10.0))
    with pytest.raises(InputError, match="pressure"):
        PressureTable(angle, 2e5 + 1e4 * angle)
    with pytest.raises(InputError, match="must have the period 4π"):
        engine(ROD, DESIGN, speed=1.0, pressure=lambda a: 2e5 + 1e4 * a)


def test_sizes_of_meshed_parts(tmp_path: Any) -> None:
    """Reduced parts have the radius and the length of their bores and journals, also in files."""
    shaft = mbd.geometry.Crankshaft(throw_angles=[0.0], fillet=0.003, size=0.02, order=1)
    names = ["main_1", "main_2", "pin_1", "flange"]
    middle = {"main_1": (0, 0, shaft.main_positions[0])}  # the journal has one fillet
    specs = {name: mbd.InterfaceSpec(axes=(0, 0, 1), point=middle.get(name)) for name in names}
    crank = mbd.reduce(
        mbd.build_mesh(shaft, MPI.COMM_WORLD),
        mbd.STEEL,
        interfaces=specs,
        num_modes=0,
    ).body
    expected = {"main_1": (0.025, 0.018), "main_2": (0.025, 0.021)}
    expected |= {"pin_1": (0.021, 0.018), "flange": (0.0, 0.0)}
    path = tmp_path / "crank.npz"
    if MPI.COMM_WORLD.rank == 0:
        crank.save(path)
        for body in (crank, ReducedBody.load(path)):
            for name in names:
                i = body.interface(name)
                assert (i.radius, i.length) == pytest.approx(expected[name], rel=1e-9)
    with pytest.raises(InputError, match=r"main bearing 1: its length of 0\.02 m does not fit on"):
        engine(ROD, DESIGN, crank=crank, speed=1.0, bearings={"main": film(0.025)})
    with pytest.raises(InputError, match=r"big end of cylinder 1.*journal of 0\.021 m"):
        engine(ROD, DESIGN, crank=crank, speed=1.0, bearings={"big_end": film(0.025, length=0.01)})
    fits = {"main": film(0.025, length=0.018), "big_end": film(length=0.018)}
    engine(ROD, DESIGN, crank=crank, speed=1.0, bearings=fits)
