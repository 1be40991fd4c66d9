"""Consistent initial states.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ends = {"left": mbd.Frame((-0.5, 0, 0)), "right": mbd.Frame((0.5, 0, 0))}
    >>> ground = mbd.Ground({"bearing": mbd.Frame()})
    >>> rod = mbd.RigidBody.box(
    ...     "rod", (1.0, 0.04, 0.02), density=7850, frames=ends, position=(0.5, 0, 0)
    ... )
    >>> hinge = mbd.revolute("hinge", ground.frame("bearing"), rod.frame("left"))
    >>> pendulum = mbd.System([ground, rod], [hinge], gravity=(0, -9.81, 0))
"""
