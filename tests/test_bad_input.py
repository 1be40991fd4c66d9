"""Bad input: errors and their messages. One list, from the mesh to the pictures.

Every case raises one error, the same on every rank, that names the cause and often a remedy.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import math
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx.mesh import CellType, create_box, create_rectangle, create_unit_interval
from mpi4py import MPI
from petsc4py import PETSc

import dolfinx_mbd as mbd
from dolfinx_mbd import (
    STEEL,
    ConnectingRod,
    ElasticModel,
    Frame,
    InterfaceSpec,
    Material,
    RigidBody,
    System,
    errors,
    mechanisms,
)
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import Interface, ReducedBody, Skin
from dolfinx_mbd.body.body_files import BodyFileError
from dolfinx_mbd.body.stress_modes import motion_of
from dolfinx_mbd.dynamics import AssemblyError, GeneralizedAlpha, StepError
from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.fem import TaggedMesh, build_mesh, read_mesh
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.fem.modal import modal_analysis
from dolfinx_mbd.files import temporary_path
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Ground,
    Joint,
    JointLoad,
    constant_speed,
    force,
    revolute,
    spherical,
)
from dolfinx_mbd.mechanism.mechanisms.gas import FourStrokePressure
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.requirements import check_requirements
from dolfinx_mbd.results import Solution
from tests.models.beams import slender_rod
from tests.models.bodies import box
from tests.models.calls import flat
from tests.models.plates import plate

pytestmark = pytest.mark.timeout(30, func_only=True)  # (compiling kernels is set-up)

CRANK = {"crank_radius": 0.04, "crank_mass": 1.0, "piston_mass": 0.2, "speed": 10.0}


@dataclass(frozen=True)
class Bench:
    """Objects that the cases share.

    Attributes:
        comm: All ranks.
        folder: A folder that they share.
        run: A short motion of a slider-crank.
    """

    comm: MPI.Intracomm
    folder: Path
    run: Solution

    def file(self, name: str, write: Callable[[Path], object]) -> Path:
        """Return a file that the first rank has written."""
        path = self.folder / name
        if self.comm.rank == 0:
            write(path)
        self.comm.Barrier()
        return path


@pytest.fixture(scope="module")
def motion() -> Solution:
    """Return a short run of a slider-crank."""
    return simulate(mechanisms.slider_crank(slender_rod(), **CRANK), t_end=1e-3, dt=2e-4)


@pytest.fixture
def bench(comm: MPI.Intracomm, tmp_path: Path, motion: Solution) -> Bench:
    """Return the objects that the calls need."""
    return Bench(comm, comm.bcast(tmp_path, root=0), motion)


Call = Callable[[Bench], object]


def case(name: str, text: str, call: Call, kind: type[Exception] = ValueError) -> Any:
    """Return a case with the pattern of the message, the call, and the type of the error."""
    return pytest.param(call, kind, text, id=name)


# ---- Bodies, joints, calls and meshes of the cases
GROUND = Ground({"o": Frame(), "x": Frame()})
BOB = RigidBody("bob", 1.0, [0.01] * 3, frames={"o": Frame(), "tip": Frame((0.1, 0, 0))})
PIVOT = revolute("pivot", GROUND.frame("o"), BOB.frame("o"))
BALL = spherical("ball", GROUND.frame("x"), BOB.frame("o"))
SPIN = constant_speed(1.0)


def reduced(**options: Any) -> Call:
    """Return a call that reduces a box with the options of a case."""
    arguments = {"material": STEEL, "interfaces": ["left"], "num_modes": 2, "degree": 1} | options

    def call(b: Bench) -> object:
        mesh = box(b.comm)
        if arguments.get("facet_tags") == "cells":
            return flat(reduce, mesh, **(arguments | {"facet_tags": mesh.cell_tags}))
        return flat(reduce, mesh, **arguments)

    return call


def on_mesh(make: Callable[[MPI.Intracomm], Any], **options: Any) -> Call:
    """Return a call that reduces a body, by default a free one, with the mesh that `make` makes."""
    arguments = {"material": STEEL, "interfaces": (), "num_modes": 2, "degree": 1} | options
    return lambda b: flat(reduce, make(b.comm), **arguments)


def cube(cell: CellType, move: float, at: float = 1.0, n: int = 2) -> Callable[..., Any]:
    """Return a function that makes a cube of n³ boxes, with its node at (at, at, at) moved.

    The node moves by about `move` along each axis.
    """

    def make(comm: MPI.Intracomm) -> Any:
        mesh = create_box(comm, [np.zeros(3), np.ones(3)], [n, n, n], cell)
        moved = np.linalg.norm(mesh.geometry.x - at, axis=1) < 1e-9
        mesh.geometry.x[moved] += np.array([1.0, 0.93, 0.97]) * move if at < 1 else move
        return mesh

    return make


def two_boxes(model: Any) -> None:
    """Add two boxes side by side that do not share the nodes between them."""
    for x in (0, 1):
        model.occ.addBox(x, 0, 0, 1, 1, 1)
    model.occ.synchronize()
    model.addPhysicalGroup(3, [1, 2], name="body")
    model.mesh.setSize(model.getEntities(0), 0.9)
    model.mesh.generate(3)


def no_group(model: Any) -> None:
    """Add a meshed box without a name."""
    model.occ.addBox(0, 0, 0, 1, 1, 1)
    model.occ.synchronize()
    model.mesh.generate(3)


def engine(**options: Any) -> Call:
    """Return a call of `inline_engine` with options."""
    return lambda b: mechanisms.inline_engine(slender_rod(), **({"speed": 10.0} | options))


def design(**options: Any) -> Call:
    """Return a call of `EngineDesign` with options."""
    return lambda b: mechanisms.EngineDesign(**options)


def slider(rod: Any = None, **options: Any) -> Call:
    """Return a call of `slider_crank` with options."""
    return lambda b: mechanisms.slider_crank(rod or slender_rod(), **(CRANK | options))


def system(bodies: Any = (GROUND, BOB), joints: Any = (PIVOT,), **options: Any) -> Call:
    """Return a call of `System`, by default with a valid pendulum."""
    return lambda b: System(bodies, joints, **options)


def run(
    *, drivers: Any = (), loads: Any = (), t_end: Any = 0.1, dt: Any = 0.01, **options: Any
) -> Call:
    """Return a call that simulates a pendulum."""
    return lambda b: simulate(
        System([GROUND, BOB], [PIVOT], drivers=drivers, loads=loads), t_end=t_end, dt=dt, **options
    )


def rod(**changes: Any) -> Call:
    """Return a call that changes the data of a body."""
    return lambda b: slender_rod().replace(**changes)


def tilted() -> ReducedBody:
    """Return a rod whose bores are not parallel."""
    body = slender_rod()
    axes = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    return body.replace(
        interfaces=(body.interfaces[0], dataclasses.replace(body.interfaces[1], axes=axes))
    )


def loaded(name: str, write: Callable[[Path], object]) -> Call:
    """Return a call that loads a body from a damaged file."""
    return lambda b: ReducedBody.load(b.file(name, write))


def newer(path: Path) -> None:
    """Write a body to a file, and then change its version to a later one."""
    with np.load(slender_rod().save(path)) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["header"])) | {"version": 99}
    np.savez(path, **(arrays | {"header": np.array(json.dumps(header))}))


def saved_header(header: Any) -> Callable[[Path], object]:
    """Return a function that writes a file with a header only."""
    return lambda path: np.savez(path, header=header)


def truncated(path: Path) -> None:
    """Write the first half of the file of a body."""
    data = slender_rod().save(path).read_bytes()
    path.write_bytes(data[: len(data) // 2])


def off_centre_link(b: Bench) -> Solution:
    """Simulate a link of 0.4 m between points 1 m apart, which cannot be assembled."""
    ground = Ground({"a": Frame(), "b": Frame((1.0, 0, 0))})
    link = RigidBody("link", 1.0, [0.1] * 3, frames={"a": Frame(), "b": Frame((0.4, 0, 0))})
    joints = [
        revolute("left", ground.frame("a"), link.frame("a")),
        spherical("right", link.frame("b"), ground.frame("b")),
    ]
    return simulate(System([ground, link], joints), t_end=1.0, dt=0.1)


def wild(t: float, motion: Any) -> tuple[float, float, float]:
    """Return a force that points to the other side of y = 0: no step of 0.01 s has a solution.

    The tip is near y = 0, and a step with this force moves it to the other side, where the force is
    reversed.
    """
    return 0.0, -1e3 if motion.position[1] >= 0 else 1e3, 0.0


def from_the_middle_of_a_step(t: float, motion: Any) -> tuple[float, float, float]:
    """Return the force `wild` after 0.005 s and no force before, so that the start has none."""
    return wild(t, motion) if t > 0.005 else (0.0, 0.0, 0.0)


def twice_held(b: Bench) -> Solution:
    """Simulate a door on two hinges with one axis, whose constraints are redundant."""
    body = RigidBody.box("door", (1, 1, 0.1), mass=1.0, frames={"o": Frame(), "x": Frame()})
    ends = [revolute(f"hinge {n}", GROUND.frame(n), body.frame(n)) for n in "ox"]
    return simulate(System([GROUND, body], ends), t_end=1.0, dt=0.1)


MESHES = [
    case("no mesh but a path", r"expected a mesh, got 'rod.msh'; make one with read_mesh",
         lambda b: reduce("rod.msh", STEEL, interfaces=()), TypeError),
    case("tetrahedra without volume", r"of the 48 cells .* inverted or have no volume, .* at \(",
         on_mesh(cube(CellType.tetrahedron, -0.5))),
    case("folded tetrahedra", "of the 384 cells .* inverted",
         on_mesh(cube(CellType.tetrahedron, 0.3, 0.5, 4))),
    case("inverted hexahedron", "1 of the 8 cells", on_mesh(cube(CellType.hexahedron, -0.8))),
    case("nodes that are not numbers", "1 of the 8 cells",
         on_mesh(cube(CellType.hexahedron, math.nan))),
    case("cells of modal_analysis", "1 of the 8 cells",
         lambda b: modal_analysis(cube(CellType.hexahedron, -0.8)(b.comm), STEEL)),
    case("two parts", r"has 2 unconnected parts, near \(0.02283, 0.01, 0.006\); .* m; let them",
         on_mesh(lambda comm: box(comm, gap=True))),
    case("two parts of which each is held", "2 unconnected parts",
         on_mesh(lambda comm: box(comm, gap=True), interfaces=["left", "right"])),
    case("volumes side by side", "2 unconnected parts.*occ.fragment",
         on_mesh(lambda comm: build_mesh(two_boxes, comm))),
    case("hinged, one half loose", "hinged",
         on_mesh(lambda comm: box(comm, hinge=True), interfaces=["left"]), MeshError),
    case("hinged, both held", "hinged",
         on_mesh(lambda comm: box(comm, hinge=True), interfaces=["left", "right"]), MeshError),
    case("hinged, free", "7 motions without stiffness instead of 6",
         on_mesh(lambda comm: box(comm, hinge=True)), MeshError),
    case("volume without a name", "no physical volume; add one to name the body",
         lambda b: build_mesh(no_group, b.comm)),
    case("nothing meshed", "no elements; a builder must also call model.mesh.generate",
         lambda b: build_mesh(lambda model: None, b.comm)),
    case("no such file", "no mesh file '.*rod.msh'",
         lambda b: read_mesh(b.folder / "rod.msh", b.comm), FileNotFoundError),
    case("file that is no mesh", "cannot use '.*rod.msh' as a mesh",
         lambda b: read_mesh(b.file("rod.msh", lambda p: p.write_text("nodes")), b.comm)),
    case("line mesh", "volumes in space, or of faces in the plane",
         on_mesh(lambda comm: create_unit_interval(comm, 3))),
    case("plane mesh without thickness", "a plane body needs its thickness, .* m; got None",
         on_mesh(lambda comm: create_rectangle(comm, [(0, 0), (1, 1)], [2, 2]))),
    case("plane mesh, stress or strain", "needs plane='stress'", on_mesh(plate, thickness=0.01)),
    case("thickness in space", "for plane meshes; this mesh is in space", reduced(thickness=0.1)),
    case("degree 1 on a curved mesh", "degree 1 and the mesh geometric order 2.*use degree=2",
         on_mesh(lambda comm: build_mesh(ConnectingRod(size=0.02), comm))),
    case("region that is not there", "unknown region 'rod'; this mesh has 'all'",
         lambda b: box(b.comm).cells("rod")),
]  # fmt: skip

INTERFACES = [
    case("misspelt", "unknown group 'bigend'; this mesh has 'left', 'right', 'top'",
         reduced(interfaces=["bigend"])),
    case("misspelt in modal_analysis", "unknown group 'lift'; this mesh has",
         lambda b: modal_analysis(box(b.comm), STEEL, held=["lift"])),
    case("a volume", "unknown group 'all'; this mesh has 'left'", reduced(interfaces=["all"])),
    case("given twice", "^interfaces must be .*different", reduced(interfaces=["left", "left"])),
    case("None", "^interfaces must be", reduced(interfaces=None)),
    case("a number as name", "^every entry of interfaces must be", reduced(interfaces=[1])),
    case("no facets", "'pin' .*has no facets", reduced(interfaces={"pin": 77})),
    case("facets out of range", "'pin': some of its facets are not on this mesh",
         reduced(interfaces={"pin": np.array([10**6])})),
    case("names on a plain mesh", "a plain mesh has no group names",
         lambda b: reduce(box(b.comm).mesh, STEEL, interfaces=["left"])),
    case("tags without facet_tags", "no facet_tags were given",
         lambda b: reduce(box(b.comm).mesh, STEEL, interfaces={"left": 1})),
    case("tags of cells", "must tag facets",
         reduced(interfaces={"left": 1}, facet_tags="cells")),
    case("tags of the wrong dimension", "facet_tags must tag dimension 2; it tags 3",
         lambda b: TaggedMesh(box(b.comm).mesh, facet_tags=box(b.comm).cell_tags)),
    case("rigid ones that touch", "'left' and 'top' share .* nodes",
         reduced(interfaces=["left", "top"])),
    case("averaged ones that overlap", "'a' and 'b' overlap: they share 2 facets",
         reduced(interfaces={"a": "left", "b": "left"}, kind="averaged")),
    case("averaged, in a line", "'right' is degenerate: its facets lie in a line",
         on_mesh(lambda comm: box(comm, (1, 0.1, 5e-5)), interfaces=["right"], kind="averaged")),
    case("averaged, tiny", "'right' is tiny.*tag the whole surface",
         on_mesh(lambda comm: box(comm, (1e3, 5e-3, 5e-3)), interfaces=["right"], kind="averaged")),
    case("unknown kind", "^kind must be", reduced(kind="soft")),
    case("axes that are left-handed", "a right-handed triad",
         lambda b: InterfaceSpec(axes=np.diag([1.0, 1, -1]))),
    case("point of two numbers", "the point needs three coordinates",
         reduced(interfaces={"left": InterfaceSpec(point=(0, 0))})),
    case("attached to none", "attached_to must be one of 'left', None; got 'rihgt'",
         reduced(attached_to="rihgt")),
]  # fmt: skip

REDUCTION = [
    case("negative number of modes", "num_modes must be", reduced(num_modes=-1)),
    case("half a mode", "num_modes must be", reduced(num_modes=2.5)),
    case("more modes than the mesh has", r"num_modes=5000, but the mesh has only \d+ dofs",
         reduced(num_modes=5000)),
    case("more free modes than the mesh has", "num_modes=5000, but the mesh has",
         reduced(num_modes=5000, interfaces=())),
    case("modes of modal_analysis", "num_modes must be",
         lambda b: modal_analysis(box(b.comm), STEEL, num_modes=-2)),
    case("degree 0", "degree must be .*; got 0", reduced(degree=0)),
    case("degree as text", "degree must be .*; got 'two'",
         reduced(degree="two")),
    case("negative cut-off", "up_to must be .*; got -1.0", reduced(up_to=-1.0)),
    case("cut-off below all modes", "no mode is below up_to=1 Hz; the first is at",
         reduced(up_to=1.0, interfaces=["left", "right"])),
    case("raw modes of a free body", "orthonormalize=False needs attached_to",
         reduced(orthonormalize=False)),
    case("point outside", "'far' at .* is not in the mesh; the nearest node",
         reduced(points={"far": (1, 0, 0)}, interfaces=["left", "right"])),
    case("point of two numbers", "point 'flat' must be",
         reduced(points={"flat": (1, 0)}, interfaces=["left", "right"])),
    case("unknown solver", "PETSc does not accept petsc_options=.*'choleski'",
         reduced(petsc_options={"pc_type": "choleski"})),
    case("unknown keyword", "unexpected keyword argument 'num_mode'",
         reduced(num_mode=3), TypeError),
]  # fmt: skip

MATERIALS = [
    case("no material", "give a material or a density", reduced(material=None)),
    case("a density but no stiffness", "give a material, or a stiffness",
         reduced(material=None, density=1.0)),
    case("a name for a material", "expected a material, got 'steel'; give STEEL",
         reduced(material="steel"), TypeError),
    case("negative density", "density must be", reduced(density=-1.0)),
    case("density as text", "density must be .*; got '7850'",
         reduced(density="7850")),
    case("density negative somewhere", "density is not positive everywhere",
         reduced(density=ufl.as_ufl(-1.0))),
    *(
        case(f"material {changes}", text, lambda b, c=changes: dataclasses.replace(STEEL, **c))
        for changes, text in (
            ({"young": 0.0}, "young must be a positive .* in Pa"),
            ({"young": -210e9}, "young must be a positive .*-210"),
            ({"young": math.inf}, "young must be a finite number"),
            ({"young": "steel"}, "young must be a finite number; got 'steel'"),
            ({"poisson": 0.5}, "poisson must be between -1 and 0.5.*got 0.5"),
            ({"poisson": -1.0}, "poisson must be between -1 and 0.5.*got -1"),
            ({"poisson": None}, "poisson must be a finite number; got None"),
            ({"density": 0.0}, "density must be a positive .*got 0.0"),
            ({"density": math.nan}, "density must be a finite number"),
        )
    ),
]  # fmt: skip

FILES = [
    case("newer", "format 99, this program reads up to 2; update dolfinx_mbd",
         loaded("rod.npz", newer), BodyFileError),
    case("truncated", "truncated or damaged", loaded("rod.npz", truncated), BodyFileError),
    case("text", "not a reduced body",
         loaded("rod.npz", lambda p: p.write_text("a rod")), BodyFileError),
    case("a pickle", "not a reduced body",
         loaded("rod.npz", lambda p: p.write_bytes(pickle.dumps({"name": "rod"}))), BodyFileError),
    case("a pickle within", "not a reduced body",
         loaded("rod.npz", saved_header(np.array({"a": 1}, dtype=object))), BodyFileError),
    case("other arrays", "no header",
         loaded("rod.npz", lambda p: np.savez(p, a=np.zeros(3))), BodyFileError),
    case("another format", "another format",
         loaded("rod.npz", saved_header(np.array('{"format": "x"}'))), BodyFileError),
    case("missing", r"no reduced body.*rod\.npz",
         lambda b: ReducedBody.load(b.folder / "rod.npz"), FileNotFoundError),
    case("saved below a file", "not a directory.*; nothing was written",
         lambda b: slender_rod().save(b.file("rod", Path.touch) / "rod.npz"), OSError),
    case("saved to a directory", "a directory; add a file's name",
         lambda b: slender_rod().save(b.folder), OSError),
]  # fmt: skip

BODIES = [
    *(
        case(f"reduced body, {' '.join(changes)} {k}", text, rod(**changes))
        for k, (changes, text) in enumerate(
            (
                ({"total_mass": -1.0}, "total_mass must be a positive"),
                ({"total_mass": math.nan}, "total_mass must be a positive"),
                ({"stiffness": np.ones((2, 3))}, r"stiffness must be .* of shape \(3, 3\)"),
                ({"stiffness": np.triu(np.ones((3, 3)))}, "symmetric"),
                ({"stiffness": -np.eye(3)}, "stiffness must be a positive semidefinite matrix"),
                ({"mass": np.full((3, 3), np.nan)}, "mass must be an array of finite numbers"),
                ({"mass": np.zeros((3, 3))}, "mass must be a positive definite matrix"),
                ({"damping": -np.eye(3)}, "damping must be a positive semidefinite matrix"),
                ({"second_moments": np.arange(144.0).reshape(4, 4, 3, 3)}, "H_kl"),
                ({"modes": (mbd.body.Mode("one", 1.0),)}, "^modes: 1 modes"),
                ({"first_moments": "words"}, "first_moments"),
                ({"interfaces": slender_rod().interfaces[:1] * 2}, "^interfaces must .* names"),
                ({"interfaces": slender_rod(axial=0).interfaces}, "^interface 'big_end': 2 modes"),
            )
        )
    ),
    case("unknown field", "attributes of a body.*colour", rod(colour="red"), TypeError),
    case("unknown interface", "unknown interface 'bigend'; body 'rod' has 'big_end', 'small_end'",
         lambda b: slender_rod().interface("bigend")),
    case("unknown point", "unknown point 'x'; body 'rod' has 'middle'",
         lambda b: slender_rod().point("x")),
    case("unknown kind of interface", "kind must be one of 'rigid', 'averaged'; got 'glued'",
         lambda b: Interface("a", "glued", np.zeros(3), np.eye(3), np.zeros((6, 1)))),
    case("axes of an interface", "orthonormal",
         lambda b: Interface("a", "rigid", np.zeros(3), 2 * np.eye(3), np.zeros((6, 1)))),
    case("skin", "triangles must be indices from 0 to 2",
         lambda b: Skin(np.eye(3), [[0, 1, 7]], np.zeros((1, 3, 3)))),
    case("truncated to more modes", "num_modes must be a whole number from 0 to 3; got 9",
         lambda b: slender_rod().truncated(9)),
    case("zero mass", "^body 'b': mass must be .*; got 0.0",
         lambda b: RigidBody("b", 0.0, [1] * 3)),
    case("mass as text", "^body 'b': mass must be .* in kg; got '1 kg'",
         lambda b: RigidBody("b", "1 kg", [1] * 3)),
    case("no inertia about an axis", "a moment is zero; give a thin rod its true small moment",
         lambda b: RigidBody("b", 1.0, [0, 1, 1])),
    case("impossible inertia", "at most the sum of the other two",
         lambda b: RigidBody("b", 1.0, [1, 1, 3])),
    case("shape of the inertia", "symmetric 3×3", lambda b: RigidBody("b", 1.0, [1, 2])),
    case("centre of two numbers", "^body 'b': centre must be 3",
         lambda b: RigidBody("b", 1.0, [1] * 3, (0, 0))),
    case("rotation of two numbers", "^body 'b': rotation must be a rotation vector",
         lambda b: RigidBody("b", 1.0, [1] * 3, rotation=(1, 0))),
    case("zero rotation", "quaternion .*, not zero",
         lambda b: RigidBody("b", 1.0, [1] * 3, rotation=(0, 0, 0, 0))),
    case("frame with scaled axes", "^axes of a frame must be .*orthonormal",
         lambda b: RigidBody("b", 1.0, [1] * 3, frames={"a": Frame((0, 0, 0), 2 * np.eye(3))})),
    case("a point for a frame", r"^body 'ground': frame 'a' must be Frame\(point, axes\)",
         lambda b: Ground({"a": (0, 0, 0)})),
    case("unknown frame", "^frame of body 'bob' must be one of 'o', 'tip'; got 'end'",
         lambda b: BOB.frame("end")),
    case("neither density nor mass", "either density", lambda b: RigidBody.box("b", (1, 1, 1))),
    case("negative size", "^size must be three positive",
         lambda b: RigidBody.box("b", (1, -1, 1), mass=1.0)),
    case("axis of a cylinder", "^axis must be .* from 0 to 2; got 4",
         lambda b: RigidBody.cylinder("b", 1.0, 1.0, axis=4, mass=1.0)),
    case("negative damping", "^body 'b': damping_ratio must be .* at least 0",
         lambda b: FlexibleBody("b", slender_rod(), damping_ratio=-0.1)),
    case("stiffening without it", "holds no stiffening; reduce it with",
         lambda b: FlexibleBody("b", slender_rod(), stiffening=True)),
    case("a path for a body", "^body 'b': reduced must be ReducedBody .*load.*got 'rod",
         lambda b: FlexibleBody("b", "rod.npz"), TypeError),
]  # fmt: skip

SYSTEMS = [
    case("nothing that moves", "at least one body that can move", system([GROUND], [])),
    case("two grounds", "at most one ground", system([GROUND, Ground(name="floor"), BOB])),
    case("duplicate bodies", r"duplicate names \['bob'\]", system([GROUND, BOB, BOB])),
    case("a joint called as a body", r"names \['bob'\]: bodies, joints, .* share one list",
         system(joints=[revolute("bob", PIVOT.first, PIVOT.second)])),
    case("a reduced body", "^every entry of bodies must be .*FlexibleBody",
         system([slender_rod()], []), TypeError),
    case("joint of a body with itself", "'j' connects body 'bob' with itself",
         lambda b: Joint("j", "fixed", BOB.frame("o"), BOB.frame("tip"))),
    case("unknown kind of joint", "^joint 'j': kind must be one of .*; got 'hinge'",
         lambda b: Joint("j", "hinge", PIVOT.first, PIVOT.second)),
    case("joint without a frame", "'j': first must be a frame of a body",
         lambda b: revolute("j", "ground", BOB.frame("o")), TypeError),
    case("body left out", "'ground', which is not one of the bodies .'bob'.: add",
         system([BOB])),
    case("force as a function of time", r"called as value\(t, motion\)",
         lambda b: mbd.force("f", BOB.frame("o"), lambda t: (0, 0, t)), TypeError),
    case("torque of two arguments", r"called as value\(t, s, rate\)",
         lambda b: mbd.JointLoad("m", "pivot", "rotation", lambda t, s: s), TypeError),
    case("axes of a sensor", "^axes must be one of 'global', 'body', ",
         lambda b: b.run.sensor(b.run.names()[0], axes="frame")),
    case("pressure on a mesh without names", r"TaggedMesh\(mesh, facet_tags=",
         lambda b: mbd.reduction.pressure(
             create_unit_interval(MPI.COMM_SELF, 2), "end"  # type: ignore[arg-type]
         ), TypeError),
    case("run instead of a history", "the history of a body .run.body.name. of this run",
         lambda b: motion_of(b.run, 3), TypeError),
    case("history by brackets", r"use run.body\(name\)", lambda b: b.run["bob"], TypeError),
    case("gravity as a number", "^gravity must be 3 finite numbers in m/s²",
         system(gravity=9.81)),
    case("driver of a ball joint", "spherical joint 'ball' has no rotation",
         system(joints=[BALL], drivers=[Driver("d", "ball", SPIN)])),
    case("driver of no joint", "^name of a joint must be one of 'pivot'; got 'axle'",
         system(drivers=[Driver("d", "axle", SPIN)])),
    case("contradictory drivers", "'d' and 'e' prescribe the same rotation of joint 'pivot'",
         system(drivers=[Driver("d", "pivot", SPIN), Driver("e", "pivot", SPIN)])),
    case("driver without a function", "^driver 'd': motion must be a function .*constant_speed",
         lambda b: Driver("d", "pivot", 10.0), TypeError),
    case("load along a hinge", "has no displacement as one coordinate",
         system(loads=[JointLoad("m", "pivot", "displacement", 1.0)])),
    case("load at no frame", "^frame of body 'bob' must be .*; got 'end'",
         system(loads=[force("f", ("bob", "end"), (0, 0, 1))])),
    case("load at a body", "'f': frame must be a frame of a body",
         lambda b: force("f", "bob", (0, 0, 1)), TypeError),
    case("load as text", "^load 'f': value must be 3 finite numbers; got '10 N'",
         lambda b: force("f", BOB.frame("tip"), "10 N")),
]  # fmt: skip

MECHANISMS = [
    case("crank longer than the rod", "^crank_radius must be less than the rod length",
         slider(crank_radius=0.4)),
    case("massless piston", "^piston_mass must be a positive", slider(piston_mass=0.0)),
    case("crank without inertia", "^crank_inertia must be a positive", slider(crank_inertia=0.0)),
    case("speed and torque", "either the crank's speed", slider(torque=1.0)),
    case("unknown end", "unknown interface 'bigend'; body 'rod' has 'big_end', 'small_end'",
         slider(ends=("bigend", "small_end"))),
    case("one end twice", "^ends must be a list of different names",
         slider(ends=("big_end", "big_end"))),
    case("bores that are not parallel", "the bores must be parallel .*Give the interfaces' axes",
         slider(tilted())),
    case("a path for a rod", "^rod must be ReducedBody", slider("rod.npz"), TypeError),
    case("rod without length", "^length must be",
         lambda b: mechanisms.rigid_rod(length=0.0, mass=1.0)),
    case("rod without mass", "^mass must be a positive",
         lambda b: mechanisms.rigid_rod(length=0.3, mass=0.0)),
    case("firing order", "^firing_order must be", design(firing_order=(1, 2, 2))),
    case("throws against the firing order", "is not at top dead centre; it needs a throw of",
         design(throw_angles=(0, 0, 0))),
    case("number of throws", "^throw_angles must be", design(throw_angles=(0,))),
    case("half a cylinder", "cylinders must be .*; got 2.5", design(cylinders=2.5)),
    case("pressure as a number", "^pressure must be a function",
         engine(pressure=91e5), TypeError),
    case("peak below compression", "no heat release gives .* 1 bar; compression alone reaches 17.8",
         lambda b: FourStrokePressure(0.07, 0.04, 0.137, peak_pressure=1e5)),
    case("valves in the wrong order", "intake_closes < ignition < exhaust_opens",
         lambda b: FourStrokePressure(0.07, 0.04, 0.137, exhaust_opens=-130)),
    case("negative bore", "^bore must be a positive",
         lambda b: FourStrokePressure(-0.07, 0.04, 0.137)),
    case("compression ratio", "^compression_ratio must be",
         lambda b: FourStrokePressure(0.07, 0.04, 0.137, compression_ratio=1)),
    case("no-load speed", "^no_load_speed must be",
         lambda b: mechanisms.linear_torque(10.0, 0.0)),
    case("cannot be assembled", r"cannot be assembled.*'(left|right)'.*is off by",
         off_centre_link, AssemblyError),
    case("redundant constraints", r"5 of the 10 .* redundant.*'hinge", twice_held, AssemblyError),
]  # fmt: skip

RUNS = [
    case("dt = 0", "^dt must be a positive.*got 0", run(dt=0.0)),
    case("dt = nan", "dt must be a positive", run(dt=math.nan)),
    case("end before start", "t_end must be after the start", run(t_end=-1.0)),
    case("time as text", "^t_end must be a.*got '1 s'",
         run(t_end="1 s"), TypeError),
    case("stride", "^stride must be a whole number", run(stride=0)),
    case("tolerance", "^tolerance must be a positive", run(tolerance=0.0)),
    case("unknown start", "^elastic_start must be .* got 'warm'", run(elastic_start="warm")),
    case("start of another system", "start has 24 coordinates, the system 7",
         lambda b: run(start=b.run.final_state)(b)),
    case("redundant", "^redundant must be .* got 'ignore'", run(redundant="ignore")),
    case("method as text", "^method must be GeneralizedAlpha", run(method="bdf"), TypeError),
    case("spectral radius", "^rho must be .* from 0 to 1; got 1.5",
         lambda b: GeneralizedAlpha.from_spectral_radius(1.5)),
    case("unknown keyword", "unexpected keyword argument 'stepsize'", run(stepsize=3), TypeError),
    case("rate of a driven joint", "the rates of 'pivot' contradict the constraints",
         run(drivers=[Driver("d", "pivot", SPIN)], start={"pivot": 3.0}), AssemblyError),
    case("rate of no joint", "^name of a joint must be .*; got 'axle'", run(start={"axle": 1.0})),
    case("driver of one number", r"'d': motion\(0\) must return angle",
         run(drivers=[Driver("d", "pivot", lambda t: t)])),
    case("driver that is not a number", r"'d': motion\(0\) must .* three finite numbers; got \(nan",
         run(drivers=[Driver("d", "pivot", lambda t: (math.nan, 0.0, 0.0))])),
    case("load that is not a number", "^load 'push': value must be 3 finite numbers",
         run(loads=[force("push", BOB.frame("tip"), lambda t, m: (math.nan, 0, 0))])),
    case("step that does not converge", "t = .* does not converge.*'bob'.*Try a smaller dt",
         run(loads=[force("push", BOB.frame("tip"), from_the_middle_of_a_step)], t_end=1.0),
         StepError),
]  # fmt: skip

RESULTS = [
    case("unknown history", "name of a body that can move must be one of 'crank', 'rod'",
         lambda b: b.run.body("road")),
    case("unknown joint", "name of a joint or driver must be one of 'main'",
         lambda b: b.run.joint("rod")),
    case("sensor at no point", "unknown point 'mid'; body 'rod' has 'middle'",
         lambda b: b.run.sensor("rod", "mid")),
    case("sensor at a point of two numbers", "^point must be 3 finite numbers",
         lambda b: b.run.sensor("crank", (1, 2))),
    case("sensor without skin", "has no skin; measure at a named point or an interface",
         lambda b: b.run.sensor("rod", (0, 0, 0))),
    case("sensor of what", "^quantity must be .* got 'speed'",
         lambda b: b.run.sensor("crank", quantity="speed")),
    case("picture without skin", r"a body with a skin.*reduce\(..., skin=True\).*'rod'",
         lambda b: mbd.plotting.plot_modes(slender_rod())),
    case("film without frames", "frames must be .*; got 0",
         lambda b: mbd.plotting.animate(b.run, b.folder / "run.gif", frames=0)),
    case("film of an unknown kind", "^path must be a path that ends with .gif or .mp4",
         lambda b: mbd.plotting.animate(b.run, b.folder / "run.avi")),
    case("connecting rod, bore", "big_bore must be less than",
         lambda b: ConnectingRod(big_bore=0.06)),
    case("connecting rod, length", "length must be above 0.044 m",
         lambda b: ConnectingRod(length=0.04)),
    case("connecting rod, unknown parameter", "lenght",
         lambda b: ConnectingRod(lenght=0.1), TypeError),
    case("unknown name of the package", "dolfinx_mbd.*attribute.*analysis.*did you mean",
         lambda b: mbd.analysis, AttributeError),
]  # fmt: skip

ALL = [
    *(MESHES + INTERFACES + REDUCTION + MATERIALS + FILES),
    *(BODIES + SYSTEMS + MECHANISMS + RUNS + RESULTS),
]


@pytest.mark.parametrize(("call", "kind", "text"), ALL)
def test_refused(bench: Bench, call: Call, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as error:
        call(bench)
    assert len(set(bench.comm.allgather(str(error.value)))) == 1


def test_mesh_in_millimetres(bench: Bench) -> None:
    """A length in millimetres or a modulus in GPa gives a warning, a body in SI units none."""
    ends: Any = {"interfaces": ["left", "right"], "num_modes": 1}
    cells = (24, 2, 1)  # short linear hexahedra, which cause no warning
    with pytest.warns(errors.UnitsWarning, match="unit='mm'.*--unit mm") as seen:
        reduce(ElasticModel(box(bench.comm, (137.0, 20.0, 12.0), cells), STEEL, degree=1), **ends)
    assert Path(seen[0].filename) == Path(__file__)
    assert (seen[0].message.quantity, seen[0].message.limit) == ("mass", 1e6)
    assert seen[0].message.value == pytest.approx(137 * 20 * 12 * 7850)
    with pytest.warns(errors.UnitsWarning) as seen:
        reduce(
            ElasticModel(box(bench.comm, cells=cells), Material(210.0, 0.3, 7850.0), degree=1),
            **ends,
        )
    assert seen[0].message.quantity == "speed of sound"
    assert seen[0].message.value == pytest.approx(math.sqrt(210 / 7850))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reduce(ElasticModel(box(bench.comm, cells=cells), STEEL, degree=1), **ends)


def test_full_disk(bench: Bench, tmp_path: Path) -> None:
    """No incomplete file remains, and an existing body is kept. (Each rank has its own folder.)"""
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full here")
    path = slender_rod().save(tmp_path / "rod.npz")
    before = path.read_bytes()
    temporary_path(path).symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device.*nothing was written"):
        slender_rod(bending=3).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["rod.npz"]


@pytest.mark.parametrize("stride", [1, 4])
def test_interrupted_run(bench: Bench, stride: int) -> None:
    """Ctrl-C ends a run, which returns the states computed so far."""

    def press(t: float, motion: Any) -> tuple[float, float, float]:
        if t > 0.055:
            raise KeyboardInterrupt
        return 0.0, 1.0, 0.0

    with pytest.warns(errors.MbdWarning, match="interrupted at t = 0.05 s") as records:
        solution = run(loads=[force("push", BOB.frame("tip"), press)], stride=stride)(bench)
    assert [w.message.value for w in records] == [pytest.approx(0.05)]  # type: ignore[union-attr]
    assert isinstance(solution, Solution)
    assert not solution.complete
    assert solution.time[-1] == pytest.approx(0.05)
    assert len(solution) == (6 if stride == 1 else 3)
    whole = run(loads=[force("push", BOB.frame("tip"), (0.0, 1.0, 0.0))])(bench)
    assert np.array_equal(solution.q[-1], whole.q[5])


def test_error_of_a_failed_step_contains_the_states_before_it(bench: Bench) -> None:
    def late(t: float, motion: Any) -> tuple[float, float, float]:
        return wild(t, motion) if t > 0.055 else (0.0, 1.0, 0.0)

    with pytest.raises(StepError, match=r"from t = 0.05 s to 0.06 s") as error:
        run(loads=[force("push", BOB.frame("tip"), late)], stride=4)(bench)
    solution = error.value.solution
    assert solution is not None and not solution.complete
    assert solution.time[-1] == pytest.approx(0.05)


def test_options_of_a_failed_solver_are_forgotten(bench: Bench) -> None:
    """A wrong option has no effect on the next reduction."""
    for options in ({"pc_type": "choleski"}, {"pc_factor_mat_solver_type": "mumpz"}):
        with pytest.raises((ValueError, FactorizationError)):
            reduced(petsc_options=options)(bench)
        gc.collect()
    assert not [k for k in PETSc.Options().getAll() if k.startswith("dolfinx_mbd")]


def test_complex_petsc(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error states which PETSc is needed."""
    monkeypatch.setattr(PETSc, "ScalarType", np.complex128)
    with pytest.raises(ImportError, match=r"real scalars; this one has complex.*petsc=\*=real"):
        check_requirements()
    with pytest.raises(RuntimeError, match=r"complex numbers.*python3-dolfinx-real"):
        reduced()(bench)


@pytest.mark.parametrize("missing", ["dolfinx", "slepc4py"])
def test_no_dolfinx(bench: Bench, missing: str) -> None:
    """The error states how to install the missing package; other modules can be used before."""
    if bench.comm.size > 1:
        pytest.skip("starts another Python")
    code = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {missing!r}:
            raise ModuleNotFoundError("No module named " + repr(name))
sys.meta_path.insert(0, Refuse())
import dolfinx_mbd as mbd
mbd.mechanisms.rigid_rod(length=0.3, mass=1.0)
mbd.reduce
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith(f"ImportError: dolfinx_mbd needs {missing}")
    for cure in ("./with-fenicsx", "conda install", "docker", "apt"):
        assert cure in last.lower()
