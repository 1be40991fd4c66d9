"""What a reduction and its static correction can both be asked for: fields, envelopes, cuts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analysis.recovery.fields import Envelope, Fields
from dolfinx_mbd.analysis.recovery.most_stressed import MostStressed, most_stressed
from dolfinx_mbd.analysis.recovery.section_forces import SectionForces, section_forces
from dolfinx_mbd.analysis.recovery.stress import Recovery, What
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.stress_modes import Extreme

if TYPE_CHECKING:
    import numpy as np
    from dolfinx import fem

__all__ = ["Recoverable"]


class Recoverable:
    """A base of classes with `body`, `space` and `modes`, and with the stress law `stress`."""

    body: ReducedBody
    space: fem.FunctionSpace
    modes: NDArray[np.float64]

    @cached_property
    def recovery(self) -> Recovery:
        """Fields at the nodes of the cells; make a `Recovery` for another stress law or place.

        Note: Collective when it is first asked for.
        """
        return Recovery(self)

    def recover(
        self, what: What, history: Any, *, times: ArrayLike | None = None, every: int = 1
    ) -> Fields:
        """Fields such as ``von Mises`` or ``stress`` at instants; see `Recovery.recover`.

        Args:
            what: A quantity by name, or a function of u that returns UFL and is linear in it.
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n) or (n,).
            times: Instants, s; the nearest recorded ones are taken. None: all.
            every: Without `times`, every so many instants.

        Note: Collective.
        """
        return self.recovery.recover(what, history, times=times, every=every)

    def envelope(self, what: What, history: Any, *, extreme: Extreme = "greatest") -> Envelope:
        """The greatest (or least) value over time at each point, and when; see
        `Recovery.envelope`.

        Args:
            what: A scalar quantity by name, or a scalar function of u that is linear in it.
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n).
            extreme: ``greatest`` or ``least``.

        Note: Collective.
        """
        return self.recovery.envelope(what, history, extreme=extreme)

    def most_stressed(self, history: Any, count: int = 10, **options: Any) -> MostStressed:
        """The table of the most stressed places; see `most_stressed.most_stressed`.

        Args:
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n) or (n,).
            count: Rows of the table.
            **options: `what`, `apart`, `envelope`.

        Note: Collective.
        """
        return most_stressed(self.recovery, history, count, **options)

    def section_forces(
        self, history: Any, point: ArrayLike, normal: ArrayLike, **options: Any
    ) -> SectionForces:
        """Normal force, shear forces and moments in a cut; see `section_forces.section_forces`.

        Args:
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n) or (n,).
            point: Of the plane, shape (3,), m.
            normal: Of the plane, shape (3,).
            **options: `axis`, `width`, `thickness`.

        Note: Collective.
        """
        return section_forces(self.recovery, history, point, normal, **options)
