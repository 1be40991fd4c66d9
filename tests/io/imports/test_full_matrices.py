"""Import of K and M from our assembly gives the same body as `reduce`."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.linalg

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.io.imports import (
    FullMatrices,
    MatrixError,
    MatrixFileError,
    NodeInterface,
    read_dmig,
    read_matrices,
    read_op4,
    reduce_matrices,
)
from dolfinx_mbd.io.imports.matrix_files import read_matrix_market
from tests.io.imports.bars import (
    ENDS,
    NUM_MODES,
    bar,
    ends,
    inertia_at_interfaces,
    matrices,
    piston,
    reference,
    relative,
)
from tests.models.bodies import dynamic_stiffness


def write_matrix_market(folder: Path, first: int) -> tuple[Path, Path, Path]:
    """Write K, M and the positions of nodes numbered from `first`; return the paths."""
    K, M, nodes = bar().matrices
    for name, matrix in (("K", K), ("M", M)):
        scipy.io.mmwrite(folder / f"{name}.mtx", matrix, precision=17, symmetry="symmetric")
    table = np.column_stack([first + np.arange(len(nodes)), nodes])
    np.savetxt(folder / "nodes.csv", table, delimiter=",", fmt="%.17g", header="node, x, y, z")
    return folder / "K.mtx", folder / "M.mtx", folder / "nodes.csv"


def test_the_body_of_the_mesh(tmp_path: Path) -> None:
    """Frequencies, inertia, dynamic stiffness and a slider-crank agree (Matrix Market files)."""
    first = 100
    body = reduce_matrices(
        read_matrices(*write_matrix_market(tmp_path, first)), ends(first), num_modes=NUM_MODES
    )
    expected = reference()
    assert body.num_modes == expected.num_modes and body.reference == "mean axis"
    assert relative(body.frequencies, expected.frequencies) < 1e-9
    assert body.total_mass == pytest.approx(expected.total_mass, rel=1e-12)
    assert relative(body.centre, expected.centre) < 1e-12
    assert relative(body.inertia, expected.inertia) < 1e-12
    for imported, reduced in zip(
        inertia_at_interfaces(body), inertia_at_interfaces(expected), strict=True
    ):
        assert relative(imported, reduced) < 1e-9
    # 1 Hz replaces 0 Hz, at which a free body has no finite compliance.
    for frequency in (0.0, 50.0, 700.0):
        omega = 2 * np.pi * max(frequency, 1.0)
        assert relative(dynamic_stiffness(body, omega), dynamic_stiffness(expected, omega)) < 1e-9

    rigid, reduced = piston(expected.rigid()), piston(expected)
    assert np.abs(reduced - rigid).max() > 1e-6
    assert relative(piston(body) - rigid, reduced - rigid) < 1e-7


def test_other_files_and_orders(tmp_path: Path) -> None:
    """Sparse ``.npz`` and ``.npy`` files may order rows by components and have other units."""
    K, M, nodes = bar().matrices
    count = len(nodes)
    order = np.arange(3 * count).reshape(count, 3).T.ravel()  # all x, then all y, then all z
    permuted = [scipy.sparse.csr_array(A)[order][:, order] for A in (K, M)]
    scipy.sparse.save_npz(tmp_path / "K.npz", permuted[0] * 1e-3)  # N/mm
    np.save(tmp_path / "M.npy", permuted[1].toarray() * 1e-3)  # t
    np.save(tmp_path / "nodes.npy", nodes * 1e3)
    dofs = np.arange(3 * count).reshape(3, count).T
    full = read_matrices(
        tmp_path / "K.npz", tmp_path / "M.npy", tmp_path / "nodes.npy", dofs=dofs
    ).in_si(length=1e-3, mass=1e3)
    original = matrices()
    assert relative(full.stiffness.toarray(), original.stiffness.toarray()) < 1e-12
    assert relative(full.mass.toarray(), original.mass.toarray()) < 1e-12
    assert relative(full.nodes, original.nodes) < 1e-12


def test_damping_and_skin() -> None:
    K, M, nodes = bar().matrices
    triangles = bar().nodes[0][:6].reshape(2, 3)
    full = FullMatrices(K, M, nodes, damping=1e-6 * K + 3.0 * M, triangles=triangles)
    body = reduce_matrices(full, ends(), num_modes=2)
    expected = 1e-6 * body.stiffness + 3.0 * body.mass
    assert relative(body.damping, expected) < 1e-9
    assert body.skin is not None and np.array_equal(
        body.skin.points[body.skin.triangles], nodes[triangles]
    )
    left = body.interfaces[0]
    moved = left.motion[:3].T[:, None] + np.cross(
        left.motion[3:].T[:, None], body.skin.points - left.point
    )
    assert relative(body.skin.modes, moved) < 1e-9


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_interfaces_move_as_their_nodes_do(kind: Any) -> None:
    """The motion map of an interface is that of its nodes, in the mean if it is averaged.

    An averaged interface is more compliant.
    """
    body = reduce_matrices(
        matrices(), {k: NodeInterface(v.nodes, kind) for k, v in ends().items()}, num_modes=4
    )
    assert [i.kind for i in body.interfaces] == [kind, kind]
    surface = np.concatenate(bar().nodes)
    K, M, nodes = bar().matrices
    triangles = np.resize(surface, (len(surface) // 3, 3))
    shown = reduce_matrices(
        FullMatrices(K, M, nodes, triangles=triangles),
        {k: NodeInterface(v.nodes, kind) for k, v in ends().items()},
        num_modes=4,
    )
    assert shown.skin is not None
    for i in shown.interfaces:
        rows = np.abs(shown.skin.points[:, 0] - i.point[0]) < 1e-9
        u = shown.skin.modes[:, rows]
        xi = shown.skin.points[rows] - i.point
        # the mean displacement of the nodes, and their rotation by least squares
        assert np.abs(u.mean(axis=1) - i.motion[:3].T).max() < 1e-9 * np.abs(u).max()
        J = np.einsum("ia,ia->", xi, xi) * np.eye(3) - xi.T @ xi
        theta = np.linalg.solve(J, np.cross(xi, u).sum(axis=1).T)
        assert np.abs(theta - i.motion[3:]).max() < 1e-7 * np.abs(i.motion[3:]).max()
    stiff = reduce_matrices(matrices(), ends(), num_modes=4)
    ratio = body.frequencies[0] / stiff.frequencies[0]
    assert ratio == pytest.approx(1.0, abs=1e-9) if kind == "rigid" else 0.9 < ratio < 1.0


def areas(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return ∫N_i dA and ∫N_i N_j dA over an end of the bar, for the nodes of `ends`."""
    import ufl
    from dolfinx import fem

    space = bar().reduction("mean axis").space
    mesh, scalar = space.mesh, fem.functionspace(space.mesh, ("Lagrange", bar().degree))
    tags = bar().mesh.facet_tags
    ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags)(bar().mesh.groups[name][1])
    u, v = ufl.TrialFunction(scalar), ufl.TestFunction(scalar)
    matrix = fem.assemble_matrix(fem.form(u * v * ds)).to_dense()
    positions = scalar.tabulate_dof_coordinates()
    points = matrices().nodes[np.asarray(ends()[name].nodes)]
    order = [int(np.abs(positions - x).sum(axis=1).argmin()) for x in points]
    assert relative(positions[order], points) < 1e-12
    vector = fem.assemble_vector(fem.form(v * ds)).array
    return vector[order], matrix[np.ix_(order, order)]


def test_averaged_interfaces_with_areas_are_those_of_reduce() -> None:
    """The matrix ∫N_i N_j dA gives the same body, areas of nodes its stiffness to 3e-6.

    Equal weights are 0.4 % off in the stiffness.
    """
    specs = {k: mbd.InterfaceSpec(kind="averaged", axes=np.eye(3)) for k in ENDS}
    reduction = mbd.reduce(
        bar().mesh,
        mbd.STEEL,
        interfaces=specs,
        num_modes=NUM_MODES,
        stiffening=False,
        options=mbd.ReductionOptions(skin=False),
    )
    expected = reduction.body
    weights = {name: areas(name) for name in ENDS}
    # ∫N_i dA is zero, apart from round-off, at the corners of quadratic triangles.
    assert any(np.abs(w[0]).min() < 1e-9 * w[0].max() for w in weights.values())
    bodies = []
    for k in (None, 0, 1):  # equal weights, areas without negative round-off, matrices
        interfaces = {
            name: NodeInterface(
                spec.nodes,
                "averaged",
                point=expected.interface(name).point,
                weights=None if k is None else np.maximum(weights[name][k], 0.0 if k == 0 else -1),
            )
            for name, spec in ends().items()
        }
        bodies.append(reduce_matrices(matrices(), interfaces, num_modes=NUM_MODES))
    K = dynamic_stiffness(expected, 2 * np.pi * 50.0)
    equal, lumped, exact = (
        relative(dynamic_stiffness(body, 2 * np.pi * 50.0), K) for body in bodies
    )
    assert exact < 1e-12 and lumped < 1e-5 and equal > 1e-3
    assert relative(bodies[2].frequencies, expected.frequencies) < 1e-9
    for imported, reduced in zip(
        inertia_at_interfaces(bodies[2]), inertia_at_interfaces(expected), strict=True
    ):
        assert relative(imported, reduced) < 1e-8


def test_loose_parts_are_errors() -> None:
    """The matrices contain two bars, with interfaces on one or on both of them."""
    K, M, nodes = bar().matrices
    two_bars = FullMatrices(
        scipy.sparse.block_diag([K, K]), scipy.sparse.block_diag([M, M]),
        np.vstack([nodes, nodes + np.array([0.0, 0.1, 0.0])]),
    )  # fmt: skip
    with pytest.raises(MatrixError) as error:
        reduce_matrices(two_bars, ends(), num_modes=2)
    assert error.value.argument == "stiffness"
    both = {"one": ends()["left"], "two": NodeInterface(bar().nodes[0] + len(nodes))}
    with pytest.raises(MatrixError) as error:
        reduce_matrices(two_bars, both, num_modes=2)
    assert error.value.argument == "stiffness"


@pytest.mark.parametrize(
    ("name", "change", "argument", "reason"),
    [
        ("stiffness", lambda K: K[:-3, :-3], "stiffness", "its shape is"),
        ("mass", lambda M: M[:, :-1], "mass", "its shape is"),
        ("stiffness", lambda K: scipy.sparse.tril(K), "stiffness", "from its transpose"),
        ("mass", lambda M: scipy.sparse.tril(M), "mass", "from its transpose"),
        ("stiffness", lambda K: K * np.nan, "stiffness", "not finite"),
        ("stiffness", lambda K: K * 0, "stiffness", "it is zero"),
        ("stiffness", lambda K: K * 1j, "stiffness", "its type is complex"),
        ("stiffness", lambda K: "K.mtx", "stiffness", "got 'K.mtx'"),
        (
            "stiffness",
            lambda K: K + scipy.sparse.eye(K.shape[0]) * 1e6,
            "stiffness",
            "resists rigid motion",
        ),
        ("nodes", lambda x: x[::-1], "stiffness", "resists rigid motion"),
        ("nodes", lambda x: x[:, :2], "nodes", "finite positions"),
        ("nodes", lambda x: np.full_like(x, np.inf), "nodes", "finite positions"),
        (
            "mass",
            lambda M: M + scipy.sparse.diags(np.tile([0, 0, 1e-3], M.shape[0] // 3)),
            "mass",
            "not that of a solid",
        ),
        ("mass", lambda M: -M, "mass", "nodes without mass"),
        ("labels", lambda _: np.zeros(3), "labels", "different numbers"),
        ("triangles", lambda _: [[0, 1, 10**6]], "triangles", "rows of three numbers"),
    ],
)
def test_bad_matrices(name: str, change: Callable[[Any], Any], argument: str, reason: str) -> None:
    K, M, nodes = bar().matrices
    values: dict[str, Any] = {"stiffness": K, "mass": M, "nodes": nodes}
    with pytest.raises(InputError, match=reason) as error:
        FullMatrices(**values | {name: change(values.get(name))})
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("interfaces", "argument", "expected"),
    [
        ({}, "interfaces", "at least one"),
        (["left"], "interfaces", "at least one"),
        ({"left": [1, 2, 3]}, "interface 'left'", "a NodeInterface"),
        ({"left": NodeInterface([0, 10**7])}, "interface 'left': nodes", "nodes have 0 ... "),
        ({"left": NodeInterface([0, 0, 1])}, "interface 'left': nodes", "different numbers"),
        ({"left": NodeInterface([0])}, "interface 'left': nodes", "not in a line"),
        (
            {"a": NodeInterface([0, 1, 2, 3]), "b": NodeInterface([3, 4, 5, 6])},
            "interface 'b': nodes",
            "without the 1 nodes of interface 'a'",
        ),
    ],
)
def test_bad_interfaces(interfaces: Any, argument: str, expected: str) -> None:
    with pytest.raises(MatrixError) as error:
        reduce_matrices(matrices(), interfaces)
    assert error.value.argument == argument
    assert expected in (error.value.expected or "")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("kind", "glued"),
        ("kind", None),
        ("weights", [1, 1, 1]),
        ("weights", [1, 1, 1, -1]),
        ("weights", [0, 0, 0, 0]),
        ("weights", [1, 1, 1, np.nan]),
        ("weights", np.ones((4, 3))),
        ("weights", np.triu(np.ones((4, 4)))),
        ("weights", -np.eye(4)),
        ("weights", "area"),
        ("point", [1, 2]),
        ("point", "middle"),
        ("axes", np.ones((2, 3))),
        ("axes", np.full((3, 3), np.nan)),
    ],
)
def test_bad_parts_of_interfaces(argument: str, value: Any) -> None:
    with pytest.raises(InputError) as error:
        reduce_matrices(matrices(), {"left": NodeInterface([0, 1, 2, 3], **{argument: value})})
    assert error.value.argument in (argument, f"interface 'left': {argument}")


def test_weights_of_too_few_nodes_are_errors() -> None:
    """Nodes without a weight do not determine the rotation."""
    nodes = np.asarray(ends()["left"].nodes)
    weights = np.zeros(len(nodes))
    weights[:2] = 1.0
    with pytest.raises(MatrixError) as error:
        reduce_matrices(matrices(), {"left": NodeInterface(nodes, "averaged", weights=weights)})
    assert error.value.argument == "interface 'left': nodes"


def test_bad_numbers_of_modes() -> None:
    for count in (-1, 2.5, 10**6):
        with pytest.raises(InputError) as error:
            reduce_matrices(matrices(), ends(), num_modes=count)  # type: ignore[arg-type]
        assert error.value.argument == "num_modes"
    with pytest.raises(InputError) as error:
        FullMatrices.in_order(*bar().matrices, dofs=np.zeros((2, 3)))
    assert error.value.argument == "dofs"


def test_bad_files(tmp_path: Path) -> None:
    K, M, nodes = write_matrix_market(tmp_path, 0)
    with pytest.raises(MissingFileError, match=r"other\.mtx"):
        read_matrices(tmp_path / "other.mtx", M, nodes)
    data = K.read_bytes()
    for size in (0, 10, 100, len(data) // 2):
        (tmp_path / "part.mtx").write_bytes(data[:size])
        with pytest.raises(MatrixFileError) as error:
            read_matrices(tmp_path / "part.mtx", M, nodes)
        assert error.value.path == str(tmp_path / "part.mtx")
    for name, content in (("K.bin", data), ("K.npz", b"PK" + data[:100])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MatrixFileError) as error:
            read_matrices(tmp_path / name, M, nodes)
        assert error.value.path == str(tmp_path / name)
    for text in ("", "1 2\n3 4\n", "1 x 2 3\n", "0.5 1 2 3\n"):
        (tmp_path / "nodes.txt").write_text(text)
        with pytest.raises(MatrixFileError) as error:
            read_matrices(K, M, tmp_path / "nodes.txt")
        assert error.value.path == str(tmp_path / "nodes.txt")


def test_compressed_files_that_expand_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ordinary matrices are read with any limit; zeros compressed a thousandfold are not."""
    K, M, nodes = write_matrix_market(tmp_path, 0)
    scipy.sparse.save_npz(tmp_path / "K.npz", bar().matrices[0])
    (tmp_path / "K.mtx.gz").write_bytes(gzip.compress(K.read_bytes()))
    monkeypatch.setattr("dolfinx_mbd.io.imports.matrix_files._FREE_BYTES", 1000)
    for name in ("K.npz", "K.mtx.gz"):
        change = read_matrices(tmp_path / name, M, nodes).stiffness - bar().matrices[0]
        assert abs(change).max() <= 1e-12 * abs(bar().matrices[0]).max()
    # 10⁶ stored zeros in one row
    zeros = scipy.sparse.csr_array((np.zeros(10**6), (np.zeros(10**6, int),) * 2), shape=(2, 2))
    zeros.data, zeros.indices = np.zeros(10**6), np.zeros(10**6, dtype=np.int32)
    zeros.indptr = np.array([0, 10**6, 10**6])
    scipy.sparse.save_npz(tmp_path / "zeros.npz", zeros)
    head = b"%%MatrixMarket matrix array real general\n1000 1000\n"
    (tmp_path / "zeros.mtx.gz").write_bytes(gzip.compress(head + b"0\n" * 10**6))
    (tmp_path / "zeros.mtx.bz2").write_bytes(bz2.compress(b"%" * 10**7))  # one line
    for name in ("zeros.npz", "zeros.mtx.gz", "zeros.mtx.bz2"):
        with pytest.raises(MatrixFileError, match="decompress it first") as error:
            read_matrices(tmp_path / name, M, nodes)
        assert error.value.path == str(tmp_path / name)


def test_nastran_full_model(tmp_path: Path) -> None:
    """An OP4 file with positions in a second file, and a DMIG file with grids, are read."""
    pytest.importorskip("pyNastran")
    from dolfinx_mbd.io.export.matrix_formats import field, matrix_lines
    from dolfinx_mbd.io.export.text import write_text

    K, M, nodes = bar().matrices
    pair = {"K": (6, K.toarray()), "M": (6, M.toarray())}
    write_text(tmp_path / "full.op4", matrix_lines(pair), "OP4 file")
    read = read_op4(tmp_path / "full.op4", nodes=nodes, stiffness="K", mass="M")
    assert isinstance(read, FullMatrices)
    assert relative(read.stiffness.toarray(), matrices().stiffness.toarray()) < 1e-14

    lines = []
    for k, x in enumerate(nodes):
        values = [field(v, "E") for v in x]
        lines += [f"{'GRID*':<8}{10 + k:16}{'':16}{values[0]}{values[1]}", f"{'*':<8}{values[2]}"]
    for name, A in (("KAAX", K), ("MAAX", M)):
        lines.append(f"{'DMIG':<8}{name:<8}{0:>8}{6:>8}{2:>8}{0:>8}")
        lower = scipy.sparse.csc_array(scipy.sparse.tril(A))
        for j in range(A.shape[0]):
            lines.append(f"{'DMIG*':<8}{name:<16}{10 + j // 3:16}{1 + j % 3:16}")
            for entry in range(lower.indptr[j], lower.indptr[j + 1]):
                i = lower.indices[entry]
                lines.append(f"{'*':<8}{10 + i // 3:16}{1 + i % 3:16}{field(lower.data[entry])}")
    (tmp_path / "full.bdf").write_text("\n".join(lines) + "\n")
    read = read_dmig(tmp_path / "full.bdf")
    assert isinstance(read, FullMatrices)
    body = reduce_matrices(read, ends(10), num_modes=NUM_MODES)
    assert relative(body.inertia, reference().inertia) < 1e-8
    # The fields have errors of 1e-10 of the stiffest elements, whose modes have the highest
    # frequency; relative to the stiffness of a low mode, they are larger by the ratio of squares.
    highest = scipy.sparse.linalg.eigsh(K, 1, M, return_eigenvectors=False)[0]
    bound = 1e-10 * highest / (2 * np.pi * reference().frequencies) ** 2
    errors = np.abs(body.frequencies / reference().frequencies - 1)
    assert (errors < bound).all() and errors.max() > 1e-9


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("dense", [True, False])
def test_matrix_market_as_scipy_writes_it(tmp_path: Path, symmetry: str, dense: bool) -> None:
    K = bar().matrices[0].toarray()
    expected = (K + K.T) / 2
    matrix = expected if dense else scipy.sparse.csr_array(expected)
    scipy.io.mmwrite(tmp_path / "K.mtx", matrix, precision=17, symmetry=symmetry)
    np.testing.assert_array_equal(read_matrix_market(tmp_path / "K.mtx").toarray(), expected)
    data = (tmp_path / "K.mtx").read_bytes()
    (tmp_path / "K.mtx.gz").write_bytes(gzip.compress(data))
    np.testing.assert_array_equal(read_matrix_market(tmp_path / "K.mtx.gz").toarray(), expected)


def test_damage_to_matrix_market_files(tmp_path: Path) -> None:
    """SciPy's reader crashes at a truncated exponent and at null characters."""
    K, M, nodes = write_matrix_market(tmp_path, 0)
    data = K.read_bytes()
    start = data.index(b"e+")
    for damaged in (
        data[: start + 1],
        data[:start] + bytes(64) + data[start + 64 :],
        data.replace(b"coordinate", b"co0rdinate"),
        data.replace(b"real", b"complex"),
        data.replace(b"symmetric", b"skew-symmetric"),
        data.replace(b"\n1 1 ", b"\n0 1 "),
        data.replace(b"\n1 1 ", b"\n1.5 1 "),
        data.replace(b"\n1 1 ", b"\n"),
        data.removesuffix(b"\n").rpartition(b"\n")[0],
    ):
        assert damaged != data
        K.write_bytes(damaged)
        with pytest.raises(MatrixFileError) as error:
            read_matrices(K, M, nodes)
        assert error.value.path == str(K)
