"""Forces of a deformable body at the nodes of its mesh, by UFL, for arbitrary displacements.

In the total Lagrangian description with the displacement u in the inertial frame, the energy

    ∫ W(u) dX

gives the internal forces by its first derivative and the tangent stiffness by its second. There is
no floating frame: rotation, stiffening and buckling are part of W.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from mpi4py import MPI
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import reproducible_matrix, scalar_space
from dolfinx_mbd.fem.compat import geometry_dofmap
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.structures.mesh_bodies.discrete_gradients import DiscreteGradient
from dolfinx_mbd.structures.mesh_bodies.embedding import Embedding
from dolfinx_mbd.structures.mesh_bodies.energies import SIMPLICES
from dolfinx_mbd.structures.mesh_bodies.mesh_loads import MeshLoads
from dolfinx_mbd.structures.mesh_bodies.nodal_vectors import NodalVectors

__all__ = ["NodalForces"]

Energy = Callable[[Any], Any]


class _ViscousForms(NamedTuple):
    """Forces of the viscosity, and the derivatives by displacements and velocities."""

    force: fem.Form
    by_displacement: fem.Form
    by_velocity: fem.Form


class NodalForces:
    """Internal forces, mass and tangents of a body; nodal values have the shape (nodes, 3).

    Args:
        embedding: Mesh, space and density, and the position of the mesh in space.
        energy: Energy density as UFL of the displacement, J/m³.
        viscosity: Retardation time τ of Kelvin-Voigt damping, s: the stress τ C:Ė in the axes of
            the undeformed body is added, where E is the Green-Lagrange strain and C the elasticity
            tensor of the material.
        mass_damping: Coefficient of damping forces proportional to the momentum, 1/s.
        quadrature_degree: Degree of the quadrature of energy and viscosity.
        loads: Loads by name; see `MeshBody`.
        volumetric: Energy density that is integrated with fewer points: those of the degree 2 p − 1
            for hexahedra and quadrilaterals, 2 p − 2 for simplices.

    Note: Collective.
    """

    def __init__(
        self,
        embedding: Embedding,
        energy: Energy,
        viscosity: float,
        mass_damping: float,
        quadrature_degree: int,
        loads: Mapping[str, Any],
        volumetric: Energy | None = None,
    ) -> None:
        model = embedding.model
        V = model.displacements
        self.space, self.comm, self.embedding = V, V.mesh.comm, embedding
        self.nodes = NodalVectors(V, embedding)
        self._u, self._velocity = fem.Function(V), fem.Function(V)
        test, trial = ufl.TestFunction(V), ufl.TrialFunction(V)
        density = energy(self._u)
        if not isinstance(density, Expr) or density.ufl_shape != ():
            raise InputError(
                f"the energy must be a scalar UFL expression, J/m³; got {density!r}",
                argument="energy",
                value=density,
            )
        self._mass_damping = mass_damping
        depth = fem.Constant(V.mesh, default_scalar_type(embedding.depth))  # 1 in space
        dx = ufl.dx(metadata={"quadrature_degree": quadrature_degree})
        self._terms: list[tuple[Energy, ufl.Measure]] = [(lambda u: depth * energy(u), dx)]
        if volumetric is not None:
            # A lower degree of quadrature avoids locking of nearly incompressible materials
            element = V.ufl_element()
            low = 2 * element.degree - (2 if element.cell_type.name in SIMPLICES else 1)
            reduced = ufl.dx(metadata={"quadrature_degree": low})
            self._terms.append((lambda u: depth * volumetric(u), reduced))
        total = sum(part(self._u) * measure for part, measure in self._terms)
        internal = ufl.derivative(total, self._u, test)
        self._energy = compiled_form(total)
        self._force = compiled_form(internal)
        self._stiffness = compiled_form(ufl.derivative(internal, self._u, trial))
        self._viscous: _ViscousForms | None = None
        if viscosity:
            assert model.materials is not None
            tau = depth * fem.Constant(V.mesh, default_scalar_type(viscosity))
            law = model.materials.law
            damping = tau * _viscous_work(self._u, self._velocity, test, law) * dx
            by_u, by_w = (ufl.derivative(damping, f, trial) for f in (self._u, self._velocity))
            by_u = 0.5 * (by_u + ufl.adjoint(by_u))  # the solver needs a symmetric matrix
            self._viscous = _ViscousForms(*map(compiled_form, (damping, by_u, by_w)))
        cell_space = fem.functionspace(V.mesh, ("DG", 0))
        det_F = ufl.det(ufl.Identity(V.mesh.geometry.dim) + ufl.grad(self._u))
        inverted = ufl.conditional(ufl.lt(det_F, 0.0), -det_F, 0.0)
        self._spin = fem.Constant(V.mesh, np.zeros(3, dtype=default_scalar_type))
        rho, in_space = depth * model.mass_density, embedding.vector
        # Matrix of the accelerations ω×(ω×u); minus it is the derivative of the centrifugal force
        centripetal = ufl.cross(self._spin, ufl.cross(self._spin, in_space(trial)))
        self._centripetal = compiled_form(rho * ufl.inner(centripetal, in_space(test)) * ufl.dx)
        self._inversion = compiled_form(inverted * ufl.TestFunction(cell_space) * dx)
        self.loads = MeshLoads(embedding, self._u, self.nodes, loads)
        W = scalar_space(V)
        p, r = ufl.TrialFunction(W), ufl.TestFunction(W)
        self.scalar_mass = reproducible_matrix(rho * p * r * ufl.dx)
        self._mass_rows = self.nodes.matrix_rows(self.scalar_mass)
        self._sums = la.vector(V.dofmap.index_map, V.dofmap.bs, dtype=default_scalar_type)
        self._mass_form = compiled_form(rho * ufl.inner(trial, test) * ufl.dx)
        self.lumped = self.apply_mass(np.ones((len(self.nodes), 1)))[:, 0]

    # ---- inertia --------------------------------------------------------------------------------
    def apply_mass(self, values: Array) -> Array:
        """Return the products of the mass matrix and nodal values, (nodes, k) (collective)."""
        return self.nodes.gathered_block(self.inertia(values))

    def inertia(self, values: Array) -> Array:
        """Return the products of the mass matrix and nodal values (nodes, k) at the owned nodes."""
        return multiply(self._mass_rows, np.asfortranarray(values))

    # ---- forces and energies --------------------------------------------------------------------
    def set_state(self, u: Array, w: Array) -> None:
        """Set the displacements and the velocities, (nodes, 3) each, for the methods below."""
        self.nodes.displace(self._u, u)
        self.nodes.assign(self._velocity, w)

    def energy(self) -> float:
        """Return the elastic energy, J (collective)."""
        local = float(fem.assemble_scalar(self._energy))
        return float(self.comm.bcast(self.comm.reduce(local, op=MPI.SUM, root=0), root=0))

    def elastic(self) -> Array:
        """Return the elastic forces (nodes, 3), N (collective)."""
        return self.nodes.gathered_block(self.elastic_rows())

    def elastic_rows(self) -> Array:
        """Return the elastic forces at the owned nodes, (n, 3), N (collective)."""
        return self._rows(self._force)

    @cached_property
    def _discrete(self) -> DiscreteGradient:
        """Form of the elastic forces of a conserving step."""
        return DiscreteGradient(self.space, self._terms)

    def elastic_between(self, before: Array, after: Array) -> Array:
        """Return the elastic forces of a conserving step between displacements (nodes, 3).

        The forces are those at the owned nodes, (n, 3), N. Collective; an energy that depends on
        rotations is an InputError.
        """
        for function, values in zip(
            (self._discrete.before, self._discrete.after), (before, after), strict=True
        ):
            self.nodes.displace(function, values)
        return self._rows(self._discrete.form)

    def internal(self) -> Array:
        """Return the forces (nodes, 3), N, of stress and viscosity (collective)."""
        rows = self.elastic_rows()
        if self._viscous is not None:
            rows += self._rows(self._viscous.force)
        return self.nodes.gathered_block(rows)

    def damping(self, w: Array) -> Array | None:
        """Return the damping forces at the owned nodes at the velocities w (nodes, 3), or None.

        They have the shape (n, 3), N; None stands for a body without damping. Collective.
        """
        total = None if self._viscous is None else self._rows(self._viscous.force)
        if self._mass_damping:
            part = self._mass_damping * self.inertia(w)
            total = part if total is None else total + part
        return total

    def inverted_cell(self) -> Array | None:
        """Return the reference position (3,) of the cell whose inversion is largest, or None.

        Inversions are volumes with det F < 0 at points of the quadrature. Collective.
        """
        mesh = self.space.mesh
        cells = mesh.topology.index_map(mesh.topology.dim)
        count = cells.size_local
        inverted = np.zeros(count + cells.num_ghosts, dtype=default_scalar_type)
        fem.assemble_vector(inverted, self._inversion)
        worst = int(np.argmax(inverted[:count])) if count else 0
        entry = None
        if count and inverted[worst] > 0.0:
            nodes = geometry_dofmap(mesh)[worst]
            entry = float(inverted[worst]), tuple(mesh.geometry.x[nodes].mean(axis=0))
        entries = [item for item in self.comm.allgather(entry) if item is not None]
        return np.array(max(entries)[1]) if entries else None

    def _rows(self, form: fem.Form) -> Array:
        """Return the assembled vectors of the owned nodes, (n, 3)."""
        b, dim = self._sums, self.embedding.dim
        b.array[:] = 0.0
        fem.assemble_vector(b.array, form)
        b.scatter_reverse(la.InsertMode.add)
        rows = b.array[: dim * len(self.nodes.owned)].reshape(-1, dim)
        return self.embedding.vectors(rows.copy())

    def matrix(
        self, mass: float, rate: float, stiffness: float = 1.0, spin: Array | None = None
    ) -> PETSc.Mat:
        """Return mass · M + stiffness · (rate · D + K) at the present state (collective).

        K contains the stiffness of the present pressures, and the symmetric part of the derivative
        of the viscous forces with respect to the displacements. In a steady rotation with the
        angular velocity `spin` (3,), M Ω̃² is added.
        """
        A = reproducible_matrix(self._stiffness)
        if self._viscous is not None:
            by_u, by_w = self._viscous.by_displacement, self._viscous.by_velocity
            for form, factor in ((by_u, 1.0), (by_w, rate)):
                if factor:
                    D = reproducible_matrix(form)
                    A.axpy(factor, D, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
                    D.destroy()
        self.loads.add_stiffness(A)
        if stiffness != 1.0:
            A.scale(stiffness)
        factor = mass + stiffness * rate * self._mass_damping
        if factor:
            M = reproducible_matrix(self._mass_form)  # not stored: as large as the stiffness
            A.axpy(factor, M, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
            M.destroy()
        if spin is not None and spin.any():
            self._spin.value[:] = self.embedding.axes.T @ spin
            Z = reproducible_matrix(self._centripetal)
            A.axpy(1.0, Z, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
            Z.destroy()
        return A


def _viscous_work(
    u: fem.Function, w: fem.Function, test: Expr, law: Callable[[Expr], Expr]
) -> Expr:
    """Return the density of the virtual work of the stress C:Ė."""
    F = ufl.Identity(u.ufl_shape[0]) + ufl.grad(u)

    def strain_rate(rate: Expr) -> Expr:
        """Return the rate of the Green-Lagrange strain for a velocity."""
        product = F.T * ufl.grad(rate)
        return (product + product.T) / 2

    return ufl.inner(law(strain_rate(w)), strain_rate(test))
