"""`ReductionOptions`: loads, damping and selection of modes of a reduction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.reduction.distributed_loads import LoadForm
from dolfinx_mbd.reduction.mesh_damping import AnyDamping, check_damping


@dataclass(frozen=True, eq=False, kw_only=True)
class ReductionOptions:
    """Options of `reduce` that most bodies do not need.

    Attributes:
        effective_mass: Keep only the fixed-interface modes with the largest effective masses: in
            each direction, as many as have together this share (0 to 1) of the effective mass of
            all computed modes. By default all are kept.
        up_to: Omit modes above this frequency, Hz; by default all modes are kept.
        loads: Distributed loads by name: `pressure(mesh, group)`, `traction`, `body_force`, or a
            function of a test function that returns the virtual work of a load of unit size.
        load_modes: Whether each load gets a static mode, which makes the static response to this
            load exact.
        damping: `Rayleigh`, `ModalDamping`, `Viscous`, a bilinear form on the displacement space
            that acts on the velocity (including the thickness of a plane body), or a matrix of
            shape (n, n) for n elastic coordinates. Damping acts on the elastic coordinates, never
            on rigid motion. By default there is no damping. `with_damping` sums several dampings.
        static_correction: Whether to keep, at all nodes of the mesh, the parts of the displacements
            under unit ω_iω_j and interface wrenches that the modes lack (`Reduction.residuals`), so
            that the number of modes does not limit the stress.
        orthonormalize: Whether to orthonormalize the modes. False requires `attached_to` and keeps
            constraint and fixed-interface modes unchanged, for comparisons with other programs.
        skin: Whether to keep the surface of the body and its modes, for pictures.

    Raises:
        InputError: A value has the wrong type or range.

    Example:
        >>> mbd.ReductionOptions(up_to=20e3, damping=mbd.ModalDamping(0.01)).up_to
        20000.0
    """

    effective_mass: float | None = None
    up_to: float | None = None
    loads: Mapping[str, LoadForm] = MappingProxyType({})
    load_modes: bool = False
    damping: AnyDamping | ArrayLike | None = None
    static_correction: bool = False
    orthonormalize: bool = True
    skin: bool = True

    def __post_init__(self) -> None:
        if self.effective_mass is not None:
            checks.number("effective_mass", self.effective_mass, low=0.0, high=1.0)
        if self.up_to is not None:
            checks.number("up_to", self.up_to, positive=True, unit="Hz")
        _check_names("loads", self.loads)
        for name, form in self.loads.items():
            checks.function(f"load {name!r}", form, "form(v), such as pressure(mesh, 'crown')")
        check_damping(self.damping)
        for argument in ("load_modes", "static_correction", "orthonormalize", "skin"):
            checks.flag(argument, getattr(self, argument))
        if not self.orthonormalize and self.up_to is not None:
            raise InputError(
                "up_to needs modes that have frequencies: orthonormalize=True", argument="up_to"
            )


def check_request(
    num_modes: Any, attached_to: Any, stiffening: Any, points: Any, name: Any, options: Any
) -> ReductionOptions:
    """Check the arguments of a reduction, and return its options."""
    checks.integer("num_modes", num_modes, low=0)
    if attached_to is not None:
        checks.name("attached_to", attached_to)
    if stiffening is not None:
        checks.flag("stiffening", stiffening)
    if points is not None:
        _check_names("points", points)
    checks.name("name", name)
    if options is None:
        return ReductionOptions()
    checks.instance("options", options, ReductionOptions)
    if not options.orthonormalize and attached_to is None:
        raise InputError(
            "orthonormalize=False needs attached_to: removal of the constraint modes of one "
            "interface also removes the rigid motions from the basis",
            argument="orthonormalize",
        )
    return options  # type: ignore[no-any-return]


def _check_names(argument: str, mapping: Any) -> None:
    """Raise an error if an argument is not a mapping from names."""
    checks.instance(argument, mapping, Mapping)
    for key in mapping:
        checks.name(f"every name in {argument}", key)
