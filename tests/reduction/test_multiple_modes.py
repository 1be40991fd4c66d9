"""If the requested number of modes ends between two equal frequencies, both modes are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import ReductionOptions
from dolfinx_mbd.body import ReducedBody, participation
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.reducer import Reducer
from tests.models.bodies import box
from tests.models.calls import flat

SIDE = 0.02


def bar(comm: MPI.Intracomm) -> Any:
    """Return a square bar, whose bending modes come in pairs."""
    return box(comm, (0.3, SIDE, SIDE), (24, 2, 2))


def compliance(body: ReducedBody) -> np.ndarray:
    """Return the compliance of the middle of the end in y and z."""
    P = body.point("tip").modes
    return np.asarray(P.T @ np.linalg.solve(body.stiffness, P))[1:, 1:]


@pytest.mark.parametrize(("requested", "count"), [(0, 0), (1, 2), (2, 2), (3, 4), (4, 4)])
@pytest.mark.parametrize("orthonormalize", [True, False])
def test_fixed_interface_modes(
    comm: MPI.Intracomm, requested: int, count: int, orthonormalize: bool
) -> None:
    """Pairs are complete: the tip is equally compliant in all directions of the y-z plane."""
    body = reduce(
        bar(comm),
        STEEL,
        interfaces=["left"],
        num_modes=requested,
        attached_to="left",
        points={"tip": (0.3, SIDE / 2, SIDE / 2)},
        options=ReductionOptions(orthonormalize=orthonormalize, skin=False),
    ).body
    assert body.num_modes == count
    assert body.provenance["fixed-interface modes"] == count
    assert ("modes requested" in body.provenance) == (count > requested)
    C = compliance(body)
    assert C == pytest.approx(C[0, 0] * np.eye(2), rel=1e-6, abs=1e-6 * C[0, 0])
    if requested:
        beam_stiffness = 3 * STEEL.young * SIDE**4 / 12 / 0.3**3
        # The beam has no shear deformation, and the body lacks the higher modes
        assert C[0, 0] * beam_stiffness == pytest.approx(1, rel=0.05)
    if orthonormalize:
        assert all("one of 2 of the same frequency" in m.character for m in body.modes)


def test_a_reducer_gives_the_same(comm: MPI.Intracomm) -> None:
    """The order of the requested numbers has no effect."""
    with Reducer(bar(comm), STEEL, interfaces=["left"]) as reducer:
        no_skin = ReductionOptions(skin=False)
        bodies = [reducer.reduce(n, attached_to="left", options=no_skin).body for n in (1, 3, 1)]
    assert [b.num_modes for b in bodies] == [2, 4, 2]
    assert bodies[2].frequencies == pytest.approx(bodies[0].frequencies, rel=1e-9)


def test_up_to_a_double_frequency(comm: MPI.Intracomm) -> None:
    """A limit between two frequencies that differ by round-off includes both modes."""
    request: dict[str, Any] = {"interfaces": ["left"], "num_modes": 6, "skin": False}
    full = flat(reduce, bar(comm), STEEL, **request).body
    for first in (0, 2):
        body = flat(reduce, bar(comm), STEEL, up_to=full.frequencies[first], **request).body
        assert body.num_modes == first + 2


def test_effective_mass_takes_pairs(comm: MPI.Intracomm) -> None:
    """A selection by effective mass has both modes of each pair of bending modes."""
    mesh = bar(comm)
    request: dict[str, Any] = {"interfaces": ["left"], "attached_to": "left", "skin": False}
    for share in (0.2, 0.5, 0.6):
        body = flat(reduce, mesh, STEEL, num_modes=10, effective_mass=share, **request).body
        f = body.frequencies
        pairs = [k for k in range(len(f)) if np.isclose(f, f[k], rtol=1e-7).sum() == 2]
        full = flat(reduce, mesh, STEEL, num_modes=10, **request).body.frequencies
        single = [k for k in range(len(full)) if np.isclose(full, full[k], rtol=1e-7).sum() == 1]
        # All selected modes are members of pairs, or single in the full set.
        assert len(pairs) + np.isin(np.round(f, 3), np.round(full[single], 3)).sum() == len(f)


def test_free_modes(comm: MPI.Intracomm) -> None:
    """The modes of a free bar and those of `modal_analysis` are complete pairs."""
    body = reduce(
        bar(comm), STEEL, interfaces=(), num_modes=1, options=ReductionOptions(skin=False)
    ).body
    assert body.num_modes == 2
    assert body.provenance["free modes"] == 2
    modes = modal_analysis(bar(comm), STEEL, num_modes=1)
    assert modes.frequencies == pytest.approx(body.frequencies, rel=1e-8)
    assert modes.num_requested == 1
    assert "2 modes instead of 1" in modes.summary()
    held = modal_analysis(bar(comm), STEEL, num_modes=3, held=["left"])
    assert len(held.frequencies) == 4


def test_participation_takes_pairs(comm: MPI.Intracomm) -> None:
    """A force in y acts on both modes of a pair, in any ratio: a selection has both."""
    body = reduce(
        bar(comm), STEEL, interfaces=["left"], num_modes=6, options=ReductionOptions(skin=False)
    ).body
    groups = participation(body).groups
    assert groups is not None
    for share in (0.3, 0.6, 0.9):
        modes = participation(body).most(share)
        assert np.isin(groups, groups[np.array(modes) - 1]).sum() == len(modes)
