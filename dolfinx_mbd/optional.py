"""Packages that only some functions need: one place that imports them and names what is missing."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

__all__ = ["PACKAGES", "Package", "optional_module"]

_LIKE_DOLFINX = "install it from where DOLFINx comes from (apt, conda or Docker)"


class Package(NamedTuple):
    """Where a package comes from.

    Attributes:
        name: Its name on PyPI.
        extra: Extra of dolfinx_mbd that contains it, or "" without one.
        cure: How to install it, if pip is not the first choice.
    """

    name: str
    extra: str = ""
    cure: str = ""


PACKAGES = {
    "ansys": Package("ansys-mapdl-reader", "ansys"),
    "control": Package("control", "control"),
    "exudyn": Package("exudyn", "test"),
    "gmsh": Package(
        "gmsh", cure="apt install python3-gmsh, conda install python-gmsh or pip install gmsh"
    ),
    "h5py": Package("h5py", cure=_LIKE_DOLFINX),
    "imageio_ffmpeg": Package("imageio-ffmpeg", "plot"),
    "matplotlib": Package("matplotlib", "plot"),
    "meshlane": Package("meshlane", "meshes"),
    "pyNastran": Package("pyNastran", "nastran"),
    "pygltflib": Package("pygltflib", "plot"),
    "pythonfmu": Package("pythonfmu", "fmu"),
    "pythonfmu3": Package("pythonfmu3", "fmu"),
    "pyuff": Package("pyuff", "modal"),
    "pyvista": Package("pyvista", "plot"),
    "tqdm": Package("tqdm", "plot"),
    "vtkmodules": Package("vtk", "plot"),
}
"""Optional packages by the first part of the name under which Python imports them."""


def optional_module(name: str, purpose: str) -> Any:
    """Import a module of an optional package.

    Args:
        name: Name of the module; its first part is a key of `PACKAGES`.
        purpose: What needs the package, in the plural, for example "universal files".

    Returns:
        The module.

    Raises:
        ImportError: The package is missing or cannot be imported; the message says how to install
            it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package, extra, cure = PACKAGES[name.partition(".")[0]]
        cure = cure or f"pip install {package}"
        if extra:
            cure += f" (or pip install 'dolfinx_mbd[{extra}]'"
            launcher = f"; with the launcher, FENICSX_EXTRAS={extra} ./with-fenicsx COMMAND"
            cure += (launcher if os.environ.get("FENICSX_USE") == "inside" else "") + ")"
        text = f"{purpose} require the package {package}, which Python cannot import ({error})"
        raise ImportError(f"{text}: {cure}", name=name) from error
