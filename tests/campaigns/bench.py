"""Valid objects from which the campaigns start: meshes, bodies, mechanisms, results and files."""

from __future__ import annotations

import shutil
import warnings
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import basix.ufl
import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_mesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Skin, StrainGauge
from tests.mechanism.test_pattern_loads import loaded_body
from tests.models.beams import slender_rod
from tests.models.bodies import LENGTH, box


def square(x: float) -> dict[str, float]:
    """Return the result of one case of a study."""
    return {"square": x * x}


class Bench:
    """Valid objects on one rank; each is made when it is first used.

    Args:
        folder: A folder for files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.comm = MPI.COMM_SELF
        self.ground = mbd.Ground({"o": mbd.Frame(), "x": mbd.Frame((0.2, 0.0, 0.0))})
        self.bob = mbd.RigidBody(
            "bob", 1.0, [0.01] * 3, frames={"o": mbd.Frame(), "tip": mbd.Frame((0.1, 0, 0))}
        )
        self.frames = {
            "first": self.ground.frame("o"),
            "second": self.bob.frame("o"),
        }
        self.ends = {"first": self.ground.frame("x"), "second": self.bob.frame("tip")}

    # ---- mechanisms
    def sprung(self, values: Any) -> mbd.System:
        """Return the pendulum with a spring of stiffness ``values["k"]``."""
        pivot = mbd.revolute("pivot", **self.frames)
        spring = mbd.JointSpring("spring", "pivot", stiffness=values["k"], damping=0.1)
        return mbd.System([self.ground, self.bob], [pivot], loads=[spring], gravity=(0, -9.81, 0))

    @cached_property
    def pendulum(self) -> mbd.System:
        """A rigid pendulum that swings under gravity and viscous friction."""
        return self.sprung({"k": 20.0})

    @cached_property
    def driven(self) -> mbd.System:
        """A pendulum that turns at constant speed."""
        driver = mbd.Driver("motor", "pivot", mbd.constant_speed(10.0))
        pivot = mbd.revolute("pivot", **self.frames)
        return mbd.System([self.ground, self.bob], [pivot], drivers=[driver])

    @cached_property
    def motion(self) -> mbd.results.Solution:
        """A kinematic analysis of the driven pendulum."""
        return mbd.analyses.kinematic_analysis(self.driven, np.linspace(0, 0.01, 5))

    @cached_property
    def state(self) -> Any:
        """The pendulum in equilibrium."""
        return mbd.equilibrium(self.pendulum)

    @cached_property
    def rod(self) -> mbd.ReducedBody:
        """A slender rod with two modes in bending, one along it, a skin and a gauge."""
        rod = slender_rod()
        points = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.15, 0.004, 0]])
        modes = np.zeros((3, 3, 3))
        modes[:, :, 1] = points[:, 0]
        gauge = StrainGauge("g", points[2], (0, 0, 1), np.eye(3)[:1], 3e-3, np.ones((1, 3)))
        return rod.replace(skin=Skin(points, np.array([[0, 1, 2]]), modes), gauges=(gauge,))

    @cached_property
    def windy(self) -> mbd.FlexibleBody:
        """A body with a load pattern."""
        return mbd.FlexibleBody("sail", loaded_body())

    @cached_property
    def crank(self) -> mbd.System:
        """A slider-crank with a flexible rod."""
        return mbd.mechanisms.slider_crank(
            self.rod, crank_radius=0.04, crank_mass=1.0, piston_mass=0.2, speed=10.0
        )

    @cached_property
    def run(self) -> mbd.results.Solution:
        """A short run of the slider-crank."""
        return mbd.simulate(self.crank, t_end=1e-3, dt=2e-4)

    @cached_property
    def swing(self) -> mbd.results.Solution:
        """A short run of the pendulum."""
        return mbd.simulate(self.pendulum, t_end=1e-2, dt=1e-3)

    @cached_property
    def history(self) -> Any:
        """The motion of a body with the coordinates of `reduction`."""
        n, times = self.reduction.body.num_modes, 4
        eta = 1e-6 * np.arange(times * n, dtype=float).reshape(times, n)
        zero = np.zeros((times, 3))
        return SimpleNamespace(
            time=np.linspace(0, 0.1, times), eta=eta, eta_rate=0 * eta, eta_acceleration=0 * eta,
            position=zero, velocity=zero, acceleration=zero, omega=zero, alpha=zero,
            rotation=np.tile([1.0, 0, 0, 0], (times, 1)),
            wrenches={"left": np.zeros((times, 6)), "right": np.zeros((times, 6))},
        )  # fmt: skip

    # ---- meshes and what is made of them
    @cached_property
    def box(self) -> mbd.fem.TaggedMesh:
        """A box with groups."""
        return box(self.comm, cells=(3, 1, 1), cell=CellType.hexahedron)

    @staticmethod
    def rod_of_length(length: float) -> mbd.ConnectingRod:
        """Return a coarse rod."""
        return mbd.ConnectingRod(length=length, size=0.02, order=1)

    @cached_property
    def rod_mesh(self) -> mbd.fem.TaggedMesh:
        """The mesh of a coarse rod."""
        return mbd.build_mesh(self.rod_of_length(0.137), self.comm)

    @cached_property
    def reduction(self) -> mbd.reduction.Reduction:
        """The box, reduced."""
        return mbd.reduce(
            mbd.ElasticModel(self.box, mbd.STEEL, degree=1),
            interfaces=["left", "right"],
            num_modes=2,
            options=mbd.ReductionOptions(static_correction=True),
        )

    @cached_property
    def sensitivities(self) -> mbd.design.BodySensitivities:
        """Derivatives of the body of `reduction` with respect to Young's modulus."""
        return mbd.sensitivities(self.reduction, [mbd.Parameter("E", "young")])

    @cached_property
    def parametric(self) -> mbd.design.ParametricBody:
        """The body of `reduction`, which follows Young's modulus."""
        model = mbd.ElasticModel(self.box, mbd.STEEL, degree=1)
        young = mbd.Parameter("E", "young")
        return mbd.design.ParametricBody(model, [young], interfaces=["left", "right"], num_modes=2)

    @cached_property
    def recovery(self) -> Any:
        """The recovery of fields of `reduction`."""
        return mbd.durability.Recovery(self.reduction, stress=mbd.STEEL)

    @cached_property
    def modal(self) -> Any:
        """The natural modes of the box."""
        return mbd.modal_analysis(mbd.ElasticModel(self.box, mbd.STEEL, degree=1), num_modes=2)

    @cached_property
    def structure(self) -> Any:
        """The box, held at one end, on a rotor."""
        return mbd.structures.rotating_structure(
            mbd.ElasticModel(self.box, mbd.STEEL, degree=1), held=["left"]
        )

    @cached_property
    def transient(self) -> Any:
        """A short motion of the box at full order."""
        return mbd.structures.transient(
            mbd.ElasticModel(self.box, mbd.STEEL, degree=1),
            motion=mbd.structures.PrescribedMotion(),
            interfaces=["left"],
            held=["left"],
            t_end=1e-5,
            dt=1e-5,
            options=mbd.structures.TransientOptions(fields_at=[0.0]),
        )

    @cached_property
    def line(self) -> Any:
        """A mesh of two intervals in space."""
        x = np.array([[0.0, 0, 0], [0.5, 0, 0], [1.0, 0, 0]])
        element = basix.ufl.element("Lagrange", "interval", 1, shape=(3,))
        return create_mesh(self.comm, cells=np.array([[0, 1], [1, 2]]), e=element, x=x)

    @cached_property
    def beam(self) -> mbd.BeamModel:
        """A straight beam."""
        return mbd.BeamModel(self.line, mbd.forms.Section.circle(0.01), mbd.STEEL)

    @cached_property
    def beam_reduction(self) -> Any:
        """The beam, reduced."""
        return mbd.reduce_beam(self.beam, interfaces={"a": 0.0, "b": 1.0}, num_modes=2)

    @cached_property
    def beam_structure(self) -> Any:
        """The beam on a rotor."""
        return mbd.structures.rotating_beam(self.beam, held=[0.0], axis=(0, 0, 1))

    @cached_property
    def ufl(self) -> SimpleNamespace:
        """Functions of UFL on the mesh of the box, and on the line."""
        V = fem.functionspace(self.box.mesh, ("Lagrange", 1, (3,)))
        W = fem.functionspace(self.line, ("Lagrange", 1, (6,)))
        return SimpleNamespace(
            u=ufl.TrialFunction(V), v=ufl.TestFunction(V), f=fem.Function(V),
            q=fem.Function(W), p=ufl.TrialFunction(W), w=ufl.TestFunction(W), dx=ufl.dx,
            x=ufl.SpatialCoordinate(self.box.mesh),
            s=fem.Function(fem.functionspace(self.box.mesh, ("Lagrange", 1))),
        )  # fmt: skip

    # ---- matrices and files
    @cached_property
    def matrices(self) -> Any:
        """Eight particles at the corners of a cube with springs between all of them."""
        grid = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
        K = np.zeros((24, 24))
        for a in range(8):
            for b in range(a):
                e = grid[a] - grid[b]
                e /= np.linalg.norm(e)
                d = np.zeros(24)
                d[3 * a : 3 * a + 3], d[3 * b : 3 * b + 3] = e, -e
                K += 1e6 * np.outer(d, d)
        return mbd.imports.FullMatrices(K, np.eye(24), grid)

    @cached_property
    def element(self) -> Any:
        """The matrices of the reduced box in the coordinates of its interfaces."""
        from dolfinx_mbd.io.export.superelement import superelement

        s = superelement(self.reduction.body)
        return mbd.imports.ReducedMatrices(s.stiffness, s.mass, s.points, ("left", "right"))

    def file(self, name: str) -> Path:
        """Return the path of a file of a known kind, written when it is first requested."""
        path = self.folder / name
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                getattr(self, "_write_" + name.replace(".", "_"))(path)
        return path

    def _write_body_npz(self, path: Path) -> None:
        self.rod.save(path)

    def _write_run_npz(self, path: Path) -> None:
        self.run.save(path)

    def _write_case_npz(self, path: Path) -> None:
        mbd.sweep(square, {"x": [2.0]}, workers=1, path=self.folder / "case")
        shutil.copy(self.folder / "case" / "case-000000.npz", path)

    def _write_checkpoint_npz(self, path: Path) -> None:
        mbd.simulate(self.crank, t_end=1e-3, dt=2e-4, path=path.with_suffix(""))
        shutil.copy(path.with_suffix("") / "checkpoint.npz", path)

    def _write_box_msh(self, path: Path) -> None:
        mbd.fem.write_mesh(mesh_builder, path)

    def _write_part_step(self, path: Path) -> None:
        from tests.geometry.test_step import write_step

        write_step(path)

    def _write_matrix_op2(self, path: Path) -> None:
        from tests.io.imports.op2_files import write_op2

        write_op2(path, self.reduction.body)

    def _write_matrix_op4(self, path: Path) -> None:
        mbd.export.export(self.reduction.body, path, "op4")

    def _write_free_full(self, path: Path) -> None:
        from tests.io.imports.ansys_files import write_full

        matrices = self.matrices
        write_full(path, matrices.stiffness, matrices.mass, np.arange(1, 9))

    def _write_matrix_pch(self, path: Path) -> None:
        mbd.export.export(self.reduction.body, path, "dmig")

    def _write_K_mtx(self, path: Path) -> None:
        from scipy.io import mmwrite

        mmwrite(path, self.matrices.stiffness, symmetry="general")

    def _write_M_mtx(self, path: Path) -> None:
        from scipy.io import mmwrite

        mmwrite(path, self.matrices.mass, symmetry="general")

    def _write_materials_toml(self, path: Path) -> None:
        path.write_text(
            '[body]\nyoung = 2.1e11\npoisson = 0.3\ndensity = 7850.0\nname = "plain steel"\n'
        )


def mesh_builder(model: Any) -> None:
    """Mesh a box with two named faces."""
    model.occ.addBox(0, 0, 0, LENGTH, 0.02, 0.012)
    model.occ.synchronize()
    faces = [tag for dim, tag in model.getEntities(2)]
    model.addPhysicalGroup(3, [1], name="body")
    model.addPhysicalGroup(2, faces[:1], name="left")
    model.addPhysicalGroup(2, faces[1:2], name="right")
    model.mesh.setSize(model.getEntities(0), 0.02)
    model.mesh.generate(3)
