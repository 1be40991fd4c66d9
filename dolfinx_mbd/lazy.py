"""Names of folders that are imported when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def names_in(package: str, *folders: str) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package that also has the names of its folders.

    Args:
        package: Name of the package, its `__name__`.
        *folders: Names of its subpackages. A public name of a subpackage is found without the
            name of the subpackage, for example `mbd.structures.BeamModel`.

    Example:
        >>> lookup = names_in("dolfinx_mbd.structures", "beams", "cables")
        >>> lookup("BeamModel").__name__
        'BeamModel'
    """

    def lookup(name: str) -> Any:
        if name in folders:
            return importlib.import_module(f"{package}.{name}")
        if not name.startswith("_"):
            for folder in folders:
                module = importlib.import_module(f"{package}.{folder}")
                if name in getattr(module, "__all__", ()):
                    return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return lookup
