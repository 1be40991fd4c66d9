"""Young's modulus, density and the stiffness of a support from measured frequencies.

You compute the derivatives of a reduced body with respect to its material, and use least squares to
find the values that agree with noisy measurements. Runs on one rank and under `mpirun -n 2`.
"""

# # Material and support from measured frequencies
#
# A bar is clamped at its left end, and a spring supports its right end. Ten frequencies were
# measured, with errors of 0.1 %. You compute Young's modulus $E$, the density $\rho$ and the
# stiffness $k$ of the spring from them.

# +
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.linalg

import dolfinx_mbd as mbd
from dolfinx_mbd.tutorials import check, report, tagged_bar

mesh = tagged_bar((0.5, 0.03, 0.02), (12, 1, 1), ("left", "right"))
parameters = [mbd.Parameter("E", "young"), mbd.Parameter("rho", "density")]


def reduced(young: float, density: float) -> mbd.reduction.Reduction:
    """Return the bar, whose body frame is attached to its left end."""
    material = mbd.Material(young, 0.3, density)
    ends = ["left", "right"]
    return mbd.reduce(
        mesh, material, interfaces=ends, num_modes=8, attached_to="left", stiffening=False
    )


# -

# ## The derivatives of the bar
#
# `sensitivities` differentiates the whole reduced body: matrices, inertia, and the motion of its
# interfaces. The frequencies of the clamped bar are proportional to $\sqrt{E/\rho}$, so that the
# relative derivatives must be 1/2 and -1/2.

# +
bar = reduced(210e9, 7850.0)
table = mbd.sensitivities(bar, parameters)
for name in ("E", "rho"):
    relative = table[name].frequencies * table.base[name] / bar.body.frequencies
    report(f"relative derivatives of the frequencies with respect to {name}: {relative[:4]}")
    check(f"|df/f over d{name}/{name}|", abs(relative).max(), 0.5 - 1e-6, 0.5 + 1e-6)
# -

# `table.at` returns the first-order body, whose data are linear in the parameters. It needs no
# new reduction.

changed = table.at({"E": 200e9, "rho": 7700.0})
report(f"first frequency at other values: {changed.frequencies[0]:.3f} Hz, to first order")
report(f"after a new reduction: {reduced(200e9, 7700.0).body.frequencies[0]:.3f} Hz")

# ## The bar on its spring
#
# With the elastic coordinates $\eta$ and the lateral motion $r^T\eta$ of the right end, the spring
# adds $k\,rr^T$ to the modal stiffness $K$, and a mass $m$ at the end adds $m\,rr^T$ to the modal
# mass $I$. When a parameter changes, the modal mass of the bar remains $I$. The squared angular
# frequencies $\lambda$ with the eigenvectors $\phi$ therefore change by $\mathrm
# d\lambda=\phi^T(\mathrm dK+(k-\lambda m)\,\mathrm d(rr^T)+rr^T\mathrm dk)\,\phi$.

# +
LATERAL = 1  # displacement along y


def frequencies(
    values: Mapping[str, float], masses: tuple[float, ...]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the first five frequencies with each mass at the end, and their derivatives."""
    bar = reduced(values["E"], values["rho"])
    table, body = mbd.sensitivities(bar, parameters), bar.body
    r, identity = body.interface("right").motion[LATERAL], np.eye(body.num_modes)
    result: list[np.ndarray] = []
    derivatives: dict[str, list[np.ndarray]] = {"E": [], "rho": [], "k": []}
    for mass in masses:
        K = body.stiffness + values["k"] * np.outer(r, r)
        squares, modes = scipy.linalg.eigh(K, identity + mass * np.outer(r, r))
        squares, modes = squares[:5], modes[:, :5]
        f, end = np.sqrt(squares) / (2 * np.pi), r @ modes
        result.append(f)
        derivatives["k"].append(end**2 / (8 * np.pi**2 * f))
        for name in ("E", "rho"):
            stiffness = np.einsum("ik,ij,jk->k", modes, table[name].stiffness, modes)
            motion = table[name].interface_motions[1, LATERAL] @ modes
            stiffness += 2 * (values["k"] - squares * mass) * end * motion
            derivatives[name].append(stiffness / (8 * np.pi**2 * f))
    return np.concatenate(result), {k: np.concatenate(v) for k, v in derivatives.items()}


true, start = {"E": 205e9, "rho": 7700.0, "k": 3e5}, {"E": 190e9, "rho": 8200.0, "k": 2e5}
bounds = {"E": (1e11, 4e11), "rho": (4e3, 2e4), "k": (1e4, 1e6)}
# -

# ## What the measurements do not determine
#
# If $E$, $\rho$ and $k$ grow by the same factor, no frequency changes. Frequencies alone therefore
# do not determine all three parameters, and `identify` raises an error.

undetermined = False
try:
    mbd.design.identify(lambda p: frequencies(p, (0.0,)), frequencies(true, (0.0,))[0], start=start)
except mbd.errors.SolverError as error:
    report(f"without a known mass: {error}")
    undetermined = True
check("undetermined without a known mass", float(undetermined), 1, 1)

# ## With a known mass
#
# Five more frequencies, measured with a mass of 0.5 kg at the end, determine the common factor.

masses, random = (0.0, 0.5), np.random.default_rng(1)
measured = frequencies(true, masses)[0]
measured = measured * (1 + 1e-3 * random.standard_normal(len(measured)))
result = mbd.design.identify(lambda p: frequencies(p, masses), measured, start=start, bounds=bounds)
for name, value in result.values.items():
    low, high = result.intervals[name]
    report(f"{name}: {value:.4g}, 95 % between {low:.4g} and {high:.4g}; true {true[name]:.4g}")
    check(f"relative error of {name}", abs(value / true[name] - 1), 0, 0.03)
report(f"{result.iterations} evaluations of the model")

# The uncertainty of any result follows from derivatives and deviations, to first order. Here the
# result is the mass of the bar.

mass = mbd.design.first_order_deviation(
    {"rho": [0.5 * 0.03 * 0.02]}, {"rho": result.deviations["rho"]}
)
report(f"standard deviation of the mass of the bar: {1e3 * mass[0]:.2g} g of 2.3 kg")
