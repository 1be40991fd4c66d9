"""Derivatives of reduced beams: scaling laws (V17), and differences of new reductions.

V17 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.forms.beams import Beam
from dolfinx_mbd.structures.beams.problem import beam_matrices, beam_problem
from tests.forms.test_beams import SHIFT, SKEW, UNEVEN, chain

ENDS = {"root": 0.0, "tip": 0.5}
POINTS = {"middle": (0.22, 0.004, -0.003), "tip": (0.5, 0.0, 0.0)}

NOISE = 1e-11
"""Relative error of the results of a reduction; its solvers leave about 2e-12."""


def straight(comm: MPI.Intracomm, section: Any = None, length: float = 0.5) -> mbd.BeamModel:
    """Return a straight beam of steel, by default with a rectangular section."""
    mesh = create_interval(comm, 8, [0.0, length])
    return mbd.BeamModel(mesh, section or mbd.forms.Section.rectangle(0.02, 0.01), mbd.STEEL)


def aligned(base: Any, other: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a reduction in the coordinates that are closest to those of `base`."""
    problem = beam_problem(base.model)
    cross = gram(problem.comm, problem.apply_mass(base.modes), other.modes)
    problem.destroy()
    W = scipy.linalg.polar(cross)[0].T  # orthogonal
    T = scipy.linalg.block_diag(1.0, W)  # index 0 of moments belongs to the undeformed body
    body, n = other.body, len(W)
    result = {
        "total_mass": np.array(body.total_mass),
        "first_moments": T.T @ body.first_moments,
        "second_moments": np.einsum("ki,klab,lj->ijab", T, body.second_moments, T),
        "stiffness": W.T @ body.stiffness @ W,
        "interface_points": np.array([i.point for i in body.interfaces]).reshape(-1, 3),
        "interface_motions": np.array([i.motion for i in body.interfaces]).reshape(-1, 6, n) @ W,
        "positions": np.array([p.position for p in body.points]),
        "point_modes": np.array([W.T @ p.modes for p in body.points]),
        "skin_positions": body.skin.points,
        "skin_modes": np.einsum("ki,kpa->ipa", W, body.skin.modes),
    }
    if body.effective_masses is not None:
        result["effective_masses"] = sums_of(body.effective_masses)
    if body.stiffening is not None:
        result["spin_stiffening"] = W.T @ body.stiffening.spin @ W
        result["interface_stiffening"] = W.T @ body.stiffening.interfaces @ W
    return result


def sums_of(masses: mbd.body.EffectiveMasses) -> np.ndarray:
    """Return sums over all modes, which do not depend on combinations of multiple modes.

    The factor 1e-4 makes the sum of the frequencies as large as that of the shares.
    """
    return np.array([1e-4 * masses.frequencies.sum(), *masses.shares.sum(axis=0)])


def check_differences(base: Any, parameter: Any, new: Callable[[float], Any], step: float) -> None:
    """Compare all derivatives with differences of fourth order of new reductions to 1e-6."""
    table = mbd.sensitivities(base, [parameter])
    derivative = table[parameter.name]
    values = [aligned(base, new(s)) for s in step * np.array([-2, -1, 1, 2])]
    for name in values[0]:
        a, b, c, d = (v[name] for v in values)
        difference = (8 * (c - b) - (d - a)) / (12 * step)
        exact = getattr(derivative, name)
        if name == "effective_masses":
            if base.omitted is not None:
                continue  # the body does not contain all fixed-interface modes
            exact = sums_of(exact)
        assert np.shape(exact) == np.shape(difference)
        noise = NOISE * np.abs(b).max(initial=0.0) / step
        limit = 1e-6 * np.abs(difference).max(initial=0.0) + noise
        assert np.abs(exact - difference).max(initial=0.0) <= limit, name


def reduced(model: Any, ends: Any = ENDS, points: Any = POINTS, **options: Any) -> Any:
    """Return the reduction of a beam to four modes."""
    return mbd.reduce_beam(model, interfaces=ends, num_modes=4, points=points, **options)


@pytest.mark.parametrize(
    "quantity",
    ["density", *(pytest.param(q, marks=pytest.mark.slow) for q in ("young", "poisson"))],
)
def test_material(comm: MPI.Intracomm, quantity: str) -> None:
    model = straight(comm)
    value = getattr(mbd.STEEL, quantity)

    def new(s: float) -> Any:
        material = replace(mbd.STEEL, **{quantity: value + s})
        return reduced(mbd.BeamModel(model.mesh, model.section, material))

    check_differences(reduced(model), mbd.Parameter("p", quantity), new, 1e-3 * value)


@pytest.mark.parametrize("option", ["mean axis", "attached", "free", "one end"])
def test_height(comm: MPI.Intracomm, option: str) -> None:
    def section(height: float) -> mbd.forms.Section:
        return mbd.forms.Section.rectangle(0.02, height)

    model = straight(comm)
    ends = {"free": {}, "one end": {"root": 0.0}}.get(option, ENDS)
    options = {"attached_to": "root"} if option == "attached" else {}

    def new(s: float) -> Any:
        changed = mbd.BeamModel(model.mesh, section(0.01 + s), mbd.STEEL)
        return reduced(changed, ends, **options)

    parameter = mbd.design.SectionParameter("height", section, 0.01)
    check_differences(new(0.0), parameter, new, 1e-5)


def test_double_modes(comm: MPI.Intracomm) -> None:
    """The double bending modes of a circular section have equal derivatives."""
    model = straight(comm, mbd.forms.Section.circle(0.01))

    def new(s: float) -> Any:
        section = mbd.forms.Section.circle(0.01 + s)
        return reduced(mbd.BeamModel(model.mesh, section, mbd.STEEL))

    base, parameter = new(0.0), mbd.design.SectionParameter("r", mbd.forms.Section.circle, 0.01)
    check_differences(base, parameter, new, 1e-5)
    relative = mbd.sensitivities(base, [parameter])["r"].frequencies / base.body.frequencies
    assert relative[0] == pytest.approx(relative[1], rel=1e-9)


def test_crossing_modes(comm: MPI.Intracomm) -> None:
    """If a square section becomes a rectangle, one of two equal frequencies changes."""

    def section(height: float) -> mbd.forms.Section:
        return mbd.forms.Section.rectangle(1e-3, height)

    model = straight(comm, section(1e-3))

    def new(s: float) -> Any:
        return reduced(mbd.BeamModel(model.mesh, section(1e-3 + s), mbd.STEEL))

    base, parameter = new(0.0), mbd.design.SectionParameter("h", section, 1e-3)
    check_differences(base, parameter, new, 1e-6)
    derivative = mbd.sensitivities(base, [parameter])["h"].frequencies
    relative = 1e-3 * derivative / base.body.frequencies
    # share of rotary inertia, 49.5 h²/(12 L²), with 49.5 = L² ∫φ′² / ∫φ² of the first free mode φ
    rotary = 49.5 * 1e-6 / (12 * 0.25)
    assert relative[:2] == pytest.approx([0.0, 1.0 - rotary], abs=1e-6)


def skew_section(scale: float) -> mbd.forms.Section:
    """Return a section whose axes are not principal axes; its shape changes with the scale."""
    return mbd.forms.Section(
        2e-4 * scale, 3e-9 * scale**2, 5e-9 * scale, 4e-9 * scale, Iyz=1e-9 * scale
    )


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["section", "shape"])
def test_beam_in_space(comm: MPI.Intracomm, quantity: str) -> None:
    """A beam with a skew section along a skew axis, of uneven cells; nodes move along it."""
    direction = SKEW[:, 0]
    mesh = chain(UNEVEN, comm, direction)
    distances = UNEVEN + SHIFT @ direction  # distances along the beam

    def velocity(distance: Any) -> Any:
        return 0.2 + 0.5 * distance + 0.3 * np.sin(5 * distance)

    x0 = mesh.geometry.x.copy()
    place = 0.3 * UNEVEN[1] + 0.7 * UNEVEN[2]
    velocity_of_place = 0.3 * velocity(distances[1]) + 0.7 * velocity(distances[2])

    def new(step: float) -> Any:
        move = step if quantity == "shape" else 0.0
        mesh.geometry.x[:] = x0 + move * np.outer(velocity(x0 @ direction), direction)
        section = skew_section(1.0 + (0.0 if move else step))
        model = mbd.BeamModel(mesh, section, mbd.STEEL, SKEW)
        ends = {n: s + move * velocity(s) for n, s in zip("ab", distances[[0, -1]], strict=True)}
        points = {"p": SHIFT + (place + move * velocity_of_place) * direction + 0.01 * SKEW[:, 1]}
        result = reduced(model, ends, points)
        mesh.geometry.x[:] = x0
        return result

    base = new(0.0)
    parameter: Any = mbd.design.SectionParameter("p", skew_section, 1.0)
    if quantity == "shape":
        V = fem.functionspace(mesh, ("Lagrange", 1, (mesh.geometry.dim,)))
        f = fem.Function(V)
        f.interpolate(lambda x: np.outer(direction, velocity(direction @ x)))
        parameter = mbd.Parameter("p", "shape", velocity=f)
    check_differences(base, parameter, new, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("up_to", [None, 2e3])
def test_taper(comm: MPI.Intracomm, up_to: float | None) -> None:
    """A tapered, graded beam: height and modulus contain one function of space."""
    mesh = create_interval(comm, 8, [0.0, 0.5])
    f, direction = (fem.Function(fem.functionspace(mesh, ("Lagrange", 1))) for _ in range(2))
    f.interpolate(lambda x: 1 + x[0])
    direction.interpolate(lambda x: np.sin(3 * x[0]))
    base_values = f.x.array.copy()
    material = mbd.forms.GradedMaterial(young=210e9 * f, poisson=0.3, density=7850.0)
    model = mbd.BeamModel(mesh, mbd.forms.Section.rectangle(0.02, 0.01 * f), material)

    def new(s: float) -> Any:
        f.x.array[:] = base_values + s * direction.x.array
        result = reduced(model, options=mbd.ReductionOptions(up_to=up_to))
        f.x.array[:] = base_values
        return result

    parameter = mbd.Parameter("p", "coefficient", coefficient=f, direction=direction)
    check_differences(new(0.0), parameter, new, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("up_to", [None, 2e3])
def test_taper_in_space(comm: MPI.Intracomm, up_to: float | None) -> None:
    """A taper that is a function of the coordinates stays in space when the nodes move."""
    mesh = create_interval(comm, 8, [0.0, 0.5])
    x = ufl.SpatialCoordinate(mesh)
    x0 = mesh.geometry.x.copy()
    section = mbd.forms.Section.rectangle(0.02, 0.01 + 0.01 * x[0])

    def new(s: float) -> Any:
        mesh.geometry.x[:] = (1 + s) * x0
        model = mbd.BeamModel(mesh, section, mbd.STEEL)
        points = {k: (p[0] * (1 + s), *p[1:]) for k, p in POINTS.items()}
        options = mbd.ReductionOptions(up_to=up_to)
        result = reduced(model, {"root": 0.0, "tip": 0.5 * (1 + s)}, points, options=options)
        mesh.geometry.x[:] = x0
        return result

    base = new(0.0)
    assert (base.omitted is None) == (up_to is None) and 2 < base.body.num_modes < 11
    check_differences(base, mbd.Parameter("p", "shape", velocity=x), new, 1e-3)


@pytest.mark.slow
def test_laws_of_slender_bars(comm: MPI.Intracomm) -> None:
    """V17: L dω/dL is −2ω in bending and −ω in other modes; h dω/dh is ω in bending along h.

    The height h has no effect on axial modes and on bending across h.

    With the share r of rotary inertia in the kinetic energy, the laws of bending are
    L dω/dL = (r − 2) ω and h dω/dh = (1 − r) ω for exact modes. The truncation of the modes
    changes the terms with r by some percent, so that modes with r below 3e-7 are compared.
    """
    height = 1e-4

    def section(h: float) -> mbd.forms.Section:
        return mbd.forms.Section.rectangle(0.4 * height, h)

    model = straight(comm, section(height))
    base = reduced(model, points={})
    x = ufl.SpatialCoordinate(model.mesh)
    parameters: list[Any] = [
        mbd.Parameter("E", "young"),
        mbd.Parameter("rho", "density"),
        mbd.Parameter("size", "shape", velocity=x),
        mbd.design.SectionParameter("h", section, height),
    ]
    table = mbd.sensitivities(base, parameters)
    relative = {name: table[name].frequencies / base.body.frequencies for name in table}
    assert relative["E"] * mbd.STEEL.young == pytest.approx(0.5, rel=1e-8)
    assert relative["rho"] * mbd.STEEL.density == pytest.approx(-0.5, rel=1e-8)

    def energy(axis: int | None) -> np.ndarray:
        """Return the kinetic energy of translation along one axis, or along all axes."""
        area = section(height).area
        # a section without rotary inertia
        line = Beam(mbd.forms.Section(area, 1e-40, 1e-40, 1e-40), mbd.STEEL)
        K, M, couplings, _ = beam_matrices(model, lambda form_of: form_of(line))
        matrix = M if axis is None else couplings[4 * axis]  # entry (axis, axis) of 3 × 3
        result = np.diag(gram(comm, base.modes, multiply(matrix, base.modes)))
        for item in (K, M, *couplings):
            item.destroy()
        return result

    axial, bending_y, bending_z = (energy(axis) > 0.5 for axis in range(3))
    rotary, bending = 1 - energy(None), bending_y | bending_z
    twist = ~(axial | bending)
    assert min(axial.sum(), bending_z.sum()) >= 1 and bending_y.sum() >= 4
    slender = rotary < 3e-7
    size, h = relative["size"], height * relative["h"]
    assert (bending & slender).sum() >= 4 and (bending_z & slender).any()
    assert size[bending & slender] == pytest.approx(rotary[bending & slender] - 2.0, rel=1e-8)
    assert size[~bending] == pytest.approx(-1.0, rel=1e-8)
    assert h[bending_z & slender] == pytest.approx(1.0 - rotary[bending_z & slender], rel=1e-8)
    assert h[bending_y | axial] == pytest.approx(0.0, abs=1e-8)
    assert not twist.any() or (np.abs(h[twist]) < 1).all()
    assert table["size"].total_mass == pytest.approx(base.body.total_mass, rel=1e-8)


def test_first_order(comm: MPI.Intracomm) -> None:
    """The dynamic stiffness of the body of first order has an error of second order."""

    def section(height: float) -> mbd.forms.Section:
        return mbd.forms.Section.rectangle(0.02, height)

    model = straight(comm)
    table = mbd.sensitivities(reduced(model), [mbd.design.SectionParameter("h", section, 0.01)])
    assert table.base["h"] == 0.01
    errors = []
    for step in (2e-5, 1e-5):  # so small that the order of the modes does not change
        exact = reduced(mbd.BeamModel(model.mesh, section(0.01 + step), mbd.STEEL)).body
        first = table.at({"h": 0.01 + step})
        assert first.total_mass == pytest.approx(exact.total_mass, rel=1e-12)
        errors.append(np.abs(first.frequencies / exact.frequencies - 1).max())
    assert 3.7 < errors[0] / errors[1] < 4.3
    assert table.error({"h": 0.01 + step}) > 0.1 * errors[1]


def test_limits(comm: MPI.Intracomm) -> None:
    """A step of −1/8 of the length reduces the last cell to zero length."""
    model = straight(comm)
    f = fem.Function(fem.functionspace(model.mesh, ("Lagrange", 1, (1,))))
    f.interpolate(lambda x: np.maximum(0.0, 8 * x[:1] / 0.5 - 7.0))
    tip = mbd.Parameter("tip", "shape", velocity=f)
    table = mbd.sensitivities(reduced(model), [tip])
    assert table["tip"].limits == pytest.approx((-0.5 / 8, np.inf))
    with pytest.raises(InputError):
        table.at({"tip": -0.5 / 8})


def test_errors(comm: MPI.Intracomm) -> None:
    model = straight(comm)
    base = reduced(model)

    def section(height: float) -> mbd.forms.Section:
        return mbd.forms.Section.rectangle(0.02, height)

    def check(parameter: Any, text: str) -> None:
        with pytest.raises(InputError, match=text):
            mbd.sensitivities(base, [parameter])

    check(mbd.design.SectionParameter("h", section, 0.02), "the model has")
    constant = mbd.design.SectionParameter("h", lambda h: section(0.01), 0.01)
    check(constant, "does not depend on this parameter")
    check(mbd.Parameter("t", "thickness"), "has no parameter 'thickness'")
    check(mbd.Parameter("E", "young", group="a"), "no groups")
    zero = ufl.as_vector([0.0 * x for x in ufl.SpatialCoordinate(model.mesh)])
    check(mbd.Parameter("s", "shape", velocity=zero), "zero everywhere")
    E = mbd.Parameter("E", "young")
    with pytest.raises(InputError, match="different names"):
        mbd.sensitivities(base, [E, E])
    with pytest.raises(InputError, match="value"):
        mbd.design.SectionParameter("h", section, 0.0)
    f = fem.Function(fem.functionspace(model.mesh, ("DG", 0)))
    unused = mbd.Parameter("f", "coefficient", coefficient=f, direction=f)
    check(unused, "does not depend on this parameter")
    truncated = mbd.ReductionOptions(up_to=float(base.body.frequencies[4]))
    with pytest.raises(InputError, match="up_to"):
        mbd.sensitivities(reduced(model, options=truncated), [E])
    skew = mbd.BeamModel(chain(UNEVEN, comm, SKEW[:, 0]), model.section, mbd.STEEL, SKEW)
    x = ufl.SpatialCoordinate(skew.mesh)
    rotation = mbd.Parameter("turn", "shape", velocity=ufl.as_vector([x[1], -x[0], 0 * x[0]]))
    with pytest.raises(InputError, match="along the beam"):
        mbd.sensitivities(reduced(skew, {"a": SHIFT + UNEVEN[0] * SKEW[:, 0]}, {}), [rotation])
