"""The command line `dolfinx-mbd` for meshes, reduced bodies, and files for other programs.

    dolfinx-mbd mesh rod -o rod.msh
    dolfinx-mbd reduce rod.msh --material steel --interface big_end --interface small_end -o rod.npz
    dolfinx-mbd export rod.npz --to mbdyn -o rod.fem

`python3 -m dolfinx_mbd` is equivalent. `mesh` and `reduce` also run under `mpirun`.
"""

from dolfinx_mbd.io.cli.main import main

__all__ = ["main"]
