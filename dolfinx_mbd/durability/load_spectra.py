"""Load spectra: the cases of a parameter study as runs with their shares."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.checks import array, object_with, unknown
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["load_spectrum"]


def load_spectrum(
    study: Dataset, body: str, shares: ArrayLike | None = None
) -> Sequence[tuple[Any, float]]:
    """Return the cases of a parameter study as runs with their shares, for `fatigue`.

    Args:
        study: Result of `mbd.sweep` whose function returned a `Solution`.
        body: Name of the body.
        shares: Share of the service time of each case, in the shape of the study; a case with a
            share of zero is left out. By default all cases have equal shares.

    Raises:
        InputError: The study does not contain the body, a case with a share failed, or the shares
            have another shape, are negative or do not add up to 1.

    Example:
        >>> def swing(speed):
        ...     bob = mbd.FlexibleBody("bar", bar.body, omega=(0, 0, speed))
        ...     return mbd.simulate(mbd.System([bob], []), t_end=1e-4, dt=1e-5)
        >>> study = mbd.sweep(swing, {"speed": [10.0, 20.0]}, workers=1)
        >>> runs = mbd.durability.load_spectrum(study, "bar", [0.7, 0.3])
        >>> [share for _, share in runs]
        [0.7, 0.3]
    """
    object_with("study", study, "data_vars", "case_status")
    key = f"{checked_name('body', body)}.eta"
    if key not in study or "time" not in study.variables:
        bodies = [str(n).removesuffix(".eta") for n in study.data_vars if str(n).endswith(".eta")]
        unknown("body", body, bodies, "the study has the elastic coordinates of")
    shape = study["case_status"].shape
    count = int(np.prod(shape))
    weights = np.full(shape, 1.0 / count) if shares is None else array("shares", shares, shape)
    if (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-6:
        text = f"shares must not be negative and must add up to 1; got {weights.ravel().tolist()}"
        raise InputError(text, argument="shares", value=shares)
    status = study["case_status"].values.ravel()
    eta = study[key].values.reshape(count, *study[key].shape[len(shape) :])
    times = study["time"].values
    if times.ndim > len(shape):  # otherwise, all cases have the same times
        times = times.reshape(count, -1)
    else:
        times = np.tile(times, (count, 1))
    runs = []
    for k, share in enumerate(weights.ravel()):
        if share == 0.0:
            continue
        if status[k] != "done":
            text = f"case {k} of the study is {status[k]}; give it the share 0 or compute it again"
            raise InputError(text, argument="study", value=status[k])
        recorded = np.isfinite(times[k])  # shorter runs end with NaN
        history = SimpleNamespace(time=times[k][recorded], eta=eta[k][recorded])
        runs.append((history, float(share)))
    return runs
