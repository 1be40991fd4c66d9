"""Calls in which the entries of the model and of the options are given flat, for parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from dolfinx_mbd import ElasticModel, InterfaceSpec, ReductionOptions
from dolfinx_mbd.structures import TransientOptions, transient

MODEL = {f.name for f in fields(ElasticModel) if f.init} - {"mesh", "material"}


def flat(function: Callable[..., Any], mesh: Any, material: Any = None, **values: Any) -> Any:
    """Call `reduce` or another function of a body; model and options are given by flat keywords.

    Args:
        function: The function.
        mesh: Mesh of the body.
        material: Its material.
        **values: Other entries of `ElasticModel`, entries of the function's options, its other
            arguments, and `kind`, the kind of all interfaces.
    """
    options = TransientOptions if function is transient else ReductionOptions
    names = {f.name for f in fields(options)}
    if "kind" in values:
        values["interfaces"] = InterfaceSpec.each(values["interfaces"], values.pop("kind"))
    body = {k: values.pop(k) for k in MODEL & set(values)}
    chosen = {k: values.pop(k) for k in names & set(values)}
    if chosen:
        values["options"] = options(**chosen)
    if body:
        return function(ElasticModel(mesh, material, **body), **values)
    arguments = (mesh,) if material is None else (mesh, material)
    return function(*arguments, **values)
