"""Masses and frequencies of imported decks, computed by CalculiX on the same file."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from mpi4py import MPI

from tests.geometry.calculix_cases import CASES, compare

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ccx") is None, reason="CalculiX (ccx) is not installed"),
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process runs ccx"),
]

FREQUENCIES = {"C3D4": 1e-5, "C3D10": 5e-4, "C3D8": 5e-4, "C3D20": 1e-3}
"""Bounds of the relative differences; CalculiX prints seven digits.

C3D10 and C3D8 integrate with fewer points than the package, which matters for the mass of C3D10 and
for distorted cells; C3D20 has 20 nodes, the package's element 27.
"""
INERTIA = {"C3D4": 6e-2, "C3D10": 5e-4, "C3D8": 1e-6, "C3D20": 1e-6}  # C3D4: mass by one point


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.MeshWarning")
@pytest.mark.parametrize("name", CASES)
def test_same_part(name: str) -> None:
    reference, body, frequencies = compare(name)
    assert body.volume == pytest.approx(reference.volume, rel=1e-6)
    assert body.mass == pytest.approx(reference.mass, rel=1e-6)
    assert body.inertia == pytest.approx(reference.inertia, rel=INERTIA[name])
    assert frequencies == pytest.approx(reference.frequencies, rel=FREQUENCIES[name])
    if name == "C3D4":  # the mass of one point is smaller for deformations
        assert (body.frequencies < reference.frequencies).all()
        assert np.all(body.frequencies > 0.9 * reference.frequencies)
