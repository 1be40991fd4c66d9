"""Write the mesh of a connecting rod: `python3 meshes/connecting_rod.py --size 0.003 -o rod.msh`.

Every parameter of `dolfinx_mbd.geometry.ConnectingRod` is an option; lengths are in metres.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields

from dolfinx_mbd.analysis.meshing import write_mesh
from dolfinx_mbd.geometry import ConnectingRod


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the mesh; 0 if all went well, 1 with a message if not."""
    parser = argparse.ArgumentParser(
        description="Write the gmsh mesh of a connecting rod (lengths in metres)."
    )
    parser.add_argument("-o", "--output", default="connecting_rod.msh", help="file to write")
    for field in fields(ConnectingRod):
        option = "--" + field.name.replace("_", "-")
        if field.name == "split_big_end":
            parser.add_argument(option, action="store_true", help="rod and cap as two volumes")
            continue
        parser.add_argument(
            option,
            type=int if field.name == "order" else float,
            choices=(1, 2) if field.name == "order" else None,
            default=field.default,
            help=f"default {field.default:g}",
        )
    options = vars(parser.parse_args(arguments))
    output = options.pop("output")
    try:
        write_mesh(ConnectingRod(**options), output)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
