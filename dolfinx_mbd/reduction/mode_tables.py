"""Mode tables and provenance records of reduced bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import dolfinx
import numpy as np

from dolfinx_mbd.body import Mode
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.inertia import Inertia
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.forms import Orthotropic, Temperature
from dolfinx_mbd.reduction.reduction_options import ReductionOptions
from dolfinx_mbd.reduction.reference import ReducedModes
from dolfinx_mbd.reduction.truncation import Truncation

VARIABLE = "a function of space"


def mode_table(modes: ReducedModes, moments: Inertia, dim: int) -> tuple[Mode, ...]:
    """Return the table of modes, with a short description of each.

    The shares of the kinetic energy in x, y and z show the direction of the motion. The share of
    the strain energy in constraint modes shows whether a mode is the static response to forces at
    the interfaces or a vibration between them.
    """
    energy = np.einsum("kkaa->ka", moments.second_moments[1:, 1:])[:, :dim]
    energy = energy / energy.sum(axis=1, keepdims=True)
    has_interfaces = modes.shares.any()
    groups = groups_of(modes.squares) if modes.orthonormal else np.arange(len(modes.squares))
    rows = []
    for k, (column, frequency) in enumerate(zip(modes.columns, modes.frequencies, strict=True)):
        order = np.argsort(-energy[k], kind="stable")
        # Directions with 5 % or more after rounding
        main = [f"{100 * energy[k, a]:.0f} % {'xyz'[a]}" for a in order if energy[k, a] > 0.045]
        text = "moves " + ", ".join(main)
        if has_interfaces and modes.orthonormal:
            percent = 100 * float(np.clip(modes.shares[k], 0.0, 1.0))
            text += f"; strain energy {percent:.0f} % in constraint modes"
        multiplicity = int(np.sum(groups == groups[k]))
        if multiplicity > 1:
            text += f"; one of {multiplicity} of the same frequency"
        rows.append(Mode(column.label, float(frequency), text))
    return tuple(rows)


def described(modes: ReducedModes, moments: Inertia, dim: int) -> dict[str, Any]:
    """Return the entries of a `ReducedBody` that describe its modes.

    `moments` are those of the modes with their signs, and `dim` is the dimension of the body.
    """
    return {
        "modes": mode_table(modes, moments, 2 if dim == 2 else 3),
        "left_out": modes.left_out,
        "reference": modes.reference,
    }


def provenance(
    problem: ElasticProblem,
    model: ElasticModel,
    interfaces: tuple[MeshInterface, ...],
    counts: tuple[int, int],
    truncation: Truncation | None,
    options: ReductionOptions,
) -> dict[str, str | int | float]:
    """Return the provenance of a body, without computation times.

    `counts` are the requested number of modes, and the number that completes a multiple frequency.
    """
    V, density = problem.space, model.density
    facts: dict[str, str | int | float] = {
        "dolfinx": dolfinx.__version__,
        "cell": V.mesh.topology.cell_name(),
        "cells": int(V.mesh.topology.index_map(problem.dim).size_global),
        "degree": int(V.ufl_element().sub_elements[0].degree),
        "dofs": int(problem.num_dofs),
        "ranks": int(problem.comm.size),
        "interfaces": ", ".join(f"{i.name} ({i.kind})" for i in interfaces),
    } | mode_facts(*counts, fixed=bool(interfaces))
    if problem.thickness is not None:
        facts |= {"plane": problem.plane or "own stiffness", "thickness (m)": problem.thickness}
    if model.material is not None:
        facts |= _material_facts(model.material, density is None)
    if density is not None:
        facts["density (kg/m^3)"] = _value(density)
    if isinstance(model.prestress, Temperature):
        rise = _value(model.prestress.rise)
        change = f" {rise:+g} K" if isinstance(rise, float) else f", {rise}"
        facts["prestress"] = f"temperature{change}"
    elif model.prestress is not None:
        facts["prestress"] = "initial stress"
    if options.up_to is not None:
        facts["up to (Hz)"] = float(options.up_to)
    elif truncation is not None and options.effective_mass is None:
        facts["interfaces to 1 % (Hz)"] = round(truncation.accurate_to(0.01), 1)
    return facts


def mode_facts(requested: int, count: int, *, fixed: bool) -> dict[str, str | int | float]:
    """Return the number of modes, and the reason if it differs from the requested number."""
    facts: dict[str, str | int | float] = {
        "fixed-interface modes" if fixed else "free modes": count
    }
    if count > requested:
        facts["modes requested"] = f"{requested}; the last frequency is a multiple one"
    return facts


def _material_facts(material: Materials, with_density: bool) -> dict[str, str | float]:
    """Return the name and constants of a material, or of the materials by group."""
    items = list(material.items()) if isinstance(material, Mapping) else [("", material)]
    facts: dict[str, str | float] = {}
    names = []
    for group, m in items:
        where = f"{group}: " if group else ""
        kind = "orthotropic" if isinstance(m, Orthotropic) else "isotropic"
        names.append(where + (m.name or kind))
        if isinstance(m, Orthotropic):
            pairs = ("12", "13", "23")
            facts |= {f"{where}young {k + 1} (Pa)": v for k, v in enumerate(m.young)}
            facts |= {f"{where}poisson {p}": v for p, v in zip(pairs, m.poisson, strict=True)}
            facts |= {f"{where}shear {p} (Pa)": v for p, v in zip(pairs, m.shear, strict=True)}
        else:
            facts |= {f"{where}young (Pa)": _value(m.young), f"{where}poisson": _value(m.poisson)}
        if with_density:
            facts[f"{where}density (kg/m^3)"] = _value(m.density)
    return {"material": ", ".join(names)} | facts


def material_groups(facts: Mapping[str, str | int | float]) -> tuple[str, ...]:
    """Return the groups of cells of a body with several different materials, from its provenance.

    The result is empty for one material, and for a body with its own forms.
    """
    ends = (": young (Pa)", ": young 1 (Pa)")
    groups = [key.removesuffix(end) for key in facts for end in ends if key.endswith(end)]
    starts = "|".join(re.escape(f", {group}: ") for group in groups)
    names = re.split(starts, f", {facts.get('material', '')}")[1:] if groups else []
    different = set()
    for group, name in zip(groups, names, strict=True):
        start = f"{group}: "
        values = [(k.removeprefix(start), v) for k, v in facts.items() if k.startswith(start)]
        different.add((name, *values))
    return tuple(groups) if len(different) > 1 else ()


def _value(value: Any) -> str | float:
    """Return a constant, or a text for a value that varies in space."""
    return float(value) if isinstance(value, (int, float)) else VARIABLE
