"""Results of a simulation: histories, energies, sensors, files and checks of the accuracy.

The examples of this folder assume a pendulum of 1 m, which was released from the horizontal:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ground = mbd.Ground({"pin": mbd.Frame()})
    >>> bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
    >>> pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    >>> pendulum = mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
    >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3)
"""
