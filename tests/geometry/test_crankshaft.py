"""The crankshaft: volume, centre and inertia in closed form, surfaces, invalid parameters."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import entities_to_geometry
from mpi4py import MPI

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.geometry import Crankshaft


def integral(msh: TaggedMesh, value: Any, group: str | None = None) -> float:
    """Return the integral over the volume or over the surface of a group."""
    measure = ufl.Measure("dx", msh.mesh)
    if group:
        measure = ufl.Measure("ds", msh.mesh, subdomain_data=msh.facet_tags)(msh.groups[group][1])
    form = fem.form(fem.Constant(msh.mesh, 1.0) * value * measure)
    return float(msh.mesh.comm.allreduce(fem.assemble_scalar(form)).real)


def fillet_ring(radius: float, f: float) -> tuple[float, float]:
    """Return volume and polar moment about its axis (per density) of a fillet around a journal.

    The section is what a quarter circle leaves of a square with the side f; volume and moment are
    2π∫ρ dA and 2π∫ρ³ dA, with the distance ρ from the axis of the journal.
    """
    depth = np.polynomial.legendre.leggauss(60)
    u = 0.5 * f * (depth[0] + 1)  # distance from the surface of the journal
    height = f - np.sqrt(f * f - (f - u) ** 2)
    weights = 0.5 * f * depth[1] * height
    rho = radius + u
    return float(2 * np.pi * weights @ rho), float(2 * np.pi * weights @ rho**3)


def web_area(c: Crankshaft) -> tuple[float, float, float]:
    """Return area, first moment along the throw and polar moment of a web, by Green's theorem.

    Tangents connect the discs of the main journal (radius R) and of the pin (radius p).
    """
    R, p, r = float(c.main_web_diameter) / 2, float(c.pin_web_diameter) / 2, float(c.crank_radius)
    t, n = math.acos((R - p) / r), 200_000
    phi = np.linspace(-t, t, n)
    pin = r + p * np.exp(1j * phi)
    if c.counterweight_radius:
        g, W = c.counterweight_angle, float(c.counterweight_radius)
        arcs = [
            (R, t, math.pi - g),
            (W, math.pi - g, math.pi + g),
            (R, math.pi + g, 2 * math.pi - t),
        ]
    else:
        arcs = [(R, t, 2 * math.pi - t)]
    parts = [radius * np.exp(1j * np.linspace(a, b, n)) for radius, a, b in arcs]
    z = np.concatenate([pin, *parts])
    w = np.roll(z, -1)
    cross = (z.conj() * w).imag
    area = 0.5 * cross.sum()
    first = ((z + w).real * cross).sum() / 6
    polar = ((abs(z) ** 2 + abs(w) ** 2 + (z * w.conj()).real) * cross).sum() / 12
    return float(area), float(first), float(polar)


def pin_web(c: Crankshaft, first: float, second: float) -> tuple[float, complex, float]:
    """Return area, first moment (x + iy) and polar moment of the web between two pins.

    The hull of two circles is a rectangle and two half discs.
    """
    p, r = float(c.pin_web_diameter) / 2, float(c.crank_radius)
    half = r * abs(np.sin(0.5 * (second - first)))  # half the distance of the two axes
    middle = 0.5 * r * (np.exp(1j * first) + np.exp(1j * second))
    area = 4 * half * p + math.pi * p**2
    polar = 4 * half * p * (half**2 + p**2) / 3 + math.pi * p**4 / 2
    polar += math.pi * p**2 * (half**2 + 2 * half * 4 * p / (3 * math.pi))
    return float(area), complex(area * middle), float(polar + area * abs(middle) ** 2)


def pin_places(c: Crankshaft) -> list[tuple[float, float]]:
    """Return the angle and the position along z of each pin, from the lengths of the parts."""
    pairs = [np.atleast_1d(angles) for angles in c.throw_angles]
    throw = float(c.main_length) + 2 * float(c.web_thickness)
    throw += len(pairs[0]) * float(c.pin_length)
    between = float(c.pin_length) + float(c.pin_web_thickness)
    throw += (len(pairs[0]) - 1) * float(c.pin_web_thickness)
    return [
        (float(a), throw * (k - 0.5 * (len(pairs) - 1)) + between * (j - 0.5 * (len(pair) - 1)))
        for k, pair in enumerate(pairs)
        for j, a in enumerate(pair)
    ]


def closed_forms(c: Crankshaft) -> tuple[float, complex, float]:
    """Return volume, first moment (x + iy) and polar moment about the shaft, per density."""
    R, P, r = float(c.main_diameter) / 2, float(c.pin_diameter) / 2, float(c.crank_radius)
    f, b = float(c.fillet), float(c.web_thickness)
    area, first, polar = web_area(c)
    volume = moment = 0.0
    unbalance = 0j
    for angles in map(np.atleast_1d, c.throw_angles):
        volume += 2 * b * area
        moment += 2 * b * polar
        unbalance += b * first * (np.exp(1j * angles[0]) + np.exp(1j * angles[-1]))
        if len(angles) == 2:
            values = float(c.pin_web_thickness) * np.array(pin_web(c, *angles))
            volume, unbalance, moment = np.array([volume, unbalance, moment]) + values
    for angle in np.ravel(c.throw_angles):
        cylinder = math.pi * P**2 * float(c.pin_length)
        ring, ring_polar = fillet_ring(P, f) if f else (0.0, 0.0)
        pin = cylinder + 2 * ring
        volume += pin
        moment += cylinder * P**2 / 2 + 2 * ring_polar + pin * r * r
        unbalance += pin * r * np.exp(1j * angle)
    n = c.throws
    ring, ring_polar = fillet_ring(R, f) if f else (0.0, 0.0)
    for radius, length in [
        (R, (n + 1) * float(c.main_length)),
        (float(c.nose_diameter) / 2, float(c.nose_length)),
        (float(c.flange_diameter) / 2, float(c.flange_thickness)),
    ]:
        volume += math.pi * radius**2 * length
        moment += math.pi * radius**4 * length / 2
    values = volume + 2 * n * ring, unbalance, moment + 2 * n * ring_polar
    return float(values[0].real), complex(values[1]), float(values[2].real)


CASES: dict[str, dict[str, Any]] = {
    "plain": {"throw_angles": [0.3], "fillet": 0, "counterweight_radius": 0, "size": 0.012},
    "filleted": {"throw_angles": [2.0], "size": 0.012, "fillet": 0.004},
    "two": {"throw_angles": [0.0, 2.5], "fillet": 0, "nose_length": 0, "size": 0.015},
    "split": {"throw_angles": [[0.2, 1.0], [-1.0, 2.5]], "fillet": 0, "size": 0.015},
    "boxer": {"throw_angles": [[0.4, 0.4 + np.pi]], "pin_web_thickness": 0.01, "size": 0.015},
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Crankshaft, TaggedMesh]:
    """Return a crankshaft and its mesh."""
    crank = Crankshaft(**CASES[request.param])
    return crank, build_mesh(crank, MPI.COMM_WORLD)


def test_mass_properties(case: tuple[Crankshaft, TaggedMesh]) -> None:
    crank, msh = case
    volume, unbalance, polar = closed_forms(crank)
    x = ufl.SpatialCoordinate(msh.mesh)
    scale = volume * float(crank.crank_radius)
    assert integral(msh, 1.0) == pytest.approx(volume, rel=1e-3)
    assert abs(integral(msh, x[0]) + 1j * integral(msh, x[1]) - unbalance) < 1e-3 * scale
    assert integral(msh, x[0] ** 2 + x[1] ** 2) == pytest.approx(polar, rel=2e-3)


def test_journals(case: tuple[Crankshaft, TaggedMesh]) -> None:
    """The groups are the whole cylinders between the fillets, at their positions."""
    crank, msh = case
    x, f = ufl.SpatialCoordinate(msh.mesh), float(crank.fillet)
    assert len(crank.main_positions) == crank.throws + 1
    places = [(f"main_{k + 1}", 0j, z, k) for k, z in enumerate(crank.main_positions)]
    pins = [(crank.crank_radius * np.exp(1j * angle), z) for angle, z in pin_places(crank)]
    np.testing.assert_allclose(crank.pin_positions, [z for _, z in pins], atol=1e-12)
    places += [(f"pin_{k + 1}", p, z, None) for k, (p, z) in enumerate(pins)]
    for name, axis, z, k in places:
        kind = name.split("_")[0]
        ends = 2 if k is None else int(k > 0) + int(k < crank.throws)
        length = float(getattr(crank, f"{kind}_length")) - ends * f
        area = integral(msh, 1.0, name)
        diameter = float(getattr(crank, f"{kind}_diameter"))
        assert area == pytest.approx(math.pi * diameter * length, rel=5e-3)
        centre = [integral(msh, x[i], name) / area for i in range(3)]
        shift = 0.0 if ends != 1 else (-0.5 * f if k == 0 else 0.5 * f)
        np.testing.assert_allclose(centre, [axis.real, axis.imag, z + shift], atol=2e-4)
    radius = integral(msh, 1.0, "flange") / math.pi
    assert radius == pytest.approx((float(crank.flange_diameter) / 2) ** 2, rel=2e-3)
    assert ("fillets" in msh.groups) == (f > 0)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"throw_angles": []}, "throw_angles"),
        ({"throw_angles": [0.0] * 25}, "throw_angles"),
        ({"throw_angles": ["a"]}, "throw_angles"),
        ({"throw_angles": [[0.0, 1.0], [1.0]]}, "throw_angles"),
        ({"throw_angles": [[0.0, 1.0, 2.0]]}, "throw_angles"),
        ({"throw_angles": [[1.0, 1.0 + 2 * np.pi]]}, "throw_angles"),
        ({"throw_angles": [[0.0, 1.0], [1.1, 2.0]], "oil_holes": 0.005}, "oil_holes"),
        ({"throw_angles": [[0.0, 1.0]], "pin_web_thickness": 0.0}, "pin_web_thickness"),
        ({"main_diameter": 0.07}, "main_web_diameter"),
        ({"pin_diameter": 0.055}, "pin_web_diameter"),
        ({"pin_length": 0.004}, "pin_length"),
        ({"main_length": 0.004}, "main_length"),
        ({"crank_radius": 0.004}, "crank_radius"),
        ({"counterweight_radius": 0.030}, "counterweight_radius"),
        ({"pin_web_diameter": 0.1, "crank_radius": 0.03}, "counterweight_angle"),
        ({"nose_diameter": 0.060}, "nose_diameter"),
        ({"flange_diameter": 0.050}, "flange_diameter"),
        ({"fillet": -0.001}, "fillet"),
        ({"size": "2 parsec"}, "size"),
        ({"order": 3}, "order"),
        ({"per_circle": 2}, "per_circle"),
    ],
)
def test_impossible_dimensions(changes: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as error:
        Crankshaft(**changes)
    assert error.value.argument == argument


def test_lengths_with_units() -> None:
    crank = Crankshaft(crank_radius="45mm")
    assert crank.crank_radius == 0.045
    assert crank.spacing == pytest.approx(0.080)


def single_throw(**options: Any) -> Crankshaft:
    """Return a coarse crankshaft of one throw."""
    return Crankshaft(
        throw_angles=[0.7], fillet=0.003, size=0.016, order=1, per_circle=4, **options
    )


def test_distance_to_fillets() -> None:
    """The distance is zero at the nodes of the surface "fillets" only, and exact elsewhere."""
    crank = single_throw()
    msh = build_mesh(crank, MPI.COMM_SELF)
    tags, mesh = msh.facet_tags, msh.mesh
    assert tags is not None
    mesh.topology.create_connectivity(2, 0)
    mesh.topology.create_connectivity(2, 3)
    nodes = np.unique(entities_to_geometry(mesh, 2, tags.find(msh.groups["fillets"][1])))
    distance = crank.fillet_distance(mesh.geometry.x)
    others = np.setdiff1d(np.arange(len(distance)), nodes)
    assert distance[nodes].max() < 1e-12 and distance[others].min() > 1e-3
    # The fillet of 3 mm is at the end of the main journal, with 25 mm radius and 24 mm length.
    centre = np.array([0.025 + 0.003, 0.0, crank.main_positions[0] + 0.012 - 0.003])
    normal = np.array([-math.cos(0.4), 0.0, math.sin(0.4)])
    points = [centre + (0.003 + s) * normal for s in (-0.001, 0.0, 0.002)]
    assert crank.fillet_distance(points) == pytest.approx([0.001, 0.0, 0.002], abs=1e-12)
    # a point in the middle of the main journal
    assert crank.fillet_distance([[0.025, 0, -0.04]]) == pytest.approx([0.009])
    with pytest.raises(InputError):
        crank.fillet_distance([0.0, 1.0])
    with pytest.raises(InputError):
        Crankshaft(fillet=0.0).fillet_distance(points)


@pytest.mark.parametrize("size", [0.0015, 0.0008])
def test_refinement_at_points(size: float) -> None:
    """Edges of the surface near the points have the size; others and the volume do not change."""
    # on the arc of the fillet
    point = (0.028 - 0.003 * math.sin(0.8), 0.0, -0.031 + 0.003 * math.cos(0.8))
    crank, coarse = single_throw(refined=[point], refined_size=size), single_throw()
    assert crank.fillet_distance([point]).max() < 1e-12
    meshes = [build_mesh(c, MPI.COMM_SELF) for c in (crank, coarse)]
    volumes = [integral(msh, 1.0) for msh in meshes]
    assert volumes[0] == pytest.approx(volumes[1], rel=2e-3)
    lengths = []
    for msh in meshes:
        mesh, (_, tag) = msh.mesh, msh.groups["fillets"]
        assert msh.facet_tags is not None
        mesh.topology.create_connectivity(2, 0)
        mesh.topology.create_connectivity(2, 3)
        x = mesh.geometry.x[entities_to_geometry(mesh, 2, msh.facet_tags.find(tag))]
        near = np.linalg.norm(x.mean(axis=1) - point, axis=1) < 0.005
        edges = np.linalg.norm(x - np.roll(x, 1, axis=1), axis=2)
        lengths.append([edges[near].mean(), edges[~near].max()])
    assert lengths[0][0] == pytest.approx(size, rel=0.15) and lengths[1][0] > 2 * size
    assert lengths[0][1] > 0.005
    cells = meshes[0].mesh.topology.index_map(3).size_local
    assert cells < 20_000


@pytest.mark.parametrize(
    "options",
    [{"refined": [(0, 0)]}, {"refined_size": 0.0}, {"fillet": 0.0, "refined": [(0, 0, 0)]}],
)
def test_bad_refinement(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Crankshaft(**options)


@pytest.mark.parametrize("angles", [[0, 120, 240], [[0, 60], [90, 150]], [-13.0]])
def test_angles_in_degrees(angles: list[Any]) -> None:
    """Angles of more than two turns are probably in degrees."""
    with pytest.raises(InputError) as error:
        Crankshaft(throw_angles=angles)
    assert error.value.argument == "throw_angles"
    assert Crankshaft(throw_angles=np.radians(angles) % (4 * np.pi)).throws == len(angles)


def hole_integrals(c: Crankshaft) -> np.ndarray:
    """Return volume, first moment along the throw and polar moment of a hole, per density.

    Each line along the hole enters the main journal and leaves the pin at the roots of a quadratic.
    """
    R, P, r = float(c.main_diameter) / 2, float(c.pin_diameter) / 2, float(c.crank_radius)
    axial = 0.5 * (float(c.main_length) + float(c.pin_length)) + float(c.web_thickness)
    d = np.array([R + r + P, axial])
    d /= np.linalg.norm(d)
    x, w = np.polynomial.legendre.leggauss(20)
    rho, a = 0.25 * float(c.oil_holes) * (1 + x), 0.5 * float(c.oil_holes)
    phi = 2 * np.pi * np.arange(40) / 40
    v = rho[:, None] * np.sin(phi)  # across the throw; the position along it has no effect
    weights = (0.5 * a * w * rho)[:, None] * np.full(40, 2 * np.pi / 40)
    start, end = -np.sqrt(R * R - v * v), r + np.sqrt(P * P - v * v)
    length = (end - start) / d[0]
    cubes = (end**3 - start**3) / (3 * d[0])
    squares = (end**2 - start**2) / (2 * d[0])
    rows = length, squares, cubes + v * v * length
    return np.array([float((weights * row).sum()) for row in rows])


HOLED: dict[str, Any] = {"throw_angles": [2.5], "fillet": 0, "size": 0.015}


@pytest.mark.parametrize("throws", [[2.5], [[2.5, 0.7]]])
def test_oil_holes(throws: list[Any]) -> None:
    """The holes reduce mass, balance and polar moment by those of cylinders with oblique ends."""
    crank = Crankshaft(**HOLED | {"throw_angles": throws}, oil_holes=0.005)
    msh = build_mesh(crank, MPI.COMM_WORLD)
    solid, pins = closed_forms(crank), np.ravel(throws)
    hole = hole_integrals(crank) * np.array([len(pins), 1.0, len(pins)])
    volume, polar = solid[0] - hole[0], solid[2] - hole[2]
    unbalance = solid[1] - hole[1] * np.exp(1j * pins).sum()
    x = ufl.SpatialCoordinate(msh.mesh)
    assert abs(integral(msh, 1.0) - volume) < 1e-2 * hole[0]
    moment = integral(msh, x[0]) + 1j * integral(msh, x[1])
    assert abs(moment - unbalance) < 1e-2 * hole[1]
    assert abs(integral(msh, x[0] ** 2 + x[1] ** 2) - polar) < 1e-2 * hole[2]
    wall = integral(msh, 1.0, "oil_holes")
    axis = math.hypot(0.040, 0.086)  # between the ends of the hole: axial and radial distance
    assert wall == pytest.approx(len(pins) * math.pi * 0.005 * axis, rel=0.03)


@pytest.mark.parametrize("per_circle", [4, 8])
def test_narrow_holes_that_meet(per_circle: int) -> None:
    """Of the holes of a boxer, two begin at the middle main journal, on opposite sides of z."""
    throws = np.radians([[90.0, -90.0], [-90.0, 90.0]])
    options = HOLED | {"throw_angles": throws, "order": 1, "per_circle": per_circle}
    volumes = []
    for width in (0.0, 0.003):
        crank = Crankshaft(**options, oil_holes=width)
        volumes.append(integral(build_mesh(crank, MPI.COMM_WORLD), 1.0))
    assert 0.0 < volumes[0] - volumes[1] < 4 * hole_integrals(crank)[0]


def twisted(crank: Crankshaft) -> tuple[np.ndarray, np.ndarray]:
    """Return midpoints and largest principal stress of the cells for a torque of 1 N m."""
    from dolfinx.fem.petsc import LinearProblem

    msh = build_mesh(crank, MPI.COMM_SELF)
    mesh = msh.mesh
    V = fem.functionspace(mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    E, nu = 210e9, 0.3

    def sigma(w: Any) -> Any:
        e = ufl.sym(ufl.grad(w))
        return E / (1 + nu) * (e + nu / (1 - 2 * nu) * ufl.tr(e) * ufl.Identity(3))

    x = ufl.SpatialCoordinate(mesh)
    ds = ufl.Measure("ds", mesh, subdomain_data=msh.facet_tags)
    polar = math.pi * (0.5 * float(crank.flange_diameter)) ** 4 / 2
    traction = ufl.as_vector((-x[1], x[0], 0)) / polar
    facets = msh.facet_tags.find(msh.groups["nose"][1])
    held = fem.dirichletbc(
        np.zeros(3), fem.locate_dofs_topological(V, mesh.topology.dim - 1, facets), V
    )
    load = ufl.inner(traction, v) * ds(msh.groups["flange"][1])
    options = {"ksp_type": "preonly", "pc_type": "cholesky"}
    options |= {"pc_factor_mat_solver_type": "mumps"}
    form = ufl.inner(sigma(u), ufl.grad(v)) * ufl.dx
    more: dict[str, Any] = {}  # DOLFINx 0.11 requires a prefix
    if "petsc_options_prefix" in inspect.signature(LinearProblem).parameters:
        more["petsc_options_prefix"] = "twisted_crank_"
    problem = LinearProblem(form, load, bcs=[held], petsc_options=options, **more)
    solution: Any = problem.solve()
    S = fem.functionspace(mesh, ("DG", 0, (3, 3)))
    points = getattr(S.element, "interpolation_points")
    points = points() if callable(points) else points
    stress = fem.Function(S)
    stress.interpolate(fem.Expression(sigma(solution), points))
    cells = mesh.geometry.x[mesh.geometry.dofmap].mean(axis=1)
    return cells, np.linalg.eigvalsh(stress.x.array.reshape(-1, 3, 3))[:, -1]


def test_stress_at_the_mouth_of_a_hole() -> None:
    """A torque causes a concentration of stress at the mouth in the pin.

    At a small hole across a shaft in torsion, the principal stress is 4 times that without a hole;
    the hole and the cells of this test are not small.
    """
    peaks = []
    for width in (0.0, 0.005):
        options = HOLED | {"throw_angles": [0.0], "order": 1, "per_circle": 12}
        crank = Crankshaft(**options, oil_holes=width)
        cells, stress = twisted(crank)
        mouth = np.array([0.061, 0.0, crank.pin_positions[0]])  # outermost on the pin
        peaks.append(stress[np.linalg.norm(cells - mouth, axis=1) < 0.0045].max())
    assert 1.8 < peaks[1] / peaks[0] < 4.5


@pytest.mark.parametrize(
    "changes",
    [{"oil_holes": 0.03}, {"oil_holes": 0.006, "crank_radius": 0.09}, {"oil_holes": -1.0}],
)
def test_holes_that_leave_the_web(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="oil_holes"):
        Crankshaft(**changes)
