"""An elastic body in prescribed motion by Lagrange, Gibbs-Appell, Kane, Maggi and Hamilton.

The motion of the frame is prescribed by the velocity V and acceleration a₀ of its origin and the
angular velocity ω and acceleration α = ω̇, all in body components. Each formalism starts from a
different expression, which UFL differentiates:

| function | starts from | differentiates |
|---|---|---|
| `lagrange` | kinetic energy T(u, u̇, t), strain energy, work | d/dt ∂T/∂u̇ − ∂T/∂u + ∂U/∂u − ∂W/∂u |
| `gibbs_appell` | Appell's function | ∂/∂ü, once |
| `kane` | virtual power of inertia, stress and loads | partial velocities ∂v/∂u̇, ∂ε̇/∂u̇ |
| `maggi` | T(V, ω, u, u̇), all velocities of the free body | Lagrange's expressions, projected |
| `hamilton` | H(u, p, t) by Legendre's transform | u̇ = ∂H/∂p, ṗ = −∂H/∂u |

All use time derivatives of body components: by the chain rule with u → u̇ → ü, ω → α and
V → a₀ − ω×V. All yield the residual of `named_forms`, the sum of the forms of `floating_frame`. The
same code holds in the plane and in space.

References:
    M. L. Scutaru, S. Vlase, Two-Dimensional Equivalent Models in the Analysis of a Multibody
    Elastic System Using the Finite Element Analysis, Mathematics 11 (2023) 4149.
"""

from __future__ import annotations

from dolfinx_mbd.forms.formalisms.body import MovingBody, acceleration, velocity
from dolfinx_mbd.forms.formalisms.canonical import (
    CanonicalEquations,
    hamilton,
    hamiltonian,
    momentum,
)
from dolfinx_mbd.forms.formalisms.constraints import VirtualVelocities, constrained_rate, maggi
from dolfinx_mbd.forms.formalisms.equations import (
    LinearParts,
    gibbs_appell,
    kane,
    lagrange,
    linear_parts,
    named_forms,
)

__all__ = [
    "CanonicalEquations",
    "LinearParts",
    "MovingBody",
    "VirtualVelocities",
    "acceleration",
    "constrained_rate",
    "gibbs_appell",
    "hamilton",
    "hamiltonian",
    "kane",
    "lagrange",
    "linear_parts",
    "maggi",
    "momentum",
    "named_forms",
    "velocity",
]
