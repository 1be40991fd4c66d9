"""Nearly incompressible mesh bodies, options of the solver, and other analyses.

W6 is a case of the list in `models.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import mesh as dmesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, MeshWarning
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.iterative import solver_choice
from dolfinx_mbd.forms import Material
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, ends, slider_crank


def twisted_cylinder(angle: float, cells: int = 3) -> tuple[Any, Any]:
    """Return moment and end force of case W6, and Rivlin's for the area of the mesh.

    The mesh has flat sides, and therefore a smaller area than the circle.
    """
    radius, length = 0.005, 0.02
    mesh, tags = box((0, -1, -1), (length, 1, 1), (cells, 4, 4))
    x = mesh.geometry.x
    y, z = x[:, 1].copy(), x[:, 2].copy()
    x[:, 1], x[:, 2] = radius * y * np.sqrt(1 - z * z / 2), radius * z * np.sqrt(1 - y * y / 2)
    model = ElasticModel(mesh, Material(5e6, 0.499, 1100.0), facet_tags=tags)
    body = MeshBody("pin", model, ends(0.0, length), energy="nearly-incompressible")
    fraction = body.typical_mass / (1100 * np.pi * radius**2 * length)
    along_x = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])  # z along x
    ground = mbd.Ground({"root": mbd.Frame(), "end": mbd.Frame((length, 0, 0), along_x)})
    frames = {"hinge": mbd.Frame((0, 0, 0), along_x), "centre": mbd.Frame()}
    plate = mbd.RigidBody("plate", 1.0, [1, 1, 1], position=(length, 0, 0), frames=frames)
    joints = [
        mbd.fixed("clamp", ground.frame("root"), body.frame("left")),
        mbd.revolute("hinge", ground.frame("end"), plate.frame("hinge")),
        mbd.fixed("bond", plate.frame("centre"), body.frame("right")),
    ]
    ramp = mbd.Driver("motor", "hinge", lambda t: (angle * t, angle, 0.0))
    system = mbd.System([ground, body, plate], joints, drivers=[ramp])
    run = mbd.analyses.quasi_static_motion(system, [0.5, 1.0])
    modulus = 5e6 / 2 / 1.499
    moment = 0.5 * np.pi * radius**4 * modulus * angle / length * fraction**2
    force = 0.25 * np.pi * radius**4 * modulus * (angle / length) ** 2 * fraction**2
    values = [run.joint("motor").moment[-1, 2], run.joint("clamp").force[-1, 0]]
    return np.abs(values), np.array([moment, force])


@pytest.mark.slow
def test_nearly_incompressible_cylinder_in_torsion() -> None:
    """Case W6 at φ = π/4 against Rivlin."""
    values, expected = twisted_cylinder(np.pi / 4)
    assert np.allclose(values, expected, rtol=0.005)


def test_displacements_alone_warn_of_locking() -> None:
    mesh, tags = box((0, 0, 0), (1, 0.2, 0.2), (2, 1, 1))
    model = ElasticModel(mesh, Material(5e6, 0.499, 1100.0), facet_tags=tags)
    with pytest.warns(MeshWarning, match="nearly-incompressible"):
        MeshBody("pad", model, ends(0.0, 1.0), energy="neo-hookean")
    mesh, tags = box((0, 0, 0), (1, 0.2, 0.2), (2, 1, 1), "tetrahedron")
    model = ElasticModel(mesh, Material(5e6, 0.499, 1100.0), facet_tags=tags)
    with pytest.warns(MeshWarning, match="simplices"):
        MeshBody("pad", model, ends(0.0, 1.0), energy="nearly-incompressible")


@pytest.mark.parametrize("plane", [None, "strain"])
def test_user_defined_energies_are_checked(plane: Any) -> None:
    """Energies with forces at rest or without stiffness are errors.

    An energy that is not objective, so that a rotation causes forces, gives a warning.
    """
    mesh, tags = box((0, 0, 0), (1, 0.2, 0.2), (2, 1, 1))
    if plane:
        mesh = dmesh.create_rectangle(MPI.COMM_WORLD, [(0, 0), (1, 0.2)], (4, 1))
    model = ElasticModel(
        mesh, RUBBER, **({"plane": plane, "thickness": 0.1} if plane else {"facet_tags": tags})
    )

    def strain(u: Any, *, large: bool) -> Any:
        H = ufl.grad(u)
        E = (H + H.T + (H.T * H if large else 0 * H)) / 2
        return 1e6 * ufl.inner(E, E)

    for energy in (
        lambda u: 1e5 * ufl.tr(ufl.grad(u)) + strain(u, large=True),
        lambda u: -strain(u, large=True),
        lambda u: 1e5 * ufl.sqrt(strain(u, large=True)),
    ):
        with pytest.raises(InputError, match="at the undeformed shape"):
            MeshBody("pad", model, energy=energy)
    with pytest.warns(MeshWarning, match="rotates by 0.5 rad") as record:
        MeshBody("pad", model, energy=lambda u: strain(u, large=False))
    assert record[0].message.value > 0.0  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MeshBody("pad", model, energy=lambda u: strain(u, large=True), rotation=(0.6, 0, 0, 0.8))
        MeshBody("pad", model, energy="5e5*(I1*J^(-2/3) - 3) + 5e7*(J - 1)^2")


def test_multigrid_gives_the_results_of_a_factor() -> None:
    tips = []
    for options in (None, {"ksp_type": "cg", "ksp_rtol": 1e-8, "pc_type": "gamg"}):
        mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (6, 1, 1), "tetrahedron")
        model = ElasticModel(mesh, STEEL, facet_tags=tags)
        rod = MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0), petsc_options=options)
        run = mbd.simulate(slider_crank(rod), t_end=0.002, dt=2e-4)
        tips.append(rod.motion(run).position([(0.15, 0, 0)])[-1, 0])
    assert np.abs(tips[0] - tips[1]).max() < 1e-9
    with pytest.raises(InputError) as error:
        MeshBody("rod", model, petsc_options={"pc_type": object()})
    assert "petsc_options" in str(error.value.argument)


def test_multigrid_is_chosen_if_the_factor_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Options of the user are kept; the log states the choice, and the results agree."""
    tips = []
    for free, options, method in (
        (1e12, None, "cholesky by"),
        (1e6, None, "cg with gamg"),
        (1e6, {"pc_type": "lu"}, "lu by"),
    ):
        monkeypatch.setattr(solver_choice, "free_memory", lambda comm, free=free: free)
        caplog.clear()
        with caplog.at_level("INFO", logger="dolfinx_mbd"):
            body, system = hanging(options)
            run = mbd.simulate(system, t_end=0.02, dt=5e-3)
        tips.append(body.motion(run).position([(0.5, 0, 0)])[-1, 0])
        assert ("multigrid, bar" in caplog.text) == (method == "cg with gamg")
        choices = [line for line in caplog.messages if " rows: " in line]
        assert choices and all(f" rows: {method}" in line for line in choices)
    assert np.ptp(tips, axis=0).max() < 1e-9


def hanging(options: Mapping[str, str] | None = None) -> tuple[MeshBody, mbd.System]:
    """Return a rubber bar that hangs from a hinge, with options of its solver."""
    mesh, tags = box((0, -0.02, -0.02), (0.5, 0.02, 0.02), (4, 1, 1))
    model = ElasticModel(mesh, RUBBER, facet_tags=tags)
    clamped = ends(0.0, 0.5, ("left",))
    body = MeshBody("bar", model, clamped, viscosity=1e-3, petsc_options=options)
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    return body, mbd.System([ground, body], [clamp], gravity=(0, -9.81, 0))


def test_run_from_an_equilibrium_stays_at_rest() -> None:
    body, system = hanging()
    state = mbd.equilibrium(system)
    assert abs(body.nodal_of(state.q)[0]).max() > 1e-3
    start = mbd.dynamics.consistent_state(system, q=state.q, v=state.v)
    run = mbd.simulate(system, t_end=0.05, dt=0.005, start=start)
    motion = body.motion(run).displacement
    assert np.abs(motion - motion[0]).max() < 1e-6 * np.abs(motion).max()
    assert run.energies().kinetic.max() < 1e-9


def test_analyses_that_cannot_take_a_mesh_body_name_it() -> None:
    with pytest.raises(InputError, match="does not support mesh body 'bar'"):
        mbd.design.run_sensitivities(build, {"size": 9.81}, t_end=0.01, dt=0.005)
    _, system = hanging()
    calls: list[Callable[[], Any]] = [
        lambda: mbd.analyses.periodic(system, 0.1, dt=0.01),
        lambda: mbd.analyses.harmonic_balance(system, 0.1, num_harmonics=2),
        lambda: mbd.analyses.harmonic_curve(
            lambda speed: system, (1.0, 2.0), period=lambda speed: 0.1, num_harmonics=2
        ),
        lambda: mbd.equilibrium(system, axes="global"),
        lambda: mbd.analyses.continuation(lambda speed: system, (0.0, 1.0)),
        lambda: mbd.analyses.poles_over_speed(lambda speed: system, [1.0], num_modes=1),
        lambda: mbd.design.linear_sensitivities(build, {"size": 9.81}),
    ]
    for call in calls:
        with pytest.raises(InputError) as error:
            call()
        assert "'bar'" in str(error.value) and "FlexibleBody" in str(error.value)


def build(values: Mapping[str, float]) -> mbd.System:
    """Return the hanging bar with a gravity of another size."""
    _, system = hanging()
    return mbd.System(system.bodies, system.joints, gravity=(0, -values["size"], 0))
