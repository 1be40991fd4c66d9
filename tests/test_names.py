"""Messages about names: misspelt public names, a body instead of a system, unknown inputs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd import errors


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Revolute", "revolute"),
        ("RevoluteJoint", "revolute"),
        ("rigid_body", "RigidBody"),
        ("Rigidbody", "RigidBody"),
        ("sytem", "System"),
        ("Steel", "STEEL"),
        ("eqilibrium", "equilibrium"),
        ("ploting", "plotting"),
        ("Mechanisms", "mechanisms"),
    ],
)
def test_similar_names_are_proposed(name: str, meant: str) -> None:
    assert meant in mbd.__all__
    with pytest.raises(AttributeError, match=f"'{name}'; did you mean .*'{meant}'"):
        getattr(mbd, name)


@pytest.mark.parametrize("name", ["foo", "xyzzy", "__wrapped__", "_repr_mimebundle_"])
def test_other_names_have_no_proposal(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(mbd, name)
    assert name in str(error.value) and "did you mean" not in str(error.value)


def test_names_that_differ_in_case_only_are_the_only_proposals() -> None:
    lower = [name.lower().replace("_", "") for name in mbd.__all__]
    for name in lower:
        if name in mbd.__all__ or name == "material":  # (the latter is a former name)
            continue
        same = [repr(x) for x, y in zip(mbd.__all__, lower, strict=True) if y == name]
        with pytest.raises(AttributeError) as error:
            getattr(mbd, name)
        assert str(error.value).endswith(f"did you mean {' or '.join(same)}?")


@pytest.mark.parametrize("analysis", ["simulate", "equilibrium", "linearize", "Simulator"])
def test_a_body_instead_of_a_system(analysis: str) -> None:
    body = mbd.RigidBody("body", 1.0, [1.0] * 3)
    options = {"simulate": {"t_end": 1.0, "dt": 0.1}, "Simulator": {"dt": 0.1}}
    state = mbd.dynamics.consistent_state(mbd.System([body]))
    more = (state,) if analysis == "linearize" else ()
    with pytest.raises(errors.InputTypeError, match=r"system must be a System\(bodies") as error:
        getattr(mbd, analysis)(body, *more, **options.get(analysis, {}))
    assert error.value.argument == "system" and "SystemData" not in str(error.value)


def test_inputs_of_a_simulator_without_inputs() -> None:
    body = mbd.RigidBody("body", 1.0, [1.0] * 3)
    simulator = mbd.Simulator(mbd.System([body]), dt=0.1)
    with pytest.raises(errors.InputError, match=r"no inputs were named.*inputs=\[") as error:
        simulator.step({"foo": 1.0})
    assert error.value.argument == "inputs" and error.value.value == {"foo": 1.0}
    assert simulator.step({}).time == pytest.approx(0.1)


def test_few_names() -> None:
    assert len(mbd.__all__) <= 90


def test_former_names_still_work() -> None:
    with pytest.warns(DeprecationWarning, match="write 'dolfinx_mbd.results.Solution'"):
        assert mbd.Solution is mbd.results.Solution
    with pytest.warns(DeprecationWarning, match="write 'dolfinx_mbd.durability.recovery'"):
        assert mbd.recovery.skin_stress is mbd.durability.skin_stress


def test_former_folders_can_be_imported() -> None:
    code = (
        "import sys, warnings\n"
        "warnings.simplefilter('always')\n"
        "from dolfinx_mbd.bearings import ShortBearing\n"
        "import dolfinx_mbd.export.common, dolfinx_mbd.mechanism.bearings\n"
        "assert dolfinx_mbd.mechanism.bearings.ShortBearing is ShortBearing\n"
        "assert dolfinx_mbd.io.export.common.__spec__.name == 'dolfinx_mbd.io.export.common'\n"
        "assert sys.modules['dolfinx_mbd.export.common'] is dolfinx_mbd.io.export.common\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "write 'dolfinx_mbd.mechanism.bearings'" in run.stderr


def test_unknown_folders_are_not_imported() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dolfinx_mbd.bearing")
