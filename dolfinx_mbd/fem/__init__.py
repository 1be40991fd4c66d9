"""From a mesh to matrices: meshes with tags, materials, assembly, inertia operators, fields.

The examples of this folder use a steel bar of length 1 m with two named ends, and its matrices:

    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> def bar(model):
    ...     box = model.occ.addBox(0, 0, 0, 1.0, 0.1, 0.1)
    ...     model.occ.synchronize()
    ...     model.addPhysicalGroup(3, [box], name="body")
    ...     model.addPhysicalGroup(2, [1], name="left")
    ...     model.addPhysicalGroup(2, [2], name="right")
    ...     model.mesh.setSize(model.getEntities(0), 0.1)
    ...     model.mesh.generate(3)
    >>> from dolfinx_mbd.fem import apply_inertia, frame_load, inertia_matrix, write_mesh
    >>> from dolfinx_mbd.fem.assembly import elastic_problem
    >>> problem = elastic_problem(mbd.ElasticModel(mbd.build_mesh(bar, MPI.COMM_WORLD), mbd.STEEL))
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.facet_selection import pick
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh, read_mesh, write_mesh
from dolfinx_mbd.fem.operators import apply_inertia, frame_load, inertia_matrix
from dolfinx_mbd.fem.smooth_faces import SmoothFace, smooth_faces
from dolfinx_mbd.lazy import names_in

__all__ = [
    "ElasticModel",
    "SmoothFace",
    "TaggedMesh",
    "apply_inertia",
    "build_mesh",
    "frame_load",
    "inertia_matrix",
    "pick",
    "read_mesh",
    "smooth_faces",
    "write_mesh",
]

__getattr__ = names_in(__name__, "interfaces", "iterative", "linalg", "modal")
