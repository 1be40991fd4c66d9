"""V11: motions of one reduced body with large rotation, integrated here and by Exudyn.

Neither has geometric stiffening here and both use the same modes, steps and spectral radius, so
that differences result from the equations, the joints and the implementation of the integrators.
V11 asks for 1e-4; 1e-5 is met.

V11 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.dynamics import GeneralizedAlpha, System, consistent_state
from dolfinx_mbd.forms import Material
from dolfinx_mbd.mechanism import (
    BodyState,
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    force,
    prismatic,
    revolute,
    spherical,
)
from dolfinx_mbd.results.histories import rotation_matrices
from tests.exudyn.models import REFERENCES, Array, Model, Reference, finite_elements, peer_body
from tests.models.bodies import box

exudyn = pytest.importorskip("exudyn")
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="Exudyn runs on one rank")

LENGTH, SIDE = 0.3, 0.008
RUBBERY = Material(2e9, 0.3, 7870.0)
"""A hundredth of the stiffness of steel, for large deformations at moderate speed."""
STEEL = Material(2e11, 0.3, 7870.0)
DAMPING = 2e-6  # damping matrix divided by the stiffness matrix, s
RELATIVE = 1e-5
SPECTRAL_RADIUS = 0.9
METHOD = GeneralizedAlpha.from_spectral_radius(SPECTRAL_RADIUS)
ALONG_X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Axes of a frame whose z is the global x."""


def bar(material: Material) -> Model:
    """Return a bar of tetrahedra with two interfaces for both programs."""
    mesh = box(MPI.COMM_SELF, (LENGTH, SIDE, SIDE), (12, 1, 1), CellType.tetrahedron)
    mesh.mesh.geometry.x[:, 1:] -= SIDE / 2
    return Model(mesh, material, ("left", "right"), 6)


@pytest.fixture(scope="module")
def soft() -> Model:
    """Return a bar of a soft material."""
    return bar(RUBBERY)


def damped(body: ReducedBody) -> ReducedBody:
    """Return the body with damping and without geometric stiffening.

    Exudyn has no geometric stiffening.
    """
    return body.replace(damping=DAMPING * body.stiffness, stiffening=None)


class ExudynSystem:
    """A system of Exudyn that is built, run and read."""

    def __init__(self) -> None:
        import exudyn.utilities as items

        self.items = items
        self.container = exudyn.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.ground = self.mbs.AddObject(items.ObjectGround())
        self.sensors: dict[str, int] = {}

    def body(self, model: Model, modes: Array, **placement: Any) -> dict[str, Any]:
        """Return nodes and object of a flexible body with the modes of the package."""
        body = peer_body(finite_elements(model, modes))
        return body.AddObjectFFRFreducedOrder(
            self.mbs, stiffnessProportionalDamping=DAMPING, **placement
        )

    def on_body(self, body: dict[str, Any], model: Model, interface: int) -> int:
        """Return a marker at the mean of the nodes of an interface.

        This mean is the point of the interface in this mesh.
        """
        nodes = model.nodes[interface]
        return self.mbs.AddMarker(
            self.items.MarkerSuperElementPosition(
                bodyNumber=body["oFFRFreducedOrder"],
                meshNodeNumbers=list(nodes),
                weightingFactors=[1 / len(nodes)] * len(nodes),
            )
        )

    def spherical(self, first: int, second: int) -> None:
        self.mbs.AddObject(self.items.SphericalJoint(markerNumbers=[first, second]))

    def watch(self, name: str, node: int, quantity: str) -> None:
        self.sensors[name] = self.mbs.AddSensor(
            self.items.SensorNode(
                nodeNumber=node,
                storeInternal=True,
                outputVariableType=getattr(exudyn.OutputVariableType, quantity),
            )
        )

    def watch_frame(self, name: str, body: dict[str, Any]) -> None:
        self.watch(f"{name} position", body["nRigidBody"], "Position")
        self.watch(f"{name} rotation", body["nRigidBody"], "RotationMatrix")
        self.watch(f"{name} eta", body["nGenericODE2"], "Coordinates")

    def run(self, t_end: float, dt: float, save: float) -> dict[str, Array]:
        self.mbs.Assemble()
        settings = exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = round(t_end / dt)
        settings.timeIntegration.endTime = t_end
        settings.timeIntegration.generalizedAlpha.spectralRadius = SPECTRAL_RADIUS
        settings.timeIntegration.newton.relativeTolerance = 1e-10
        settings.timeIntegration.newton.absoluteTolerance = 1e-12
        settings.timeIntegration.newton.useModifiedNewton = True
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = save
        settings.timeIntegration.verboseMode = 0
        settings.show.computationTime = False
        self.mbs.SolveDynamic(settings)
        return {
            name: self.mbs.GetSensorStoredData(number)[:, 1:]
            for name, number in self.sensors.items()
        }


def compare(ours: Array, theirs: Array, scale: float | None = None) -> float:
    """Return the largest difference divided by the largest value."""
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / (np.abs(theirs).max() if scale is None else scale))


GRAVITY = np.array([1.0, -9.81, 2.0])
SPIN = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("gravity", [np.zeros(3), GRAVITY], ids=["free", "gravity"])
def test_accelerations(soft: Model, reference: Reference, gravity: Array) -> None:
    """A free body, spinning and deformed: every inertia force of both programs, to 1e-8."""
    reduction = soft.reduction(reference)
    reduced = damped(reduction.body)
    n = reduced.num_modes
    random = np.random.default_rng(1)
    eta = 1e-3 * random.standard_normal(n)
    rate = 0.1 * random.standard_normal(n)

    body = FlexibleBody("bar", reduced, damping_ratio=0.0)
    system = System([Ground(), body], gravity=gravity)
    q, v = body.initial_coordinates(), np.concatenate([np.zeros(3), SPIN, rate])
    q[7:] = eta
    a = consistent_state(system, elastic_start="undeformed", q=q, v=v).a

    peer = ExudynSystem()
    settings = {"initialAngularVelocity": SPIN, "gravity": gravity}
    placed = peer.body(soft, reduction.modes, **settings)
    peer.mbs.SetNodeParameter(placed["nGenericODE2"], "initialCoordinates", list(eta))
    peer.mbs.SetNodeParameter(placed["nGenericODE2"], "initialCoordinates_t", list(rate))
    peer.watch("frame", placed["nRigidBody"], "Coordinates_tt")
    peer.watch("eta", placed["nGenericODE2"], "Coordinates_tt")
    start = {name: values[0] for name, values in peer.run(1e-9, 1e-9, 1e-9).items()}

    if reference == "attached" and gravity.any():
        # Exudyn's gravity acts at the centre of the undeformed body: add what is missing
        S = reduced.first_moments[1:].T @ eta
        no_wrenches = np.zeros((2, 6))
        M = body.tangent(BodyState(0.0, q, v, np.zeros(6 + n), gravity, no_wrenches))[2]
        a -= np.linalg.solve(M, np.concatenate([np.zeros(3), np.cross(S, gravity), np.zeros(n)]))
    assert compare(a[:3], start["frame"][:3]) < 1e-8
    assert compare(a[3:6], 2 * start["frame"][4:7]) < 1e-8  # (quaternion is 1 at the start)
    assert compare(a[6:], start["eta"]) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("reference", REFERENCES)
def test_pendulum(soft: Model, reference: Reference) -> None:
    """A soft bar on a spherical joint, pulled at its tip, spins and turns out of the plane."""
    t_end, dt, stride = 0.2, 2e-5, 50
    pull, spin = np.array([1.0, -2.0, 0.5]), np.array([0.0, 12.0, 3.0])
    reduction = soft.reduction(reference)
    reduced = damped(reduction.body)

    body = FlexibleBody("bar", reduced, damping_ratio=0.0)
    ground = Ground({"pivot": Frame()})
    system = System(
        [ground, body],
        [spherical("pivot", ground.frame("pivot"), body.frame("left"))],
        loads=[force("pull", body.frame("right"), pull)],
    )
    v = np.zeros(system.num_velocities)
    v[3:6] = spin
    start = consistent_state(system, elastic_start="undeformed", v=v)
    run = simulate(system, t_end=t_end, dt=dt, start=start, stride=stride, method=METHOD)

    peer = ExudynSystem()
    placed = peer.body(soft, reduction.modes, initialAngularVelocity=spin)
    pivot = peer.mbs.AddMarker(peer.items.MarkerBodyPosition(bodyNumber=peer.ground))
    peer.spherical(pivot, peer.on_body(placed, soft, 0))
    tip = peer.on_body(placed, soft, 1)
    peer.mbs.AddLoad(peer.items.Force(markerNumber=tip, loadVector=pull))
    peer.watch_frame("bar", placed)
    theirs = peer.run(t_end, dt, stride * dt)

    ours = run.body("bar")
    A = rotation_matrices(ours.rotation)
    assert np.ptp(A, axis=0).max() > 1  # it turned over
    tip_motion = ours.eta @ reduced.interface("right").motion[:3].T
    assert np.abs(tip_motion).max() > (0.02 if reference == "attached" else 0.005) * LENGTH
    assert compare(A.reshape(-1, 9), theirs["bar rotation"]) < RELATIVE
    assert compare(ours.position, theirs["bar position"], LENGTH) < RELATIVE
    assert compare(ours.eta, theirs["bar eta"]) < RELATIVE


def spin_up(t: float) -> tuple[float, float, float]:
    """Return crank angle, rate and acceleration, which rise smoothly from rest to full speed."""
    T, s = RISE, 2 * np.pi / RISE
    if t >= T:
        return SPEED * (t - T / 2), SPEED, 0.0
    return (
        SPEED * (t * t / (2 * T) + (np.cos(s * t) - 1) / (T * s * s)),
        SPEED * (t / T - np.sin(s * t) / (T * s)),
        SPEED * (1 - np.cos(s * t)) / T,
    )


SPEED, RISE, ANGLE = 150.0, 0.02, 0.3
CRANK, PISTON = 0.15, 0.075


def slider_crank_here(reduced: ReducedBody) -> System:
    """Return a slider-crank in this package, whose rod is between two spherical joints.

    The crank rotates about z, the slider moves along x.
    """
    ground = Ground({"main": Frame(), "guide": Frame((0, 0, 0), ALONG_X)})
    crank = RigidBody(
        "crank",
        0.36,
        [1e-3, 1e-3, 1e-3],
        frames={"main": Frame(), "pin": Frame((CRANK, 0, 0))},
        rotation=[np.cos(ANGLE / 2), 0, 0, np.sin(ANGLE / 2)],
    )
    pin, slider, tilt = start_of_rod()
    rod = FlexibleBody(
        "rod", reduced, pin, [np.cos(tilt / 2), 0, 0, np.sin(tilt / 2)], damping_ratio=0.0
    )
    piston = RigidBody(
        "piston",
        PISTON,
        [1e-4, 1e-4, 1e-4],
        frames={"pin": Frame(), "guide": Frame((0, 0, 0), ALONG_X)},
        position=(slider, 0, 0),
    )
    joints = [
        revolute("main", ground.frame("main"), crank.frame("main")),
        spherical("crank pin", crank.frame("pin"), rod.frame("left")),
        spherical("piston pin", rod.frame("right"), piston.frame("pin")),
        prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]

    def motion(t: float) -> tuple[float, float, float]:
        angle, rate, acceleration = spin_up(t)
        return ANGLE + angle, rate, acceleration

    return System(
        [ground, crank, rod, piston], joints, drivers=[Driver("drive", "main", motion, offset=0.0)]
    )


def start_of_rod() -> tuple[Array, float, float]:
    """Return the position of the crank pin, that of the slider, and the angle of the rod."""
    pin = CRANK * np.array([np.cos(ANGLE), np.sin(ANGLE), 0.0])
    tilt = -np.arcsin(pin[1] / LENGTH)
    return pin, float(pin[0] + LENGTH * np.cos(tilt)), float(tilt)


def slider_crank_there(model: Model, modes: Array) -> ExudynSystem:
    """Return the same mechanism in Exudyn.

    The crank pin is a point that is driven on a circle.
    """
    peer = ExudynSystem()
    mbs, items = peer.mbs, peer.items
    pin, slider, tilt = start_of_rod()
    rotation = np.array(
        [[np.cos(tilt), -np.sin(tilt), 0.0], [np.sin(tilt), np.cos(tilt), 0.0], [0, 0, 1.0]]
    )
    placed = peer.body(model, modes, positionRef=pin, rotationMatrixRef=rotation)

    crank = mbs.AddNode(items.NodeRigidBodyRxyz(referenceCoordinates=[0, 0, 0, 0, 0, ANGLE]))
    body = mbs.AddObject(
        items.ObjectRigidBody(nodeNumber=crank, mass=0.36, inertia=[1e-3] * 3 + [0.0] * 3)
    )
    zero = mbs.AddMarker(
        items.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(items.NodePointGround()), coordinate=0)
    )
    for k in range(6):
        marker = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=crank, coordinate=k))
        drive = {
            "offsetUserFunction": lambda mbs, t, item, offset: spin_up(t)[0],
            "offsetUserFunction_t": lambda mbs, t, item, offset: spin_up(t)[1],
        }
        mbs.AddObject(
            items.CoordinateConstraint(markerNumbers=[zero, marker], **(drive if k == 5 else {}))
        )
    end = mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[CRANK, 0, 0]))
    peer.spherical(end, peer.on_body(placed, model, 0))

    point = mbs.AddNode(items.NodePoint(referenceCoordinates=[slider, 0, 0]))
    mbs.AddObject(items.MassPoint(nodeNumber=point, mass=PISTON))
    for k in (1, 2):
        marker = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=point, coordinate=k))
        mbs.AddObject(items.CoordinateConstraint(markerNumbers=[zero, marker]))
    piston = mbs.AddMarker(items.MarkerNodePosition(nodeNumber=point))
    peer.spherical(peer.on_body(placed, model, 1), piston)
    peer.watch_frame("rod", placed)
    peer.watch("piston", point, "Position")
    return peer


@pytest.mark.parametrize(
    "reference", [pytest.param("attached", marks=pytest.mark.slow), "mean axis"]
)
def test_slider_crank(reference: Reference) -> None:
    """The crank turns from rest to 150 rad/s in a quarter of a turn, and past both dead centres."""
    t_end, dt, stride = 0.05, 2e-5, 10
    model = bar(STEEL)
    reduction = model.reduction(reference)
    reduced = damped(reduction.body)
    system = slider_crank_here(reduced)
    settings = {"t_end": t_end, "dt": dt, "stride": stride, "method": METHOD}
    run = simulate(system, elastic_start="undeformed", **settings)
    rigid = simulate(slider_crank_here(reduced.rigid()), **settings)
    theirs = slider_crank_there(model, reduction.modes).run(t_end, dt, stride * dt)

    slider = run.body("piston").position
    deviation = slider - rigid.body("piston").position
    exudyn_deviation = theirs["piston"] - rigid.body("piston").position
    ours = run.body("rod")
    A = rotation_matrices(ours.rotation)
    assert np.ptp(slider[:, 0]) > 1.9 * CRANK  # it passed both dead centres
    assert np.abs(deviation).max() > 1e-5
    assert compare(slider, theirs["piston"]) < RELATIVE
    assert compare(deviation, exudyn_deviation) < RELATIVE
    assert compare(A.reshape(-1, 9), theirs["rod rotation"]) < RELATIVE
    assert compare(ours.eta, theirs["rod eta"]) < RELATIVE
