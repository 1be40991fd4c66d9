"""Pressure modes of elastic bores: static modes of pressure patterns around and along a bore.

The patterns on a bore of length L are cos kθ P_l(2z/L) and sin kθ P_l(2z/L) with k ≤ K and Legendre
polynomials P_l of degree 0, 1 and 2. They act radially outwards. K is the smallest number for which
the compliance under a test pressure, cos(3θ/2) over 120° and parabolic along the bore, deviates
from the compliance of the full model by less than a tolerance, for every direction of the pressure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import ufl
from dolfinx import fem, la
from dolfinx.mesh import meshtags

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Bore, Interface
from dolfinx_mbd.body.parts import POLYNOMIALS, circular_functions
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.cylinders import CORNER_TOLERANCE, facet_corners
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram

MAX_HARMONICS = 16
MAX_GAP = np.pi / 4  # largest angle without corners, rad; the facets must surround the axis
QUADRATURE_DEGREE = 10
TEST_ANGLES = np.arange(8) * np.pi / 4  # directions of the test pressure, rad

_log = logging.getLogger("dolfinx_mbd")


@dataclass(frozen=True, eq=False)
class BorePatterns:
    """Pressure patterns on a bore, their nodal forces and the displacements that they cause."""

    interface: MeshInterface
    radius: float
    length: float
    forces: Array  # (owned dofs, patterns), N for 1 Pa
    displacements: Array  # (owned dofs, patterns), m, with all interfaces held
    gram: Array  # integrals of products of two patterns, (patterns, patterns), m²
    error: float

    @property
    def labels(self) -> tuple[str, ...]:
        """Return a name for each pattern, such as ``cos 2 P0``."""
        rows = len(self.gram) // POLYNOMIALS
        around = ["1", *(f"{name} {k}" for k in range(1, rows // 2 + 1) for name in ("cos", "sin"))]
        return tuple(f"{name} P{degree}" for name in around for degree in range(POLYNOMIALS))

    def bore(self, problem: ElasticProblem, modes: Array, interfaces: Iterable[Interface]) -> Bore:
        """Return the radial displacement per mode relative to the frame of the interface.

        The coefficients are the least-squares fit over the surface, so that the work of a pressure
        pattern on a mode is exact.
        """
        rigid = problem.rigid_motions(self.interface.point)
        (motion,) = (i.motion for i in interfaces if i.name == self.interface.name)
        work = gram(problem.comm, self.forces, modes)
        work -= gram(problem.comm, self.forces, rigid) @ motion
        W: Array = np.asarray(np.linalg.solve(self.gram, work), dtype=float)
        shape = -1, POLYNOMIALS, modes.shape[1]
        return Bore(self.interface.name, self.radius, self.length, W.reshape(shape), self.error)


def bore_patterns(
    problem: ElasticProblem, interface: MeshInterface, solve: Callable[[Array], Array]
) -> BorePatterns:
    """Return the pressure patterns of a bore with enough harmonics for the tolerance.

    `solve` returns the displacements under nodal forces with all interfaces held. Collective;
    errors are the same on every rank.
    """
    comm, tolerance = problem.comm, interface.pressure_modes
    assert tolerance is not None
    radius, length = _check_cylinder(problem, interface)
    surface = _Surface(problem, interface, length)
    tests = surface.test_pressures()
    full = column_sums(comm, tests, solve(tests))
    forces, errors = surface.forces(0), []
    displacements = solve(forces)
    for k in range(1, MAX_HARMONICS + 1):
        more = surface.forces(k)
        forces, displacements = np.hstack([forces, more]), np.hstack([displacements, solve(more)])
        amplitudes = _test_amplitudes(k)
        compliance = gram(comm, forces, displacements)
        reduced = np.einsum("it,ij,jt->t", amplitudes, compliance, amplitudes)
        errors.append(float(np.abs(1.0 - reduced / full).max()))
        if errors[-1] <= tolerance:
            break
    else:
        raise InputError(
            f"interface {interface.name!r}: the compliance of the bore with {MAX_HARMONICS} "
            f"harmonics has an error of {errors[-1]:.2g}, more than pressure_modes={tolerance:g}. "
            "Use a finer mesh around the bore or a larger tolerance",
            argument="pressure_modes",
            value=tolerance,
        )
    if comm.rank == 0:
        _log.info(
            "bore %s: %d pressure modes (%d harmonics); errors of the compliance: %s",
            interface.name,
            forces.shape[1],
            k,
            ", ".join(f"{error:.2g}" for error in errors),
        )
    G = surface.gram(k)
    return BorePatterns(interface, radius, length, forces, displacements, G, errors[-1])


def _check_cylinder(problem: ElasticProblem, interface: MeshInterface) -> tuple[float, float]:
    """Return radius and length of a bore; check its centre and axis with the interface."""
    label = f"interface {interface.name!r}: pressure modes need"
    if interface.dim != 3:
        raise InputError(f"{label} a body in three dimensions", argument="pressure_modes")
    x, y, z = (
        interface.axes.T @ (facet_corners(problem.space.mesh, interface.facets) - interface.point).T
    )
    distance, angles = np.hypot(x, y), np.sort(np.arctan2(y, x))
    radius, length = float(distance.mean()), float(np.ptp(z))
    tolerance = CORNER_TOLERANCE * radius
    gap = float(np.diff(angles, append=angles[0] + 2 * np.pi).max())
    deviation = float(np.abs(distance - radius).max())
    if deviation > tolerance or gap > MAX_GAP or not length > 0:
        raise InputError(
            f"{label} a bore: a cylinder all around the axis of the interface. The corners of its "
            f"facets deviate by {deviation:.2g} m from a cylinder of radius {radius:.4g} m and "
            f"leave a gap of {np.rad2deg(gap):.0f}°. Tag only the facets of the bore, and leave "
            "out point and axes",
            argument="pressure_modes",
            value=interface.name,
        )
    offset = 0.5 * float(z.min() + z.max())
    if abs(offset) > tolerance:
        raise InputError(
            f"{label} an interface point in the middle of the bore; it is {abs(offset):.3g} m away "
            "along the axis. Leave out the point",
            argument="pressure_modes",
            value=interface.name,
        )
    return radius, length


def _test_amplitudes(harmonics: int) -> Array:
    """Return the amplitudes of the patterns of the test pressures, shape (patterns, directions)."""
    theta = (np.arange(7200) + 0.5) * np.pi / 3600  # midpoints of intervals of 0.05°
    functions = circular_functions(theta, harmonics)
    delta = np.remainder(theta[:, None] - TEST_ANGLES + np.pi, 2 * np.pi) - np.pi
    pressure = np.where(np.abs(delta) < np.pi / 3, np.cos(1.5 * delta), 0.0)
    around = functions.T @ pressure / (functions**2).sum(axis=0)[:, None]
    along = np.array([2.0, 0.0, -2.0]) / 3.0  # 1 - ζ² = 2/3 (P_0 - P_2)
    return np.einsum("ad,l->ald", around, along).reshape(-1, len(TEST_ANGLES))


class _Surface:
    """Integrals over the facets of a bore; constants of two compiled forms select the integrand.

    The pattern is (`cosine` cos(`order` θ) + `sine` sin(`order` θ)) Σ_j `powers`_j ζ^j with
    ζ = 2z/L. `test` is the direction of a test pressure, or zero.
    """

    def __init__(self, problem: ElasticProblem, interface: MeshInterface, length: float) -> None:
        self._problem = problem
        mesh = problem.space.mesh
        facets = interface.facets
        tags = meshtags(mesh, 2, facets, np.ones(len(facets), dtype=np.int32))
        metadata = {"quadrature_degree": QUADRATURE_DEGREE}
        ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags, metadata=metadata)(1)
        shapes = {"point": (3,), "axes": (3, 3), "powers": (2 * POLYNOMIALS - 1,), "test": (2,)}
        self._constants = {
            key: fem.Constant(mesh, np.zeros(shape)) for key, shape in shapes.items()
        }
        for key in ("order", "cosine", "sine", "length"):
            self._constants[key] = fem.Constant(mesh, np.float64(0.0))
        c = self._constants
        c["point"].value[:], c["axes"].value[:] = interface.point, interface.axes
        c["length"].value[()] = length
        r = c["axes"].T * (ufl.SpatialCoordinate(mesh) - c["point"])
        theta, zeta = ufl.atan2(r[1], r[0]), 2.0 * r[2] / c["length"]
        around = c["cosine"] * ufl.cos(c["order"] * theta) + c["sine"] * ufl.sin(c["order"] * theta)
        powers = [1.0, zeta, zeta**2, zeta**3, zeta**4]
        pattern = around * sum(c["powers"][j] * power for j, power in enumerate(powers))
        radial = c["axes"] * ufl.as_vector((r[0], r[1], 0.0)) / ufl.sqrt(r[0] ** 2 + r[1] ** 2)
        # cos(3δ/2) = 4 h³ - 3 h with h = cos(δ/2) and the angle δ from the direction of the test,
        # for |δ| < 60°, that is cos δ > 0.5. Without a direction, `cosine` is 0
        cosine = (c["test"][0] * r[0] + c["test"][1] * r[1]) / ufl.sqrt(r[0] ** 2 + r[1] ** 2)
        half = ufl.sqrt(0.5 * (1.0 + cosine))
        test = ufl.conditional(ufl.gt(cosine, 0.5), 4.0 * half**3 - 3.0 * half, 0.0)
        pressure = pattern + test * (1.0 - zeta**2)
        v = ufl.TestFunction(problem.space)
        self._load = compiled_form(pressure * ufl.inner(radial, v) * ds)
        self._integral = compiled_form(pattern * ds)

    def _nodal(self) -> Array:
        """Return the nodal forces of the selected pressure, shape (owned dofs,) (collective)."""
        vector = fem.assemble_vector(self._load)
        vector.scatter_reverse(la.InsertMode.add)
        return np.array(vector.array[: self._problem.num_owned])

    def _select(self, order: int, cosine: float, sine: float, polynomial: Array) -> None:
        """Set the constants of the forms to one pattern, with coefficients of the powers of ζ."""
        c = self._constants
        c["order"].value[()], c["cosine"].value[()], c["sine"].value[()] = order, cosine, sine
        c["powers"].value[:] = 0.0
        c["powers"].value[: len(polynomial)] = polynomial

    def forces(self, order: int) -> Array:
        """Return the nodal forces of all patterns of one harmonic, shape (owned dofs, patterns)."""
        columns = []
        for factors in ((1.0, 0.0), (0.0, 1.0))[: 1 if order == 0 else 2]:  # cosine, then sine
            for polynomial in _LEGENDRE:
                self._select(order, *factors, polynomial)
                columns.append(self._nodal())
        return np.asfortranarray(np.column_stack(columns))

    def test_pressures(self) -> Array:
        """Return the nodal forces of the test pressures, shape (owned dofs, directions)."""
        self._select(0, 0.0, 0.0, np.zeros(1))
        columns, direction = [], self._constants["test"].value
        for angle in TEST_ANGLES:
            direction[:] = np.cos(angle), np.sin(angle)
            columns.append(self._nodal())
        direction[:] = 0.0
        return np.asfortranarray(np.column_stack(columns))

    def gram(self, harmonics: int) -> Array:
        """Return the integrals of the products of all pairs of patterns.

        A product of two patterns contains harmonics up to 2K and powers of ζ up to 4. The integrals
        follow from those of exp(i m θ) ζ^j with |m| ≤ 2K and j ≤ 4.
        """
        comm, degrees = self._problem.comm, 2 * POLYNOMIALS - 1
        parts = np.zeros((2 * harmonics + 1, degrees, 2))
        for m, j, part in np.ndindex(*parts.shape):
            self._select(m, float(part == 0), float(part == 1), np.eye(degrees)[j])
            parts[m, j, part] = fem.assemble_scalar(self._integral)
        parts = comm.bcast(comm.reduce(parts, root=0), root=0)  # bitwise equal on all ranks
        positive = parts[..., 0] + 1j * parts[..., 1]
        moments = np.vstack([positive[:0:-1].conj(), positive])  # m from -2K to 2K
        orders = np.arange(-harmonics, harmonics + 1)
        # Rows of T: 1, cos θ, sin θ, ... as combinations of exp(i k θ), k from -K to K
        T = np.zeros((2 * harmonics + 1, 2 * harmonics + 1), dtype=complex)
        T[0, harmonics] = 1.0
        for k in range(1, harmonics + 1):
            T[2 * k - 1, harmonics + k] = T[2 * k - 1, harmonics - k] = 0.5
            T[2 * k, harmonics + k], T[2 * k, harmonics - k] = -0.5j, 0.5j
        products = moments[np.add.outer(orders, orders) + 2 * harmonics]  # (.., .., degrees)
        around = np.einsum("am,bn,mnj->abj", T, T, products).real
        along = np.array([[np.convolve(p, q) for q in _LEGENDRE] for p in _LEGENDRE])
        G = np.einsum("abj,lmj->albm", around, along)
        return G.reshape(2 * [len(T) * POLYNOMIALS])


_LEGENDRE = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.5, 0.0, 1.5]])  # in powers of ζ
