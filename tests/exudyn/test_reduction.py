"""V11: reduced matrices, inertia integrals and frequencies against Exudyn, to 1e-9.

V11 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem import build_mesh
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.kernels.rotations import skew
from dolfinx_mbd.reduction import Reduction
from tests.exudyn.models import REFERENCES, Array, Model, finite_elements, peer_body
from tests.models.bodies import box

pytest.importorskip("exudyn")
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="Exudyn takes whole matrices")

NUM_MODES = 8
RELATIVE = 1e-9


def bar() -> Model:
    """Return straight tetrahedra, quadratic displacements, flat interfaces."""
    mesh = box(MPI.COMM_SELF, cells=(8, 2, 1), cell=CellType.tetrahedron)
    return Model(mesh, STEEL, ("left", "right"), NUM_MODES)


def rod() -> Model:
    """Return curved tetrahedra, quadratic displacements, bores as interfaces."""
    mesh = build_mesh(ConnectingRod(size=0.012, order=2), MPI.COMM_SELF)
    return Model(mesh, STEEL, ("big_end", "small_end"), NUM_MODES)


def linear_rod() -> Model:
    """Return straight tetrahedra, linear displacements, bores as interfaces."""
    mesh = build_mesh(ConnectingRod(size=0.006, order=1), MPI.COMM_SELF)
    return Model(mesh, STEEL, ("big_end", "small_end"), NUM_MODES, degree=1)


@pytest.fixture(scope="module", params=[bar, rod, linear_rod], ids=lambda make: make.__name__)
def model(request: pytest.FixtureRequest) -> Model:
    """Return a model for both programs."""
    return request.param()


@pytest.fixture(scope="module", params=REFERENCES)
def reduction(request: pytest.FixtureRequest, model: Model) -> Reduction:
    """Return the reduction of the model with a reference condition."""
    return model.reduction(request.param)


@pytest.fixture(scope="module")
def hurty(model: Model) -> Any:
    """Return Exudyn's finite elements with its Hurty-Craig-Bampton modes, rigid ones included."""
    from exudyn.FEM import HCBstaticModeSelection

    fem = finite_elements(model)
    fem.ComputeHurtyCraigBamptonModes(
        boundaryNodesList=[list(nodes) for nodes in model.nodes],
        nEigenModes=NUM_MODES,
        computationMode=HCBstaticModeSelection.RBE2,
        excludeRigidBodyMotion=False,
    )
    return fem


def blocks(H: Array, block: Any) -> Array:
    """Return the matrix of the blocks that follow from H_kl, shape (rows, columns, 3, 3)."""
    return np.block([[block(pair) for pair in row] for row in H])


def cross(pair: Array) -> Array:
    """Return ∫ρ ψ̃_kᵀ ψ_l = −∫ρ ψ_k×ψ_l from H_kl, shape (3, 1); ψ̃ a = ψ×a."""
    antisymmetric = pair.T - pair
    return np.array([[antisymmetric[1, 2]], [antisymmetric[2, 0]], [antisymmetric[0, 1]]])


def tensor(pair: Array) -> Array:
    """Return ∫ρ ψ̃_kᵀ ψ̃_l = ∫ρ (ψ_k·ψ_l I − ψ_l ψ_kᵀ) from H_kl, shape (3, 3)."""
    return np.trace(pair) * np.eye(3) - pair.T


def contractions(body: ReducedBody) -> dict[str, Array]:
    """Return the quantities of Exudyn's reduced body by their names in Exudyn.

    They follow from S_k = ∫ρ ψ_k and H_kl = ∫ρ ψ_k ψ_lᵀ, where ψ_0 is the undeformed position x.
    """
    S, H = body.first_moments, body.second_moments
    return {
        "totalMass": np.array(body.total_mass),
        "Mtt": body.total_mass * np.eye(3),
        "chiU": body.centre,
        "chiUtilde": skew(body.centre),
        "inertiaLocal": body.inertia,
        "massMatrixReduced": body.mass,
        "stiffnessMatrixReduced": body.stiffness,
        "mPhitTPsi": S[1:].T,
        "mPhitTPsiTilde": np.hstack([skew(s) for s in S[1:]]),
        "mXRefTildePsi": blocks(H[:1, 1:], cross),
        "mXRefTildePsiTilde": blocks(H[:1, 1:], tensor),
        "mPsiTildePsi": blocks(H[1:, 1:], cross),
        "mPsiTildePsiTilde": blocks(H[1:, 1:], tensor),
    }


def test_matrices_and_inertia_integrals(model: Model, reduction: Reduction) -> None:
    """Exudyn computes them from products of large matrices, the package from S and H.

    Integrals that vanish for mean axes are compared relative to the product of the norms of modes,
    translations and rotations, √∫ρ|u|².
    """
    body = reduction.body
    peer = peer_body(finite_elements(model, reduction.modes))
    mode_norm = np.sqrt(np.trace(body.mass))
    translation_norm, rotation_norm = np.sqrt(body.total_mass), np.sqrt(np.trace(body.inertia))
    size = {
        "mPhitTPsi": translation_norm * mode_norm,
        "mPhitTPsiTilde": translation_norm * mode_norm,
        "mXRefTildePsi": rotation_norm * mode_norm,
        "mXRefTildePsiTilde": rotation_norm * mode_norm,
    }
    for name, ours in contractions(body).items():
        theirs = np.asarray(getattr(peer, name))
        assert theirs.shape == ours.shape, name
        scale = size.get(name, np.linalg.norm(theirs))
        assert np.linalg.norm(ours - theirs) < RELATIVE * scale, name


def test_motion_of_interfaces(model: Model, reduction: Reduction) -> None:
    """The nodes of an interface move as its motion matrix prescribes, as both programs assume."""
    positions = model.matrices[2]
    assert np.array_equal(positions, reduction.positions)
    for nodes, interface in zip(model.nodes, reduction.body.interfaces, strict=True):
        moved = rigid_motions(positions[nodes], interface.point) @ interface.motion
        displacements = reduction.modes.reshape(len(positions), 3, -1)[nodes].reshape(moved.shape)
        assert np.abs(displacements - moved).max() < RELATIVE * np.abs(reduction.modes).max()
    if reduction.body.reference != "mean axis":
        assert not reduction.body.interfaces[0].motion.any()


def test_fixed_interface_frequencies(model: Model, hurty: Any) -> None:
    """The modes with the label "fixed" have the frequencies of K_ii and M_ii."""
    table = model.reduction("attached").body.modes
    ours = [mode.frequency for mode in table if mode.label.startswith("fixed")]
    theirs = np.sqrt(np.sort(hurty.eigenValues)) / (2 * np.pi)
    assert ours == pytest.approx(theirs, rel=RELATIVE)


def test_free_frequencies(model: Model, hurty: Any) -> None:
    """The elastic frequencies of the free body agree, each computed in the modes of its program."""
    body = model.reduction("mean axis").body
    peer = peer_body(hurty)
    squares = scipy.linalg.eigvalsh(peer.stiffnessMatrixReduced, peer.massMatrixReduced)
    theirs = np.sqrt(squares[6:]) / (2 * np.pi)
    assert body.frequencies == pytest.approx(theirs, rel=RELATIVE)


def test_modes_span_one_space(model: Model, hurty: Any) -> None:
    """The modes of the package and the six rigid motions contain all modes of Exudyn.

    Exudyn rotates an interface about the mean of its nodes, the package about its centroid.
    """
    _, M, positions = model.matrices
    ours = np.column_stack([model.reduction("mean axis").modes, rigid_motions(positions)])
    theirs = hurty.modeBasis["matrix"]
    assert ours.shape == theirs.shape
    ours, theirs = (X @ np.linalg.inv(np.linalg.cholesky(X.T @ (M @ X))).T for X in (ours, theirs))
    outside = theirs - ours @ (ours.T @ (M @ theirs))
    assert np.sqrt(np.max(np.sum(outside * (M @ outside), axis=0))) < 1e-6
