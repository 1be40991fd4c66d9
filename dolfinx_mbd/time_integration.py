"""Parameters of time integration methods."""

from __future__ import annotations

from dataclasses import dataclass

from dolfinx_mbd.checks import flag, name, number, reject

_MIDPOINT = 0.0, 0.0, 0.5, 1.0  # α_m, α_f, β, γ with the acceleration at the middle of the step


@dataclass(frozen=True)
class GeneralizedAlpha:
    """Parameters of a generalized-α method.

        method = GeneralizedAlpha.from_spectral_radius(0.6)
        run = mbd.simulate(system, t_end=0.04, dt=1e-5, method=method)

    Attributes:
        alpha_m: Weight of the algorithmic acceleration at the start of a step.
        alpha_f: Weight of the acceleration at the start of a step.
        beta: Newmark's β.
        gamma: Newmark's γ.
        name: Name of the method, for tables.
        conserves: Whether steps conserve energy and momentum; see `conserving`.

    Raises:
        InputError: β or γ is not positive, a weight is not below 1, or `conserves` is true with
            other parameters than those of `conserving`.
    """

    alpha_m: float
    alpha_f: float
    beta: float
    gamma: float
    name: str = "generalized-α"
    conserves: bool = False

    def __post_init__(self) -> None:
        for key in ("alpha_m", "alpha_f", "beta", "gamma"):
            number(key, getattr(self, key), positive=key in ("beta", "gamma"))
        for key in ("alpha_m", "alpha_f"):
            if getattr(self, key) >= 1:
                reject(key, getattr(self, key), "below 1")
        name("name", self.name)
        parameters = self.alpha_m, self.alpha_f, self.beta, self.gamma
        if flag("conserves", self.conserves) and parameters != _MIDPOINT:
            reject("conserves", True, "False, or a method from GeneralizedAlpha.conserving()")

    @property
    def error_constant(self) -> float:
        """Factor c of the local error c dt³ v̈ of the positions after a step dt."""
        if self.conserves:  # the accelerations are those at the middle of the step
            return 1 / 12
        return self.beta + 0.5 * (self.alpha_m - self.alpha_f) - 1 / 6

    @classmethod
    def from_spectral_radius(cls, rho: float = 0.8) -> GeneralizedAlpha:
        """Return the method with a given spectral radius at infinite frequency.

        Args:
            rho: Spectral radius ρ∞; 1: no damping, 0: high frequencies vanish in one step.

        Raises:
            InputError: ρ∞ is not in [0, 1].

        References:
            J. Chung, G. M. Hulbert, A time integration algorithm for structural dynamics with
            improved numerical dissipation: the generalized-α method, Journal of Applied Mechanics
            60 (1993) 371-375.
        """
        rho = number("rho", rho, low=0.0, high=1.0)
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        gamma = 0.5 + alpha_f - alpha_m
        return cls(
            alpha_m, alpha_f, 0.25 * (gamma + 0.5) ** 2, gamma, f"generalized-α, ρ∞ = {rho:g}"
        )

    @classmethod
    def newmark(cls, beta: float = 0.25, gamma: float = 0.5) -> GeneralizedAlpha:
        """Return Newmark's method; by default the trapezoidal rule, without numerical damping.

        Args:
            beta: Newmark's β.
            gamma: Newmark's γ.
        """
        beta, gamma = number("beta", beta), number("gamma", gamma)
        return cls(0.0, 0.0, beta, gamma, f"Newmark, β = {beta:g}, γ = {gamma:g}")

    @classmethod
    def hht(cls, alpha: float = 0.1) -> GeneralizedAlpha:
        """Return the method of Hilber, Hughes and Taylor.

        Args:
            alpha: Numerical damping, from 0 to 1/3.
        """
        alpha = number("alpha", alpha, low=0.0, high=1 / 3)
        return cls(0.0, alpha, 0.25 * (1 + alpha) ** 2, 0.5 + alpha, f"HHT, α = {alpha:g}")

    @classmethod
    def conserving(cls) -> GeneralizedAlpha:
        """Return the midpoint rule with discrete gradients, for mesh bodies in free flight.

        It conserves energy, momentum and angular momentum to the tolerance of Newton's method, for
        all sizes of steps. All moving bodies must be a `MeshBody` without interfaces; their energy
        must not change under rotations. Dead loads and gravity act with their values at the middle
        of a step, and saved accelerations are those at the middle of the last step.

        Example:
            >>> method = mbd.dynamics.GeneralizedAlpha.conserving()
            >>> method.conserves
            True

        References:
            O. Gonzalez, Exact energy and momentum conserving algorithms for general models in
            nonlinear elasticity, Computer Methods in Applied Mechanics and Engineering 190 (2000)
            1763-1783.
        """
        return cls(*_MIDPOINT, "midpoint rule with discrete gradients", conserves=True)
