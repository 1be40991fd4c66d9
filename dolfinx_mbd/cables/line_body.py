"""A line in absolute coordinates as a body of a mechanism: its forms, and the body protocol.

The body protocol is that of `dolfinx_mbd.multibody.model.protocol`, met here without importing it.
Forms are assembled on COMM_SELF, the same on every rank, into dense matrices. With nine elements
DOLFINx assembles forces in 7 µs, of which the compiled kernels take 4, and a tangent in 48; a step
of a slider-crank takes 2 to 4 ms. Calling the kernels without DOLFINx would gain nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.forms.cables import Cable
from dolfinx_mbd.kernels import tangent_frames as frames

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.model.protocol import BodyState

__all__ = ["AbsoluteBody", "LineForms", "hermite"]

Array = NDArray[np.float64]

#: Other ranks may be compiling the same form; a crowded machine takes its time.
_JIT = {"timeout": 300}

#: Strains are differences of numbers of order one, so that round-off leaves ε_mach EA L/h of forces
#: (measured: 1.0 to 1.5 times that). Rows of deformation count as at least so large, over EA L/h,
#: that a tolerance of 1e-11 relative to them stays three times above it; the default one of a step
#: is then a strain of 1e-12.
_FLOOR = 1e-4


def hermite(nodes: Array, places: Array, derivative: int = 0) -> Array:
    """Weights of the nodal values and slopes in the cubic at some places, (places, 2 nodes).

    Columns are (value, slope) of each node; ``derivative`` is 0, 1 or 2.
    """
    cell = np.clip(np.searchsorted(nodes, places, side="right") - 1, 0, len(nodes) - 2)
    h = np.diff(nodes)[cell]
    x = (places - nodes[cell]) / h
    polynomials = np.array(  # coefficients of 1, x, x², x³
        [[1.0, 0, -3, 2], [0, 1, -2, 1], [0, 0, 3, -2], [0, 0, -1, 1]]
    )
    powers = [
        [np.ones_like(x), x, x**2, x**3],
        [np.zeros_like(x), np.ones_like(x), 2 * x, 3 * x**2],
        [np.zeros_like(x), np.zeros_like(x), 2 * np.ones_like(x), 6 * x],
    ][derivative]
    values = polynomials @ np.array(powers) / h**derivative
    values[[1, 3]] *= h
    out = np.zeros((len(places), 2 * len(nodes)))
    for k in range(4):
        out[np.arange(len(places)), 2 * cell + k] = values[k]
    return out


class LineForms:
    """The forms of a cable on COMM_SELF and their values at nodal coordinates.

    Nodal coordinates u have shape (6 nodes,): position and slope node after node, from the start.

    Args:
        cable: Its stiffness, mass and damping, numbers.
        nodes: Unstretched lengths from the start to the nodes, increasing from 0, m.
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
        # constants, so that one compilation serves all cables
        c = Cable(*(fem.Constant(line, np.float64(getattr(cable, name))) for name in names))
        inner = c.elastic_forces(self._q, w)
        self._energy = self._form(c.elastic_energy(self._q))
        self._vector = self._form(inner)
        self._matrix = self._form(ufl.derivative(inner, self._q, d))
        self.damped = float(cable.damping) > 0
        if self.damped:
            viscous = c.damping_forces(self._q, self._v, w)
            self._damping = tuple(
                map(
                    self._form,
                    (
                        viscous,
                        ufl.derivative(viscous, self._q, d),
                        ufl.derivative(viscous, self._v, d),
                    ),
                )
            )
        self._values = np.zeros(6 * count)
        self._store = fem.create_matrix(self._matrix)
        pattern = self._store.indptr, self._store.indices
        self._pattern = np.repeat(np.arange(len(pattern[0]) - 1), np.diff(pattern[0])), pattern[1]
        block = self._store.block_size
        self._block = int(block[0]) if np.ndim(block) else int(block)
        self.mass = self._dense(self._form(c.mass(d, w)))

    @staticmethod
    def _form(form: ufl.Form) -> fem.Form:
        return fem.form(form, jit_options=_JIT)

    def _array(self, form: fem.Form) -> Array:
        self._values[:] = 0.0
        fem.assemble_vector(self._values, form)
        return self._values[self._order]

    def _dense(self, form: fem.Form) -> Array:
        self._store.data[:] = 0.0
        assemble: Any = fem.assemble_matrix
        assemble(self._store, form)
        n, b = len(self._values), self._block
        full = np.zeros((n // b, b, n // b, b))
        data = self._store.data.reshape(-1, b, b)
        full[self._pattern[0], :, self._pattern[1], :] = data[: len(self._pattern[0])]
        matrix: Array = full.reshape(n, n)[np.ix_(self._order, self._order)]
        return matrix

    def _at(self, u: Array, rate: Array | None = None) -> None:
        self._q.x.array[self._order] = u
        if rate is not None:
            self._v.x.array[self._order] = rate

    def energy(self, u: Array) -> float:
        """Elastic energy, J."""
        self._at(u)
        return float(fem.assemble_scalar(self._energy))

    def forces(self, u: Array, rate: Array) -> tuple[Array, Array]:
        """Elastic and damping forces, (6 nodes,) each."""
        self._at(u, rate)
        elastic = self._array(self._vector)
        return elastic, self._array(self._damping[0]) if self.damped else np.zeros_like(elastic)

    def tangents(self, u: Array, rate: Array) -> tuple[Array, Array]:
        """Derivatives of the forces to u and to its rate, (6 nodes, 6 nodes) each."""
        self._at(u, rate)
        K = self._dense(self._matrix)
        if not self.damped:
            return K, np.zeros_like(K)
        return K + self._dense(self._damping[1]), self._dense(self._damping[2])


@dataclass(frozen=True)
class _Frames:
    """P, r₀, S, p₀ and reference axes of the frames (see `dolfinx_mbd.kernels.tangent_frames`)."""

    P: Array
    r0: Array
    S: Array
    p0: Array
    axes: Array


class AbsoluteBody:
    """A line in absolute coordinates that meets the body protocol of a mechanism.

    Coordinates z, shape (6 nodes,), are a constant linear change of the nodal positions and slopes,
    u = T z + u₀, so that the mass stays constant and the core can tell motion from deformation:

    - z₀, z₁, z₂: position of the start, global components, m;
    - z₃, z₄: where the end is from the start, along two directions across the reference direction;
    - z₅: the same along it, less the unstretched length L: the first of the elastic coordinates;
    - the others: what positions of inner nodes and slopes of all nodes differ from those of the
      straight line between the ends, global components.

    All of them are zero, but for z₀ to z₂, in the reference state: straight and unstretched along
    the reference direction. Velocities are their rates; there is no quaternion.
    """

    name: str
    frame_names: tuple[str, ...]
    num_coordinates: int
    num_velocities: int
    num_elastic: int
    typical_mass: float
    nodes: Array
    _forms: LineForms
    _T: Array
    _u0: Array
    _z0: Array
    _mass: Array
    _first: Array
    _floor: float
    _frames: _Frames

    def _prepare(
        self,
        forms: LineForms,
        nodes: Array,
        axes: Array,
        start: Array,
        span: float,
        frame_places: Sequence[tuple[str, float]],
        stiffness: float,
    ) -> None:
        """Set up from the forms; ``axes`` (3, 3) has the reference direction as its z."""
        count, length = len(nodes), float(nodes[-1])
        n = 6 * count
        T: Array = np.zeros((count, 2, 3, n))
        u0: Array = np.zeros((count, 2, 3))
        across = np.zeros((3, n))
        across[:, 3:6] = axes
        T[:, 0, :, :3] = np.eye(3)
        T[:, 0] += (nodes / length)[:, None, None] * across
        T[:, 1] += across / length
        u0[:, 0] = nodes[:, None] * axes[:, 2]
        u0[:, 1] = axes[:, 2]
        inner = 3 * (count - 2)
        T[1:-1, 0, :, 6 : 6 + inner] = np.eye(inner).reshape(count - 2, 3, inner)
        T[:, 1, :, 6 + inner :] = np.eye(3 * count).reshape(count, 3, 3 * count)
        z0 = np.zeros(n)
        z0[:3], z0[5] = start, span - length
        places = np.array([place for _, place in frame_places])
        T, u0 = T.reshape(n, n), u0.ravel()

        def rows(derivative: int) -> tuple[Array, Array]:
            weights = hermite(nodes, places, derivative)
            return (
                np.einsum("fk,kcz->fcz", weights, T.reshape(2 * count, 3, n)).copy(),
                weights @ u0.reshape(-1, 3),
            )

        M = T.T @ forms.mass @ T
        values: dict[str, Any] = {
            "frame_names": tuple(name for name, _ in frame_places),
            "num_coordinates": n,
            "num_velocities": n,
            "num_elastic": n - 5,
            "nodes": nodes,
            "_forms": forms,
            "_T": T,
            "_u0": u0,
            "_z0": z0,
            "_mass": 0.5 * (M + M.T),
            "_first": T[:, :3].T @ forms.mass @ u0,
            "_floor": _FLOOR * stiffness * length / float(np.diff(nodes).min()),
            "_frames": _Frames(*rows(0), *rows(1), np.array([axes] * len(places))),
        }
        values["typical_mass"] = float(values["_mass"][0, 0])
        for key, value in values.items():
            object.__setattr__(self, key, value)

    # ---- coordinates

    def initial_coordinates(self) -> Array:
        return self._z0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        out[:] = q + delta

    def increment_tangent(self, delta: Array) -> Array:
        return np.zeros((0, 3))  # no rotations

    def steady_rates(self, q: Array, v: Array) -> Array:
        """Rates of v where the body turns without deforming further, but for those it turns by.

        At z̈₃ = z̈₄ = 0 the length of the chord stays if z̈₅ = −(ż₃² + ż₄²)/(L + z₅), in the reference
        direction: with its other velocities zero the end goes round the start.
        """
        out = np.zeros_like(v)
        out[5] = -(v[3] ** 2 + v[4] ** 2) / (self.nodes[-1] + q[5])
        return out

    def nodal(self, q: Array) -> Array:
        """Position and slope of the nodes at coordinates q (..., 6 nodes): (..., nodes, 2, 3)."""
        u = np.asarray(q) @ self._T.T + self._u0
        return u.reshape(*u.shape[:-1], -1, 2, 3)

    def coordinates(self, nodal: Array) -> Array:
        """Coordinates (..., 6 nodes) of nodal positions and slopes (..., nodes, 2, 3)."""
        u = np.asarray(nodal, dtype=float).reshape(*np.shape(nodal)[:-3], -1) - self._u0
        return np.asarray(np.linalg.solve(self._T, u[..., None])[..., 0], dtype=np.float64)

    def _without_position(self, q: Array) -> Array:
        """Nodal coordinates less the position of the start, which no force depends on."""
        return self._T[:, 3:] @ q[3:] + self._u0

    # ---- frames

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        f = self._frames
        frames.poses(f.P, f.r0, f.S, f.p0, f.axes, q, position, rotation)

    def frame_jacobians(self, q: Array) -> Array:
        f = self._frames
        return frames.jacobians(f.P, f.S, f.p0, f.axes, q)

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        f = self._frames
        frames.velocities(f.P, f.S, f.p0, f.axes, q, v, out)

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        f = self._frames
        return frames.velocity_tangents(f.P, f.S, f.p0, f.axes, q, v)

    def frame_bias(self, q: Array, v: Array) -> Array:
        f = self._frames
        return frames.bias(f.P, f.S, f.p0, f.axes, q, v)

    # ---- equations

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        _, q, v, a, gravity, wrenches = state
        inertia = self._mass @ a
        elastic, damping = (
            self._T.T @ f for f in self._forms.forces(self._without_position(q), self._T @ v)
        )
        elastic[:3] = damping[:3] = 0.0  # of a translation, but for round-off
        weight = self._mass[:, :3] @ gravity
        out[:] = inertia + elastic + damping - weight
        scale[:] = np.abs(inertia) + np.abs(elastic) + np.abs(damping) + np.abs(weight)
        scale[3:] += self._floor
        if wrenches.any():
            f = self._frames
            frames.apply_wrenches(f.P, f.S, f.p0, f.axes, q, wrenches, out, scale)

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        q, v, wrenches = state.q, state.v, state.wrenches
        K, C = self._forms.tangents(self._without_position(q), self._T @ v)
        f, T = self._frames, self._T
        K = T.T @ K @ T
        K -= frames.wrench_tangent(f.S, f.p0, f.axes, q, wrenches)
        return K, T.T @ C @ T if self._forms.damped else np.zeros_like(K), self._mass

    # ---- integrals

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        first = self._mass[:3] @ q + self._first
        return np.array(
            [
                0.5 * v @ self._mass @ v,
                self._forms.energy(self._without_position(q)),
                -float(gravity @ first),
            ]
        )

    def momenta(self, q: Array, v: Array) -> Array:
        scalar = self._forms.mass[::3, ::3]  # one component: values and slopes of the nodes
        place = self.nodal(q).reshape(-1, 3)
        momentum = scalar @ (self._T @ v).reshape(-1, 3)
        return np.concatenate([self._mass[:3] @ v, np.cross(place, momentum).sum(axis=0)])

    def rows_of(self, run: Any) -> tuple[Array, Array, Array]:
        """Coordinates, velocities and accelerations of this body in a solution, (nt, nv) each."""
        k = run.system.body_index(self.name)
        return run.q[:, run.system.q_slices[k]], *(
            x[:, run.system.v_slices[k]] for x in (run.v, run.a)
        )
