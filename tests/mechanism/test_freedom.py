"""Degrees of freedom in the table of a system, and deformation that closes loops."""

from __future__ import annotations

import numpy as np
import pytest
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd


@pytest.fixture(scope="module")
def link() -> mbd.ReducedBody:
    """Return a link that can bend in both directions, twist and stretch."""
    mesh = create_interval(MPI.COMM_SELF, 8, [0, 1.0])
    model = mbd.BeamModel(mesh, mbd.forms.Section.rectangle(0.02, 0.03), mbd.STEEL)
    return mbd.reduce_beam(model, interfaces={"left": 0.0, "right": 1.0}, num_modes=12).body


def four_bar(link: mbd.ReducedBody | None, inner: tuple, flexible_rocker: bool = False):
    """Return a four-bar linkage with the joints `inner` at both ends of its coupler."""
    # Lengths of crank (along x), coupler, rocker and ground; coupler and rocker meet at (x, y)
    a, b, c, d = 0.3, 1.0, 1.0 if flexible_rocker else 0.8, 1.1
    x = (d**2 - a**2 + b**2 - c**2) / (2 * (d - a))
    y = np.sqrt(b * b - (x - a) ** 2)
    ground = mbd.Ground({"O": mbd.Frame(), "C": mbd.Frame((d, 0, 0))})
    crank = mbd.RigidBody(
        "crank", 1.0, [0.1] * 3, frames={"O": mbd.Frame(), "A": mbd.Frame((a, 0, 0))}
    )

    def bar(name: str, length: float, flexible: bool):
        """Return a coupler or a rocker."""
        if flexible:
            return mbd.FlexibleBody(name, link)
        ends = {"left": mbd.Frame(), "right": mbd.Frame((length, 0, 0))}
        return mbd.RigidBody(name, 1.0, [0.1] * 3, frames=ends)

    coupler = mbd.place(
        bar("coupler", b, link is not None),
        by="left",
        at=(crank, "A"),
        towards=("right", (x, y, 0)),
    )
    rocker = mbd.place(
        bar("rocker", c, flexible_rocker), by="left", at=(ground, "C"), towards=("right", (x, y, 0))
    )
    joints = [
        mbd.revolute("O", ground.frame("O"), crank.frame("O")),
        inner[0]("A", crank.frame("A"), coupler.frame("left")),
        inner[1]("B", coupler.frame("right"), rocker.frame("right")),
        mbd.revolute("C", ground.frame("C"), rocker.frame("left")),
    ]
    return mbd.System([ground, crank, coupler, rocker], joints)


def test_deformation_that_closes_a_loop_is_named(link) -> None:
    hinges = mbd.revolute, mbd.revolute
    n = link.num_modes
    text = str(four_bar(link, hinges))
    first = f"degrees of freedom   {n - 2} = {18 + n} coordinates − 20 constraints"
    assert f"{first}: 1 of rigid motions, {n - 3} of deformations" in text
    assert "the deformation of 'coupler' carries 3 constraints that are redundant" in text
    assert text.count("held by 'O', 'A', 'B' already") == 3
    both = str(four_bar(link, hinges, flexible_rocker=True))
    assert "the deformation of 'coupler', 'rocker' carries 3 constraints" in both
    assert f"1 of rigid motions, {2 * n - 3} of deformations" in both


def test_loops_without_redundant_constraints(link) -> None:
    text = str(four_bar(link, (mbd.cylindrical, mbd.spherical)))
    n = link.num_modes
    line = (
        f"{n + 1} = {18 + n} coordinates − 17 constraints: 1 of rigid motions, {n} of deformations"
    )
    assert line in text
    assert "over-constrained" not in text and "redundant" not in text


def test_rigid_loops_have_redundant_constraints_only() -> None:
    text = str(four_bar(None, (mbd.revolute, mbd.revolute)))
    assert "degrees of freedom   1 = 18 coordinates − 20 constraints + 3 redundant\n" in text
    assert "over-constrained" not in text and "deformation" not in text


def test_a_clamped_link_has_no_rigid_motion(link) -> None:
    """Clamps at both ends have 12 constraints, six more than there are rigid motions."""
    ground = mbd.Ground({"left": mbd.Frame(), "right": mbd.Frame((1.0, 0, 0))})
    bar = mbd.FlexibleBody("bar", link)
    joints = [mbd.fixed(end, ground.frame(end), bar.frame(end)) for end in ("left", "right")]
    text, n = str(mbd.System([ground, bar], joints)), link.num_modes
    assert f"{n - 6} = {6 + n} coordinates − 12 constraints: 0 of rigid motions, {n - 6} of" in text
    assert "the deformation of 'bar' carries 6 constraints" in text
