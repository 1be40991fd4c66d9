"""Geometric stiffening of reduced bodies: buckling, spin-up (V5), inertia relief.

V5 and V7 are cases of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from dolfinx import mesh as dmesh
from mpi4py import MPI
from scipy.integrate import trapezoid
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import StepError, System
from dolfinx_mbd.fem.assembly import elastic_problem, rigid_motions, spin_fields
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.mechanism import Driver, FlexibleBody, Frame, Ground, fixed, revolute
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from tests.models.spin_up import EXACT

STEEL = mbd.Material(2.1e11, 0.3, 7850.0)


def bar(
    comm: MPI.Comm, length: float, side: float, cells: tuple[int, int, int]
) -> mbd.fem.TaggedMesh:
    """Return a bar along x from the origin with the interfaces left and right."""
    low, high = [0.0, -side / 2, -side / 2], [length, side / 2, side / 2]
    box = dmesh.create_box(comm, [low, high], cells, cell_type=dmesh.CellType.hexahedron)
    return tagged(box, length)


def tagged(mesh: dmesh.Mesh, length: float) -> mbd.fem.TaggedMesh:
    """Return a mesh whose ends in x are named "left" and "right"."""
    dim = mesh.topology.dim - 1
    ends = [
        dmesh.locate_entities_boundary(mesh, dim, lambda x, at=at: np.isclose(x[0], at))
        for at in (0.0, length)
    ]
    facets = np.concatenate(ends).astype(np.int32)
    values = np.repeat(np.array([1, 2], dtype=np.int32), [len(end) for end in ends])
    order = np.argsort(facets)
    tags = dmesh.meshtags(mesh, dim, facets[order], values[order])
    return mbd.fem.TaggedMesh(mesh, None, tags, {"left": (dim, 1), "right": (dim, 2)})


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_a_bar_buckles_at_eulers_load(comm: MPI.Comm, kind: str) -> None:
    """V7: K − P K_F is singular at P = π²EI/L² with the geometric stiffness K_F of a unit tension.

    Shear reduces the load by the factor 1 − 1.2 P/(GA).
    """
    length, side = 0.4, 0.01
    body = mbd.reduce(
        bar(comm, length, side, (16, 2, 2)),
        STEEL,
        interfaces=mbd.InterfaceSpec.each(["left", "right"], kind),
        num_modes=6,
    ).body
    assert body.stiffening is not None
    # unit forces along x at both ends, which pull
    tension = body.stiffening.interfaces[1, 0] - body.stiffening.interfaces[0, 0]
    loads = eigh(tension, body.stiffness, eigvals_only=True)
    euler = np.pi**2 * STEEL.young * side**4 / 12 / length**2
    shear = 1 + 1.2 * euler / (STEEL.shear * side**2)
    # rigid end faces keep the bar from contracting sideways there, hence a little stiffer
    assert np.isclose(1 / loads.max(), euler / shear, rtol=0.004)
    assert loads.min() > -1e-12


def test_tension_of_a_spinning_bar(comm: MPI.Comm) -> None:
    """K_zz, of a unit spin about z, is that of the tension ρAΩ²(L²/4 − x²)/2 about the centre."""
    length, side = 0.4, 0.01
    body = mbd.reduce(
        bar(comm, length, side, (16, 2, 2)), STEEL, interfaces=["left", "right"], num_modes=6
    ).body
    assert body.stiffening is not None
    eigenvalues = np.linalg.eigh(body.stiffening.spin[2])[0]
    # first bending mode: ∫ N w'² with the free-free shape
    x = np.linspace(-0.5, 0.5, 4001)
    beta = 4.730040744862704
    ratio = np.cos(beta / 2) / np.cosh(beta / 2)
    w = np.cos(beta * x) + ratio * np.cosh(beta * x)
    slope = -beta * np.sin(beta * x) + beta * ratio * np.sinh(beta * x)
    rigidity = trapezoid(0.5 * (0.25 - x**2) * slope**2, x) / trapezoid(w**2, x)
    first_pair = [
        k
        for k in range(body.num_modes)
        if abs(body.frequencies[k] / body.frequencies[0] - 1) < 0.01
    ]
    values = np.diag(body.stiffening.spin[2])[first_pair]
    assert np.allclose(values, rigidity, rtol=0.01)
    assert eigenvalues.min() > -1e-6 * eigenvalues.max()


def test_relief_does_not_depend_on_how_the_body_is_held(comm: MPI.Comm) -> None:
    """Averaged interfaces leave the body free, so one or two of them give the same displacement."""
    mesh = bar(comm, 0.2, 0.02, (6, 2, 2))
    cases = []
    for names in (["left"], ["left", "right"]):
        problem = elastic_problem(mbd.ElasticModel(mesh, STEEL))
        ends = mesh_interfaces(mesh, problem.space, mbd.InterfaceSpec.each(names, "averaged"))
        basis = craig_bampton_basis(problem, ends, 1, prefix="test_relief_", stiffening=True)
        assert basis.cases is not None
        u = basis.cases.displacements[:, :6]
        R = rigid_motions(problem.positions)
        inertia = problem.apply_mass(R)
        rigid = np.linalg.solve(gram(comm, R, inertia), gram(comm, inertia, u))
        cases.append(u - R @ rigid)
        problem.destroy()
    size = comm.allreduce(np.abs(cases[0]).max(initial=0.0), MPI.MAX)
    error = comm.allreduce(np.abs(cases[0] - cases[1]).max(initial=0.0), MPI.MAX)
    assert error < 1e-9 * size


def test_unit_spins_are_centrifugal_loads() -> None:
    """Σ ω_iω_j b_ij = −ω×(ω×x) for any ω, in space and in the plane."""
    rng = np.random.default_rng(0)
    x, omega = rng.normal(size=(5, 3)), rng.normal(size=3)
    products = [omega[i] * omega[j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))]
    exact = -np.cross(omega, np.cross(omega, x))
    assert np.allclose((spin_fields(x) @ products).reshape(5, 3), exact)
    flat = np.column_stack([x[:, :2], np.zeros(5)])
    exact = -np.cross(omega, np.cross(omega, flat))[:, :2]
    assert np.allclose((spin_fields(x[:, :2].copy()) @ products).reshape(5, 2), exact)


def spin_up(attached: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Simulate V5; return time and tip deflection of a cantilever spun up to 6 rad/s in 15 s."""
    length, EA, EI, rhoA, T, top = 10.0, 2.8e7, 1.4e4, 1.2, 15.0, 6.0
    height = np.sqrt(12 * EI / EA)
    material = mbd.Material(EA / height, 0.0, rhoA / height)
    points = [[0.0, -height / 2], [length, height / 2]]
    plane = dmesh.create_rectangle(
        MPI.COMM_SELF, points, (40, 2), cell_type=dmesh.CellType.quadrilateral
    )
    body = mbd.reduce(
        mbd.ElasticModel(tagged(plane, length), material, plane="stress", thickness=1.0),
        interfaces=["left"],
        num_modes=6,
        points={"tip": (length, 0.0)},
        attached_to="left" if attached else None,
    ).body

    def motion(t: float) -> tuple[float, float, float]:
        if t >= T:
            return top / T * (T**2 / 2) + top * (t - T), top, 0.0
        w = 2 * np.pi / T
        angle = top / T * (t**2 / 2 + (np.cos(w * t) - 1) / w**2)
        return angle, top / T * (t - np.sin(w * t) / w), top / T * (1 - np.cos(w * t))

    ground = Ground({"hub": Frame()})
    beam = FlexibleBody("beam", body, damping_ratio=0.0)
    hub = revolute("hub", ground.frame("hub"), beam.frame("left"))
    system = System([ground, beam], [hub], drivers=[Driver("spin", "hub", motion)])
    run = simulate(system, t_end=15.0, dt=5e-3, stride=10)
    tip = run.sensor("beam", "tip")
    angle = np.array([motion(t)[0] for t in run.time])
    return run.time, tip[:, 1] * np.cos(angle) - tip[:, 0] * np.sin(angle)


def test_spin_up_of_a_cantilever() -> None:
    """V5 (Kane, Ryan and Banerjee): 1 % of the geometrically exact deflection."""
    time, tip = spin_up()
    exact = {t: value for t, value in EXACT.items() if t <= 12}
    deflections = np.interp(list(exact), time, tip)
    # 1 % of the largest exact deflection, 0.5738 m
    assert np.allclose(deflections, list(exact.values()), atol=0.01 * 0.5738)
    assert np.isclose(tip.min(), -0.5738, rtol=0.01)


def test_attached_to_the_hub_the_cantilever_softens() -> None:
    """V5: the linear model in the frame of the hub loses its stability in the spin-up."""
    try:
        _, tip = spin_up(attached=True)
    except StepError:
        return
    assert np.abs(tip).max() > 5


def test_stiffening_is_an_option(comm: MPI.Comm) -> None:
    mesh = bar(comm, 0.2, 0.02, (4, 1, 1))
    plain = mbd.reduce(mesh, STEEL, interfaces=["left"], num_modes=2, stiffening=False).body
    assert plain.stiffening is None and "stiffening     no" in plain.summary()
    with pytest.raises(ValueError, match="mean-axis"):
        mbd.reduce(
            mesh, STEEL, interfaces=["left"], num_modes=2, stiffening=True, attached_to="left"
        )
    with pytest.raises(ValueError, match="holds no stiffening"):
        FlexibleBody("b", plain, stiffening=True)
    stiff = mbd.reduce(mesh, STEEL, interfaces=["left"], num_modes=2).body
    ground = Ground({"o": Frame()})
    body = FlexibleBody("b", stiff)
    assert body.stiffening
    system = System([ground, body], [fixed("o", ground.frame("o"), body.frame("left"))])
    assert np.isfinite(simulate(system, t_end=1e-3, dt=1e-4).q).all()


def test_ranks_agree_with_one(comm: MPI.Comm) -> None:
    """Eigenvalues of K_σ relative to K depend neither on the partition nor on signs of modes."""
    bodies = [
        mbd.reduce(
            bar(c, 0.2, 0.02, (6, 2, 2)), STEEL, interfaces=["left", "right"], num_modes=4
        ).body
        for c in (comm, MPI.COMM_SELF)
    ]
    for k in range(6):
        values = [
            eigh(b.stiffening.spin[k], b.stiffness, eigvals_only=True)
            for b in bodies
            if b.stiffening is not None
        ]
        assert np.allclose(values[0], values[1], rtol=0, atol=1e-8 * np.abs(values[1]).max())
    values = [
        eigh(b.stiffening.interfaces[1].sum(axis=0), b.stiffness, eigvals_only=True)
        for b in bodies
        if b.stiffening is not None
    ]
    assert np.allclose(values[0], values[1], rtol=0, atol=1e-8 * np.abs(values[1]).max())
