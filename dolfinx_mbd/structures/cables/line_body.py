"""Bodies of a mechanism that are lines in absolute coordinates.

The protocol `dolfinx_mbd.mechanism.protocol` is implemented without importing it. Every rank
assembles the same forms on COMM_SELF into dense matrices. With nine elements, DOLFINx assembles
forces in 7 µs (4 µs in the compiled forms) and a tangent in 48 µs. A time step of a slider-crank
takes 2 to 4 ms. Calling the compiled forms without DOLFINx would not be faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.forms.cables import Cable
from dolfinx_mbd.kernels import tangent_frames as frames

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.protocol import BodyState


_JIT = {"timeout": 300}  # seconds; other ranks may be compiling the same form

#: Smallest scale of the elastic equations relative to EA L/h (h: element length). Strains are
#: differences of numbers of order one. Therefore the round-off of forces is ε_mach EA L/h
#: (measured: 1.0 to 1.5 times this value). With this scale, a relative tolerance of 1e-11 is three
#: times the round-off, and the default tolerance of a step corresponds to a strain of 1e-12.
_MIN_SCALE = 1e-4


def hermite(nodes: Array, places: Array, derivative: int = 0) -> Array:
    """Return the weights of the nodal values and slopes in Hermite cubics, (places, 2 nodes)."""
    unit = np.eye(2 * len(nodes))
    weights: Array = scipy.interpolate.CubicHermiteSpline(nodes, unit[::2], unit[1::2])(
        places, derivative
    )
    return weights


class LineForms:
    """Forms of a cable with the given nodes (lengths from 0), on COMM_SELF.

    Nodal coordinates u, shape (6 nodes,), are the position and slope of each node in order.
    """

    def __init__(self, cable: Cable, nodes: Array) -> None:
        count = len(nodes)
        line = mesh.create_interval(MPI.COMM_SELF, count - 1, [0.0, count - 1.0])
        x = line.geometry.x
        x[:, 0] = np.interp(x[:, 0], np.arange(count), nodes)
        V = fem.functionspace(line, ("Lagrange", 1, (6,)))
        order = np.argsort(V.tabulate_dof_coordinates()[:, 0])
        self._order = (6 * order[:, None] + np.arange(6)).ravel()
        self._q, self._v = fem.Function(V), fem.Function(V)
        w, d = ufl.TestFunction(V), ufl.TrialFunction(V)
        names = ("axial_stiffness", "bending_stiffness", "linear_density", "damping")
        # Constants, so that all cables share one compiled form
        c = Cable(*(fem.Constant(line, np.float64(getattr(cable, name))) for name in names))
        elastic = c.elastic_forces(self._q, w)
        self._energy = self._form(c.elastic_energy(self._q))
        self._vector = self._form(elastic)
        self._matrix = self._form(ufl.derivative(elastic, self._q, d))
        self.damped = float(cable.damping) > 0
        if self.damped:
            viscous = c.damping_forces(self._q, self._v, w)
            rates = (ufl.derivative(viscous, u, d) for u in (self._q, self._v))
            self._damping_forces = self._form(viscous)
            # Derivatives by u and by u̇
            self._damping_matrices = [self._form(rate) for rate in rates]
        self._values = np.zeros(6 * count)
        self._store = fem.create_matrix(self._matrix)
        starts, columns = self._store.indptr, self._store.indices
        self._block_rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        self._block_columns = columns
        block = self._store.block_size
        self._block = int(block[0]) if np.ndim(block) else int(block)
        self.mass = self._dense_matrix(self._form(c.mass(d, w)))

    @staticmethod
    def _form(form: ufl.Form) -> fem.Form:
        """Return a compiled form."""
        return compiled_form(form, jit_options=_JIT)

    def _array(self, form: fem.Form) -> Array:
        """Return the assembled vector of a form in the order of the nodes along the line."""
        self._values[:] = 0.0
        fem.assemble_vector(self._values, form)
        return self._values[self._order]

    def _dense_matrix(self, form: fem.Form) -> Array:
        """Return the assembled matrix of a form in the order of the nodes along the line."""
        self._store.data[:] = 0.0
        assemble: Any = fem.assemble_matrix
        assemble(self._store, form)
        n, b = len(self._values), self._block
        full = np.zeros((n // b, b, n // b, b))
        data = self._store.data.reshape(-1, b, b)
        full[self._block_rows, :, self._block_columns, :] = data[: len(self._block_rows)]
        matrix: Array = full.reshape(n, n)[np.ix_(self._order, self._order)]
        return matrix

    def _set_state(self, u: Array, rate: Array | None = None) -> None:
        """Set the nodal coordinates and, if given, their rates."""
        self._q.x.array[self._order] = u
        if rate is not None:
            self._v.x.array[self._order] = rate

    def energy(self, u: Array) -> float:
        """Return the elastic energy, J."""
        self._set_state(u)
        return float(fem.assemble_scalar(self._energy))

    def forces(self, u: Array, rate: Array) -> tuple[Array, Array]:
        """Return the elastic and the damping forces, (6 nodes,) each."""
        self._set_state(u, rate)
        elastic = self._array(self._vector)
        return elastic, self._array(self._damping_forces) if self.damped else np.zeros_like(elastic)

    def tangents(self, u: Array, rate: Array) -> tuple[Array, Array]:
        """Return the derivatives of the forces with respect to u and u̇, (6 nodes, 6 nodes) each."""
        self._set_state(u, rate)
        K = self._dense_matrix(self._matrix)
        if not self.damped:
            return K, np.zeros_like(K)
        by_u, by_rate = map(self._dense_matrix, self._damping_matrices)
        return K + by_u, by_rate


class AbsoluteBody:
    """A line in absolute coordinates that implements the protocol of a body.

    Coordinates z, shape (6 nodes,), follow from the nodal positions and slopes u = T z + u₀ by a
    constant linear transformation. The mass is therefore constant, and motion is separate from
    deformation:

    - z₀, z₁, z₂: position of the start in global components, m;
    - z₃, z₄: position of the end relative to the start, in two directions normal to the reference;
    - z₅ (first elastic coordinate): chord component along the reference minus unstretched length L;
    - the others: positions of inner nodes and slopes of all nodes in global components, relative to
      the straight line between the ends.

    In the reference state the line is straight and unstretched along the reference direction, and
    all coordinates except z₀ to z₂ are zero. Velocities are the rates of z; there is no quaternion.
    """

    name: str
    frame_names: tuple[str, ...]
    num_coordinates: int
    num_velocities: int
    num_elastic: int
    typical_mass: float
    nodes: Array
    _forms: LineForms
    _T: Array  # T, (6 nodes, 6 nodes)
    _u0: Array  # u₀, (6 nodes,)
    _z0: Array  # initial coordinates
    _mass: Array  # constant mass matrix with respect to z
    _first_moment: Array  # first moment of the mass for z = 0, (3,), kg m
    _min_scale: float  # smallest scale of the elastic equations, N
    _frames: tuple[Array, Array, Array, Array]  # P, S, p₀ and axes, see `tangent_frames`
    _r0: Array  # positions of the frames for z = 0, (frames, 3), m

    def _prepare(
        self,
        forms: LineForms,
        nodes: Array,
        axes: Array,
        start: Array,
        span: float,
        frame_places: Mapping[str, float],
        stiffness: float,
    ) -> None:
        """Set all attributes; the third column of `axes` (3, 3) is the reference direction."""
        count, length = len(nodes), float(nodes[-1])
        n = 6 * count
        T: Array = np.zeros((count, 2, 3, n))
        u0: Array = np.zeros((count, 2, 3))
        chord = np.zeros((3, n))
        chord[:, 3:6] = axes
        T[:, 0, :, :3] = np.eye(3)
        T[:, 0] += (nodes / length)[:, None, None] * chord
        T[:, 1] += chord / length
        u0[:, 0] = nodes[:, None] * axes[:, 2]
        u0[:, 1] = axes[:, 2]
        inner = 3 * (count - 2)
        T[1:-1, 0, :, 6 : 6 + inner] = np.eye(inner).reshape(count - 2, 3, inner)
        T[:, 1, :, 6 + inner :] = np.eye(3 * count).reshape(count, 3, 3 * count)
        z0 = np.zeros(n)
        z0[:3], z0[5] = start, span - length
        places = np.array([*frame_places.values()])
        T, u0 = T.reshape(n, n), u0.ravel()

        def rows(derivative: int) -> tuple[Array, Array]:
            """Return the derivatives of frame positions or tangents by z, and their values at 0."""
            weights = hermite(nodes, places, derivative)
            return (
                np.einsum("fk,kcz->fcz", weights, T.reshape(2 * count, 3, n)).copy(),
                weights @ u0.reshape(-1, 3),
            )

        M = T.T @ forms.mass @ T
        (P, r0), (S, p0) = rows(0), rows(1)
        values = {
            "frame_names": tuple(frame_places),
            "num_coordinates": n,
            "num_velocities": n,
            "num_elastic": n - 5,  # from z₅
            "nodes": nodes,
            "_forms": forms,
            "_T": T,
            "_u0": u0,
            "_z0": z0,
            "_mass": 0.5 * (M + M.T),
            "_first_moment": T[:, :3].T @ forms.mass @ u0,
            "_min_scale": _MIN_SCALE * stiffness * length / float(np.diff(nodes).min()),
            "_frames": (P, S, p0, np.array([axes] * len(places))),
            "_r0": r0,
            "typical_mass": float(M[0, 0]),
        }
        assign(self, **values)

    def initial_coordinates(self) -> Array:
        """Return the coordinates in the reference pose."""
        return self._z0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """Write the coordinates after an increment of q."""
        out[:] = q + delta

    def increment_tangent(self, delta: Array) -> Array:
        """Return an empty tangent operator, because there are no rotations."""
        return np.zeros((0, 3))

    def steady_rates(self, q: Array, v: Array) -> Array:
        """Return the rates of v for a rotation of the body without further deformation.

        For z̈₃ = z̈₄ = 0 the length of the chord is constant if z̈₅ = −(ż₃² + ż₄²)/(L + z₅).
        """
        out = np.zeros_like(v)
        out[5] = -(v[3] ** 2 + v[4] ** 2) / (self.nodes[-1] + q[5])
        return out

    def nodal(self, q: Array) -> Array:
        """Return positions and slopes (..., nodes, 2, 3) of the nodes at q (..., 6 nodes)."""
        u = np.asarray(q) @ self._T.T + self._u0
        return u.reshape(*u.shape[:-1], -1, 2, 3)

    def coordinates(self, nodal: Array) -> Array:
        """Return the coordinates (..., 6 nodes) for positions and slopes (..., nodes, 2, 3)."""
        u = np.asarray(nodal, dtype=float).reshape(*np.shape(nodal)[:-3], -1) - self._u0
        return np.asarray(np.linalg.solve(self._T, u[..., None])[..., 0], dtype=np.float64)

    def _without_position(self, q: Array) -> Array:
        """Return nodal coordinates relative to the start; its position causes no forces."""
        return self._T[:, 3:] @ q[3:] + self._u0

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Write the poses of the frames."""
        frames.poses(*self._frames, self._r0, q, position, rotation)

    def frame_jacobians(self, q: Array) -> Array:
        """Return the derivatives of the frame velocities with respect to v, (frames, 6, nv)."""
        return frames.jacobians(*self._frames, q)

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        """Write the velocities of the frames, (frames, 6)."""
        frames.velocities(*self._frames, q, v, out)

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        """Return the derivatives of the frame velocities with respect to q, (frames, 6, nv)."""
        return frames.velocity_tangents(*self._frames, q, v)

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return the accelerations of the frames for v̇ = 0, (frames, 6)."""
        return frames.bias(*self._frames, q, v)

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        """Write the residual and the sums of magnitudes of its terms, (nv,) each."""
        _, q, v, a, gravity, wrenches = state
        inertia = self._mass @ a
        elastic, damping = (
            self._T.T @ f for f in self._forms.forces(self._without_position(q), self._T @ v)
        )
        elastic[:3] = damping[:3] = 0.0  # translations have only round-off
        weight = self._mass[:, :3] @ gravity
        out[:] = inertia + elastic + damping - weight
        scale[:] = np.abs(inertia) + np.abs(elastic) + np.abs(damping) + np.abs(weight)
        scale[3:] += self._min_scale
        if wrenches.any():
            frames.apply_wrenches(*self._frames, q, wrenches, out, scale)

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return the derivatives of the residual with respect to q, v and a, (nv, nv) each."""
        q, v, wrenches = state.q, state.v, state.wrenches
        K, C = self._forms.tangents(self._without_position(q), self._T @ v)
        T = self._T
        K = T.T @ K @ T - frames.wrench_tangent(*self._frames, q, wrenches)
        return K, T.T @ C @ T if self._forms.damped else np.zeros_like(K), self._mass

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return the kinetic, elastic and gravitational energy, J."""
        first_moment = self._mass[:3] @ q + self._first_moment
        return np.array(
            [
                0.5 * v @ self._mass @ v,
                self._forms.energy(self._without_position(q)),
                -float(gravity @ first_moment),
            ]
        )

    def momenta(self, q: Array, v: Array) -> Array:
        """Return the momentum and the angular momentum about the global origin, (6,)."""
        one_component = self._forms.mass[::3, ::3]  # all components have the same mass matrix
        positions = self.nodal(q).reshape(-1, 3)
        momenta = one_component @ (self._T @ v).reshape(-1, 3)
        return np.concatenate([self._mass[:3] @ v, np.cross(positions, momenta).sum(axis=0)])

    def rows_of(self, run: Any) -> tuple[Array, Array, Array]:
        """Return the coordinates, velocities and accelerations in a run, (nt, nv) each."""
        k = run.system.body_index(self.name)
        return run.q[:, run.system.q_slices[k]], *(
            x[:, run.system.v_slices[k]] for x in (run.v, run.a)
        )
