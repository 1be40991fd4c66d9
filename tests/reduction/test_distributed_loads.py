"""Distributed loads of a reduction: resultants, exact statics with load modes, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import ufl
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, InterfaceSpec, ReductionOptions
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.fields import material_points
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction import body_force, pressure, reduce, traction
from dolfinx_mbd.reduction.distributed_loads import load_vectors
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.plates import plate

POINT = (0.7 * LENGTH, 0.4 * HEIGHT, 0.6 * WIDTH)


def test_resultants(comm: MPI.Intracomm) -> None:
    """A pressure on the top of a box pushes down, at the middle of the top."""
    mesh = box(comm)
    loads = {
        "press": pressure(mesh, "top"),
        "pull": traction(mesh, "right", (2.0, 0.0, 3.0)),
        "fall": body_force((0.0, -5.0, 0.0)),
    }
    body = reduce(
        mesh, STEEL, interfaces=["left"], num_modes=3, options=ReductionOptions(loads=loads)
    ).body
    area = LENGTH * HEIGHT
    pressed, tension, weight = body.loads
    np.testing.assert_allclose(pressed.force, [0, 0, -area], atol=1e-12 * area)
    middle = np.array([LENGTH / 2, HEIGHT / 2, WIDTH])
    np.testing.assert_allclose(pressed.moment, np.cross(middle, pressed.force), atol=1e-12 * area)
    end = np.array([LENGTH, HEIGHT / 2, WIDTH / 2])
    np.testing.assert_allclose(tension.force, np.array([2, 0, 3]) * HEIGHT * WIDTH, rtol=1e-12)
    np.testing.assert_allclose(tension.moment, np.cross(end, tension.force), atol=1e-15)
    volume = LENGTH * HEIGHT * WIDTH
    np.testing.assert_allclose(weight.force, [0, -5 * volume, 0], atol=1e-12 * volume)
    np.testing.assert_allclose(
        weight.moment, np.cross(body.centre, weight.force), atol=1e-12 * volume
    )


def test_what_deformation_adds_to_the_moment(comm: MPI.Intracomm) -> None:
    """∫ψ×f of a uniform body force is (∫ψ)×f: known from the first moments."""
    mesh, b = box(comm), np.array([1.0, 2.0, 3.0])
    loads = {"fall": body_force(tuple(STEEL.density * b))}
    body = reduce(
        mesh,
        STEEL,
        interfaces=["left", "right"],
        num_modes=4,
        options=ReductionOptions(loads=loads),
    ).body
    (fall,) = body.loads
    S = body.first_moments[1:]
    size = np.abs(S).max() + 1e-3
    np.testing.assert_allclose(fall.moments, np.cross(S, b), atol=1e-10 * size)
    np.testing.assert_allclose(fall.modes, S @ b, atol=1e-10 * size)


def held_solution(kind: Any) -> np.ndarray:
    """Return the displacement of the point with both ends held, by dense algebra."""
    mesh = box(MPI.COMM_SELF)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    F = load_vectors(problem, {"gas": pressure(mesh, "top")})
    K = problem.stiffness.convert("dense").getDenseArray()
    ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(["left", "right"], kind))
    rows = np.zeros((0, len(K)))
    for i in ends:
        block = np.zeros((len(i.dofs) if kind == "rigid" else 6, len(K)))
        block[:, i.dofs] = np.eye(len(i.dofs)) if kind == "rigid" else i.rows.T
        rows = np.vstack([rows, block])
    KKT = np.block([[K, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    u = np.linalg.solve(KKT, np.concatenate([F[:, 0], np.zeros(len(rows))]))[: len(K)]
    return material_points(problem.space, u[:, None], {"p": POINT})[0].modes[0]


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_a_load_mode_makes_statics_exact(comm: MPI.Intracomm, kind: Any) -> None:
    """The error with few modes is below 1e-6 with the load mode and above 1e-2 without it."""
    mesh = box(comm)
    press = pressure(mesh, "top")
    errors = []
    for with_mode in (True, False):
        reduction = reduce(
            mesh,
            STEEL,
            interfaces=InterfaceSpec.each(["left", "right"], kind),
            num_modes=2,
            points={"p": POINT},
            options=ReductionOptions(loads={"gas": press}, load_modes=with_mode),
        )
        body = reduction.body
        assert body.num_modes == 6 + 2 + with_mode
        # Both interfaces held: no d and no θ at either; the coordinates are η (scaled) and the
        # rigid motion of the frame.
        n = body.num_modes
        scale = np.concatenate([1 / np.sqrt(np.diag(body.stiffness)), np.ones(6)])
        rows = np.vstack([np.hstack([i.motion, _rigid(i.point)]) for i in body.interfaces])
        free = scale[:, None] * scipy.linalg.null_space(rows * scale)
        K = np.zeros((n + 6, n + 6))
        K[:n, :n] = body.stiffness
        (gas,) = body.loads
        load = np.concatenate([gas.modes, gas.force, gas.moment])
        q = free @ np.linalg.solve(free.T @ K @ free, free.T @ load)
        station, move = body.point("p"), q[n:]
        u = q[:n] @ station.modes + move[:3] + np.cross(move[3:], station.position)
        exact = held_solution(kind)
        errors.append(np.linalg.norm(u - exact) / np.linalg.norm(exact))
    assert errors[0] < 1e-6
    assert errors[1] > 1e-2


def _rigid(point: np.ndarray) -> np.ndarray:
    """Return the motion (d, θ) of a point for a rigid motion of the frame, shape (6, 6)."""
    x, y, z = point
    cross = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
    return np.block([[np.eye(3), cross], [np.zeros((3, 3)), np.eye(3)]])


def test_a_load_on_a_rigid_interface_has_no_mode(comm: MPI.Intracomm) -> None:
    """The load does not deform the body, but it has a resultant at the interface."""
    mesh = box(comm)
    loads = {"push": pressure(mesh, "right"), "press": pressure(mesh, "top")}
    options: dict[str, Any] = {"interfaces": ["left", "right"], "num_modes": 2}
    body = reduce(
        mesh, STEEL, options=ReductionOptions(loads=loads, load_modes=True), **options
    ).body
    assert body.num_modes == 6 + 2 + 1
    load, motion = body.load_pattern("push"), body.interface("right").motion
    np.testing.assert_allclose(load.force, [-HEIGHT * WIDTH, 0, 0], atol=1e-12 * HEIGHT * WIDTH)
    expected = load.force @ motion[:3]
    np.testing.assert_allclose(load.modes, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("other", ["rigid", "averaged"])
def test_a_load_that_averaged_interfaces_balance_has_no_mode(
    comm: MPI.Intracomm, other: Any
) -> None:
    """The reaction of a flat averaged interface equals a uniform pressure: the deformation is zero.

    The basis must be the same as without this load: the static displacement is round-off.
    """
    mesh = box(comm)
    specs = {"left": InterfaceSpec(kind=other), "right": InterfaceSpec(kind="averaged")}
    press, push = pressure(mesh, "top"), pressure(mesh, "right")
    bodies = [
        reduce(
            mesh,
            STEEL,
            interfaces=specs,
            num_modes=2,
            options=ReductionOptions(loads=loads, load_modes=True),
        ).body
        for loads in ({"press": press}, {"press": press, "push": push})
    ]
    frequencies = [[mode.frequency for mode in body.modes] for body in bodies]
    assert bodies[0].num_modes == 6 + 2 + 1
    np.testing.assert_allclose(frequencies[1], frequencies[0], rtol=1e-7)
    force = bodies[1].load_pattern("push").force
    np.testing.assert_allclose(force, [-HEIGHT * WIDTH, 0, 0], atol=1e-9 * HEIGHT * WIDTH)


def test_plane_loads(comm: MPI.Intracomm) -> None:
    """A plane load has two components of force and one of moment; it includes the thickness."""
    mesh = plate(comm)
    name = next(name for name, (dim, _) in mesh.groups.items() if dim == 1)
    body = reduce(
        ElasticModel(mesh, STEEL, plane="stress", thickness=0.01),
        interfaces=[name],
        num_modes=2,
        options=ReductionOptions(loads={"fall": body_force((0.0, -7.0))}),
    ).body
    (fall,) = body.loads
    area = body.total_mass / (STEEL.density * 0.01)
    np.testing.assert_allclose(fall.force, [0, -7 * area, 0], atol=1e-12 * area)
    np.testing.assert_allclose(fall.moment, np.cross(body.centre, fall.force), atol=1e-12 * area)


@pytest.mark.parametrize(
    ("load", "error", "message"),
    [
        (3.0, TypeError, "pressure"),
        (lambda v: 3.0, TypeError, "linear form"),
        (lambda v: ufl.inner(v, v) * ufl.dx, TypeError, "linear form"),
        (
            lambda v: ufl.inner(ufl.as_vector((0.0, 0.0, 1e-300)), 1e-300 * v) * ufl.dx,
            ValueError,
            "zero",
        ),
    ],
)
def test_bad_loads(comm: MPI.Intracomm, load: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=f"load 'gas'.*{message}"):
        reduce(
            box(comm),
            STEEL,
            interfaces=["left"],
            num_modes=1,
            options=ReductionOptions(loads={"gas": load}),
        )


@pytest.mark.parametrize("attached_to", [None, "left"])
def test_load_mode_close_to_other_modes(comm: MPI.Intracomm, attached_to: str | None) -> None:
    """The modes are orthonormal to round-off, although a load mode almost depends on others."""
    loads = {"fall": body_force((0.0, 0.0, 1.0)), "pull": body_force((0.0, 1.0, 1e-3))}
    body = reduce(
        box(comm),
        STEEL,
        interfaces=["left"],
        num_modes=20,
        attached_to=attached_to,
        options=ReductionOptions(loads=loads, load_modes=True),
    ).body
    mass = np.einsum("klaa->kl", body.second_moments[1:, 1:])
    np.testing.assert_allclose(mass, np.eye(body.num_modes), atol=1e-13)


def test_load_modes_need_interfaces(comm: MPI.Intracomm) -> None:
    mesh = box(comm)
    with pytest.raises(ValueError, match="need interfaces"):
        reduce(
            mesh,
            STEEL,
            interfaces=[],
            options=ReductionOptions(loads={"gas": pressure(mesh, "top")}, load_modes=True),
        )
    with pytest.raises(ValueError, match="unknown group 'roof'"):
        pressure(mesh, "roof")
