"""Analyses of a mechanism: simulation, equilibrium, linearization, known motions, spectra.

The examples of this folder, `stepping` and `results` use a pendulum of length 1 m that starts
horizontally, the same pendulum with a driver, and a simulation:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ground = mbd.Ground({"pin": mbd.Frame()})
    >>> bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
    >>> pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    >>> pendulum = mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
    >>> drive = mbd.Driver("drive", "pin", mbd.constant_speed(2.0))
    >>> driven = mbd.System([ground, bob], [pin], drivers=[drive], gravity=(0, -9.81, 0))
    >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3)
"""
