"""Mesh bodies: bodies of a mechanism with all nodes of their mesh and any material."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import Skin
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.elastic_model import ElasticModel, elastic_model
from dolfinx_mbd.fem.fields import surface_skin
from dolfinx_mbd.fem.interfaces.interfaces import Interfaces, mesh_interfaces
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.mechanism.bodies import RigidBody
from dolfinx_mbd.mechanism.floating_body import checked_rotation
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.load_protocol import LoadInput
from dolfinx_mbd.mechanism.protocol import Frame
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.outputs import Outputs
from dolfinx_mbd.structures.mesh_bodies.averaged_interfaces import averaged_interface
from dolfinx_mbd.structures.mesh_bodies.embedding import Embedding
from dolfinx_mbd.structures.mesh_bodies.energies import (
    SIMPLICES,
    Energy,
    check_rest,
    checked_energy,
    named_or_expression,
    volumetric_energy,
    warn_of_locking,
)
from dolfinx_mbd.structures.mesh_bodies.mesh_equations import MeshEquations
from dolfinx_mbd.structures.mesh_bodies.mesh_inertia import CondensedInertia
from dolfinx_mbd.structures.mesh_bodies.mesh_loads import MeshLoad
from dolfinx_mbd.structures.mesh_bodies.mesh_motion import MeshMotion
from dolfinx_mbd.structures.mesh_bodies.mesh_solver import PREFIX
from dolfinx_mbd.structures.mesh_bodies.multipliers import Constraints
from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
from dolfinx_mbd.structures.mesh_bodies.relative_velocities import relative_velocities
from dolfinx_mbd.structures.mesh_bodies.rigid_interfaces import RigidInterface
from dolfinx_mbd.structures.mesh_bodies.step_unknowns import StepUnknowns
from dolfinx_mbd.structures.mesh_bodies.vibration_modes import mesh_linearization

__all__ = ["MeshBody"]


@dataclass(frozen=True, eq=False)
class MeshBody(MeshEquations):
    """A mesh body: a flexible body of a mechanism with all nodes of its mesh, without a reduction.

    Displacements, rotations and strains may be arbitrarily large. Use it in place of a
    `FlexibleBody`: interfaces, position, rotation and velocities have the same meaning, so that
    only the line with the body changes. All MPI ranks of the communicator of the mesh must build
    the mechanism and run the simulation together; they share the mesh.

    `simulate` starts a mesh body undeformed. The nodes of a rigid interface follow its frame; the
    frame of an averaged interface follows the mean motion of its surface, at any rotation.

    Attributes:
        name: Name in the system and in the results.
        model: An `ElasticModel`, or a mesh with `material`. Its prestress (temperature or initial
            stress) needs an energy that is given by name. A plane mesh with plane strain, or plane
            stress of isotropic materials, moves in the plane that `position` and `rotation`
            define; it carries forces normal to this plane.
        interfaces: Interfaces as in `reduce`; none for a body that flies freely.
        material: Material for a mesh without an `ElasticModel`.
        energy: Energy density of the material: ``"saint-venant-kirchhoff"`` (Hooke's law for large
            rotations and small strains), ``"neo-hookean"`` (large strains of isotropic materials),
            ``"nearly-incompressible"`` (the same for ν up to 0.4999, with a quadrature that avoids
            locking; use hexahedra of degree 2), a function that returns UFL, J/m³, for the
            displacement u, or an expression of the invariants `I1` and `I2` of FᵀF and of
            `J` = det F, for example ``"5e5*(I1*J^(-2/3) - 3) + 5e7*(J - 1)^2"``. A function for a
            plane body (plane strain) is the same as for a body in space, and has
            ``ufl.grad(u)`` of shape (3, 3).
        viscosity: Retardation time of Kelvin-Voigt damping, s: a stress τ C:Ė is added, where C is
            the elasticity tensor and E the Green-Lagrange strain. It does not resist rotations.
        mass_damping: Coefficient of damping forces proportional to the velocity and the density,
            1/s. They also resist rigid motions.
        loads: Loads by name: `Pressure`, `Traction`, `BodyForce` and `PointForce` of
            `mbd.structures.mesh_bodies`. Their values can be inputs of `Simulator` and
            `linearize`: ``"rod.gas"`` is the pressure `gas` of the body `rod`, and
            ``"rod.wind.x"`` a component of a traction.
        quadrature_degree: Degree of the quadrature of energy and viscosity; by default 2 p for
            simplices and 2 p + 1 for hexahedra and quadrilaterals of degree p.
        petsc_options: Options of the linear solver, for example ``{"ksp_type": "cg",
            "ksp_rtol": 1e-8, "pc_type": "gamg"}``; by default a factorization, and multigrid if the
            factor of a body in space does not fit into the memory. PETSc's options with the prefix
            ``dolfinx_mbd_mesh_body_`` have the same effect.
        position: Initial position of the origin of the mesh, shape (3,), m.
        rotation: Initial orientation: rotation vector (3,), rad, quaternion (w, x, y, z) or
            rotation matrix.
        velocity: Initial velocity of the origin of the mesh in global components, (3,), m/s; by
            default as for `FlexibleBody`.
        omega: Initial angular velocity in body components, (3,), rad/s.
        relative_velocity: Initial velocities of the nodes in addition to the rigid motion, in axes
            of the body, m/s: UFL of shape (3,) on the mesh, or a function that returns velocities
            (3, n) at reference positions (3, n); two components for a plane body. The motion of
            interfaces follows from `velocity` and `omega`; the velocities relative to it vanish
            there, in the mean for averaged interfaces.

    Warns:
        MeshWarning: The elements lock because the material is nearly incompressible, or the user's
            energy has forces if the body rotates and does not deform.

    Raises:
        InputError: An argument is invalid, an interface is not on the mesh or overlaps another, or
            the energy has forces at rest or no positive stiffness.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> pad = mbd.MeshBody("pad", mesh, interfaces, material=mbd.STEEL, energy="neo-hookean")
        >>> pad.frame_names
        ('left',)
    """

    halves_steps: ClassVar[bool] = True  # a step of large deformations may need shorter steps
    name: str
    model: ElasticModel | TaggedMesh | Mesh
    interfaces: Interfaces = ()
    _: KW_ONLY
    material: Materials | None = None
    energy: Energy | str | Callable[..., Any] = "saint-venant-kirchhoff"
    viscosity: float = 0.0
    mass_damping: float = 0.0
    loads: Mapping[str, MeshLoad] = field(default_factory=dict)
    quadrature_degree: int | None = None
    petsc_options: Mapping[str, str | float | None] | None = None
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    velocity: ArrayLike | None = None
    omega: ArrayLike | None = None
    relative_velocity: Expr | Callable[[Any], Any] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"body {checks.name('name', self.name)!r}"
        model = elastic_model(self.model, self.material)
        viscosity = checks.number(f"{label}: viscosity", self.viscosity, low=0.0, unit="s")
        damping = checks.number(f"{label}: mass_damping", self.mass_damping, low=0.0, unit="1/s")
        assign(self, energy=named_or_expression(label, self.energy))
        energy = checked_energy(label, self.energy, model)
        volume = volumetric_energy(self.energy, model)
        warn_of_locking(label, self.energy, model)
        if viscosity and model.materials is None:
            raise InputError(
                f"{label}: viscosity needs a material, whose elasticity tensor it uses",
                argument="viscosity",
                value=viscosity,
            )
        degree = self.quadrature_degree
        if degree is None:
            element = model.displacements.ufl_element()
            is_simplex = element.cell_type.name in SIMPLICES
            degree = 2 * element.degree + (0 if is_simplex else 1)
        degree = checks.integer(f"{label}: quadrature_degree", degree, low=1, high=30)
        solver_options(PREFIX, self.petsc_options)  # checks them
        pose = self._placement(label)
        embedding = Embedding.of(label, model, *pose)
        forces = NodalForces(
            embedding,
            embedding.density(energy, self.energy),
            viscosity, damping, degree, self.loads,
            volume and embedding.density(volume, self.energy),
        )  # fmt: skip
        assign(self, forces=forces, nodes=forces.nodes.positions, _solver=None)
        assign(self, embedding=embedding)
        assign(self, elastic_model=model, energy_density=energy)
        numbers = np.repeat(forces.nodes.owned, embedding.dim).astype(float)
        skin = surface_skin(forces.space, numbers[:, None])  # its only mode has the numbers
        drawing = Skin(skin.points, skin.triangles, np.zeros((0, *skin.points.shape)))
        assign(self, drawing=drawing, _drawn=np.rint(skin.modes[0, :, 0]).astype(np.int64))
        self._set_interfaces(label, model)
        self._set_scales(label)
        self._set_start(label, *pose)

    def _set_interfaces(self, label: str, model: ElasticModel) -> None:
        """Set the interfaces, the rigid ones first, their nodes and the condensed inertia."""
        groups = mesh_interfaces(model.mesh, model.displacements, self.interfaces, model.facet_tags)
        pressed = [i.name for i in groups if i.pressure_modes is not None]
        if pressed:
            raise InputError(
                f"{label}: interface {pressed[0]!r} has pressure_modes, which only reduced bodies "
                "have; leave them out, or reduce the body and use FlexibleBody",
                argument="interfaces",
                value=pressed,
            )
        rigid, forces = [i for i in groups if i.kind == "rigid"], self.forces
        averaged = [
            averaged_interface(forces.space, forces.nodes, i)
            for i in groups
            if i.kind == "averaged"
        ]
        interfaces = []
        for i in rigid:
            numbers = forces.nodes.numbers_of(i.blocks)
            levers = self.nodes[numbers] - i.point
            interfaces.append(RigidInterface(i.name, i.point, i.axes, numbers, levers))
        held = np.concatenate([np.zeros(0, dtype=np.int64), *(i.nodes for i in interfaces)])
        blocks = np.concatenate([np.zeros(0, dtype=np.int32), *(i.blocks for i in rigid)])
        all_interfaces: tuple[Any, ...] = (*interfaces, *averaged)
        assign(
            self,
            held=held,
            held_blocks=blocks,
            _rigid=tuple(interfaces),
            _interfaces=all_interfaces,
            constraints=Constraints(
                averaged, len(interfaces), len(self.nodes), self.embedding.normal_motions
            ),
            _inertia=CondensedInertia(forces, interfaces, averaged, held, blocks),
            frame_names=tuple(i.name for i in all_interfaces),
            num_frames=max(1, len(all_interfaces)),
        )

    def _set_scales(self, label: str) -> None:
        """Set mass and scales, and check that the energy has no forces at rest."""
        forces, x = self.forces, self.nodes
        mass = float(forces.lumped.sum())
        centre = forces.lumped @ x / mass
        r = x - centre
        moments = r.T @ forces.apply_mass(r)
        if self.embedding.is_plane:  # a plate with a constant thickness
            moments[2, 2] = mass * self.embedding.depth**2 / 12
        inertia = np.trace(moments) * np.eye(3) - moments
        size = float(np.ptp(x, axis=0).max())
        stiffness = check_rest(label, self.energy, forces, size)
        assign(
            self,
            typical_mass=mass,
            _size=size,
            _stiffness=stiffness,
            _moments=(centre, 0.5 * (inertia + inertia.T)),
            num_coordinates=7 * self.num_frames + 9 * len(x),
            num_velocities=6 * self.num_frames,
            num_elastic=6 * self.num_frames - 6,
        )

    def _placement(self, label: str) -> tuple[Array, Array]:
        """Return the initial position (3,), m, and the initial quaternion (4,)."""
        position = checks.metres(self.position)
        position = checks.vector(f"{label}: position", position, unit="m")
        return np.array(position), checked_rotation(f"{label}: rotation", self.rotation)

    def _set_start(self, label: str, position: Array, quaternion: Array) -> None:
        """Set the initial coordinates and relative velocities of the undeformed body."""
        for name, unit in (("velocity", "m/s"), ("omega", "rad/s")):
            if getattr(self, name) is not None:
                checks.vector(f"{label}: {name}", getattr(self, name), unit=unit)
        frames = np.zeros((self.num_frames, 7))
        frames[:, :3] = position
        frames[:, 3:] = quaternion
        R = rotation_matrix(quaternion)
        for row, interface in zip(frames, self._interfaces, strict=False):
            row[:3] += R @ interface.point
        nodal: Array = np.zeros((3, len(self.nodes), 3))  # displacements, and zero rates
        u, _, _ = nodal
        u[:] = position + self.nodes @ R.T - self.nodes
        assign(self, _q0=np.concatenate([frames.ravel(), nodal.ravel()]))
        assign(self, _relative=relative_velocities(label, self))

    # ---- protocol of a body ---------------------------------------------------------------------
    def frame(self, name: str) -> FrameRef:
        """Return a reference to an interface, for joints and loads.

        Args:
            name: Name of the interface.

        Raises:
            InputError: The body has no such interface; the message lists the names.
        """
        return FrameRef(
            self.name, checks.choice(f"frame of body {self.name!r}", name, self.frame_names)
        )

    @property
    def interface_frames(self) -> tuple[Any, ...]:
        """The interfaces with `name`, `point` (3,), m, and `axes` (3, 3) in the undeformed body."""
        return self._interfaces

    def load_inputs(self) -> Iterator[tuple[MeshLoad, LoadInput]]:
        """Yield the loads of the body and their numbers that can be inputs of an analysis."""
        for name, load in self.loads.items():
            yield from ((load, entry) for entry in load.inputs(f"{self.name}.{name}"))

    def with_copied_loads(self) -> MeshBody:
        """Return a body with copies of the loads, which shares everything else."""
        loads, load_forces = self.forces.loads.copied()
        body, forces = copy.copy(self), copy.copy(self.forces)
        forces.loads = load_forces
        assign(body, loads=loads, forces=forces)
        return body

    def step_solver(self) -> Any:
        """Return a solver of the free nodes for the time steps of one run."""
        return StepUnknowns(self)

    def linearization(
        self, system: System, state: State, num_modes: int, inputs: Inputs, outputs: Outputs
    ) -> LinearizedSystem:
        """Return the linearization of a mechanism with this body; see `linearize` (collective)."""
        return mesh_linearization(system, state, num_modes, inputs, outputs)

    def rigid_body(self) -> RigidBody:
        """Return a rigid body with the same mass, frames and initial motion."""
        centre, inertia = self._moments
        frames = {i.name: Frame(i.point, i.axes) for i in self._interfaces}
        return RigidBody(
            self.name,
            self.typical_mass,
            inertia,
            centre,
            frames,
            self.position,
            self.rotation,
            velocity=self.velocity,
            omega=self.omega,
        )

    def motion(self, run: Any) -> MeshMotion:
        """Return the motion of all nodes in a run.

        Args:
            run: Solution of a mechanism with this body.

        Returns:
            Displacements, velocities and accelerations at the saved times.

        Raises:
            InputError: The run has no body with this name.
        """
        k = run.system.body_index(self.name)
        q = run.q[:, run.system.q_slices[k]]
        return MeshMotion(self, run.time, *(self.nodal_history(q, kind) for kind in range(3)))
