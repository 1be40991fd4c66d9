"""Write the mesh of a connecting rod: `python3 meshes/connecting_rod.py --size 0.003 -o rod.msh`.

The same as `dolfinx-mbd mesh rod`: every parameter of `dolfinx_mbd.geometry.ConnectingRod` is an
option; lengths are in metres.
"""

from __future__ import annotations

import sys

from dolfinx_mbd.io.cli import main

if __name__ == "__main__":
    sys.exit(main(["mesh", "rod", *sys.argv[1:]]))
