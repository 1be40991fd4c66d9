"""Damping from a mesh: viscous density, damping forms, their decay, and the full order.

V6 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.body import ModalDamping, Rayleigh
from dolfinx_mbd.body.response.frequency_response import frequency_response
from dolfinx_mbd.body.response.linearized import linearize_body
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import elastic_problem, rigid_motions
from dolfinx_mbd.reduction.mesh_damping import Viscous, with_damping
from dolfinx_mbd.reduction.result import Reduction
from tests.body.test_damping import decrement, free_decay
from tests.models.bodies import box
from tests.models.calls import flat
from tests.models.plates import plate

STEEL = mbd.STEEL


def reduced(comm: MPI.Comm, num_modes: int = 4) -> Reduction:
    """Return the reduction of a box with two ends."""
    return mbd.reduce(
        box(comm, cells=(4, 1, 1)),
        STEEL,
        interfaces=["left", "right"],
        num_modes=num_modes,
        options=mbd.ReductionOptions(skin=False),
    )


def graded(reduction: Reduction) -> ufl.core.expr.Expr:
    """Return a damping coefficient that varies in space."""
    x = ufl.SpatialCoordinate(reduction.space.mesh)
    return 4e5 * (1 + 30 * x[0]) * (1 + 20 * x[1])


def close(A: np.ndarray, B: np.ndarray, tolerance: float) -> bool:
    """Return whether the largest difference is small relative to the largest value of B."""
    return bool(np.abs(A - B).max() <= tolerance * np.abs(B).max())


def test_viscous_density_of_constant_ratio_is_rayleigh(comm: MPI.Comm) -> None:
    reduction = reduced(comm)
    body = with_damping(reduction, Viscous(300.0 * STEEL.density)).body
    assert close(body.damping, body.with_damping(Rayleigh(mass=300.0)).damping, 1e-11)
    assert not reduction.body.damping.any()


def test_damping_forms(comm: MPI.Comm) -> None:
    """A form in u̇ is used as it is; β σ(u̇):ε(v) gives Rayleigh's β K."""
    reduction = reduced(comm)
    u, v = ufl.TrialFunction(reduction.space), ufl.TestFunction(reduction.space)
    strain_rate = fem.Constant(reduction.space.mesh, 2e-6) * forms.elastic_stiffness(u, v, STEEL)
    body = reduction.body
    damped = with_damping(reduction, strain_rate).body
    assert close(damped.damping, 2e-6 * body.stiffness, 1e-9)
    mu = graded(reduction)
    by_density = with_damping(reduction, Viscous(mu)).body.damping
    other = with_damping(reduction, forms.viscous_damping(u, v, mu)).body.damping
    assert close(by_density, other, 1e-11)
    total = with_damping(reduction, Viscous(mu), strain_rate, ModalDamping(0.01)).body.damping
    parts = by_density + damped.damping + body.with_damping(ModalDamping(0.01)).damping
    assert close(total, parts, 1e-12)
    all_ranks = comm.allgather(total)
    assert all(np.array_equal(total, other) for other in all_ranks)


def test_viscous_damping_of_a_plate_counts_its_thickness(comm: MPI.Comm) -> None:
    reduction = mbd.reduce(
        mbd.ElasticModel(plate(comm), STEEL, plane="stress", thickness=0.02),
        interfaces=["left"],
        num_modes=3,
    )
    body = with_damping(reduction, Viscous(10.0 * STEEL.density), thickness=0.02).body
    assert close(body.damping, 10.0 * body.mass, 1e-10)
    with pytest.raises(ValueError, match="thickness"):
        with_damping(reduction, Viscous(1.0))


@pytest.mark.parametrize("kind", ["uniform", "graded"])
def test_logarithmic_decrement_of_viscous_damping(comm: MPI.Comm, kind: str) -> None:
    """Uniform damping decays as exp(−μt/2ρ), graded damping as the pole of the damped body.

    The error of the trapezoidal rule is 2.5e-4 at 200 steps a period. With graded density, other
    modes take part; the simulated maxima of one coordinate have a ripple of the order of ζ.
    Damping does not resist the fall of the body: `free_decay` measures in its frame.
    """
    reduction = reduced(comm)
    mode = 0
    w = 2 * np.pi * reduction.body.frequencies[mode]
    if kind == "uniform":
        zeta = 0.02
        body = with_damping(reduction, Viscous(2 * zeta * w * STEEL.density)).body
    else:
        body = with_damping(reduction, Viscous(graded(reduction))).body
        pole = linearize_body(body, spin=np.zeros(3)).poles()[mode]
        zeta = -pole.real / np.abs(pole)
        assert 1e-3 < zeta < 0.05
    out = free_decay(body, mode, 1 / 200)
    exact = 2 * np.pi * zeta / np.sqrt(1 - zeta**2)
    assert decrement(out[:, 0], out[:, 1]) == pytest.approx(exact, rel=5e-4)
    assert np.abs(out[:, 2:]).max() < 1e-12


def dense(A: object) -> np.ndarray:
    """Return the entries of a PETSc matrix as a NumPy array."""
    D = A.convert("dense")  # a variable: its array must not outlive it
    return D.getDenseArray().copy()


def test_response_is_that_of_the_full_order() -> None:
    """All modes of a tiny mesh agree with a real 2×2 block solution of the assembled matrices.

    The full-order damping is ∫ μ u̇·v of the motion less its rigid part.
    """
    mesh = box(MPI.COMM_SELF, cells=(2, 1, 1))
    reduction = mbd.reduce(
        mbd.ElasticModel(mesh, STEEL, degree=1),
        interfaces=["left", "right"],
        num_modes=12,
        options=mbd.ReductionOptions(skin=False),
    )
    mu, eta = graded(reduction), 0.02
    body = with_damping(reduction, Viscous(mu), Rayleigh(stiffness=1e-7)).body
    assert body.num_modes == 18  # two rigid ends and four free nodes, less 6
    problem = elastic_problem(mbd.ElasticModel(mesh, STEEL, space=reduction.space))
    K, M = dense(problem.stiffness), dense(problem.mass())
    u, v = ufl.TrialFunction(reduction.space), ufl.TestFunction(reduction.space)
    viscous = fem.petsc.assemble_matrix(fem.form(forms.viscous_damping(u, v, mu)))
    viscous.assemble()
    C = dense(viscous)
    # The elastic motion is the motion less its rigid part (momentum), for a body with rigid ends:
    # T maps the motions of the ends and of the free nodes to all degrees of freedom.
    x = problem.positions
    R = rigid_motions(x)
    T = np.zeros((len(K), 12 + 12))
    ends = [np.isclose(x[:, 0], end) for end in (x[:, 0].min(), x[:, 0].max())]
    for k, (nodes, interface) in enumerate(zip(ends, body.interfaces, strict=True)):
        T[np.repeat(nodes, 3), 6 * k : 6 * k + 6] = rigid_motions(x[nodes], interface.point)
    T[np.flatnonzero(np.repeat(~(ends[0] | ends[1]), 3)), np.arange(12, 24)] = 1.0
    P = np.eye(len(K)) - R @ np.linalg.solve(R.T @ M @ R, R.T @ M)
    C = P.T @ C @ P
    K, M, C = (T.T @ A @ T for A in (K, M, C))
    C = C + 1e-7 * K
    f = np.array([100.0, 3000.0, 3400.0, 9000.0])
    H = frequency_response(body, f, loss_factor=eta).receptance("left", "right")
    for k, w in enumerate(2 * np.pi * f):
        real, imaginary = K - w**2 * M, w * C + eta * K
        block = np.block([[real, -imaginary], [imaginary, real]])
        X = np.linalg.solve(block, np.eye(48)[:, :12])
        full = X[:12] + 1j * X[24:36]
        assert close(H[k], full, 1e-8)
    problem.destroy()


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_response_does_not_depend_on_the_reference(comm: MPI.Comm, kind: str) -> None:
    """Mean-axis and attached modes span the same motions: one response, free, held and turning.

    The rotating body has no geometric stiffness, which only mean axes have. Without it, both are
    the linear body in the axes of the held end.
    """
    options: dict = {"interfaces": ["left", "right"], "num_modes": 4, "kind": kind, "skin": False}
    mesh = box(comm, cells=(4, 1, 1))
    mean = flat(mbd.reduce, mesh, STEEL, **options).body
    attached = flat(mbd.reduce, mesh, STEEL, attached_to="left", **options).body
    mean, attached = (body.with_damping(Rayleigh(stiffness=1e-6)) for body in (mean, attached))
    f = np.array([50.0, 2500.0])
    cases: list[dict] = [{}, {"held": ["left"]}, {"driven": ["right"]}]
    cases.append({"held": ["left"], "spin": (100.0, 300.0, 900.0), "stiffening": False})
    for case in cases:
        a, b = (frequency_response(body, f, loss_factor=0.01, **case) for body in (mean, attached))
        assert a.inputs == b.inputs and close(a.values, b.values, 1e-7)
        for k in range(6):  # columns have different units
            assert close(a.values[:, k], b.values[:, k], 1e-6)


def test_tip_receptance_of_a_cantilever(comm: MPI.Comm) -> None:
    """Euler's beam, w/F = (sin a cosh a − cos a sinh a)/(EI β³ (1 + cos a cosh a)), a = βL.

    Without lateral contraction the held face changes nothing. Shear adds 3EI/(κGAL²) = 1.7e-4 to
    the static compliance, and 24 cells reduce it by as much; near resonances errors are larger.
    """
    length, side = 0.6, 0.01
    material = mbd.Material(2.1e11, 0.0, 7850.0)
    mesh = box(comm, (length, side, side), (24, 1, 1))
    options: dict = {"skin": False, "stiffening": False}
    ends = ["left", "right"]
    body = flat(mbd.reduce, mesh, material, interfaces=ends, num_modes=10, **options).body
    area, second = side**2, side**4 / 12
    a = np.array([0.3, 1.2, 1.6, 2.2, 3.0, 5.2])  # resonances at 1.875, 4.694
    beta = a / length
    f = beta**2 * np.sqrt(material.young * second / (material.density * area)) / (2 * np.pi)
    top = np.sin(a) * np.cosh(a) - np.cos(a) * np.sinh(a)
    expected = top / (material.young * second * beta**3 * (1 + np.cos(a) * np.cosh(a)))
    response = frequency_response(body, f, held=["left"], inputs=["right"])
    for c in "yz":
        H = response.between(f"right u{c}", f"right f{c}")
        assert np.allclose(H.real, expected, rtol=1e-3)
        assert np.abs(H.imag).max() == 0.0


def test_rotating_cantilever(comm: MPI.Comm) -> None:
    """V6: flap and lag over the speed, from moments and stiffening of a free body.

    The increases of ω² with the speed, without the solid's shear, agree within 0.5 % (as in V6).
    """
    length, side, material = 0.6, 0.01, mbd.Material(2.1e11, 0.0, 7850.0)
    mesh = box(comm, (length, side, side), (24, 1, 1))
    options: dict = {"interfaces": ["left", "right"], "num_modes": 10, "skin": False}
    body = flat(mbd.reduce, mesh, material, **options).body
    unit = np.sqrt(material.young * side**2 / (12 * material.density)) / length**2
    rows = {
        0.0: (3.51602, 22.03449, 61.69721),
        2.0: (4.13732, 22.61492, 62.27318),
        5.0: (6.44954, 25.44608, 65.20504),
    }
    squares = {}
    for gamma in rows:
        system = linearize_body(body, held=["left"], spin=(0.0, 0.0, gamma * unit))
        squares[gamma] = np.abs(system.poles()[:6] / unit) ** 2
    assert np.allclose(np.sqrt(squares[0.0]), np.repeat(rows[0.0], 2), rtol=3e-4)
    for gamma in (2.0, 5.0):
        growth = squares[gamma] - squares[0.0]
        flap = np.array(rows[gamma]) ** 2 - np.array(rows[0.0]) ** 2
        assert np.allclose(growth[1::2], flap, rtol=5e-3)
        assert np.allclose(growth[0::2], flap - gamma**2, rtol=5e-3)  # lag, the lower of each pair


def test_bad_input(comm: MPI.Comm) -> None:
    reduction = reduced(comm, 2)
    u, v = ufl.TrialFunction(reduction.space), ufl.TestFunction(reduction.space)
    for wrong in (0.01, fem.Constant(reduction.space.mesh, 1.0)):
        with pytest.raises(TypeError, match=r"ModalDamping\(ratio\) or Viscous\(mu\)"):
            with_damping(reduction, wrong)
    with pytest.raises(TypeError, match="Rayleigh"):
        with_damping(reduction, "much")
    vector = ufl.SpatialCoordinate(reduction.space.mesh)
    for mu, kind in ((-1.0, InputError), ("oil", InputTypeError), (vector, InputError)):
        with pytest.raises(kind) as error:
            Viscous(mu)
        assert error.value.argument == "viscosity"
    for value in (math.nan, -1.0, object()):
        with pytest.raises(InputError) as error:
            with_damping(reduction, np.eye(8), thickness=value)
        assert error.value.argument == "thickness"
    x = ufl.SpatialCoordinate(reduction.space.mesh)
    with pytest.raises(ValueError, match="μ is negative or not finite somewhere"):
        with_damping(reduction, Viscous(0.01 - x[0]))
    with pytest.raises(ValueError, match="bilinear, in a trial and a test function"):
        with_damping(reduction, ufl.inner(x, v) * ufl.dx)
    with pytest.raises(ValueError, match="not symmetric"):
        with_damping(reduction, forms.coriolis(u, v, 1.0, (0.0, 0.0, 1.0)))
    with pytest.raises(ValueError, match="has none"):
        with_damping(reduction, Viscous(1.0), thickness=0.1)
    none = with_damping(reduction, None).body.damping
    assert none.shape == (8, 8) and not none.any()


def test_damping_of_a_beam(comm: MPI.Comm) -> None:
    """The reduction of a beam accepts dampings, which it does not record."""
    beam = mbd.BeamModel(
        create_interval(comm, 8, [0.0, 0.5]), mbd.forms.Section.rectangle(0.02, 0.01), mbd.STEEL
    )
    reduction = mbd.reduce_beam(beam, interfaces={"root": 0.0}, num_modes=2)
    body = with_damping(reduction, ModalDamping(0.01)).body
    assert close(body.damping, ModalDamping(0.01).matrix(body.mass, body.stiffness), 1e-12)
    recorded = with_damping(reduced(comm), ModalDamping(0.01), None, Rayleigh(1.0, 0.0)).dampings
    assert [type(damping) for damping in recorded] == [ModalDamping, Rayleigh]
