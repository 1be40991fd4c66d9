"""Messages about names: misspelt public names, a body instead of a system, unknown inputs."""

from __future__ import annotations

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
        if name in mbd.__all__:
            continue
        same = [repr(x) for x, y in zip(mbd.__all__, lower, strict=True) if y == name]
        with pytest.raises(AttributeError) as error:
            getattr(mbd, name)
        assert str(error.value).endswith(f"did you mean {' or '.join(same)}?")


@pytest.mark.parametrize("analysis", ["simulate", "equilibrium", "linearize", "Simulator"])
def test_a_body_instead_of_a_system(analysis: str) -> None:
    body = mbd.RigidBody("body", 1.0, [1.0] * 3)
    options = {"simulate": {"t_end": 1.0, "dt": 0.1}, "Simulator": {"dt": 0.1}}
    state = mbd.consistent_state(mbd.System([body]))
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
