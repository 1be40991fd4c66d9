"""Reports of unit loads that the modes do not represent, and of omitted stiffening."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import static_errors
from dolfinx_mbd.body.static_errors import SUMMARY_LIMIT, unit_load_names, weighted_errors
from dolfinx_mbd.errors import AccuracyWarning, InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.forms import Section, elastic_stiffness
from dolfinx_mbd.structures.beams.beam_reduction import reduce_beam
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.prescribed_motion import quasi_static_deformation
from tests.models.bodies import box
from tests.models.calls import flat
from tests.models.plates import plate
from tests.models.statics import static_cases

SLENDER = (0.4, 0.01, 0.01)


def test_stretch_of_a_spinning_rod(comm: MPI.Comm) -> None:
    """The tension of a rod that rotates about its centre is proportional to L²/4 − x².

    Two interfaces give a constant tension, which has 5/6 of the energy. The fixed-interface axial
    modes with the tension cos(2πkx/L), of which there are two below the 40th mode, add 15/(πk)⁴.
    """
    mesh = box(comm, SLENDER, (20, 1, 1))
    bodies = [
        mbd.reduce(
            mesh,
            mbd.STEEL,
            interfaces=["left", "right"],
            num_modes=n,
            options=mbd.ReductionOptions(skin=False),
        ).body
        for n in (4, 40)
    ]
    few, many = (static_errors(body) for body in bodies)
    for spin in ("spin yy", "spin zz"):
        assert np.isclose(few[spin], 1 / 6, rtol=0.02)
        assert np.isclose(many[spin], 1 / 6 - 15 / np.pi**4 * (1 + 1 / 16), rtol=0.03)
    fewer = static_errors(bodies[1].truncated(4))
    assert all(fewer[name] > error - 1e-9 for name, error in many.items())
    assert fewer["spin zz"] > 0.9  # bending modes only


def test_no_axial_mode(comm: MPI.Comm) -> None:
    """With one interface and few modes the table has rows; a body at rest gives no warning."""
    mesh = box(comm, SLENDER, (20, 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body = spinning_rod(mesh, 4)
    errors = static_errors(body)
    assert errors["spin zz"] == pytest.approx(1.0, abs=1e-3)
    assert errors["force x at left"] == pytest.approx(1.0, abs=1e-3)
    assert errors["force y at left"] < 0.05
    rows = {line.rstrip("% ").rpartition("  ")[0].strip() for line in body.summary().splitlines()}
    listed = rows & set(unit_load_names(body))
    large = {name for name, error in errors.items() if error > SUMMARY_LIMIT}
    assert large >= {"spin xx", "spin zz"}
    assert listed == large - {"spin xx", "spin yz"}  # both hardly deform the rod along x
    assert body.stiffening is not None and body.stiffening.work is not None
    energies = body.stiffening.work[:3]
    weighted = weighted_errors(body)
    assert weighted["spin xx"] == pytest.approx(errors["spin xx"] * energies[0] / energies.max())
    assert weighted["force x at left"] == errors["force x at left"]


@pytest.mark.parametrize("analysis", ["simulate", "modal"])
@pytest.mark.parametrize(
    ("modes", "speed", "share"), [(4, 500.0, 1.0), (4, 0.5, None), (40, 500.0, None)]
)
def test_warning_of_missing_stretch(
    comm: MPI.Comm, analysis: str, modes: int, speed: float, share: float | None
) -> None:
    """Runs warn if the body turns fast and its modes are bending modes only."""
    body = spinning_rod(box(comm, SLENDER, (20, 1, 1)), modes)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        if analysis == "modal":
            motion = mbd.structures.PrescribedMotion(omega=(0.0, 0.0, speed))
            quasi_static_deformation(body, motion, [0.0, 1.0])
        else:
            ground, bar = mbd.Ground({"o": mbd.Frame()}), mbd.FlexibleBody("bar", body)
            pivot = mbd.revolute("pivot", ground.frame("o"), bar.frame("left"))
            drive = mbd.Driver("drive", "pivot", lambda t: (speed * t, speed, 0.0))
            mbd.simulate(mbd.System([ground, bar], [pivot], drivers=[drive]), t_end=1e-3, dt=1e-4)
    errors = [r.message for r in records if isinstance(r.message, AccuracyWarning)]
    assert [e.quantity for e in errors] == ([] if share is None else ["missing stretch"])
    if share is not None:
        assert errors[0].value == pytest.approx(share, abs=0.01)
        assert errors[0].limit == 0.2


def spinning_rod(mesh: mbd.fem.TaggedMesh, num_modes: int) -> mbd.ReducedBody:
    """Return a reduced rod that is held at its left end."""
    options = mbd.ReductionOptions(skin=False)
    return mbd.reduce(
        mesh, mbd.STEEL, interfaces=["left"], num_modes=num_modes, options=options
    ).body


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_errors_are_those_of_the_mesh(comm: MPI.Comm, kind: Any) -> None:
    """Errors equal those from the energy of the projected displacements on the mesh."""
    mesh, names = box(comm, cells=(5, 2, 1)), ["left", "right"]
    bar = mbd.reduce(
        mesh,
        mbd.STEEL,
        interfaces=mbd.InterfaceSpec.each(names, kind),
        num_modes=3,
        options=mbd.ReductionOptions(skin=False),
    )
    problem = elastic_problem(mbd.ElasticModel(mesh, mbd.STEEL, space=bar.space))
    cases = static_cases(
        problem, mesh_interfaces(mesh, bar.space, mbd.InterfaceSpec.each(names, kind))
    )
    energies = multiply(problem.stiffness, cases.displacements)
    full = np.diag(gram(comm, cases.displacements, energies))
    part = gram(comm, bar.modes, energies)
    exact = 1 - np.einsum("kc,kc->c", part, np.linalg.solve(bar.body.stiffness, part)) / full
    assert np.allclose(list(static_errors(bar.body).values()), exact, rtol=0, atol=1e-7)
    problem.destroy()


def test_errors_of_a_plate_and_of_a_beam(comm: MPI.Comm) -> None:
    """A plate does not deform under loads out of its plane; beams behave as solids."""
    model = mbd.ElasticModel(plate(comm, cells=(12, 2)), mbd.STEEL, plane="stress", thickness=0.01)
    body = mbd.reduce(model, interfaces=["left", "right"], num_modes=2).body
    errors = static_errors(body)
    assert errors["force z at left"] == errors["moment x at right"] == errors["spin yz"] == 0.0
    assert 0.1 < errors["spin zz"] < 0.2
    assert "out-of-plane bending     no" in body.summary()
    model = BeamModel(create_interval(comm, 80, [0.0, 0.4]), Section.circle(0.005), mbd.STEEL)
    ends = {"left": (0.0, 0, 0), "right": (0.4, 0, 0)}
    beam = reduce_beam(
        model, interfaces=ends, num_modes=4, options=mbd.ReductionOptions(skin=False)
    ).body
    assert np.isclose(static_errors(beam)["spin zz"], 1 / 6, rtol=0.01)


def test_errors_survive_a_file(comm: MPI.Comm, tmp_path: Path) -> None:
    """The errors are part of the body's file."""
    body = mbd.reduce(box(comm), mbd.STEEL, interfaces=["left"], num_modes=9).body
    loaded = mbd.ReducedBody.load(body.save(tmp_path / f"{comm.rank}.npz"))
    assert static_errors(loaded) == static_errors(body) != {}
    assert static_errors(body.rigid()) == {}


def own_stiffness(mesh: mbd.fem.TaggedMesh) -> dict[str, Any]:
    """Return the stiffness of steel as a user-defined form."""
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    form = elastic_stiffness(u, v, mbd.STEEL)
    return {"space": V, "stiffness": form, "density": 7850.0, "material": None}


@pytest.mark.parametrize(
    "case", ["attached", "free", "own form", "switched off", "beam attached", "beam free"]
)
def test_no_stiffening_is_reported(
    comm: MPI.Comm, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    """The provenance, the summary and, on the first rank, the log report it."""
    caplog.set_level(logging.INFO, logger="dolfinx_mbd")
    if case.startswith("beam"):
        model = BeamModel(create_interval(comm, 4, [0.0, 0.4]), Section.circle(0.005), mbd.STEEL)
        ends = {} if case == "beam free" else {"left": (0.0, 0, 0)}
        attached = "left" if ends else None
        body = reduce_beam(model, interfaces=ends, num_modes=2, attached_to=attached).body
    else:
        mesh = box(comm, cells=(3, 1, 1), cell=CellType.hexahedron)
        options: dict[str, Any] = {"interfaces": ["left"], "num_modes": 2, "material": mbd.STEEL}
        options |= {
            "attached": {"attached_to": "left"},
            "free": {"interfaces": []},
            "own form": own_stiffness(mesh) if case == "own form" else {},
            "switched off": {"stiffening": False},
        }[case]
        body = flat(mbd.reduce, mesh, **options).body
    reason = body.provenance["geometric stiffening"]
    assert reason
    assert body.stiffening is None
    assert str(reason) in body.summary().split("provenance", maxsplit=1)[0]
    records = [r for r in caplog.records if str(reason) in r.getMessage()]
    level = logging.INFO if case == "switched off" else logging.WARNING
    assert [r.levelno for r in records] == ([level] if comm.rank == 0 else [])


def test_reasons_of_missing_stiffening(comm: MPI.Comm) -> None:
    """A body with stiffening states no reason; impossible stiffening raises an error."""
    body = mbd.reduce(box(comm), mbd.STEEL, interfaces=["left"], num_modes=2).body
    assert "geometric stiffening" not in body.provenance
    with pytest.raises(InputError) as error:
        mbd.reduce(box(comm), mbd.STEEL, interfaces=[], num_modes=2, stiffening=True)
    assert error.value.argument == "stiffening"
