"""The torsional frequency of a meshed crankshaft against a chain condensed from the same mesh."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy
import ufl
from dolfinx import fem
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.geometry import Crankshaft
from dolfinx_mbd.mechanism.bodies import FlexibleBody, Ground, RigidBody
from dolfinx_mbd.mechanism.joints import cylindrical, fixed, point_on_line, revolute
from dolfinx_mbd.mechanism.mechanisms import TorsionalChain
from dolfinx_mbd.mechanism.protocol import Frame

DISCS = {"nose": 0.02, "flange": 0.3}  # moments of inertia of pulley and flywheel, kg m²


def stations(crank: Crankshaft) -> list[str]:
    """Return the interfaces of a crankshaft from its nose to its flange."""
    return ["nose", *(f"main_{k + 1}" for k in range(crank.throws + 1)), "flange"]


def rotations(body: ReducedBody, names: list[str], slopes: bool) -> Any:
    """Return the twist at the stations under a unit torque on the nose; the flange is held.

    The main journals are held radially, and with `slopes`, all stations keep their slopes, too.
    """
    # Six rows for each station: displacements and rotations by the rigid motions and modes
    rows = {}
    for name in names:
        interface = body.interface(name)
        x, y, z = interface.point
        arm = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # displacement = arm @ rotation
        rigid = np.block([[np.eye(3), arm], [np.zeros((3, 3)), np.eye(3)]])
        rows[name] = np.hstack([rigid, interface.motion])
    # Held: all mains radially, the last one also axially and in its slopes, and the rotation of the
    # flange
    held = [rows[name][:2] for name in names[1:-1]]
    held += [rows[names[-2]][2:5], rows["flange"][5:]]
    if slopes:
        held += [rows[name][[0, 1, 3, 4]] for name in names]
    constraints = np.vstack(held)
    scale = np.linalg.norm(constraints, axis=1, keepdims=True)
    free = scipy.linalg.null_space(constraints / scale)
    stiffness = scipy.linalg.block_diag(np.zeros((6, 6)), body.stiffness)
    load = free.T @ rows["nose"][5]
    x = free @ np.linalg.solve(free.T @ stiffness @ free, load)
    return np.array([rows[name][5] @ x for name in names])


def condensed_chain(crank: Crankshaft, msh: Any, body: ReducedBody, slopes: bool) -> TorsionalChain:
    """Return the chain: a disc for each throw, with half of its flexibility on both sides."""
    x = ufl.SpatialCoordinate(msh.mesh)
    density = mbd.STEEL.density * (x[0] ** 2 + x[1] ** 2)
    limits = [-9.0, *crank.main_positions, 9.0]  # ±9 m: beyond both ends
    inertias = []
    for low, high in itertools.pairwise(limits):
        part = ufl.conditional(ufl.And(x[2] >= low, x[2] < high), density, 0.0)
        form = fem.form(part * ufl.dx(msh.mesh, metadata={"quadrature_degree": 4}))
        inertias.append(msh.mesh.comm.allreduce(fem.assemble_scalar(form)))
    assert sum(inertias) == pytest.approx(body.inertia[2, 2], rel=1e-9)
    inertias[0] += DISCS["nose"]
    inertias[-1] += DISCS["flange"]
    flexibilities = -np.diff(rotations(body, stations(crank), slopes))
    assert flexibilities.min() > 0
    throws = flexibilities[1:-1]
    ends = flexibilities[0] + 0.5 * throws[0], flexibilities[-1] + 0.5 * throws[-1]
    shafts = [ends[0], *(0.5 * (throws[1:] + throws[:-1])), ends[1]]
    return TorsionalChain(inertias, 1 / np.array(shafts))


def meshed_frequencies(crank: Crankshaft, body: ReducedBody, slopes: bool) -> Any:
    """Return the frequencies (Hz) of the crank in its bearings, with pulley and flywheel."""
    names = stations(crank)
    points = {name: body.interface(name).point for name in names}
    ground = Ground({name: Frame((0.0, 0.0, float(points[name][2]))) for name in names})
    shaft = FlexibleBody("crank", body, stiffening=False)
    last, bearing = names[-2], cylindrical if slopes else point_on_line
    joints = [revolute(last, ground.frame(last), shaft.frame(last))]
    held = [*names[:-2], "flange"] if slopes else names[1:-2]
    joints += [bearing(name, ground.frame(name), shaft.frame(name)) for name in held]
    discs = []
    for name, inertia in DISCS.items():
        disc = RigidBody.cylinder(
            f"disc {name}",
            1.0,
            0.01,
            mass=2 * inertia,  # inertia = m r²/2 with r = 1 m
            frames={"centre": Frame((0.0, 0.0, 0.0), body.interface(name).axes)},
            position=points[name],
        )
        discs.append(disc)
        joints.append(fixed(f"seat {name}", shaft.frame(name), disc.frame("centre")))
    system = mbd.System([ground, shaft, *discs], joints)
    return mbd.linearize(system, mbd.equilibrium(system)).frequencies


@pytest.mark.parametrize(
    ("throws", "size", "lower"), [([25.0], 0.02, 0.06), ([0.0, 240.0, 120.0], 0.02, 0.04)]
)
def test_first_torsional_frequency(throws: list[float], size: float, lower: float) -> None:
    """The chain equals the crank if its journals keep their slopes; bending lowers the frequency.

    The stiffnesses of the chain contain the static bending of the shaft, but its discs have no
    inertia in bending, and a throw does not twist the shaft by the bending of its neighbours.
    """
    crank = Crankshaft(throw_angles=np.radians(throws), fillet=0.0, size=size, order=1)
    msh = mbd.build_mesh(crank, MPI.COMM_WORLD)
    interfaces = {name: mbd.InterfaceSpec(axes=(0, 0, 1)) for name in stations(crank)}
    body = mbd.reduce(msh, mbd.STEEL, interfaces=interfaces, num_modes=6, name="crank").body
    first = {}
    for slopes in (True, False):
        chain = condensed_chain(crank, msh, body, slopes).frequencies
        meshed = meshed_frequencies(crank, body, slopes)
        assert meshed[0] == pytest.approx(0.0, abs=1e-3 * chain[1])  # it rotates freely
        first[slopes] = meshed[1], chain[1]
        print(f"{len(throws)} throws, slopes held: {slopes}", *np.round(first[slopes], 2), "Hz")
    assert first[True][0] == pytest.approx(first[True][1], rel=2e-3)
    assert first[False][0] < first[True][0]
    assert 1 - lower < first[False][0] / first[False][1] < 1.0
