"""Materials: moduli, presets, the table, orthotropic matrices, and errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI

from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.forms import (
    ALUMINIUM,
    ALUMINIUM_7075,
    MATERIALS,
    STEEL,
    GradedMaterial,
    Material,
    Orthotropic,
    Plane,
    Temperature,
    material,
    stress,
    thermal_stress,
)

CARBON = Orthotropic(
    young=(135e9, 10e9, 8e9),
    poisson=(0.3, 0.25, 0.45),
    shear=(5e9, 4.5e9, 3.5e9),
    density=1600.0,
    name="carbon fibre",
    thermal_expansion=(-0.5e-6, 30e-6, 35e-6),
)
"""Fibres along axis 1; all nine constants differ."""


def turn(axis: int, angle: float) -> np.ndarray:
    """Return a rotation about a coordinate axis."""
    i, j = [k for k in range(3) if k != axis]
    Q = np.eye(3)
    Q[[i, j], [i, j]] = np.cos(angle)
    Q[j, i], Q[i, j] = np.sin(angle), -np.sin(angle)
    return Q


ANYHOW = turn(0, 0.4) @ turn(1, -1.1) @ turn(2, 0.7)  # arbitrary axes


def same_as(isotropic: Material, **options: Any) -> Orthotropic:
    """Return an isotropic material written as an orthotropic one."""
    return Orthotropic(
        young=(isotropic.young,) * 3,
        poisson=(isotropic.poisson,) * 3,
        shear=(isotropic.shear,) * 3,
        density=isotropic.density,
        thermal_expansion=isotropic.thermal_expansion,
        **options,
    )


@pytest.mark.parametrize("material", [STEEL, ALUMINIUM, ALUMINIUM_7075, Material(1.0, -0.5, 2.0)])
def test_moduli_are_consistent(material: Material) -> None:
    """E and ν follow back from λ and μ."""
    lam, mu = material.lame, material.shear
    assert mu * (3 * lam + 2 * mu) / (lam + mu) == pytest.approx(material.young, rel=1e-14)
    assert lam / (2 * (lam + mu)) == pytest.approx(material.poisson, rel=1e-14)


def test_presets() -> None:
    assert (STEEL.young, STEEL.poisson, STEEL.density) == (210e9, 0.3, 7850.0)
    assert (ALUMINIUM.young, ALUMINIUM.poisson, ALUMINIUM.density) == (70e9, 0.33, 2700.0)
    assert (ALUMINIUM_7075.young, ALUMINIUM_7075.density) == (71.7e9, 2810.0)


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        STEEL.young = 1.0  # type: ignore[misc]


def test_materials_by_name() -> None:
    """Each name of the table is found in any spelling, with the numbers of the docstring."""
    assert material("steel") is STEEL
    assert material(" Aluminium_7075 ") is ALUMINIUM_7075
    assert material("stainless-steel").name == "stainless steel"
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in (material.__doc__ or "").splitlines()
        if line.strip().startswith("| ")
    ][1:]
    assert [row[0] for row in rows] == list(MATERIALS)
    for name, young, poisson, density, alpha, source in rows:
        m = material(name)
        shown = m.young / 1e9, m.poisson, m.density, (m.thermal_expansion or 0) * 1e6
        assert shown == pytest.approx([float(v) for v in (young, poisson, density, alpha)])
        assert source


def test_unknown_material() -> None:
    with pytest.raises(InputError) as error:
        material("stel")
    assert error.value.argument == "name"
    assert all(name in str(error.value) for name in MATERIALS)


@pytest.mark.parametrize("plane", ["strain", "stress"])
def test_isotropic_as_orthotropic(plane: Plane) -> None:
    """The entries are λ and μ for any axes, and Eν/(1−ν²) in plane stress."""
    lam, mu = STEEL.lame, STEEL.shear
    expected = np.zeros((6, 6))
    expected[:3, :3] = lam
    expected += np.diag([2 * mu] * 3 + [mu] * 3)
    for axes in (None, ANYHOW):
        assert np.allclose(same_as(STEEL, axes=axes).matrix(), expected, atol=1e-12 * lam)
    flat = {"strain": lam, "stress": STEEL.young * STEEL.poisson / (1 - STEEL.poisson**2)}[plane]
    expected = np.array([[flat + 2 * mu, flat, 0], [flat, flat + 2 * mu, 0], [0, 0, mu]])
    assert np.allclose(same_as(STEEL).matrix(2, plane), expected, atol=1e-12 * lam)


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, np.pi / 2])
def test_off_axis_modulus(angle: float) -> None:
    """1/E_x = c⁴/E₁ + s⁴/E₂ + (1/G₁₂ − 2ν₁₂/E₁) s²c², and the shear that a pull causes.

    c and s are the cosine and sine of the angle of the fibres.
    """
    (e1, e2, _), nu, g = CARBON.young, CARBON.poisson[0], CARBON.shear[0]
    c, s = np.cos(angle), np.sin(angle)
    rotated = dataclasses.replace(CARBON, axes=turn(2, angle))
    expected = c**4 / e1 + s**4 / e2 + (1 / g - 2 * nu / e1) * s**2 * c**2
    coupling = 2 * (1 / e1 + nu / e1) * s * c**3 - 2 * (1 / e2 + nu / e1) * s**3 * c
    coupling -= (s * c**3 - s**3 * c) / g
    for S in (np.linalg.inv(rotated.matrix()), np.linalg.inv(rotated.matrix(2, "stress"))):
        assert S[0, 0] == pytest.approx(expected, rel=1e-12)
        assert S[0, -1] == pytest.approx(coupling, rel=1e-10, abs=1e-12 * expected)


def test_order_of_the_constants() -> None:
    """Each constant is read back from a state of stress along the axes."""
    S = np.linalg.inv(CARBON.matrix())
    assert 1 / np.diag(S)[:3] == pytest.approx(CARBON.young)
    ratios = -S[0, 1] / S[0, 0], -S[0, 2] / S[0, 0], -S[1, 2] / S[1, 1]
    assert ratios == pytest.approx(CARBON.poisson)
    assert 1 / np.diag(S)[3:] == pytest.approx([3.5e9, 4.5e9, 5e9])  # yz, xz, xy


def _values(tensor: Any, domain: mesh.Mesh) -> np.ndarray:
    """Return ∫ of a tensor over the unit domain, by one form for all components."""
    n = tensor.ufl_shape[0]
    unit = fem.Constant(domain, np.zeros((n, n)))
    form = fem.form(ufl.inner(tensor, unit) * ufl.dx(domain=domain))
    values = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        unit.value[:] = 0.0
        unit.value[i, j] = 1.0
        values[i, j] = fem.assemble_scalar(form)
    return values


@pytest.mark.parametrize(("dim", "plane"), [(3, "strain"), (2, "strain"), (2, "stress")])
def test_stress_of_a_turned_material(dim: int, plane: Plane) -> None:
    """Axes as numbers, axes as an expression, and the tensor turned by hand agree."""
    make = {2: mesh.create_unit_square, 3: mesh.create_unit_cube}[dim]
    domain = make(MPI.COMM_SELF, *[1] * dim)
    Q = ANYHOW if dim == 3 else turn(2, 0.6)
    u = fem.Function(fem.functionspace(domain, ("Lagrange", 1, (dim,))))
    G = 1e-3 * np.random.default_rng(1).normal(size=(dim, dim))
    u.interpolate(lambda x: G @ x[:dim])
    rise, in_plane = 40.0, Q[:dim, :dim]
    as_numbers = dataclasses.replace(CARBON, axes=Q)
    as_ufl = dataclasses.replace(CARBON, axes=ufl.as_matrix(in_plane.tolist()))
    C = CARBON.matrix(dim, plane)
    eps = in_plane.T @ (G + G.T) / 2 @ in_plane
    pairs = (
        [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)] if dim == 3 else [(0, 0), (1, 1), (0, 1)]
    )
    stresses = C @ [eps[i, j] * (1 if i == j else 2) for i, j in pairs]
    by_hand = np.zeros((dim, dim))
    for (i, j), value in zip(pairs, stresses, strict=True):
        by_hand[i, j] = by_hand[j, i] = value
    by_hand = in_plane @ by_hand @ in_plane.T
    for turned in (as_numbers, as_ufl):
        sigma = _values(stress(u, turned, plane=plane), domain)
        assert np.allclose(sigma, by_hand, rtol=1e-10, atol=1e-10 * np.abs(by_hand).max())
    hot = [_values(thermal_stress(rise, m, dim, plane=plane), domain) for m in (as_numbers, as_ufl)]
    assert np.allclose(hot[0], hot[1], rtol=1e-12, atol=1e-12 * np.abs(hot[0]).max())


@pytest.mark.parametrize(("dim", "plane"), [(3, "strain"), (2, "strain"), (2, "stress")])
@pytest.mark.parametrize("made_of", [STEEL, dataclasses.replace(CARBON, axes=turn(2, 0.6))])
def test_free_expansion_is_without_stress(dim: int, plane: Plane, made_of: Any) -> None:
    """σ(u) + σ_T = 0 for u = α ΔT x; in plane strain the stress across the plane remains."""
    make = {2: mesh.create_unit_square, 3: mesh.create_unit_cube}[dim]
    domain = make(MPI.COMM_SELF, *[1] * dim)
    rise = 100.0
    if isinstance(made_of, Material):
        alpha = made_of.thermal_expansion * np.eye(3)
    else:
        alpha = made_of.axes @ np.diag(made_of.thermal_expansion) @ made_of.axes.T
    expansion = alpha[:dim, :dim] * rise
    if plane == "strain" and dim == 2:  # free in the plane, held across: C_pp ε = β_p ΔT
        C = same_as(STEEL).matrix() if isinstance(made_of, Material) else made_of.matrix()
        p = [0, 1, 5]
        strains = [alpha[i, j] * (1 if i == j else 2) for i, j in ((0, 0), (1, 1), (2, 2))]
        beta = C[p][:, :3] @ strains + C[p, 5] * 2 * alpha[0, 1]
        e = np.linalg.solve(C[np.ix_(p, p)], beta) * rise
        expansion = np.array([[e[0], e[2] / 2], [e[2] / 2, e[1]]])
    u = fem.Function(fem.functionspace(domain, ("Lagrange", 1, (dim,))))
    u.interpolate(lambda x: expansion @ x[:dim])
    held = _values(thermal_stress(rise, made_of, dim, plane=plane), domain)
    left = held + _values(stress(u, made_of, plane=plane), domain)
    assert np.abs(left).max() < 1e-12 * np.abs(held).max()
    assert held[1, 1] < 0  # ([0, 0] may be positive: fibres contract)


BAD: list[tuple[str, Any, str, str]] = [
    ("too much contraction", {"poisson": (4.0, 0.25, 0.45)}, "poisson", "positive energy"),
    ("ratios of 0.5", {"young": (1e9,) * 3, "poisson": (0.5,) * 3}, "poisson", "positive energy"),
    ("two moduli", {"young": (1e9, 1e9)}, "young", "three finite numbers"),
    ("a negative shear modulus", {"shear": (1e9, -1e9, 1e9)}, "shear", "positive moduli in Pa"),
    ("a text as modulus", {"young": ("steel", 1e9, 1e9)}, "young", "three finite numbers"),
    ("no density", {"density": 0.0}, "density", "positive"),
    ("axes that are no rotation", {"axes": np.diag([1, 1, 2])}, "axes", "a rotation matrix"),
    ("a left-handed triad", {"axes": np.diag([1, 1, -1])}, "axes", "right-handed"),
    ("an angle for axes", {"axes": 0.3}, "axes", "shape"),
    ("a vector for axes", {"axes": ufl.as_vector([1.0, 0.0])}, "axes", "shape"),
]


@pytest.mark.parametrize(
    ("changes", "argument", "expected"), [b[1:] for b in BAD], ids=[b[0] for b in BAD]
)
def test_orthotropic_refuses(changes: dict[str, Any], argument: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        dataclasses.replace(CARBON, **changes)
    assert error.value.argument == argument
    assert expected in (error.value.expected or "")


def test_plane_of_a_plane_body_is_one_of_symmetry() -> None:
    with pytest.raises(InputError) as error:
        dataclasses.replace(CARBON, axes=turn(0, 0.5)).matrix(2, "stress")
    assert error.value.argument == "axes"


def test_others_refuse() -> None:
    with pytest.raises(InputError) as error:
        GradedMaterial(-1.0, 0.3, ufl.as_ufl(1.0))
    assert (error.value.argument, error.value.value) == ("young", -1.0)
    with pytest.raises(InputError) as error:
        GradedMaterial(1e9, 0.3, ufl.as_vector([1.0, 2.0]))
    assert error.value.argument == "density"
    with pytest.raises(InputTypeError) as error:
        Temperature("hot")  # type: ignore[arg-type]
    assert error.value.argument == "rise"
    with pytest.raises(InputError) as error:
        thermal_stress(1.0, Material(1e9, 0.0, 100.0, "cork"))
    assert error.value.argument == "thermal_expansion"
    assert "'cork'" in str(error.value)
