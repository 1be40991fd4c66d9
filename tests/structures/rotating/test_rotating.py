"""Rotating bodies: the matrices, the cantilever of the literature (V6), oscillators, stability.

V6 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx import mesh as dmesh
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI
from petsc4py import PETSc

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.reduction.mesh_damping import Viscous
from dolfinx_mbd.structures.rotating import (
    campbell,
    critical_speed,
    rotating_modes,
    rotating_structure,
)
from dolfinx_mbd.structures.rotating.stability import Modes, _match
from tests.models.plates import SOFT, on_springs

STEEL = mbd.Material(2.1e11, 0.3, 7850.0)
TEN_HERTZ = 20 * np.pi
QUADRILATERAL, HEXAHEDRON = dmesh.CellType.quadrilateral, dmesh.CellType.hexahedron


def strip(
    comm: MPI.Comm, length: float, height: float, cells: tuple[int, int]
) -> mbd.fem.TaggedMesh:
    """Return a plane cantilever along x; its end at the origin is the group "root"."""
    low, high = [0.0, -height / 2], [length, height / 2]
    return rooted(dmesh.create_rectangle(comm, [low, high], cells, QUADRILATERAL))


def bar(
    comm: MPI.Comm, size: tuple[float, float, float], cells: tuple[int, int, int]
) -> mbd.fem.TaggedMesh:
    """Return a solid cantilever of size (length, width along y, height along z)."""
    length, width, height = size
    low, high = [0.0, -width / 2, -height / 2], [length, width / 2, height / 2]
    return rooted(dmesh.create_box(comm, [low, high], cells, HEXAHEDRON))


def rooted(mesh: dmesh.Mesh) -> mbd.fem.TaggedMesh:
    """Return a mesh whose end at x = 0 has the name "root"."""
    dim = mesh.topology.dim - 1
    facets = dmesh.locate_entities_boundary(mesh, dim, lambda x: np.isclose(x[0], 0.0))
    tags = dmesh.meshtags(mesh, dim, np.sort(facets), np.ones(len(facets), dtype=np.int32))
    return mbd.fem.TaggedMesh(mesh, None, tags, {"root": (dim, 1)})


def difference(A: PETSc.Mat, form: ufl.Form) -> float:
    """Return ‖A - B‖/‖B‖ of a matrix and an assembled form."""
    B = fem_petsc.assemble_matrix(fem.form(form))
    B.assemble()
    size = B.norm()
    B.axpy(-1.0, A, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    error = B.norm() / size
    B.destroy()
    return float(error)


@pytest.mark.parametrize("dim", [2, 3])
def test_matrices_are_the_forms(comm: MPI.Comm, dim: int) -> None:
    """G, K_ω and K_σ are those of the forms; the prestress is that of the centrifugal load."""
    axis, point = (0.0, 0.0, 1.0), (0.3, -0.2, 0.1)[:dim]
    if dim == 2:
        mesh = dmesh.create_rectangle(comm, [[0.0, 0.0], [1.0, 0.3]], [4, 2], QUADRILATERAL)
        omega: Any = 1.0
        options: dict[str, Any] = {"plane": "stress", "thickness": 0.1}
    else:
        axis = (2.0, -1.0, 2.0)
        mesh = dmesh.create_box(comm, [[0, 0, 0], [1.0, 0.3, 0.2]], [3, 1, 1], HEXAHEDRON)
        omega, options = np.array(axis) / 3, {}
    t = options.get("thickness", 1.0)
    V = fem.functionspace(mesh, ("Lagrange", 2, (dim,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    springs = 1e9 * ufl.inner(u, v) * ufl.dx
    s = rotating_structure(
        mbd.ElasticModel(mesh, STEEL, space=V, **options), springs=springs, axis=axis, point=point
    )
    rho = STEEL.density * t
    assert difference(s.gyroscopic, forms.coriolis(u, v, rho, omega)) < 1e-14
    assert difference(s.softening, forms.centrifugal_stiffness(u, v, rho, omega)) < 1e-14
    u0 = as_function(V, s.displacement)
    plane_options = {"plane": options["plane"]} if dim == 2 else {}
    sigma = t * forms.stress(u0, STEEL, **plane_options)
    assert s.geometric is not None
    assert difference(s.geometric, forms.geometric_stiffness(u, v, sigma)) < 1e-12
    x = ufl.SpatialCoordinate(mesh) - ufl.as_vector(point)
    load = fem_petsc.assemble_vector(fem.form(forms.centrifugal_load(v, rho, omega, x=x)))
    load.ghostUpdate(PETSc.InsertMode.ADD, PETSc.ScatterMode.REVERSE)
    owned = len(s.displacement)
    residual = multiply(s.stiffness, s.displacement[:, None])[:, 0] - load.array_r[:owned]
    error = comm.allreduce(np.abs(residual).max(initial=0.0), MPI.MAX)
    assert error < 1e-9 * comm.allreduce(np.abs(load.array_r).max(initial=0.0), MPI.MAX)
    load.destroy()
    s.destroy()


V6 = {
    "flap": {
        0: (3.51602, 22.03449),
        1: (3.68165, 22.18101),
        3: (4.79728, 23.32026),
        5: (6.44954, 25.44608),
    },
    "lag": {
        0: (3.51602, 22.03449),
        1: (3.54324, 22.15846),
        3: (3.74351, 23.12649),
        5: (4.07390, 24.95001),
    },
}
"""ω√(ρAL⁴/EI) of the first two modes over γ = Ω√(ρAL⁴/EI)."""


def assert_like_v6(kind: str, frequencies: dict[int, np.ndarray]) -> None:
    """Assert that ω²(Ω) - ω²(0) is that of case V6 within 0.5 %."""
    for gamma in (1, 3, 5):
        expected = np.square(V6[kind][gamma]) - np.square(V6[kind][0])
        assert np.allclose(frequencies[gamma] ** 2 - frequencies[0] ** 2, expected, rtol=0.005), (
            gamma
        )


def test_cantilever_of_the_literature_in_the_plane(comm: MPI.Comm) -> None:
    """V6: lag of a slender strip; Coriolis forces reduce ω by 0.3 % at γ = 5."""
    length, height = 1.0, 0.02
    s = rotating_structure(
        mbd.ElasticModel(
            strip(comm, length, height, (36, 2)), STEEL, plane="stress", thickness=0.01
        ),
        held=["root"],
    )
    time = np.sqrt(STEEL.density * 12 / STEEL.young) * length**2 / height  # √(ρAL⁴/EI)
    for with_coriolis in (False, True):
        modes = {
            g: rotating_modes(s, g / time, num_modes=2, coriolis=with_coriolis)
            for g in (0, 1, 3, 5)
        }
        for m in modes.values():
            assert m.negative == 0 and np.abs(m.damping_ratios).max() < 1e-13
        assert_like_v6("lag", {g: 2 * np.pi * m.frequencies * time for g, m in modes.items()})
    without = rotating_modes(s, 3 / time, num_modes=1, coriolis=False, stiffening=False)
    square = (2 * np.pi * without.frequencies[0] * time) ** 2
    # Without stiffening, ω² in the plane of rotation decreases by Ω²
    assert square == pytest.approx(3.51602**2 - 3**2, rel=0.005)
    s.destroy()


def test_cantilever_of_the_literature_in_space(comm: MPI.Comm) -> None:
    """V6: flap along the axis and lag across it, of a bar twice as wide as high.

    The clamp prevents contraction of the sections near it, so that the mesh is finer there. With
    equal elements, which are longer than this zone, lag is 1.2 % off.
    """
    length, width, height = 1.0, 0.02, 0.01
    mesh = bar(comm, (length, width, height), (24, 1, 1))
    mesh.mesh.geometry.x[:, 0] **= 2
    s = rotating_structure(mesh, STEEL, held=["root"])
    for kind, depth in (("flap", height), ("lag", width)):
        time = np.sqrt(STEEL.density * 12 / STEEL.young) * length**2 / depth
        frequencies = {}
        for gamma in (0, 1, 3, 5):
            modes = rotating_modes(s, gamma / time, num_modes=6, coriolis=False)
            direction = 2 if kind == "flap" else 1
            z = modes.vectors.real.reshape(-1, 3, modes.vectors.shape[1])
            parts = comm.allreduce(np.sum(z**2, axis=0))
            bending = parts[direction] > 0.9 * parts.sum(axis=0)
            frequencies[gamma] = 2 * np.pi * modes.frequencies[bending][:2] * time
        assert_like_v6(kind, frequencies)
    s.destroy()


@pytest.mark.parametrize("first", [100.0, 64.0, 87.3])
@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-15])
def test_divergence_at_a_speed_of_the_search(comm: MPI.Comm, first: float, rtol: float) -> None:
    """The stiffness is singular at that speed, or almost singular on another mesh (round-off).

    Round-off of the stiffness moves the singularity by a few 1e-15 of the speed, on some processors
    to a speed below it. Just above it, vibrations grow more slowly than any limit, but one
    eigenvalue of K is negative.
    """
    for n in (2, 3):
        s = on_springs(comm, (first**2, (2.1 * first) ** 2), n)
        lost = critical_speed(s, 2 * first, steps=16, rtol=rtol)
        assert lost is not None and lost.kind == "divergence"
        low, high = lost.bracket
        assert low - 1e-9 * first <= first <= high + 1e-12 * first
        # at a singular stiffness, the speed is changed by 1e-8
        assert high - low <= max(rtol, 2.1e-8) * first
        s.destroy()


def test_without_stiffening_the_strip_is_falsely_unstable(comm: MPI.Comm) -> None:
    """K - Ω²M is indefinite from Ω = ω₁, γ = 3.516 (V6); stiffened it is stable far beyond."""
    length, height = 1.0, 0.02
    s = rotating_structure(
        mbd.ElasticModel(
            strip(comm, length, height, (24, 1)), STEEL, plane="stress", thickness=0.01
        ),
        held=["root"],
    )
    time = np.sqrt(STEEL.density * 12 / STEEL.young) * length**2 / height
    first = 2 * np.pi * rotating_modes(s, 0.0, num_modes=1).frequencies[0]
    for with_coriolis in (False, True):
        lost = critical_speed(s, 6 / time, stiffening=False, coriolis=with_coriolis)
        assert lost is not None and lost.kind == "divergence"
        assert lost.speed == pytest.approx(first, rel=2e-6)
        assert lost.speed * time == pytest.approx(3.51602, rel=0.005)
        assert lost.bracket[0] < lost.speed < lost.bracket[1]
        assert critical_speed(s, 12 / time, steps=4, coriolis=with_coriolis) is None
        beyond = rotating_modes(s, 4 / time, num_modes=3, stiffening=False, coriolis=with_coriolis)
        assert beyond.negative == 1
        assert beyond.eigenvalues[0].real > 0 and beyond.eigenvalues[0].imag == 0
        assert beyond.frequencies[0] == 0 and beyond.damping_ratios[0] == -1
        assert np.all(np.abs(beyond.damping_ratios[1:]) < 1e-9)
    with pytest.raises(ValueError, match="unstable at lower"):
        critical_speed(s, 6 / time, lower=5 / time, stiffening=False)
    s.destroy()


@pytest.mark.parametrize("n", [2, 8])
def test_point_oscillator(comm: MPI.Comm, n: int) -> None:
    """V6: springs of 10 Hz that rotate at 4 Hz have 6 Hz forward and 14 Hz backward, exactly.

    With n = 2 LAPACK solves it, with n = 8 SLEPc.
    """
    s = on_springs(comm, (TEN_HERTZ**2, TEN_HERTZ**2), n)
    modes = rotating_modes(s, 8 * np.pi, num_modes=3)
    circles = np.abs(modes.whirl) > 0.5
    assert np.allclose(modes.frequencies[circles], [6, 14], rtol=1e-12, atol=0)
    assert np.allclose(modes.whirl[circles], [1, -1], atol=1e-9)
    assert np.abs(modes.damping_ratios).max() < 1e-12
    backward = rotating_modes(s, -8 * np.pi, num_modes=3)
    assert np.allclose(backward.eigenvalues, modes.eigenvalues, rtol=1e-10)
    assert np.allclose(backward.whirl[circles], [1, -1], atol=1e-9)  # forward is the sense of Ω
    speeds = 2 * np.pi * np.array([0, 2, 4, 8, 9.5, 10, 11, 14])  # 10 Hz: the stiffness is zero
    diagram = campbell(s, speeds, num_modes=3)
    circles = np.abs(diagram.whirl[-1]) > 0.5
    f = diagram.frequencies[:, circles]
    f = f[:, np.argsort(f[1])]
    hertz = diagram.speeds / (2 * np.pi)
    expected = np.column_stack([np.abs(10 - hertz), 10 + hertz])
    assert np.allclose(f[hertz != 10], expected[hertz != 10], rtol=1e-10)
    assert np.allclose(f[hertz == 10], [[0, 20]], atol=1e-3)
    assert not diagram.growing.any()
    s.destroy()


def test_modes_beside_a_critical_speed(comm: MPI.Comm) -> None:
    """If K(Ω) is almost singular, shift-and-invert at zero fails, but the result is correct."""
    s = on_springs(comm, (TEN_HERTZ**2, TEN_HERTZ**2), 8)
    modes = rotating_modes(s, TEN_HERTZ * (1 - 1e-9), num_modes=3)
    assert modes.frequencies[-1] == pytest.approx(20.0 - 1e-8, rel=1e-11)
    assert modes.whirl[-1] == pytest.approx(-1.0, abs=1e-9)
    assert abs(modes.eigenvalues[0]) < 1e-2
    s.destroy()


def test_anisotropic_springs(comm: MPI.Comm) -> None:
    """Between its frequencies a point diverges; above both, Coriolis forces stabilize it.

    λ⁴ + (ω₁² + ω₂² + 2Ω²) λ² + (ω₁² - Ω²)(ω₂² - Ω²) = 0.
    """
    low, high = TEN_HERTZ, 1.5 * TEN_HERTZ
    s = on_springs(comm, (low**2, high**2))
    for speed in (0.4 * low, 1.2 * low, 2.0 * low):
        b, c = low**2 + high**2 + 2 * speed**2, (low**2 - speed**2) * (high**2 - speed**2)
        squares = (-b + np.array([1, -1]) * np.sqrt(b * b - 4 * c)) / 2
        expected = np.sqrt(squares + 0j)
        eigenvalues = rotating_modes(s, speed, num_modes=4).eigenvalues
        for value in expected:
            assert np.abs(eigenvalues - value).min() < 1e-10 * abs(value), speed
    lost = critical_speed(s, 3 * low)
    assert lost is not None and lost.speed == pytest.approx(low, rel=2e-6)
    assert critical_speed(s, 3 * low, lower=1.01 * high) is None
    uncoupled = critical_speed(s, 3 * low, coriolis=False)
    assert uncoupled is not None and uncoupled.speed == pytest.approx(low, rel=2e-6)
    s.destroy()
    damped = on_springs(comm, (low**2, high**2), damping=Rayleigh(mass=1.0))
    with pytest.raises(ValueError, match="unstable at lower"):
        critical_speed(damped, 3 * low, lower=1.01 * high)
    damped.destroy()


@pytest.mark.parametrize("kind", ["rayleigh", "viscous", "form", "several"])
def test_damped_point_oscillator(comm: MPI.Comm, kind: str) -> None:
    """z̈ + (2iΩ + a) ż + (ω₀² - Ω²) z = 0 for z = x + iy is unstable above ω₀ only if damped."""
    a = 3.0
    options: dict[str, Any] = {}
    if kind == "form":
        square = dmesh.create_rectangle(comm, [[-0.5, -0.5], [0.5, 0.5]], [2, 2], QUADRILATERAL)
        V = fem.functionspace(square, ("Lagrange", 2, (2,)))
        u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
        rho = SOFT.density
        s = rotating_structure(
            mbd.ElasticModel(square, SOFT, space=V, plane="stress", thickness=1.0),
            springs=TEN_HERTZ**2 * rho * ufl.inner(u, v) * ufl.dx,
            damping=forms.viscous_damping(u, v, a * rho),
        )
    else:
        options["damping"] = {
            "rayleigh": Rayleigh(mass=a),
            "viscous": Viscous(a * SOFT.density),
            "several": [Rayleigh(mass=a / 2), Viscous(a / 2 * SOFT.density)],
        }[kind]
        s = on_springs(comm, (TEN_HERTZ**2, TEN_HERTZ**2), **options)
    assert s.damped == (kind != "form")
    speed = 0.4 * TEN_HERTZ
    root = np.sqrt((a / 2 + 1j * speed) ** 2 - (TEN_HERTZ**2 - speed**2) + 0j)
    expected = np.array([-a / 2 - 1j * speed + root, -a / 2 - 1j * speed - root])
    modes = rotating_modes(s, speed, num_modes=3)
    # Im > 0: forward; Im < 0: the result contains the conjugate, a backward mode
    for value in expected:
        k = np.argmin(np.abs(modes.eigenvalues - (value.real + 1j * abs(value.imag))))
        assert abs(modes.eigenvalues[k].real - value.real) < 1e-9 * abs(value)
        assert abs(modes.eigenvalues[k].imag - abs(value.imag)) < 1e-9 * abs(value)
        assert modes.whirl[k] == pytest.approx(np.sign(value.imag), abs=1e-6)
    lost = critical_speed(s, 2.1 * TEN_HERTZ, rtol=1e-6)
    # a form may not damp every motion, so that only growth above 1e-4 Ω is reported
    assert lost is not None
    assert lost.kind == ("flutter" if kind == "form" else "divergence")
    # growth of a/2 (Ω/ω₀ − 1) = 1e-4 Ω
    excess = 2e-4 * TEN_HERTZ / a if kind == "form" else 0.0
    assert lost.speed == pytest.approx(TEN_HERTZ * (1 + excess), rel=5e-5)
    s.destroy()


def test_rayleigh_damping_at_rest(comm: MPI.Comm) -> None:
    damping = Rayleigh(mass=20.0, stiffness=1e-5)
    mesh = strip(comm, 0.5, 0.05, (8, 1))
    s = rotating_structure(
        mbd.ElasticModel(mesh, STEEL, plane="strain", thickness=0.01),
        held=["root"],
        damping=damping,
    )
    modes = rotating_modes(s, 0.0, num_modes=4)
    omega = np.abs(modes.eigenvalues)
    assert np.allclose(modes.damping_ratios, damping.ratio(omega / (2 * np.pi)), rtol=1e-8)
    s.destroy()


def test_coriolis_does_no_work(comm: MPI.Comm) -> None:
    """vᵀGv = 0, so that with positive stiffness no motion grows or decays."""
    mesh = bar(comm, (0.3, 0.05, 0.02), (6, 1, 1))
    s = rotating_structure(mesh, STEEL, held=["root"], axis=(1.0, 2.0, 2.0), point=(0, 0.1, 0))
    rng = np.random.default_rng(comm.rank)
    v = rng.standard_normal((s.gyroscopic.getLocalSize()[0], 3))
    work = gram(comm, v, multiply(s.gyroscopic, v))
    assert np.abs(work + work.T).max() < 1e-12 * np.abs(work).max()
    modes = rotating_modes(s, 400.0, num_modes=6)
    assert modes.negative == 0
    assert np.abs(modes.whirl).max() > 0.05
    assert np.abs(modes.damping_ratios).max() < 1e-12
    s.destroy()


def test_modes_are_followed_through_a_crossing(comm: MPI.Comm) -> None:
    """Flap, which stiffens faster by Ω², overtakes lag: each column stays one motion."""
    length, width, height = 0.5, 0.021, 0.02
    s = rotating_structure(bar(comm, (length, width, height), (8, 1, 1)), STEEL, held=["root"])
    lag = np.sqrt(STEEL.young / 12 / STEEL.density) * width / length**2 * 3.516
    flap = lag * height / width
    crossing = np.sqrt(lag**2 - flap**2)
    diagram = campbell(s, np.linspace(0, 2 * crossing, 9), num_modes=2, coriolis=False)
    f = diagram.frequencies
    assert f[0, 0] < f[0, 1] and f[-1, 0] > f[-1, 1]
    squares = (2 * np.pi * f) ** 2
    slopes = (squares[-1] - squares[0]) / (2 * crossing) ** 2
    assert np.allclose(slopes, [1.193336, 0.193336], rtol=0.01)  # Southwell, V6
    assert "rad/s" in diagram.summary()
    s.destroy()


def test_a_mode_is_followed_through_zero() -> None:
    """Beyond the speed of zero frequency, a forward whirl appears as a backward one.

    Another motion with almost the same frequency is not mistaken for it.
    """
    circle = np.array([1.0, -1.0j, 0.0]) / np.sqrt(2)
    separate = np.array([0.0, 0.0, 1.0 + 0j])

    def modes(rates: list[complex], shapes: list[np.ndarray]) -> Modes:
        z = np.column_stack(shapes)
        return Modes(np.array(rates), np.zeros(len(rates)), z, z)  # M = I

    last = modes([0.5j, 3j], [circle, circle.conj()])
    current = modes([0.5j, 1j, 4.5j], [separate, circle.conj(), circle.conj()])
    assert list(_match(None, last, current, 1.5)) == [1, 2]


def test_projection_converges(comm: MPI.Comm) -> None:
    """With more modes at rest, frequencies of a fast strip converge to those of full order."""
    mesh = strip(comm, 1.0, 0.1, (20, 2))
    s = rotating_structure(
        mbd.ElasticModel(mesh, STEEL, plane="stress", thickness=0.01), held=["root"]
    )
    speeds = np.linspace(0, 600.0, 4)  # 600 m/s at the tip
    full = campbell(s, speeds, num_modes=3)
    for n, error in ((6, 2e-3), (12, 3e-5), (24, 4e-6)):
        small = campbell(s, speeds, num_modes=3, projection=n)
        assert np.allclose(small.frequencies, full.frequencies, rtol=error), n
        assert np.allclose(small.whirl[0], 0.0)
    assert np.allclose(small.whirl, full.whirl, atol=1e-3)
    s.destroy()


def test_any_number_of_ranks(comm: MPI.Comm) -> None:
    """Frequencies agree with one rank, with damping and Coriolis, stable and unstable."""
    eigenvalues = []
    for c in (comm, MPI.COMM_SELF):
        mesh = bar(c, (0.3, 0.05, 0.02), (6, 1, 1))
        s = rotating_structure(mesh, STEEL, held=["root"], damping=Rayleigh(stiffness=1e-6))
        parts = [rotating_modes(s, 900.0, num_modes=4)]
        parts.append(rotating_modes(s, 3000.0, num_modes=4, stiffening=False))
        assert parts[1].negative is not None and parts[1].negative > 0
        eigenvalues.append(np.concatenate([m.eigenvalues for m in parts]))
        s.destroy()
    assert np.allclose(
        eigenvalues[0], eigenvalues[1], rtol=1e-9, atol=1e-9 * np.abs(eigenvalues[1]).max()
    )
    assert np.array_equal(eigenvalues[0], comm.bcast(eigenvalues[0], root=0))


def test_user_defined_stiffness_and_stress(comm: MPI.Comm) -> None:
    """A user-defined form is prestressed by a user-defined stress, and raises an error without."""
    mesh = strip(comm, 0.5, 0.05, (6, 1))
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (2,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    form = forms.elastic_stiffness(u, v, STEEL, plane="stress", thickness=0.01)
    options: dict[str, Any] = {"space": V, "plane": "stress", "thickness": 0.01}
    custom = rotating_structure(
        mbd.ElasticModel(mesh, stiffness=form, density=STEEL.density, **options),
        held=["root"],
        stress=lambda w: forms.stress(w, STEEL, plane="stress"),
    )
    usual = rotating_structure(mbd.ElasticModel(mesh, STEEL, **options), held=["root"])
    f = [rotating_modes(s, 500.0, num_modes=3).frequencies for s in (custom, usual)]
    assert np.allclose(f[0], f[1], rtol=1e-10)
    unknown = rotating_structure(
        mbd.ElasticModel(mesh, STEEL, stiffness=form, **options), held=["root"]
    )
    with pytest.raises(ValueError, match="needs the stress"):
        rotating_modes(unknown, 500.0)
    assert rotating_modes(unknown, 500.0, num_modes=1, stiffening=False).negative == 0
    for s in (custom, usual, unknown):
        s.destroy()


def test_several_materials(comm: MPI.Comm) -> None:
    """A heavy outer half increases the prestress; two equal materials are like one."""
    mesh = strip(comm, 0.5, 0.05, (8, 1))
    cells = np.arange(mesh.mesh.topology.index_map(2).size_local, dtype=np.int32)
    outer = dmesh.compute_midpoints(mesh.mesh, 2, cells)[:, 0] > 0.25
    tags = dmesh.meshtags(mesh.mesh, 2, cells, np.where(outer, 2, 1).astype(np.int32))
    heavy = mbd.Material(STEEL.young, STEEL.poisson, 2 * STEEL.density)
    results = []
    for material in (STEEL, {1: STEEL, 2: STEEL}, {1: STEEL, 2: heavy}):
        s = rotating_structure(
            mbd.ElasticModel(mesh, material, cell_tags=tags, plane="stress", thickness=0.01),
            held=["root"],
        )
        assert s.geometric is not None
        results.append((s.geometric.norm(), *rotating_modes(s, 500.0, num_modes=2).frequencies))
        s.destroy()
    assert np.allclose(results[0], results[1], rtol=1e-10)
    assert results[2][0] > 1.5 * results[0][0]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"held": []}, "nothing holds the body"),
        ({"axis": (0, 0, 0)}, "axis must be"),
        ({"axis": (1, 0, 1)}, "rotates about z"),
        ({"point": (1.0,)}, "point must be a point"),
        ({"damping": 0.01}, "^damping must be"),
        ({"held": ["tip"]}, "tip"),
    ],
)
def test_bad_input(comm: MPI.Comm, options: dict[str, Any], message: str) -> None:
    mesh = strip(comm, 0.5, 0.05, (2, 1))
    model = mbd.ElasticModel(mesh, STEEL, plane="stress", thickness=0.01)
    with pytest.raises((ValueError, TypeError, KeyError), match=message):
        rotating_structure(model, **{"held": ["root"], **options})


def test_other_linear_solvers(comm: MPI.Comm) -> None:
    """Any direct solver gives the modes; only the check of stability needs the inertia."""
    mesh = strip(comm, 0.5, 0.05, (24, 2))
    results = []
    for petsc_options in ({}, {"pc_type": "lu"}):
        s = rotating_structure(
            mbd.ElasticModel(mesh, STEEL, plane="stress", thickness=0.01),
            held=["root"],
            petsc_options=petsc_options,
        )
        results.append(rotating_modes(s, 500.0, num_modes=3))
        if petsc_options:
            with pytest.raises(ValueError, match="leave pc_type"):
                critical_speed(s, 1.0)
        s.destroy()
    assert results[0].negative == 0 and results[1].negative is None
    assert np.allclose(results[0].frequencies, results[1].frequencies, rtol=1e-9)


def test_forms_must_be_symmetric(comm: MPI.Comm) -> None:
    mesh = strip(comm, 0.5, 0.05, (2, 1))
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (2,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    skew = (u[0] * v[1] - u[1] * v[0]) * ufl.dx
    model = mbd.ElasticModel(mesh, STEEL, space=V, plane="stress", thickness=0.01)
    with pytest.raises(ValueError, match="springs must be symmetric"):
        rotating_structure(model, springs=skew)
    with pytest.raises(ValueError, match="damping must be symmetric"):
        rotating_structure(model, held=["root"], damping=skew)
    with pytest.raises(ValueError, match="springs"):
        rotating_structure(model, springs=ufl.inner(u, v))  # type: ignore[arg-type]


def test_bad_speeds(comm: MPI.Comm) -> None:
    mesh = strip(comm, 0.5, 0.05, (2, 1))
    s = rotating_structure(
        mbd.ElasticModel(mesh, STEEL, plane="stress", thickness=0.01), held=["root"]
    )
    with pytest.raises(ValueError, match="finite number"):
        rotating_modes(s, np.nan)
    with pytest.raises(InputError) as error:
        rotating_modes(s, 1.0, num_modes=10_000)
    assert (error.value.argument, error.value.value) == ("num_modes", 10_000)
    assert rotating_modes(s, 1.0, num_modes=0).eigenvalues.shape == (0,)
    with pytest.raises(ValueError, match="speeds must be"):
        campbell(s, [])
    with pytest.raises(ValueError, match=r"^projection must be .* of at least 4"):
        campbell(s, [0.0, 1.0], num_modes=4, projection=2)
    with pytest.raises(ValueError, match="lower < upper"):
        critical_speed(s, 1.0, lower=2.0)
    s.destroy()
