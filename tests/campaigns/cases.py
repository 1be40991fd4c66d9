"""Cases of the campaigns, and how the outcome of one is classified."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dolfinx_mbd.errors import Error

KINDS = ("handled", "foreign", "wrong", "hang", "crash")
"""An error of the package or a correct result; an exception of another type; wrong numbers."""


@dataclass(frozen=True)
class Case:
    """One case of a campaign.

    Attributes:
        group: What is attacked, for example the name of a function.
        item: Which part of it, for example the name of an argument.
        attack: How.
        run: Runs the case; returns None if the result is correct, otherwise what is wrong.
        seconds: Time after which the case counts as a hang.
    """

    group: str
    item: str
    attack: str
    run: Callable[[], str | None]
    seconds: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case; `kind` is one of `KINDS`."""

    group: str
    item: str
    attack: str
    kind: str
    detail: str = ""


class UserFaultError(Exception):
    """Raised by functions that the campaigns pass as the user's; it must pass through."""


class TimeUpError(BaseException):
    """Raised when a case exceeds its time limit; not an `Exception`, so that nothing hides it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeUpError` in the main thread after some seconds, and again every second."""

    def stop(*_: Any) -> None:
        raise TimeUpError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def stop(job: subprocess.Popen[bytes]) -> None:
    """End a job by SIGTERM, after which mpirun ends its ranks; after SIGKILL it does not."""
    job.terminate()
    try:
        job.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def attempt(case: Case) -> Outcome:
    """Run a case and classify its outcome.

    An error of the operating system counts as handled: it tells the user what is wrong with a path
    or a disk. So does an error that a function of the user has raised.
    """
    kind, detail = "handled", ""
    try:
        with time_limit(case.seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fault = case.run()
        if fault is not None:
            kind, detail = "wrong", fault
    except Error as error:
        detail = f"{type(error).__name__}: {error}"
    except UserFaultError:
        pass
    except TimeUpError:
        kind, detail = "hang", f"more than {case.seconds:g} s"
    except OSError as error:
        kind = "handled" if error.errno else "foreign"
        detail = _place(error)
    except (Exception, SystemExit) as error:
        kind, detail = "foreign", _place(error)
    finally:
        gc.collect(0)
    return Outcome(case.group, case.item, case.attack, kind, " ".join(detail.split())[:300])


def _place(error: BaseException) -> str:
    """Return an error and the last line of the package that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    calls = [f for f in frames if "dolfinx_mbd/" in f.filename]
    where = ""
    if calls:
        where = f" ({calls[-1].filename.rpartition('dolfinx_mbd/')[2]}:{calls[-1].lineno})"
    return f"{type(error).__name__}{where}: {' '.join(str(error).split())}"
