"""One body for two programs: matrices of DOLFINx and one basis, as `ReducedBody` and for Exudyn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd import ElasticModel, ReductionOptions
from dolfinx_mbd.fem import TaggedMesh
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.forms import Material
from dolfinx_mbd.reduction import InterfaceSpec, Reduction, reduce

Array = NDArray[np.float64]
Reference = Literal["attached", "mean axis"]
REFERENCES: tuple[Reference, ...] = ("attached", "mean axis")


@dataclass(frozen=True, eq=False)
class Model:
    """A mesh on one rank with two rigid interfaces whose axes are those of the body.

    Attributes:
        mesh: Mesh with a group of facets for each interface.
        material: Material of the whole body.
        ends: Names of the interfaces.
        num_modes: Number of fixed-interface modes.
        degree: Degree of the displacements.
    """

    mesh: TaggedMesh
    material: Material
    ends: tuple[str, str]
    num_modes: int
    degree: int = 2

    @property
    def interfaces(self) -> dict[str, InterfaceSpec]:
        """The interfaces as an argument of `reduce`."""
        return {end: InterfaceSpec(axes=np.eye(3)) for end in self.ends}

    @cached_property
    def matrices(self) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix, Array]:
        """K, M and the positions of the nodes, in the order of the displacement space."""
        problem = elastic_problem(ElasticModel(self.mesh, self.material, degree=self.degree))
        mass = problem.mass()
        result = csr(problem.stiffness), csr(mass), problem.positions
        mass.destroy()
        problem.destroy()
        return result

    @cached_property
    def nodes(self) -> tuple[NDArray[np.int32], ...]:
        """Node numbers of both interfaces."""
        space = self.reduction("mean axis").space
        return tuple(i.blocks for i in mesh_interfaces(self.mesh, space, self.interfaces))

    def reduction(self, reference: Reference) -> Reduction:
        """Return the reduction of the model with a reference condition.

        "attached" attaches the frame to the first interface. The modes are then the constraint
        modes of the second interface and the fixed-interface modes, which are not orthonormalized.
        """
        settings: dict[str, Any] = {"interfaces": self.interfaces, "num_modes": self.num_modes}
        if reference == "attached":
            settings |= {"attached_to": self.ends[0]}
        return reduce(
            ElasticModel(self.mesh, self.material, degree=self.degree),
            options=ReductionOptions(skin=False, orthonormalize=reference != "attached"),
            **settings,
        )


def csr(A: PETSc.Mat) -> scipy.sparse.csr_matrix:
    """Return a sequential PETSc matrix for SciPy."""
    assert A.comm.tompi4py().size == MPI.COMM_SELF.size
    indptr, columns, values = A.getValuesCSR()
    return scipy.sparse.csr_matrix((values, columns, indptr), shape=A.getSize())


def finite_elements(model: Model, modes: Array | None = None) -> Any:
    """Return Exudyn's `FEMinterface` with nodes, matrices and modes of a model."""
    from exudyn.FEM import FEMinterface

    fem = FEMinterface()
    fem.stiffnessMatrix, fem.massMatrix, positions = model.matrices
    fem.nodes = {"Position": positions}
    fem.surface = [{"Name": "none", "Trigs": np.zeros((0, 3), dtype=int)}]
    if modes is not None:
        fem.modeBasis = {"matrix": np.array(modes), "type": "HCBmodes"}
    return fem


def peer_body(fem: Any) -> Any:
    """Return Exudyn's reduced body, without its rounding of small entries."""
    from exudyn.FEM import ObjectFFRFreducedOrderInterface

    return ObjectFFRFreducedOrderInterface(fem, roundMassMatrix=0, roundStiffnessMatrix=0)
