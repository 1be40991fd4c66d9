"""A steel rod swings under gravity: one model in dolfinx_mbd and in Exudyn."""

# [dolfinx_mbd]
import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd

mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.008), MPI.COMM_WORLD)
body = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=6).body
body = body.replace(stiffening=None)  # Exudyn has no geometric stiffening

ground, rod = mbd.Ground({"pivot": mbd.Frame()}), mbd.FlexibleBody("rod", body)
hinge = mbd.spherical("hinge", ground.frame("pivot"), rod.frame("big_end"))
system = mbd.System([ground, rod], [hinge], gravity=(0.0, -9.81, 0.0))
method = mbd.GeneralizedAlpha.from_spectral_radius(0.9)
run = mbd.simulate(system, t_end=0.1, dt=1e-4, method=method, elastic_start="undeformed")
tip = run.sensor("rod", "small_end")
# [end]

# [exudyn]
import exudyn as exu
from exudyn.utilities import (
    MarkerBodyPosition,
    MarkerSuperElementPosition,
    ObjectGround,
    SensorSuperElement,
    SphericalJoint,
)

from dolfinx_mbd.io.export.exudyn import marker_nodes, to_exudyn

nodes = marker_nodes(body)
mbs = exu.SystemContainer().AddSystem()
fixed = mbs.AddMarker(MarkerBodyPosition(bodyNumber=mbs.AddObject(ObjectGround())))
rod = to_exudyn(body).AddObjectFFRFreducedOrder(mbs, gravity=[0.0, -9.81, 0.0])
number = rod["oFFRFreducedOrder"]
# The six nodes around the interface have equal weights
big_end = mbs.AddMarker(
    MarkerSuperElementPosition(
        bodyNumber=number, meshNodeNumbers=nodes["big_end"], weightingFactors=[1 / 6] * 6
    )
)
mbs.AddObject(SphericalJoint(markerNumbers=[fixed, big_end]))
sensors = [
    mbs.AddSensor(
        SensorSuperElement(
            bodyNumber=number,
            meshNodeNumber=node,
            storeInternal=True,
            outputVariableType=exu.OutputVariableType.Position,
        )
    )
    for node in nodes["small_end"]
]
mbs.Assemble()
settings = exu.SimulationSettings()
settings.timeIntegration.endTime = 0.1
settings.timeIntegration.numberOfSteps = 1000
settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
settings.timeIntegration.newton.useModifiedNewton = True
settings.timeIntegration.newton.relativeTolerance = 1e-10
settings.timeIntegration.newton.absoluteTolerance = 1e-12
settings.solution.file.write = False
settings.solution.sensors.writePeriod = 1e-4
mbs.SolveDynamic(settings)
theirs = np.mean([mbs.GetSensorStoredData(sensor)[:, 1:] for sensor in sensors], axis=0)
# [compare]
print(f"largest difference of the end of the rod: {np.abs(tip - theirs).max():.1e} m")
