"""Rigid bodies on a distance constraint and on a spring-damper, integrated here and by Exudyn.

A block hangs from the ground on a massless rod, a second one from the first on a spring with a
damper; both tumble. Both programs use the same steps and the same spectral radius. The paths differ
by 5e-7 m, and the force in the rod by 2.5e-5 of its largest value.
"""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import GeneralizedAlpha, System, consistent_state
from dolfinx_mbd.mechanism import Frame, Ground, RigidBody
from dolfinx_mbd.mechanism.joints import distance
from dolfinx_mbd.mechanism.springs import SpringDamper

exudyn = pytest.importorskip("exudyn")
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="Exudyn runs on one rank")

GRAVITY = np.array([0.0, 0.0, -9.81])
STIFFNESS, DAMPING, FREE = 120.0, 0.8, 0.25
RADIUS = 0.9
HOOK, EYE, RING = (0.1, 0.05, 0.2), (-0.1, 0.1, -0.2), (0.05, -0.05, 0.15)
"""Points of attachment of rod and spring on the first block, and of the spring on the second."""
PLACES = ((0.3, 0.0, -0.5), (0.5, 0.1, -1.0))
MASSES, INERTIAS = (2.0, 1.0), ((0.03, 0.04, 0.05), (0.02, 0.01, 0.015))
SPINS = ((3.0, -1.0, 5.0), (-2.0, 4.0, 1.0))


def here(t_end: float, dt: float, every: int) -> dict[str, np.ndarray]:
    """Return positions and forces of the mechanism in this package over time."""
    ground = Ground({"o": Frame()})
    frames: tuple[dict[str, Frame], ...] = (
        {"hook": Frame(HOOK), "eye": Frame(EYE)},
        {"ring": Frame(RING)},
    )
    one, two = (
        RigidBody(name, m, J, frames=f, position=p)
        for name, m, J, f, p in zip(("one", "two"), MASSES, INERTIAS, frames, PLACES, strict=True)
    )
    rod = distance("rod", ground.frame("o"), one.frame("hook"))
    spring = SpringDamper("spring", one.frame("eye"), two.frame("ring"), STIFFNESS, DAMPING, FREE)
    system = System([ground, one, two], [rod], loads=[spring], gravity=GRAVITY)
    start = consistent_state(system, v=velocities().ravel())
    method = GeneralizedAlpha.from_spectral_radius(RADIUS)
    run = simulate(
        system, t_end=t_end, dt=dt, start=start, stride=every, method=method, tolerance=1e-10
    )
    return {
        "one": run.body("one").position,
        "two": run.body("two").position,
        "rod": run.joint("rod").force[:, :1],
    }


def velocities() -> np.ndarray:
    """Return the initial velocities of both bodies, (2, 6).

    The hook of the first body moves at right angles to the rod, so that the rod keeps its length.
    """
    rod = np.array(PLACES[0]) + HOOK
    turning_about_hook = -np.cross(SPINS[0], HOOK)
    first = turning_about_hook + np.cross((0.0, 2.0, 1.0), rod)
    return np.array([[*first, *SPINS[0]], [0.2, -0.3, 0.1, *SPINS[1]]])


def there(t_end: float, dt: float, every: int) -> dict[str, np.ndarray]:
    """Return positions and forces of the mechanism in Exudyn over time."""
    import exudyn.utilities as items

    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.AddObject(items.ObjectGround())
    bodies = []
    for place, mass, inertia, v in zip(PLACES, MASSES, INERTIAS, velocities(), strict=True):
        node = mbs.AddNode(
            items.NodeRigidBodyEP(
                referenceCoordinates=[*place, 1.0, 0.0, 0.0, 0.0],
                initialVelocities=[*v[:3], 0.0, *(0.5 * v[3:])],
            )
        )
        body = mbs.AddObject(
            items.ObjectRigidBody(nodeNumber=node, mass=mass, inertia=[*inertia, 0.0, 0.0, 0.0])
        )
        weight = mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=body))
        mbs.AddLoad(items.Force(markerNumber=weight, loadVector=mass * GRAVITY))
        bodies.append((node, body))

    def marker(body: int, at: tuple[float, float, float]) -> int:
        return mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=at))

    length = float(np.linalg.norm(np.array(PLACES[0]) + HOOK))
    ends = [marker(ground, (0.0, 0.0, 0.0)), marker(bodies[0][1], HOOK)]
    rod = mbs.AddObject(items.DistanceConstraint(markerNumbers=ends, distance=length))
    ends = [marker(bodies[0][1], EYE), marker(bodies[1][1], RING)]
    mbs.AddObject(
        items.SpringDamper(
            markerNumbers=ends, referenceLength=FREE, stiffness=STIFFNESS, damping=DAMPING
        )
    )
    quantity = exudyn.OutputVariableType
    sensors = {
        name: mbs.AddSensor(
            items.SensorNode(
                nodeNumber=node, storeInternal=True, outputVariableType=quantity.Position
            )
        )
        for name, (node, _) in zip(("one", "two"), bodies, strict=True)
    }
    sensors["rod"] = mbs.AddSensor(
        items.SensorObject(objectNumber=rod, storeInternal=True, outputVariableType=quantity.Force)
    )
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(t_end / dt)
    settings.timeIntegration.endTime = t_end
    settings.timeIntegration.generalizedAlpha.spectralRadius = RADIUS
    settings.timeIntegration.newton.relativeTolerance = 1e-10
    settings.timeIntegration.newton.absoluteTolerance = 1e-12
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = every * dt
    settings.timeIntegration.verboseMode = 0
    settings.show.computationTime = False
    mbs.SolveDynamic(settings)
    return {name: mbs.GetSensorStoredData(number)[:, 1:] for name, number in sensors.items()}


def test_blocks_on_a_rod_and_a_spring() -> None:
    t_end, dt, stride = 1.0, 2e-4, 50
    ours, theirs = here(t_end, dt, stride), there(t_end, dt, stride)
    for name in ("one", "two"):
        assert np.ptp(ours[name], axis=0).max() > 0.3
        assert np.abs(ours[name] - theirs[name]).max() < 5e-6
    tension = -ours["rod"]
    assert np.abs(tension - theirs["rod"]).max() < 2e-4 * tension.max()
