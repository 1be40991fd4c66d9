"""Rotating beams through the analyses of rotating solids: V6, whirling shafts, twisting blades.

V6 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from dolfinx import mesh as dmesh
from mpi4py import MPI
from numpy.polynomial import legendre
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.beams.rotating import rotating_beam
from tests.forms.test_beams import SHIFT, SKEW, V6, chain

WORLD = MPI.COMM_WORLD


@pytest.mark.parametrize("skew", [False, True])
def test_rotating_cantilever(skew: bool) -> None:
    """V6: flap and lag of a cantilever, also in a skew direction and about a skew axis."""
    thin = Section.rectangle(2e-3, 2e-3)
    material = mbd.Material(1.0 / thin.Iyy, 0.3, 1.0 / thin.area)
    places = np.cumsum([0.0, *np.tile([0.015, 0.025, 0.03, 0.03], 10)])
    mesh = chain(places, WORLD, SKEW[:, 0] if skew else None)
    model = BeamModel(mesh, thin, material, SKEW if skew else None)
    structure = rotating_beam(
        model,
        held=[SHIFT if skew else 0.0],
        axis=SKEW[:, 2] if skew else (0, 0, 1),
        point=SHIFT if skew else (0, 0, 0),
    )
    for gamma, (flap1, flap2, _, lag1, lag2) in V6.items():
        modes = mbd.structures.rotating_modes(structure, float(gamma), num_modes=4)
        expected = np.sort([flap1, flap2, lag1, lag2])
        assert 2 * np.pi * modes.frequencies[:4] == pytest.approx(expected, rel=3e-4)
        assert modes.negative == 0
    assert (
        mbd.structures.rotating_modes(structure, 5.0, num_modes=1, stiffening=False).negative == 1
    )
    structure.destroy()


@pytest.mark.parametrize("spin", [0.0, 2.0, 7.0])
def test_whirling_shaft(spin: float) -> None:
    """Rayleigh's shaft in rotating axes: (1 + r²k²) ω² − 2 r²k²Ω ω = EIk⁴/ρA.

    The shaft is so thick that the gyroscopic moments of the sections split the whirls by a tenth.
    """
    shaft = Section.circle(0.2)  # r k = 0.31 in the first mode
    model = BeamModel(
        dmesh.create_interval(WORLD, 16, [0.0, 1.0]), shaft, mbd.Material(1e2, 0.3, 1.0)
    )
    bearings = {0.0: ["ux", "uy", "uz", "rx"], 1.0: ["uy", "uz"]}
    structure = rotating_beam(model, held=bearings, axis=(1, 0, 0))
    frequencies = (
        2 * np.pi * mbd.structures.rotating_modes(structure, spin, num_modes=8).frequencies
    )
    structure.destroy()
    ratio = shaft.Izz / shaft.area * np.pi**2
    square = 1e2 * ratio * np.pi**2
    root = np.sqrt((ratio * spin) ** 2 + (1 + ratio) * square)
    for sign in (1, -1):
        whirl = (ratio * spin + sign * root) / (1 + ratio)
        assert np.abs(frequencies / abs(whirl - spin) - 1).min() < 1e-4
    assert ratio > 0.09


def test_twisting_blade() -> None:
    """A flat blade rotates about z; Ritz's method for its twist φ.

    The stiffness contains N Ip/A φ′² by the axial force N and Ω²ρ(Izz − Iyy) φ².
    """
    blade, spin = Section(0.1, 1e-5, 4e-4, 4e-5), 30.0
    material = mbd.Material(2.6e5, 0.3, 1.0)
    model = BeamModel(dmesh.create_interval(WORLD, 40, [0.0, 1.0]), blade, material)
    structure = rotating_beam(model, held=[0.0])
    spinning = 2 * np.pi * mbd.structures.rotating_modes(structure, spin, num_modes=8).frequencies
    still = 2 * np.pi * mbd.structures.rotating_modes(structure, 0.0, num_modes=8).frequencies
    structure.destroy()
    x, w = legendre.leggauss(20)
    x, w = (x + 1) / 2, w / 2
    powers = np.arange(1, 8)
    phi, rate = x ** powers[:, None], powers[:, None] * x ** (powers[:, None] - 1)

    def twist(omega: float) -> float:
        N = blade.area * omega**2 * (1 - x**2) / 2
        stiffness = material.shear * blade.torsion + N * blade.polar / blade.area
        K = (rate * stiffness * w) @ rate.T
        K += omega**2 * (blade.Izz - blade.Iyy) * (phi * w) @ phi.T
        return float(np.sqrt(eigh(K, blade.polar * (phi * w) @ phi.T, eigvals_only=True)[0]))

    for values, omega in ((still, 0.0), (spinning, spin)):
        assert np.abs(values / twist(omega) - 1).min() < 5e-4
    assert twist(spin) > 1.03 * twist(0.0)


def test_campbell_diagram_and_springs() -> None:
    """The speed separates forward and backward whirl; a spring form supports a free end."""
    model = BeamModel(dmesh.create_interval(WORLD, 6, [0.0, 1.0]), Section.circle(0.05), mbd.STEEL)
    u, v = ufl.TrialFunction(model.space), ufl.TestFunction(model.space)
    springs = 1e7 * ufl.inner(ufl.as_vector([u[i] for i in range(6)]), v) * ufl.ds
    structure = rotating_beam(model, springs=springs, axis=(1, 0, 0))
    speeds = [0.0, 50.0, 100.0]
    diagram = mbd.structures.campbell(structure, speeds, num_modes=2)
    structure.destroy()
    splitting = np.ptp(diagram.frequencies, axis=1)
    assert splitting[0] < 1e-3
    assert splitting[1:] == pytest.approx([2 * 50 / (2 * np.pi), 2 * 100 / (2 * np.pi)], rel=2e-2)


def test_refuses() -> None:
    model = BeamModel(dmesh.create_interval(WORLD, 4, [0.0, 1.0]), Section.circle(0.05), mbd.STEEL)
    with pytest.raises(ValueError, match="nothing holds the beam"):
        rotating_beam(model)
    with pytest.raises(TypeError, match="damping must be Rayleigh or Form"):
        rotating_beam(model, held=[0.0], damping=mbd.reduction.Viscous(1.0))
