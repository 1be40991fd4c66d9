"""Flexible multibody dynamics for FEniCSx.

    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=20)
    engine = mbd.mechanisms.inline_engine(reduction.body, speed=628.3)
    run = mbd.simulate(engine, t_end=0.04, dt=1e-5)

The file `__init__.pyi` lists all names. Each name is loaded when it is first used, so that
mechanisms do not require DOLFINx and forms do not require numba.
"""

import importlib

import lazy_loader

from dolfinx_mbd.html import before_first_view

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

before_first_view(lambda: importlib.import_module("dolfinx_mbd.plotting"))  # it registers scenes
