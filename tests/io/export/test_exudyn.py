"""Exudyn loads exported bodies from files and as objects, and gives the results of the package.

The bodies of the package have no geometric stiffening, which Exudyn does not have.

V11 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import reduce
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import MaterialPoint, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.exudyn import marker_nodes, to_exudyn
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.reduction import InterfaceSpec
from dolfinx_mbd.results.histories import rotation_matrices
from tests.exudyn import test_motion
from tests.exudyn.models import REFERENCES, Model, Reference, finite_elements, peer_body
from tests.exudyn.test_motion import (
    DAMPING,
    METHOD,
    RELATIVE,
    STEEL,
    ExudynSystem,
    bar,
    compare,
    damped,
)
from tests.models.bodies import box
from tests.models.particles import Particles

exudyn = pytest.importorskip("exudyn")
alone = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="Exudyn runs on one rank")
ENDS = ("left", "right")


class Imported(ExudynSystem):
    """Exudyn with an exported body in place of one that it creates from the mesh."""

    def __init__(self, flexible: Any, nodes: dict[str, list[int]]) -> None:
        super().__init__()
        self.flexible, self.nodes = flexible, nodes

    def body(self, model: Any, modes: Any, **placement: Any) -> dict[str, Any]:
        return self.flexible.AddObjectFFRFreducedOrder(
            self.mbs, stiffnessProportionalDamping=DAMPING, **placement
        )

    def on_body(self, body: dict[str, Any], model: Any, interface: int) -> int:
        nodes = self.nodes[ENDS[interface]]
        return self.mbs.AddMarker(
            self.items.MarkerSuperElementPosition(
                bodyNumber=body["oFFRFreducedOrder"],
                meshNodeNumbers=nodes,
                weightingFactors=[1 / len(nodes)] * len(nodes),
            )
        )


def loaded(path: Path) -> tuple[Any, dict[str, list[int]]]:
    """Return Exudyn's object from the file, and its named nodes."""
    from exudyn.FEM import ObjectFFRFreducedOrderInterface

    flexible = ObjectFFRFreducedOrderInterface()
    flexible.LoadFromFile(str(path))
    with np.load(path) as file:
        rows = zip(file["interfaceNames"], file["interfaceNodes"], strict=True)
        return flexible, {str(name): nodes.tolist() for name, nodes in rows}


@pytest.fixture(scope="module")
def model() -> Model:
    """Return a steel bar for both programs."""
    return bar(STEEL)


@alone
@pytest.mark.parametrize("reference", REFERENCES)
def test_constants_are_those_that_exudyn_computes(model: Model, reference: Reference) -> None:
    """The mass moments of the body give the constants of Exudyn's full mass matrix."""
    reduction = model.reduction(reference)
    theirs = peer_body(finite_elements(model, reduction.modes)).GetDictionary()
    ours = to_exudyn(reduction.body).GetDictionary()
    assert ours.keys() == theirs.keys()
    mass, length = reduction.body.total_mass, 0.3
    # Modes have the unit 1/√kg, but those of the attached body have no unit (1 m per metre).
    modal = np.sqrt(mass) if reference == "mean axis" else mass
    scales = {
        "totalMass": mass, "Mtt": mass, "chiU": length, "chiUtilde": length,
        "inertiaLocal": mass * length**2, "massMatrixReduced": 1.0,
        "stiffnessMatrixReduced": np.abs(theirs["stiffnessMatrixReduced"]).max(),
        "mPsiTildePsi": 1.0, "mPsiTildePsiTilde": 1.0,
        "mPhitTPsi": modal, "mPhitTPsiTilde": modal,
        "mXRefTildePsi": modal * length, "mXRefTildePsiTilde": modal * length,
    }  # fmt: skip
    by_node = {"modeBasis", "xRef", "trigList", "infoList"}
    assert scales.keys() | by_node | {"postProcessingModes", "rigidBodyNodeType"} == ours.keys()
    for name, scale in scales.items():
        assert np.shape(ours[name]) == np.shape(theirs[name]), name
        assert np.abs(np.subtract(ours[name], theirs[name])).max() < 1e-11 * scale, name


@alone
@pytest.mark.parametrize("kinds", [("rigid", "rigid"), ("rigid", "averaged")], ids="-".join)
def test_slider_crank(
    kinds: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crank turns from rest to 150 rad/s and past both dead centres.

    The exported body is read from the file, or passed as an object. The tolerance is
    that of V11, where Exudyn has the mesh: equations and steps are the same.
    """
    t_end, dt, every = 0.05, 2e-5, 10
    mesh = box(MPI.COMM_SELF, (0.3, 0.008, 0.008), (12, 1, 1))
    mesh.mesh.geometry.x[:, 1:] -= 0.004
    specs = {
        name: InterfaceSpec(axes=np.eye(3), kind=kind)
        for name, kind in zip(ENDS, kinds, strict=True)
    }
    reduced = damped(reduce(mesh, STEEL, interfaces=specs, num_modes=6).body)
    settings: dict[str, Any] = {
        "t_end": t_end, "dt": dt, "stride": every, "method": METHOD
    }  # fmt: skip
    system = test_motion.slider_crank_here(reduced)
    run = simulate(system, elastic_start="undeformed", **settings)
    rigid = simulate(test_motion.slider_crank_here(reduced.rigid()), **settings)

    if kinds == ("rigid", "rigid"):
        flexible, nodes = to_exudyn(reduced), marker_nodes(reduced)
    else:
        report = export(reduced, tmp_path / "rod", "exudyn")
        assert any("damping" in note for note in report.notes)
        flexible, nodes = loaded(report.paths[0])
    monkeypatch.setattr(test_motion, "ExudynSystem", lambda: Imported(flexible, nodes))
    peer = test_motion.slider_crank_there(None, None)  # type: ignore[arg-type]
    theirs = peer.run(t_end, dt, every * dt)

    slider, ours = run.body("piston").position, run.body("rod")
    deviation = slider - rigid.body("piston").position
    their_deviation = theirs["piston"] - rigid.body("piston").position
    assert np.abs(deviation).max() > 1e-5
    assert compare(slider, theirs["piston"]) < RELATIVE
    assert compare(deviation, their_deviation) < RELATIVE
    A = rotation_matrices(ours.rotation)
    assert compare(A.reshape(-1, 9), theirs["rod rotation"]) < RELATIVE
    assert compare(ours.eta, theirs["rod eta"]) < RELATIVE


def particles() -> ReducedBody:
    """Return a body of particles with a point that moves in three modes."""
    n = 3
    point = MaterialPoint("middle", [0.1, 0.2, 0.3], np.arange(3 * n).reshape(n, 3) / 10)
    return Particles(n).body().replace(points=(point,))


@alone
def test_markers_move_as_our_interfaces() -> None:
    """Positions and rotations agree at prescribed elastic coordinates."""
    import exudyn.utilities as items

    body = particles()
    eta = 1e-3 * np.array([1.0, -2.0, 0.5])
    place, rotation = np.array([1.0, 2.0, 3.0]), exp_rotation(np.array([0.3, -0.2, 0.9]))
    mbs = exudyn.SystemContainer().AddSystem()
    numbers = to_exudyn(body).AddObjectFFRFreducedOrder(
        mbs, positionRef=place, rotationMatrixRef=rotation
    )
    mbs.SetNodeParameter(numbers["nGenericODE2"], "initialCoordinates", list(eta))
    sensors = {}
    for name, nodes in marker_nodes(body).items():
        kind = items.MarkerSuperElementRigid if len(nodes) > 1 else items.MarkerSuperElementPosition
        marker = mbs.AddMarker(
            kind(
                bodyNumber=numbers["oFFRFreducedOrder"],
                meshNodeNumbers=nodes,
                weightingFactors=[1 / len(nodes)] * len(nodes),
            )
        )
        for quantity in ("Position", "RotationMatrix")[: 2 if len(nodes) > 1 else 1]:
            sensors[name, quantity] = mbs.AddSensor(
                items.SensorMarker(
                    markerNumber=marker,
                    outputVariableType=getattr(exudyn.OutputVariableType, quantity),
                )
            )
    mbs.Assemble()
    values = {key: np.array(mbs.GetSensorValues(number)) for key, number in sensors.items()}
    for i in body.interfaces:
        d, theta = i.motion[:3] @ eta, i.motion[3:] @ eta
        assert np.abs(theta).max() > 1e-4
        assert np.allclose(values[i.name, "Position"], place + rotation @ (i.point + d), atol=1e-13)
        expected = rotation @ exp_rotation(theta)
        assert np.allclose(values[i.name, "RotationMatrix"].reshape(3, 3), expected, atol=1e-13)
    middle = body.point("middle")
    expected = place + rotation @ (middle.position + eta @ middle.modes)
    assert np.allclose(values["middle", "Position"], expected, atol=1e-13)


def test_units_and_skin(tmp_path: Path) -> None:
    """The file is written without Exudyn, in the requested units."""
    from dolfinx_mbd.body import Skin

    n = 3
    body = particles().replace(skin=Skin(np.eye(3), [[0, 1, 2]], np.ones((n, 3, 3))))
    report = export(body, tmp_path / "body.npz", "exudyn", units="mm-t-s")
    with np.load(report.paths[0], allow_pickle=True) as file:
        assert file["totalMass"] == pytest.approx(1e-3 * body.total_mass)
        assert np.allclose(file["inertiaLocal"], 1e3 * body.inertia)
        # Exudyn's constant is −∫ρ x×ψ; 1 kg m² is 1e3 t mm²
        assert np.allclose(file["mXRefTildePsi"].T[0, 0], -1e3 * _crossed(body)[0])
        assert str(file["units"]).startswith("mm-t-s")
        first = int(file["pointNodes"][-1]) + 1  # the nodes of the skin follow those of points
        assert file["trigList"].tolist() == [[first, first + 1, first + 2]]
        x = file["xRef"].reshape(-1, 3)
        assert np.allclose(x[first:], 1e3 * np.eye(3))
        for nodes, i in zip(file["interfaceNodes"], body.interfaces, strict=True):
            assert np.allclose(x[nodes].mean(axis=0), 1e3 * i.point)


def _crossed(body: ReducedBody) -> np.ndarray:
    """Return ∫ρ x×ψ of the first mode."""
    X = body.second_moments[0, 1]  # ∫ρ x⊗ψ
    return np.array([X[1, 2] - X[2, 1], X[2, 0] - X[0, 2], X[0, 1] - X[1, 0]])


def test_a_rigid_body_and_doubled_names_are_refused(tmp_path: Path) -> None:
    body = particles()
    station = MaterialPoint(body.interfaces[0].name, [0, 0, 0], np.zeros((3, 3)))
    for expected, call in (
        ("modes", lambda: to_exudyn(body.rigid())),
        ("modes", lambda: export(body.rigid(), tmp_path / "rigid", "exudyn")),
        ("names", lambda: export(body.replace(points=(station,)), tmp_path / "twice", "exudyn")),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.argument == "body"
        assert expected in (error.value.expected or "")
    assert list(tmp_path.iterdir()) == []
