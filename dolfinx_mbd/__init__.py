"""Flexible multibody dynamics for FEniCSx.

    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=20)
    engine = mbd.mechanisms.inline_engine(reduction.body, speed=628.3)
    run = mbd.simulate(engine, t_end=0.04, dt=1e-5)

The file `__init__.pyi` lists all names. Each name is loaded when it is first used, so that
mechanisms do not require DOLFINx and forms do not require numba.
"""

import contextlib
import difflib
import importlib
from typing import Any

import lazy_loader

from dolfinx_mbd.html import supply
from dolfinx_mbd.moved import former_name, watch_imports

__version__ = "0.2.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name; the error for an unknown name suggests similar names."""
    if name in __all__ or name.startswith("_"):
        return _load(name)
    with contextlib.suppress(AttributeError):
        return former_name(name)
    plain = {item: item.lower().replace("_", "") for item in __all__}
    key = name.lower().replace("_", "")
    near = [key] if key in plain.values() else difflib.get_close_matches(key, plain.values())
    similar = [repr(item) for item in __all__ if plain[item] in near]
    hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


supply("scenes", lambda: importlib.import_module("dolfinx_mbd.plotting"))  # it registers scenes
supply("freedom", lambda: importlib.import_module("dolfinx_mbd.dynamics.freedom").freedom)
watch_imports()
