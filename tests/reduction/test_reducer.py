"""Several reductions of one body: the same results without repeated computations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.reduction import held_stiffness
from tests.models.bodies import box

ENDS = ("left", "right")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record factorizations and eigenvalue problems in their order."""
    done: list[str] = []
    for name in ("held_cholesky", "lowest_modes"):
        original = getattr(held_stiffness, name)

        def counted(*args: Any, _name: str = name, _original: Any = original, **more: Any) -> Any:
            done.append(_name)
            return _original(*args, **more)

        monkeypatch.setattr(held_stiffness, name, counted)
    yield done


def same(first: mbd.ReducedBody, second: mbd.ReducedBody) -> None:
    """Assert equal frequencies, names, mass properties, flexibility, skin and stiffening."""
    assert np.allclose(first.frequencies, second.frequencies, rtol=1e-9)
    assert np.allclose(first.first_moments, second.first_moments, atol=1e-7)
    comparison = mbd.body.compare(first, second)
    # The residuals of modes are 1e-9 of their eigenvalue, whose distance to the next may be 1e-3
    assert comparison.greatest < 1e-6, str(comparison)


def test_reductions_share_what_they_can(comm: MPI.Intracomm, work: list[str]) -> None:
    """There is one factorization; fewer modes are a part of those already computed."""
    mesh = box(comm)
    with mbd.reduction.Reducer(mesh, mbd.STEEL, interfaces=ENDS) as bar:
        bodies = {n: bar.reduce(n).body for n in (4, 9, 6)}
        held = bar.reduce(9, attached_to="left").body
    assert work == ["held_cholesky", "lowest_modes", "lowest_modes"]
    for n, body in bodies.items():
        same(body, mbd.reduce(mesh, mbd.STEEL, interfaces=ENDS, num_modes=n).body)
    alone = mbd.reduce(mesh, mbd.STEEL, interfaces=ENDS, num_modes=9, attached_to="left").body
    same(held, alone)
    assert "seconds, factorization" in bodies[4].provenance
    assert "seconds, factorization" not in bodies[9].provenance


def test_fewer_modes_are_not_changed_by_more(comm: MPI.Intracomm) -> None:
    """Modes that were returned earlier are unchanged."""
    with mbd.reduction.Reducer(box(comm), mbd.STEEL, interfaces=ENDS) as bar:
        few = bar.reduce(3)
        before = few.modes.copy()
        bar.reduce(12)
        repeated = bar.reduce(3)
    assert np.array_equal(few.modes, before)
    assert np.allclose(few.body.frequencies, repeated.body.frequencies, rtol=1e-10)


def test_statics_after_slepc_took_the_factors(comm: MPI.Intracomm, work: list[str]) -> None:
    """The factors are computed again, and the stiffening is correct."""
    mesh, options = box(comm), {"eps_type": "krylovschur"}
    with mbd.reduction.Reducer(mesh, mbd.STEEL, interfaces=ENDS, petsc_options=options) as bar:
        bar.reduce(5, stiffening=False)
        later = bar.reduce(5, stiffening=True).body
    assert work == ["held_cholesky", "lowest_modes", "held_cholesky"]
    alone = mbd.reduce(mesh, mbd.STEEL, interfaces=ENDS, num_modes=5, stiffening=True).body
    same(later, alone)
    assert later.stiffening is not None and alone.stiffening is not None


def test_last_reduction_frees_the_factors(comm: MPI.Intracomm, work: list[str]) -> None:
    """Another reduction is possible, with new factors."""
    with mbd.reduction.Reducer(box(comm), mbd.STEEL, interfaces=ENDS) as bar:
        last, next_one = bar.reduce(3, last=True).body, bar.reduce(3).body
    assert work.count("held_cholesky") == 2
    same(last, next_one)


def test_free_body_and_loads(comm: MPI.Intracomm) -> None:
    """Without interfaces the matrices are shared; loads may differ from one to the next."""
    mesh = box(comm)
    with mbd.reduction.Reducer(mesh, mbd.STEEL, interfaces=()) as bar:
        assert np.allclose(bar.reduce(4).body.frequencies, bar.reduce(6).body.frequencies[:4])
    loads = {"weight": mbd.reduction.body_force((0.0, -1.0, 0.0))}
    with mbd.reduction.Reducer(mesh, mbd.STEEL, interfaces=ENDS) as bar:
        without = bar.reduce(2).body
        loaded = bar.reduce(2, options=mbd.ReductionOptions(loads=loads, load_modes=True)).body
    assert len(loaded.modes) == len(without.modes) + 1
    assert [load.name for load in loaded.loads] == ["weight"]


def test_a_closed_reducer_raises_an_error(comm: MPI.Intracomm) -> None:
    """Closing twice is not an error."""
    with mbd.reduction.Reducer(box(comm), mbd.STEEL, interfaces=ENDS) as bar:
        pass
    bar.close()
    with pytest.raises(RuntimeError, match="closed"):
        bar.reduce(2)


def test_wrong_requests_leave_it_usable(comm: MPI.Intracomm) -> None:
    """After too many modes or an unknown interface, the next request works."""
    with mbd.reduction.Reducer(box(comm), mbd.STEEL, interfaces=ENDS) as bar:
        with pytest.raises(ValueError, match="num_modes"):
            bar.reduce(10**6)
        with pytest.raises(ValueError, match="middle"):
            bar.reduce(2, attached_to="middle")
        with pytest.raises(ValueError, match="num_modes"):
            bar.reduce(-1)
        assert bar.reduce(2).body.num_modes == 8
