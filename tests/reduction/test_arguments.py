"""Arguments of `reduce` and `reduce_beam` of the wrong type or value are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import Section
from dolfinx_mbd.structures.beams.beam_reduction import reduce_beam
from dolfinx_mbd.structures.beams.model import BeamModel
from tests.models.bodies import box
from tests.models.calls import flat

BOTH: list[tuple[str, Any]] = [
    ("name", 3),
    ("name", ""),
    ("attached_to", 3),
    ("up_to", np.nan),
    ("up_to", -1),
    ("up_to", "9 kHz"),
    ("up_to", [1.0]),
    ("orthonormalize", "no"),
    ("stiffening", "yes"),
    ("stiffening", np.array([True, False])),
    ("effective_mass", np.nan),
    ("effective_mass", "all"),
    ("effective_mass", 1.5),
    ("points", [1.0, 2.0]),
    ("skin", 0.5),
]


@pytest.mark.parametrize(
    ("argument", "value"),
    [*BOTH, ("loads", 3), ("load_modes", 2), ("static_correction", None), ("solver", ["direct"])],
)
def test_reduce(comm: MPI.Comm, argument: str, value: Any) -> None:
    mesh = box(comm, cells=(2, 1, 1))
    with pytest.raises(InputError) as error:
        arguments: Any = {"interfaces": ["left"], "num_modes": 2, argument: value}
        flat(mbd.reduce, mesh, mbd.STEEL, **arguments)
    assert error.value.argument == argument


@pytest.mark.parametrize(("argument", "value"), [*BOTH, ("model", None), ("interfaces", 3)])
def test_reduce_beam(comm: MPI.Comm, argument: str, value: Any) -> None:
    model = BeamModel(create_interval(comm, 4, [0.0, 0.4]), Section.circle(0.005), mbd.STEEL)
    arguments = {"mesh": model, "interfaces": {"left": (0.0, 0, 0)}, "num_modes": 2}
    with pytest.raises(InputError) as error:
        flat(reduce_beam, **(arguments | {argument.replace("model", "mesh"): value}))
    assert error.value.argument == argument


def test_a_list_of_specifications_names_the_dictionary() -> None:
    """The names of the interfaces are missing."""
    with pytest.raises(
        InputError, match=r"a dictionary: \{'name': InterfaceSpec\(...\)\}"
    ) as error:
        mbd.reduce(box(MPI.COMM_SELF), mbd.STEEL, interfaces=[mbd.InterfaceSpec("left")])
    assert error.value.argument == "interfaces"
