"""Averaged interfaces (RBE3): exact integrals, the bordered system, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from dolfinx.la import InsertMode
from dolfinx.mesh import create_rectangle, locate_entities, locate_entities_boundary
from mpi4py import MPI

from dolfinx_mbd import ElasticModel
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem, rigid_motions
from dolfinx_mbd.fem.interfaces.averaged import border_rows
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec, MeshInterface, mesh_interfaces
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.factorization import FactorizationError, cholesky
from dolfinx_mbd.fem.linalg.sparse_matrices import bordered_stiffness
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.fem.modal.spectrum import hertz
from dolfinx_mbd.forms import STEEL, elastic_stiffness
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.basis import Basis
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from tests.fem.test_bad_input import assert_raises
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, dynamic_stiffness
from tests.models.calls import flat

ENDS = ("left", "right")
MIXED = {"left": InterfaceSpec(), "right": InterfaceSpec(kind="averaged")}


def bordered(comm: MPI.Intracomm, interfaces: Any, num_modes: int, degree: int) -> tuple[Any, ...]:
    """Return problem, interfaces and Craig-Bampton basis of a box; names alone mean averaged."""
    mesh = box(comm, cells=(4, 2, 1))
    problem = elastic_problem(ElasticModel(mesh, STEEL, degree=degree))
    ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(interfaces, "averaged"))
    return problem, ends, craig_bampton_basis(problem, ends, num_modes, prefix="test_averaged_")


def rows(problem: ElasticProblem, interface: MeshInterface) -> np.ndarray:
    """Return Cᵀ of an averaged interface on this rank, shape (owned dofs, 6)."""
    assert interface.rows is not None
    C = np.zeros((problem.num_owned, interface.rows.shape[1]), order="F")
    C[interface.dofs] = interface.rows
    return C


@pytest.mark.parametrize("point", [None, (0.1, -0.02, 0.03)])
def test_rigid_motions_are_exact(comm: MPI.Intracomm, point: tuple[float, ...] | None) -> None:
    """The mean of a rigid motion is this motion, also on a curved surface and about any point."""
    mesh = build_mesh(ConnectingRod(size=0.012), comm)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    specs = {"big_end": InterfaceSpec(point=point, kind="averaged")}
    (big,) = mesh_interfaces(mesh, problem.space, specs)
    motion = gram(comm, rows(problem, big), rigid_motions(problem.positions, big.point))
    assert np.abs(motion - np.eye(6)).max() < 1e-11


def test_rows_are_the_integrals(comm: MPI.Intracomm) -> None:
    """The rows are d = mean(u) + θ×(x_k − x_c) and θ = I⁻¹∫ξ×u dA for a displacement field u.

    x_k is the point of the interface, x_c the centroid of its facets, ξ = x − x_c and
    I = ∫(ξ·ξ 1 − ξ⊗ξ) dA.
    """
    mesh = build_mesh(ConnectingRod(size=0.012), comm)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    point = np.array([0.01, 0.02, -0.03])
    specs = {"small_end": InterfaceSpec(point=point, kind="averaged")}
    (small,) = mesh_interfaces(mesh, problem.space, specs)
    u = fem.Function(problem.space)
    u.interpolate(lambda x: np.stack([x[1] ** 2, x[0] * x[2] - x[1], 3 * x[0] ** 2 + x[2]]))
    ds = ufl.Measure("ds", domain=mesh.mesh, subdomain_data=mesh.facet_tags)
    ds = ds(mesh.groups["small_end"][1])

    def integral(f: Any) -> float:
        return comm.allreduce(fem.assemble_scalar(fem.form(f * ds)))

    x = ufl.SpatialCoordinate(mesh.mesh)
    area = integral(fem.Constant(mesh.mesh, 1.0))
    centroid = np.array([integral(x[i]) for i in range(3)]) / area
    xi = x - ufl.as_vector([float(c) for c in centroid])
    inertia = np.array(
        [[integral(ufl.dot(xi, xi) * float(i == j) - xi[i] * xi[j]) for j in range(3)]
         for i in range(3)]
    )  # fmt: skip
    theta = np.linalg.solve(inertia, [integral(ufl.cross(xi, u)[i]) for i in range(3)])
    mean = np.array([integral(u[i]) for i in range(3)]) / area
    d = mean + np.cross(theta, point - centroid)
    displacements = u.x.array[: problem.num_owned, None]
    motion = gram(comm, rows(problem, small), displacements)[:, 0]
    # The area element of a curved facet is not polynomial: quadratures of two degrees differ.
    assert motion == pytest.approx([*d, *theta], rel=1e-5)


@pytest.mark.parametrize("end", ["right", "small_end"])
def test_uniform_traction_is_a_force(comm: MPI.Intracomm, end: str) -> None:
    """A traction t on an area A does the work (A t)·d, and has no moment about the centroid."""
    mesh = box(comm) if end == "right" else build_mesh(ConnectingRod(size=0.012), comm)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    (face,) = mesh_interfaces(mesh, problem.space, InterfaceSpec.each([end], "averaged"))
    ds = ufl.Measure("ds", domain=mesh.mesh, subdomain_data=mesh.facet_tags)
    ds = ds(mesh.groups[end][1])
    t = np.array([3.0, -4.0, 5.0])
    traction = fem.Constant(mesh.mesh, t)
    load = fem.assemble_vector(fem.form(ufl.inner(traction, ufl.TestFunction(problem.space)) * ds))
    load.scatter_reverse(InsertMode.add)
    area = comm.allreduce(fem.assemble_scalar(fem.form(fem.Constant(mesh.mesh, 1.0) * ds)))
    x = ufl.SpatialCoordinate(mesh.mesh)
    moments = [comm.allreduce(fem.assemble_scalar(fem.form(x[k] * ds))) for k in range(3)]
    arm = np.array(moments) / area - face.point  # (a bore's point is on its axis)
    wrench = np.concatenate([area * t, np.cross(arm, area * t)])
    forces = load.array[: problem.num_owned]
    error = np.abs(rows(problem, face) @ wrench - forces).max(initial=0.0)
    tolerance = 1e-12 if end == "right" else 1e-7  # quadrature on curved facets
    assert error < tolerance * comm.allreduce(np.abs(forces).max(initial=0.0), op=MPI.MAX)


def dense(interfaces: Any, degree: int) -> tuple[np.ndarray, ...]:
    """Return K, M and the constraints C (12 rows, 6 for each averaged end) of the same box."""
    mesh = box(MPI.COMM_SELF, cells=(4, 2, 1))
    problem = elastic_problem(ElasticModel(mesh, STEEL, degree=degree))
    ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(interfaces, "averaged"))
    K, M = (A.convert("dense").getDenseArray().copy() for A in (problem.stiffness, problem.mass()))
    return K, M, np.hstack([rows(problem, i) for i in ends]).T


@pytest.mark.parametrize("degree", [1, 2])
def test_bordered_system_against_dense_algebra(comm: MPI.Intracomm, degree: int) -> None:
    """Modes in the null space of C, and constraint modes, agree with LAPACK."""
    K, M, C = dense(ENDS, degree)
    Z = scipy.linalg.null_space(C)
    squares = scipy.linalg.eigh(Z.T @ K @ Z, Z.T @ M @ Z)[0]
    border = np.block([[K, C.T], [C, np.zeros((12, 12))]])
    right = np.vstack([np.zeros((len(K), 12)), np.eye(12)])
    Psi = np.linalg.solve(border, right)[: len(K)]

    problem, ends, basis = bordered(comm, ENDS, 6, degree)
    exact = np.sqrt(squares[:6]) / (2 * np.pi)
    assert basis.truncation is not None
    assert hertz(basis.truncation.squares) == pytest.approx(exact, rel=1e-9)
    constraint_modes = basis.vectors[:, :12]
    stiffness = gram(comm, constraint_modes, multiply(problem.stiffness, constraint_modes))
    expected = Psi.T @ K @ Psi
    size = np.sqrt(np.diag(expected))
    assert np.abs((stiffness - expected) / np.outer(size, size)).max() < 1e-8
    assert basis.reactions is not None  # the multipliers
    assert np.abs((basis.reactions - expected) / np.outer(size, size)).max() < 1e-8
    assert all(i.kind == "averaged" for i in ends)


@pytest.mark.parametrize("interfaces", [ENDS, MIXED])
def test_rows_times_modes(comm: MPI.Intracomm, interfaces: Any) -> None:
    """C Ψ is I for constraint modes; fixed modes are M-orthonormal, without mean motion."""
    problem, ends, basis = bordered(comm, interfaces, 5, 2)
    right = ends[1]
    motion = gram(comm, rows(problem, right), basis.vectors)
    expected = np.zeros((6, 17))
    expected[:, 6:12] = np.eye(6)
    assert np.abs(motion[:, :12] - expected[:, :12]).max() < 1e-10
    size = comm.allreduce(np.abs(basis.vectors[:, 12:]).max(initial=0.0), op=MPI.MAX)
    assert np.abs(motion[:3, 12:]).max() < 1e-10 * size
    # The mean rotation is θ = I⁻¹∫ξ×u dA: |θ| is at most |u| over the smallest radius of gyration
    assert np.abs(motion[3:, 12:]).max() < 1e-10 * size * np.sqrt(12) / min(HEIGHT, WIDTH)
    fixed = np.asfortranarray(basis.vectors[:, 12:])
    assert np.allclose(gram(comm, fixed, problem.apply_mass(fixed)), np.eye(5), atol=1e-9)
    K = gram(comm, basis.vectors, multiply(problem.stiffness, basis.vectors))
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert basis.reactions is not None
    error = (basis.reactions - K[basis.averaged, :12]) / scale[basis.averaged, :12]
    assert np.abs(error).max() < 1e-8
    # Fixed modes are K-orthogonal to constraint modes.
    assert np.abs(K[12:, :12] / scale[12:, :12]).max() < 1e-6


def test_all_modes_kept_is_the_free_body(comm: MPI.Intracomm) -> None:
    """With all modes, eigenvalues are those of the free mesh: averaged interfaces hold nothing."""
    K, M, _ = dense(ENDS, 1)
    exact = np.sqrt(scipy.linalg.eigh(K, M)[0][6:]) / (2 * np.pi)
    # all modes with the 12 constraints
    mesh, count = box(comm, cells=(4, 2, 1)), len(K) - 12
    body = reduce(
        ElasticModel(mesh, STEEL, degree=1),
        interfaces=InterfaceSpec.each(ENDS, "averaged"),
        num_modes=count,
    ).body
    assert body.num_modes == len(exact)
    assert body.frequencies == pytest.approx(exact, rel=1e-9)


def test_softer_than_rigid(comm: MPI.Intracomm) -> None:
    """An averaged interface permits all motions of a rigid one, so that frequencies are lower."""
    mesh = box(comm, cells=(4, 2, 1))
    problem = elastic_problem(ElasticModel(mesh, STEEL))

    def basis(kind: str) -> tuple[Basis, np.ndarray]:
        ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(ENDS, kind))
        result = craig_bampton_basis(problem, ends, 8, prefix="test_averaged_")
        Psi = np.asfortranarray(result.vectors[:, :12])
        return result, gram(comm, Psi, multiply(problem.stiffness, Psi))

    (rigid, K_rigid), (averaged, K_averaged) = basis("rigid"), basis("averaged")
    assert averaged.truncation is not None and rigid.truncation is not None
    assert (averaged.truncation.squares < rigid.truncation.squares).all()
    scale = 1 / np.sqrt(np.diag(K_rigid))
    excess = np.linalg.eigvalsh((K_rigid - K_averaged) * np.outer(scale, scale))
    assert excess.min() > -1e-9
    assert excess.max() > 1e-3


def test_bar_in_tension(comm: MPI.Intracomm) -> None:
    """A bar pulled at averaged ends contracts freely across: its elongation is F L/(E A)."""

    def stretch(kind: Any) -> float:
        # the elongation under opposite unit forces at the ends
        body = reduce(box(comm), STEEL, interfaces=InterfaceSpec.each(ENDS, kind), num_modes=0).body
        motion = body.interface("right").motion[0] - body.interface("left").motion[0]
        return float(motion @ np.linalg.solve(body.stiffness, motion))

    exact = LENGTH / (STEEL.young * HEIGHT * WIDTH)
    assert stretch("averaged") == pytest.approx(exact, rel=1e-8)
    assert 0.9 * exact < stretch("rigid") < 0.999 * exact


def _rod(comm: MPI.Intracomm) -> ReducedBody:
    """Return a reduced connecting rod with an averaged and a rigid bore."""
    mesh = build_mesh(ConnectingRod(size=0.012), comm)
    specs = {"big_end": InterfaceSpec(kind="averaged"), "small_end": "small_end"}
    return reduce(mesh, STEEL, interfaces=specs, num_modes=8).body


def test_same_body_on_any_number_of_ranks(comm: MPI.Intracomm) -> None:
    """One end is averaged and one rigid: eigenvalues agree to 1e-9, dynamic stiffness to 1e-8."""
    alone, shared = _rod(MPI.COMM_SELF), _rod(comm)
    assert [i.kind for i in shared.interfaces] == ["averaged", "rigid"]
    assert np.diag(shared.stiffness) == pytest.approx(np.diag(alone.stiffness), rel=1e-9)
    omega = 1.3 * 2 * np.pi * alone.frequencies[0]
    a, b = dynamic_stiffness(alone, omega), dynamic_stiffness(shared, omega)
    scale = np.sqrt(np.abs(np.outer(np.diag(a), np.diag(a))))
    assert (np.abs(a - b) / scale).max() < 1e-8
    # The motion is bitwise the same on all ranks.
    assert len(set(comm.allgather(shared.interfaces[0].motion.tobytes()))) == 1


def test_in_the_plane(comm: MPI.Intracomm) -> None:
    """The three rows of an edge give ux, uy, θz of a rigid motion exactly."""
    mesh = create_rectangle(comm, [np.zeros(2), np.array([2.0, 1.0])], [4, 2])
    space = fem.functionspace(mesh, ("Lagrange", 2, (2,)))
    facets = locate_entities_boundary(mesh, 1, lambda x: np.isclose(x[0], 2.0))
    (end,) = mesh_interfaces(mesh, space, InterfaceSpec.each({"end": facets}, "averaged"))
    assert end.point == pytest.approx([2, 0.5, 0], abs=1e-14)
    assert end.rows is not None
    C = np.zeros((2 * space.dofmap.index_map.size_local, 3))
    C[end.dofs] = end.rows
    x = space.tabulate_dof_coordinates()[: len(C) // 2, :2]
    assert np.abs(gram(comm, C, rigid_motions(x, end.point)) - np.eye(3)).max() < 1e-12


def test_neighbours(comm: MPI.Intracomm) -> None:
    """Two averaged halves of a face share nodes but have different rows."""
    mesh, specs = _parts(comm, low=(0.0, 0.5), high=(0.5, 1.0))
    body = reduce(mesh, STEEL, interfaces=InterfaceSpec.each(specs, "averaged"), num_modes=2).body
    assert body.num_modes == 8  # 12 constraint and 2 fixed modes, without 6 rigid
    assert body.interface("low").point[1] == pytest.approx(HEIGHT / 4)


def _parts(comm: MPI.Intracomm, **ranges: tuple[float, float]) -> tuple[TaggedMesh, dict[str, Any]]:
    """Return a box with groups of facets at its right end, by ranges of y over the height."""
    mesh = box(comm, cells=(2, 4, 1))

    def facets(low: float, high: float) -> np.ndarray:
        def inside(x: np.ndarray) -> np.ndarray:
            y = x[1] / HEIGHT
            return np.isclose(x[0], LENGTH) & (y > low - 1e-9) & (y < high + 1e-9)

        return locate_entities_boundary(mesh.mesh, 2, inside)

    return mesh, {name: facets(*limits) for name, limits in ranges.items()}


@pytest.mark.parametrize("kinds", [("averaged", "averaged"), ("averaged", "rigid")])
def test_interfaces_that_overlap(comm: MPI.Intracomm, kinds: tuple[Any, Any]) -> None:
    """The error contains the names; for two averaged interfaces also the number of facets."""
    mesh, facets = _parts(comm, most=(0.0, 0.75), top=(0.5, 1.0))
    specs = {n: InterfaceSpec(f, kind=k) for (n, f), k in zip(facets.items(), kinds, strict=True)}
    text = "'most' and 'top' overlap: they share 1 facets"
    if kinds[1] == "rigid":
        text = "'most' and 'top' share .* nodes; a rigid interface must not touch another"
    assert_raises(comm, ValueError, text, lambda: reduce(mesh, STEEL, interfaces=specs))


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
@pytest.mark.parametrize(
    ("size", "text"),
    [
        ((1.0, 1.0, 5e-4), "'left' is degenerate: its facets lie in a line"),
        ((1.0, 2e-6, 1e-6), "'left' is tiny: its facets are 2e-06 m long on a body of 1 m"),
    ],
)
def test_degenerate_interfaces(comm: MPI.Intracomm, kind: Any, size: Any, text: str) -> None:
    """Facets in one line or at one point do not determine a rotation."""
    mesh = box(comm, size, cells=(2, 2, 1))
    assert_raises(
        comm,
        ValueError,
        text,
        lambda: reduce(mesh, STEEL, interfaces=InterfaceSpec.each(["left"], kind)),
    )


def test_facets_inside_the_body(comm: MPI.Intracomm) -> None:
    """Without facets there is no average, even if point and axes are given."""
    mesh = box(comm, cells=(2, 1, 1)).mesh
    facets = locate_entities(mesh, 2, lambda x: np.isclose(x[0], LENGTH / 2))
    spec = InterfaceSpec(facets, point=(0, 0, 0), axes=np.eye(3), kind="averaged")
    text = "'in' has no facets on the surface of the body, over which"
    assert_raises(comm, ValueError, text, lambda: reduce(mesh, STEEL, interfaces={"in": spec}))


def test_unknown_kinds(comm: MPI.Intracomm) -> None:
    """The error lists the two kinds."""
    text = "^kind must be .* got 'soft'"
    kind: Any = "soft"
    assert_raises(comm, ValueError, text, lambda: InterfaceSpec(kind=kind))
    mesh = box(comm)
    assert_raises(
        comm,
        ValueError,
        text,
        lambda: reduce(mesh, STEEL, interfaces=InterfaceSpec.each(ENDS, kind)),
    )


def test_part_without_interface(comm: MPI.Intracomm) -> None:
    """The signs of the pivots of the bordered matrix reveal a part without an interface."""
    mesh = box(comm, gap=True)
    space = fem.functionspace(mesh.mesh, ("Lagrange", 1, (3,)))
    ends = mesh_interfaces(mesh, space, InterfaceSpec.each(["left"], "averaged"))
    assert ends[0].rows is not None
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    K = fem_petsc.assemble_matrix(fem.form(elastic_stiffness(u, v, STEEL)))
    K.assemble()
    border = border_rows(K.getLocalSize()[0], ends)
    A = bordered_stiffness(K, border)
    text = "stiffness with averaged interfaces is singular|not held|not positive definite"
    assert_raises(comm, FactorizationError, text, lambda: cholesky(A, prefix="test_", negative=6))


def test_too_many_modes(comm: MPI.Intracomm) -> None:
    """Each averaged interface removes six of the 24 degrees of freedom of the eight nodes."""
    mesh = box(comm, cells=(1, 1, 1))
    text = "num_modes=13, but the mesh has only 12 dofs that no interface holds"
    arguments: Any = {"interfaces": ENDS, "kind": "averaged", "degree": 1, "num_modes": 13}
    assert_raises(comm, ValueError, text, lambda: flat(reduce, mesh, STEEL, **arguments))
