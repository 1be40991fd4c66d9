"""The form of Reynolds' equation against the grid of `dolfinx_mbd.mechanism.bearings`."""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import reynolds
from dolfinx_mbd.mechanism.bearings import FiniteBearing, OilSupply
from tests.mechanism.bearings.films import CLEARANCE, ENDS, RADIUS, SPEED, VISCOSITY

SHAPE, LENGTH = (96, 16), 1.2 * RADIUS


class CutFilm:
    """The film of a bore that is cut open at θ = 0, where the pressure is zero.

    `e` and `rate` move the journal; `closing` reduces the gap everywhere at the same rate.
    """

    def __init__(self, e: np.ndarray, rate: np.ndarray, closing: float = 0.0) -> None:
        ends = [(0.0, -0.5 * LENGTH), (2 * np.pi * RADIUS, 0.5 * LENGTH)]
        quadrilateral = mesh.CellType.quadrilateral
        self.mesh = mesh.create_rectangle(MPI.COMM_SELF, ends, SHAPE, quadrilateral)
        self.V = fem.functionspace(self.mesh, ("Lagrange", 1))
        x = ufl.SpatialCoordinate(self.mesh)
        normal = ufl.as_vector([ufl.cos(x[0] / RADIUS), ufl.sin(x[0] / RADIUS)])
        self.h = CLEARANCE - ufl.dot(ufl.as_vector(e.tolist()), normal)
        self.rate = -ufl.dot(ufl.as_vector(rate.tolist()), normal) - closing
        self.bcs = [
            self._bc(lambda x: np.isclose(x[0] % (2 * np.pi * RADIUS), 0)),
            self._bc(lambda x: np.isclose(abs(x[1]), 0.5 * LENGTH)),
        ]
        film = FiniteBearing(
            "film", *ENDS, RADIUS, LENGTH, CLEARANCE, VISCOSITY, shape=SHAPE,
            supply=[OilSupply(0.0, angle=0.0, arc=1e-3)],  # zero pressure at the cut
        )  # fmt: skip
        h, gap_rate = film.grid.gap(film.motion_vector(e, rate, speed=SPEED))
        self.expected = film.grid.solve(h, gap_rate - closing, SPEED)

    def _bc(self, where: object) -> fem.DirichletBC:
        dofs = fem.locate_dofs_geometrical(self.V, where)
        return fem.dirichletbc(PETSc.ScalarType(0.0), dofs, self.V)

    def system(self) -> tuple[PETSc.Mat, PETSc.Vec]:
        p, v = ufl.TrialFunction(self.V), ufl.TestFunction(self.V)
        speed = RADIUS * SPEED
        form = reynolds(p, v, self.h, VISCOSITY, surface_speed=speed, rate=self.rate)
        a, L = (fem.form(part) for part in ufl.system(form))
        A = petsc.assemble_matrix(a, bcs=self.bcs)
        A.assemble()
        b = A.createVecLeft()
        b.array[:] = fem.assemble_vector(L).array
        for bc in self.bcs:
            bc.set(b.array_w)
        return A, b

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """Return values of the degrees of freedom at the nodes of the grid, shape (n, m + 1)."""
        x = self.V.tabulate_dof_coordinates()
        i = np.rint(x[:, 0] / (2 * np.pi * RADIUS) * SHAPE[0]).astype(int)
        j = np.rint((x[:, 1] / LENGTH + 0.5) * SHAPE[1]).astype(int)
        grid = np.zeros((SHAPE[0] + 1, SHAPE[1] + 1))
        grid[i, j] = values
        return grid[:-1]


def test_a_full_film() -> None:
    film = CutFilm(np.array([-0.1, 0.02]) * CLEARANCE, np.zeros(2), 0.1 * CLEARANCE * SPEED)
    assert film.expected[1:, 1:-1].min() > 0
    A, b = film.system()
    solver = PETSc.KSP().create(MPI.COMM_SELF)
    solver.setType("preonly")
    solver.getPC().setType("lu")
    solver.setOperators(A)
    p = A.createVecRight()
    solver.solve(b, p)
    difference = np.abs(film.on_grid(p.array) - film.expected)
    assert difference.max() < 5e-3 * film.expected.max()


def test_a_ruptured_film() -> None:
    """The pressure agrees with PETSc's solver for problems with bounds."""
    rate = np.array([0.02, 0.05]) * CLEARANCE * SPEED
    film = CutFilm(np.array([-0.5, 0.1]) * CLEARANCE, rate)
    A, b = film.system()
    solver = PETSc.SNES().create(MPI.COMM_SELF)
    solver.setType("vinewtonrsls")

    def residual(_: PETSc.SNES, x: PETSc.Vec, f: PETSc.Vec) -> None:
        A.mult(x, f)
        f.axpy(-1.0, b)

    solver.setFunction(residual, b.duplicate())
    solver.setJacobian(lambda *_: None, A)
    solver.setTolerances(rtol=1e-12, atol=1e-20, max_it=100)
    solver.getKSP().setType("preonly")
    solver.getKSP().getPC().setType("lu")
    low, high = b.duplicate(), b.duplicate()
    low.set(0.0)
    high.set(PETSc.INFINITY)
    solver.setVariableBounds(low, high)
    p = b.duplicate()
    solver.solve(None, p)
    assert solver.getConvergedReason() > 0
    pressure = film.on_grid(p.array)
    assert np.abs(pressure - film.expected).max() < 1e-2 * film.expected.max()
    assert np.count_nonzero(film.expected == 0) > 300
    assert np.mean((pressure > 0) == (film.expected > 0)) > 0.98


def test_the_penalty_bounds_negative_pressures() -> None:
    film = CutFilm(np.array([-0.5, 0.1]) * CLEARANCE, np.zeros(2))
    p, v = fem.Function(film.V), ufl.TestFunction(film.V)
    p.interpolate(lambda x: np.sin(x[0] / RADIUS))
    speed = RADIUS * SPEED
    plain = fem.assemble_vector(
        fem.form(reynolds(p, v, film.h, VISCOSITY, surface_speed=speed))
    ).array
    form = reynolds(p, v, film.h, VISCOSITY, surface_speed=speed, penalty=2.0)
    added = fem.assemble_vector(fem.form(form)).array - plain
    area = 2 * np.pi * RADIUS * LENGTH
    # The mean of the negative part of a sine is −1/π.
    assert added.sum() == pytest.approx(-2.0 * area / np.pi, rel=1e-3)


def test_errors() -> None:
    film = CutFilm(np.array([0.1, 0.1]) * CLEARANCE, np.zeros(2))
    p, v = ufl.TrialFunction(film.V), ufl.TestFunction(film.V)
    for arguments in ((film.h, 0.0), (film.h, -1.0), (ufl.grad(film.h), 1.0)):
        with pytest.raises(InputError):
            reynolds(p, v, *arguments)
