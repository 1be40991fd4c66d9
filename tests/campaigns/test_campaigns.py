"""The short form of the campaigns, and the completeness of the list of calls."""

from __future__ import annotations

import pytest
from mpi4py import MPI

from tests.campaigns.calls import CALLS
from tests.campaigns.public import public_names
from tests.campaigns.runner import PARTS, run_part

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts processes of its own")


def test_every_public_callable_is_called() -> None:
    assert public_names() == set(CALLS)


@pytest.mark.slow
@pytest.mark.timeout(900, func_only=True)
@pytest.mark.parametrize("part", PARTS)
def test_short_form(part: str) -> None:
    outcomes = run_part(part, short=True)
    bad = [o for o in outcomes if o.kind in ("wrong", "hang", "crash")]
    foreign = [o for o in outcomes if o.kind == "foreign"]
    assert not bad
    assert len(foreign) <= 1e-3 * len(outcomes)
