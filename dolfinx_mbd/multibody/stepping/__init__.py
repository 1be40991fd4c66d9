"""Methods of time integration, the control of the step, and checkpoints.

The examples of this folder assume a pendulum of 1 m, which is placed horizontally:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ground = mbd.Ground({"pin": mbd.Frame()})
    >>> bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
    >>> pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    >>> pendulum = mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
"""
