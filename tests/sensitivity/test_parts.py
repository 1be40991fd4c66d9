"""Derivatives of the parts of a body and all kinds of parameters: differences and Taylor tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, compute_midpoints, create_rectangle, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.linalg.blocks import gram
from dolfinx_mbd.recovery import skin_stress
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, dynamic_stiffness
from tests.sensitivity.test_reduced import ENDS, aligned

PLY = mbd.Orthotropic(
    young=(140e9, 10e9, 12e9),
    poisson=(0.3, 0.28, 0.4),
    shear=(5e9, 4.5e9, 3.5e9),
    density=1600.0,
    axes=[[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]],
    thermal_expansion=(1e-6, 30e-6, 25e-6),
)


def body_of(model: mbd.ElasticModel, kinds: Any = "rigid", **options: Any) -> mbd.Reduction:
    """A reduction with two interfaces and stress modes."""
    ends: Any = mbd.InterfaceSpec.each(ENDS, kinds)
    result = mbd.reduce(
        model, interfaces=ends, num_modes=3, options=mbd.ReductionOptions(**options)
    )
    return replace(result, body=result.body.replace(stress=skin_stress(result)))


def rotation(base: mbd.Reduction, other: mbd.Reduction) -> np.ndarray:
    """The rotation to the coordinates of `other` that are closest to those of `base`."""
    problem = elastic_problem(base.model)
    cross = gram(problem.comm, problem.apply_mass(base.modes), other.modes)
    problem.destroy()
    return np.asarray(scipy.linalg.polar(cross)[0].T)


def numbers(base: mbd.Reduction, other: mbd.Reduction) -> dict[str, np.ndarray]:
    """All numbers of a reduction in the coordinates that are closest to those of `base`."""
    W, body = rotation(base, other), other.body
    values = {"centre": body.centre, "central_inertia": body.central_inertia}
    values |= {"inertia": body.inertia, "damping": W.T @ body.damping @ W}
    if body.stress is not None:
        values["stress"] = body.stress.stress @ W
    for key, turn in (("force", None), ("moment", None), ("modes", W), ("moments", W)):
        rows = np.array([getattr(load, key) for load in body.loads])
        values[f"loads {key}"] = rows if turn is None or not len(rows) else turn.T @ _columns(rows)
    for k, bore in enumerate(body.bores):
        values[f"bores {k}"] = bore.displacement @ W
    for k, gauge in enumerate(body.gauges):
        values[f"gauges {k}"] = gauge.modes @ W
    if body.stiffening is None:
        return values
    return values | aligned(base, other)


def _columns(rows: np.ndarray) -> np.ndarray:
    return rows[:, :, None] if rows.ndim == 2 else rows


def derivative_of(derivative: mbd.BodyDerivative, name: str) -> np.ndarray:
    kind, _, key = name.partition(" ")
    if kind == "loads":
        rows = np.array([getattr(load, key) for load in derivative.loads])
        return _columns(rows) if key in ("modes", "moments") and len(rows) else rows
    return np.asarray(getattr(derivative, kind)[int(key)] if key else getattr(derivative, kind))


def check_differences(
    make: Callable[[float], mbd.Reduction],
    parameter: Callable[[Any], mbd.Parameter],
    step: float,
    tolerance: float = 1e-6,
) -> mbd.BodyDerivative:
    """Compare derivatives with differences of fourth order of new reductions to 1e-6."""
    base = make(0.0)
    quantity = parameter(base.model)
    derivative = mbd.sensitivities(base, [quantity])[quantity.name]
    values = [numbers(base, make(s)) for s in step * np.array([-2, -1, 1, 2])]
    for name in values[0]:
        a, b, c, d = (v[name] for v in values)
        difference = (8 * (c - b) - (d - a)) / (12 * step)
        size = max(
            np.abs(difference).max(initial=0.0), 1e-6 * np.abs(b).max(initial=0.0) / step
        )
        error = np.abs(derivative_of(derivative, name) - difference).max(initial=0.0)
        assert error <= tolerance * size, (name, error / size)
    return derivative


def bend(x: Any) -> np.ndarray:
    """A velocity that lengthens the bar and changes its sections; the ends turn and shift."""
    bulge = x[0] * (LENGTH - x[0]) / LENGTH**2
    return np.array([x[0] + 0.3 * bulge * x[1], 2 * bulge * x[1] + 0.1 * x[0], 0.2 * x[2]])


def moved_box(comm: MPI.Intracomm, s: float, velocity: Callable[[Any], Any] = bend) -> Any:
    mesh = box(comm)
    x = mesh.mesh.geometry.x
    x += s * velocity(x.T).T
    return mesh


def shape(model: mbd.ElasticModel, velocity: Callable[[Any], Any] = bend) -> mbd.Parameter:
    f = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,))))
    f.interpolate(velocity)
    return mbd.Parameter("shape", "shape", velocity=f)


def steel(s: float) -> mbd.Material:
    return replace(mbd.STEEL, young=210e9 * (1 + s))


def young(model: Any) -> mbd.Parameter:
    return mbd.Parameter("E", "young")


DAMPINGS: dict[str, Any] = {
    "Rayleigh": mbd.Rayleigh(3.0, 1e-6),
    "ratio": mbd.ModalDamping(0.02),
    "ratios": mbd.ModalDamping(0.01 * np.arange(1, 10)),
    "viscous": mbd.Viscous(2e4),
}


@pytest.mark.parametrize("name", DAMPINGS)
def test_shape_of_a_damped_body(comm: MPI.Intracomm, name: str) -> None:
    """Damping, stress modes, centre and inertia while the shape changes."""

    def make(s: float) -> mbd.Reduction:
        model = mbd.ElasticModel(moved_box(comm, s), mbd.STEEL)
        return body_of(model, damping=DAMPINGS[name])

    check_differences(make, shape, 1e-3)
