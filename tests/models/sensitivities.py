"""Derivatives of small bodies with closed forms, for the tests and for reference case V17.

V17 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
import ufl
from dolfinx.mesh import CellType, compute_midpoints, create_box, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd

Numbers = tuple[list[float], dict[str, float]]
SELF = MPI.COMM_SELF


def bar(size: tuple[float, float, float], cells: tuple[int, int, int]) -> mbd.fem.TaggedMesh:
    """Return a box of two groups of cells, "low" and "up"."""
    mesh = create_box(SELF, [np.zeros(3), np.array(size)], list(cells), CellType.hexahedron)
    owned = np.arange(mesh.topology.index_map(3).size_local, dtype=np.int32)
    upper = compute_midpoints(mesh, 3, owned)[:, 0] > size[0] / 3
    tags = meshtags(mesh, 3, owned, np.where(upper, 2, 1).astype(np.int32))
    return mbd.fem.TaggedMesh(mesh, tags, None, {"low": (3, 1), "up": (3, 2)})


def free_body(model: mbd.ElasticModel, num_modes: int) -> mbd.reduction.Reduction:
    """Return the reduction of a model without interfaces."""
    options = mbd.ReductionOptions(skin=False)
    return mbd.reduce(model, interfaces=[], num_modes=num_modes, stiffening=False, options=options)


def stretch(model: mbd.ElasticModel, axis: int, size: float) -> mbd.Parameter:
    """Return the parameter that is the size of a body along an axis."""
    x = ufl.SpatialCoordinate(model.plain_mesh)
    parts = [x[k] / size if k == axis else 0 * x[k] for k in range(3)]
    return mbd.Parameter(f"size {axis}", "shape", velocity=ufl.as_vector(parts))


def scaling_laws() -> Numbers:
    """Return laws that hold exactly on any mesh: material, size, several materials."""
    sides = (0.3, 0.02, 0.012)
    mesh = bar(sides, (6, 1, 1))
    materials = {"low": mbd.STEEL, "up": mbd.forms.ALUMINIUM}
    model = mbd.ElasticModel(mesh, materials)
    size = mbd.Parameter("s", "shape", velocity=ufl.SpatialCoordinate(mesh.mesh))
    parts = [mbd.Parameter(f"{q} {g}", q, group=g) for q in ("young", "density") for g in materials]
    base = free_body(model, 4)
    table, f = mbd.sensitivities(base, [size, *parts]), base.body.frequencies
    sums = [
        sum(getattr(m, q) * table[f"{q} {g}"].frequencies / f for g, m in materials.items())
        for q in ("young", "density")
    ]
    H, change = base.body.second_moments[0, 0], table["s"].second_moments[0, 0]
    inertia = (change[1, 1] + change[2, 2]) / (H[1, 1] + H[2, 2])  # Jxx
    mass = table["s"].total_mass / base.body.total_mass
    values = [*(a[0] for a in sums), *(a[3] for a in sums)]
    values += [table["s"].frequencies[0] / f[0], mass, inertia]
    exact = {
        "Σ E_g ∂ω₁/∂E_g / ω₁, two materials": 0.5,
        "Σ ρ_g ∂ω₁/∂ρ_g / ω₁": -0.5,
        "Σ E_g ∂ω₄/∂E_g / ω₄": 0.5,
        "Σ ρ_g ∂ω₄/∂ρ_g / ω₄": -0.5,
        "uniform scaling V = x: ω′/ω": -1.0,
        "m′/m": 3.0,
        "J′/J": 5.0,
    }
    return [float(v) for v in values], exact


def double_mode() -> Numbers:
    """Return derivatives of the double bending frequency of a square bar.

    The derivative of a double frequency is a 2×2 matrix; a trace is divided by that of ω.
    """
    side, length = 0.02, 0.3
    model = mbd.ElasticModel(bar((length, side, side), (6, 1, 1)), mbd.STEEL)
    base = free_body(model, 2)
    parameters = [stretch(model, k, a) for k, a in enumerate((length, side, side))]
    table = mbd.sensitivities(base, [mbd.Parameter("E", "young"), *parameters])
    total = base.body.frequencies.sum()
    trace = {name: table[name].frequencies.sum() / total for name in table}
    values = [mbd.STEEL.young * trace["E"], side * (trace["size 1"] - trace["size 2"])]
    values.append(length * trace["size 0"] + side * (trace["size 1"] + trace["size 2"]))
    exact = {
        "double mode, E tr(∂ω/∂E) / (2 ω)": 0.5,
        "difference of the traces for height and width": 0.0,
        "sum of the traces for length, height and width": -1.0,
    }
    return [float(v) for v in values], exact


def axial_mode() -> Numbers:
    """Return L ∂ω/∂L of a bar with ν = 0 along its axis."""
    material = mbd.Material(210e9, 0.0, 7850.0)
    model = mbd.ElasticModel(bar((0.1, 0.02, 0.015), (5, 1, 1)), material)
    base = free_body(model, 8)
    first_axial = np.sqrt(material.young / material.density) / (2 * 0.1)
    k = int(np.argmin(np.abs(base.body.frequencies - first_axial)))
    derivative = mbd.sensitivities(base, [stretch(model, 0, 0.1)])["size 0"].frequencies[k]
    value = 0.1 * derivative / base.body.frequencies[k]
    return [float(value)], {"bar along its axis, ν = 0: L ∂ω/∂L / ω": -1.0}


def slender_bar() -> Numbers:
    """Return L ∂ω/∂L and h ∂ω/∂h of a slender bar in bending across h."""
    length, height = 1.0, 0.01
    model = mbd.ElasticModel(bar((length, height, 0.02), (20, 1, 1)), mbd.STEEL)
    base = free_body(model, 1)
    table = mbd.sensitivities(base, [stretch(model, 0, length), stretch(model, 1, height)])
    changes = [table[name].frequencies[0] / base.body.frequencies[0] for name in table]
    exact = {"slender bar in bending, L ∂ω/∂L / ω": -2.0, "h ∂ω/∂h / ω": 1.0}
    return [float(length * changes[0]), float(height * changes[1])], exact


def taylor_slope() -> Numbers:
    """Return the order of the remainder of a first-order change of length and height of a bar."""
    sides, step = np.array([0.15, 0.02, 0.012]), 4e-3
    frequencies, derivative = [], 0.0
    for s in (0.0, step, step / 2):
        a, b, c = sides * np.array([1 + s, 1 - 2 * s, 1.0])
        model = mbd.ElasticModel(bar((a, b, c), (6, 1, 1)), mbd.STEEL)
        base = free_body(model, 1)
        frequencies.append(base.body.frequencies[0])
        if s == 0.0:
            x = ufl.SpatialCoordinate(model.plain_mesh)
            velocity = ufl.as_vector([x[0], -2 * x[1], 0 * x[2]])
            change = mbd.Parameter("s", "shape", velocity=velocity)
            derivative = mbd.sensitivities(base, [change])["s"].frequencies[0]
    remainder, half_remainder = (
        f - frequencies[0] - s * derivative
        for f, s in zip(frequencies[1:], (step, step / 2), strict=True)
    )
    return [float(np.log2(remainder / half_remainder))], {"order of the remainder of a step": 2.0}
