"""A rod on a driven hinge by other programs: Exudyn's full-order body and a plain DOLFINx script.

The rod of the slender slider-crank (reference case W1), 8×8×300 mm of steel, is clamped to a hinge
whose speed grows by Ω in each period T. The angle of the hinge is

    φ(t) = Ω₀ t + Ω/T (t²/2 + (T/2π)² (cos 2πt/T − 1)),  Ω₀ = 50, Ω = 10 rad/s, T = 8 ms.

It starts undeformed with the velocities of a rigid body.

Both programs take the same steps with the generalized-α method, ρ∞ = 0.8. Exudyn's floating frame
is the hinge, so that the clamped nodes do not move in it: this needs no constraint for the frame.
Times are those of the steps after the first ones, numbers of solves and assemblies of all steps.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["START", "STEP", "angle", "deflection", "exudyn", "plain"]

# time step, s; Ω₀ and Ω, rad/s; T, s; length of the rod, m
STEP, START, SPEED, RISE, LENGTH = 1e-4, 50.0, 10.0, 0.008, 0.3
TOLERANCE = 1e-8  # largest residual, relative to the elastic forces
Array = np.ndarray
Steps = Callable[[int], None]


def angle(t: float) -> tuple[float, float, float]:
    """Return the angle of the hinge, rad, its velocity, rad/s, and its acceleration, rad/s²."""
    w = 2 * math.pi / RISE
    return (
        START * t + SPEED / RISE * (0.5 * t * t + (math.cos(w * t) - 1) / w**2),
        START + SPEED / RISE * (t - math.sin(w * t) / w),
        SPEED / RISE * (1 - math.cos(w * t)),
    )


def deflection(tip: Array, t: float) -> float:
    """Return the deflection, m, of a tip at a position (3,): its distance from the turned axis."""
    phi = angle(t)[0]
    return float(tip[1] * math.cos(phi) - tip[0] * math.sin(phi))


def timed(steps: Steps, count: int, skipped: int) -> dict[str, float]:
    """Return the time of a step after the first ones, on the clock and of the processor, s."""
    steps(skipped)
    start, processor = time.perf_counter(), time.process_time()
    steps(count - skipped)
    seconds, work = time.perf_counter() - start, time.process_time() - processor
    return {"time": seconds / (count - skipped), "processor": work / (count - skipped)}


def plain(mesh: Any, material: Any, count: int, skipped: int) -> dict[str, Any]:
    """Return times, counts and deflection of Newton's method with a new tangent per iteration.

    MUMPS factorizes the tangents. Times are in s, the deflection of the tip at the end is in m.
    """
    import ufl
    from dolfinx import fem
    from dolfinx.fem import petsc as fem_petsc
    from petsc4py import PETSc

    V = fem.functionspace(mesh, ("Lagrange", 2, (3,)))
    u, a, w, trial = fem.Function(V), fem.Function(V), ufl.TestFunction(V), ufl.TrialFunction(V)
    F = ufl.Identity(3) + ufl.grad(u)
    E = (F.T * F - ufl.Identity(3)) / 2
    young, poisson = material.young, material.poisson
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    energy = lame / 2 * ufl.tr(E) ** 2 + young / 2 / (1 + poisson) * ufl.inner(E, E)
    dx = ufl.dx(metadata={"quadrature_degree": 5})
    elastic = ufl.derivative(energy * dx, u, w)
    inertia = material.density * ufl.inner(a, w) * ufl.dx
    rho = 0.8
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma, beta = 0.5 + alpha_f - alpha_m, 0.25 * (1 + alpha_f - alpha_m) ** 2
    da_du = (1 - alpha_m) / ((1 - alpha_f) * beta * STEP**2)  # derivative of a with respect to u
    internal, residual = fem.form(elastic), fem.form(inertia + elastic)
    tangent = fem.form(
        da_du * material.density * ufl.inner(trial, w) * ufl.dx + ufl.derivative(elastic, u, trial)
    )
    x = V.tabulate_dof_coordinates()
    held = np.flatnonzero(np.isclose(x[:, 0], 0.0)).astype(np.int32)
    rows = (3 * held[:, None] + np.arange(3)).ravel()
    bc = fem.dirichletbc(np.zeros(3), held, V)
    A = fem_petsc.create_matrix(tangent)
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(A)
    ksp.setType("preonly")
    ksp.getPC().setType("cholesky")
    ksp.getPC().setFactorSolverType("mumps")
    b, d = A.createVecs()
    fem_petsc.assemble_matrix(A, tangent)
    A.assemble()
    noise = 4e-16 * A.getDiagonal().max()[1] * LENGTH  # round-off of the forces
    v, algorithmic = np.cross([0, 0, START], x).ravel(), np.zeros(x.size)
    done, iterations = 0, 0

    def steps(number: int) -> None:
        nonlocal done, iterations, v, algorithmic
        for _ in range(number):
            done += 1
            u0, a0, old = u.x.array.copy(), a.x.array.copy(), algorithmic
            u.x.array[:] += STEP * v + STEP**2 / 2 * a0
            phi = angle(done * STEP)[0]
            rotation = np.array([[math.cos(phi), math.sin(phi)], [-math.sin(phi), math.cos(phi)]])
            in_plane = x[held, :2] @ rotation - x[held, :2]  # displacements of the clamped nodes
            u.x.array[rows] = np.column_stack([in_plane, np.zeros(len(held))]).ravel()
            while True:
                change = (u.x.array - u0 - STEP * v) / STEP**2
                algorithmic = (change - (0.5 - beta) * old) / beta
                a.x.array[:] = (1 - alpha_m) * algorithmic + alpha_m * old - alpha_f * a0
                a.x.array[:] /= 1 - alpha_f
                free = fem.assemble_vector(residual).array
                free[rows] = 0.0
                scale = np.abs(fem.assemble_vector(internal).array).max()
                if np.abs(free).max() <= TOLERANCE * scale + noise:
                    break
                A.zeroEntries()
                fem_petsc.assemble_matrix(A, tangent, bcs=[bc])
                A.assemble()
                A.setOption(PETSc.Mat.Option.SPD, True)
                b.array[:] = -free
                ksp.solve(b, d)
                u.x.array[:] += d.array_r
                iterations += 1
            v = v + STEP * ((1 - gamma) * old + gamma * algorithmic)

    result: dict[str, Any] = dict(timed(steps, count, skipped))
    tip = int(np.argmin(np.linalg.norm(x - [LENGTH, 0, 0], axis=1)))
    place = x[tip] + u.x.array[3 * tip : 3 * tip + 3]
    iterations_per_step = iterations / count
    return result | {
        "deflection": deflection(place, count * STEP),
        "solves": iterations_per_step,
        "assemblies": iterations_per_step + 1,  # one residual before the first iteration
        "tangents": iterations_per_step,
    }


def exudyn(mesh: Any, material: Any, count: int, skipped: int) -> dict[str, Any]:
    """Return times, counts and deflection of Exudyn's `ObjectFFRF` with the same elements."""
    sys.exudynFast = True  # type: ignore[attr-defined]
    import exudyn as exu
    from exudyn import utilities as items
    from exudyn.FEM import FEMinterface, ObjectFFRFinterface
    from raw_reduction import scipy_matrices

    K, M, x = matrices(mesh, material)
    fem = FEMinterface()
    fem.nodes = {"Position": x}
    fem.stiffnessMatrix, fem.massMatrix = scipy_matrices(K, M)
    fem.surface = [{"Name": "none", "Trigs": np.zeros((0, 3), dtype=int)}]
    fem.modeBasis = {"matrix": np.zeros((x.size, 0)), "type": "none"}
    mbs = exu.SystemContainer().AddSystem()
    body = ObjectFFRFinterface(fem).AddObjectFFRF(
        exu, mbs, initialAngularVelocity=[0, 0, START], constrainRigidBodyMotion=False
    )
    zero = mbs.AddMarker(
        items.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(items.NodePointGround()), coordinate=0)
    )

    def hold(node: int, coordinate: int, **options: Any) -> None:
        marker = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=node, coordinate=coordinate))
        mbs.AddObject(items.CoordinateConstraint(markerNumbers=[zero, marker], **options))

    def quaternion(mbs: Any, t: float, number: int, offset: float) -> float:
        return math.sin(angle(t)[0] / 2)

    # the frame has three positions and four Euler parameters; it turns about z by the last one
    for k in (0, 1, 2, 4, 5):
        hold(body["nRigidBody"], k)
    hold(body["nRigidBody"], 6, offsetUserFunction=quaternion)
    for node in np.flatnonzero(np.isclose(x[:, 0], 0.0)):
        for k in range(3):
            hold(body["nodeList"][node], k)
    tip = body["nodeList"][int(np.argmin(np.linalg.norm(x - [LENGTH, 0, 0], axis=1)))]
    mbs.Assemble()
    clock: list[tuple[float, float]] = []

    def before_step(mbs: Any, t: float) -> bool:
        """Note the time after the first steps."""
        if t > (skipped + 0.5) * STEP and not clock:
            clock.append((time.perf_counter(), time.process_time()))
        return True

    mbs.SetPreStepUserFunction(before_step)
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = count
    settings.timeIntegration.endTime = count * STEP
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.8
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.solution.file.write = False
    settings.parallel.numberOfThreads = 1
    settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    mbs.SolveDynamic(settings)
    seconds, work = time.perf_counter() - clock[0][0], time.process_time() - clock[0][1]
    u = mbs.GetNodeOutput(tip, exu.OutputVariableType.Displacement)
    counts = mbs.sys["dynamicSolver"].it
    return {
        "time": seconds / (count - skipped),
        "processor": work / (count - skipped),
        "deflection": float(u[1]),
        "solves": counts.newtonStepsCount / count,
        "assemblies": counts.newtonStepsCount / count + 1,
        "tangents": counts.newtonJacobiCount / count,
    }


def matrices(mesh: Any, material: Any) -> tuple[Any, Any, Array]:
    """Return K, the mass M of one component and the positions (N, 3) of quadratic elements."""
    import ufl
    from dolfinx import fem
    from dolfinx.fem import petsc as fem_petsc

    V = fem.functionspace(mesh, ("Lagrange", 2, (3,)))
    W = fem.functionspace(mesh, ("Lagrange", 2))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    strain = ufl.sym(ufl.grad(u))
    young, poisson = material.young, material.poisson
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    stress = lame * ufl.tr(strain) * ufl.Identity(3) + young / (1 + poisson) * strain
    K = fem_petsc.assemble_matrix(fem.form(ufl.inner(stress, ufl.sym(ufl.grad(v))) * ufl.dx))
    M = fem_petsc.assemble_matrix(fem.form(material.density * p * q * ufl.dx))
    K.assemble()
    M.assemble()
    return K, M, W.tabulate_dof_coordinates()
