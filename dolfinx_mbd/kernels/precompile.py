"""Compilation of kernels that are not on disk, in helper processes.

A reduction, or the first kernel that is missing on disk, starts the helpers. The helpers compile
kernels in reverse order, while the main process compiles each kernel when it is needed. Each
process loads the kernels that another process has written to disk.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import importlib.util
import multiprocessing
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

ENABLED = os.environ.get("DOLFINX_MBD_PRECOMPILE", "1") != "0"
"""Whether helpers may be started."""

_MAX_HELPERS = 3  # largest number of helpers

#: Kernels in the order in which a simulation needs them, with the types of their arguments: f
#: (float), c (float in column order), i (integer) or b (Boolean), and the dimension of an array.
KERNELS = """
frames.frame_poses i2 f1 f1 f2 f3
floating_frame_tangents.tangents i2 f1 f1 f1 f1 f1 f2 f1
joints.joint_frames f2 f3 i1 i1 f1 f1
joints.joint_values f2 f3 f2 f3
frames.frame_jacobians i2 f1 f1 f3
joints.joint_gradients f2 f3 f2 f3
frames.frame_velocities i2 f1 f1 f1 f2
joints.axis_coordinates f2 f3 f2 i1 i1 f1
joints.add_axis_forces f1 f3 i2 i2 f2
joints.constraint_rows f2 f3 i1 i1 f1 f1 i2 f1 f1 f2 f2 f1
floating_frame.residual i2 f1 f1 f1 f1 f1 f2 f1 f1
joints.joint_second_derivatives f2 f3 f2 f3 f2
matrices.add_bodies f1 i1 i1 f2 f2 f2
matrices.add_products f3 i2 i2 f3 f3 i1 i2 i2 f2
matrices.add_gradients f3 i2 i2 f3 i1 i2 f2
frames.frame_velocity_tangents i2 f1 f1 f1 f3
joints.rotation_second_derivatives f3 f3
joints.joint_bias f2 f3 f2 f2 f3 f2
floating_frame.increment i2 f1 f1 f1
joints.joint_angles f3 i1 i1 f1
time_steps.predict f1 f1 f1 f1 f1 f f1 f1 f1
time_steps.relative_residual f1 f1 i1 f f1
time_steps.largest_coordinates f2 f1 i1 f f1
matrices.fill f2 f2 f2 f2 i1 f3 f f f c2
group_rotations.orientations i2 f1 f3 f3
time_steps.right_hand_side f1 f1 f f f1
time_steps.round_off f1 b1 f2 f f f c2
time_steps.relative_forces f1 f f1 f1 f1 b1 i1 i2 f1 f1 f
time_steps.largest_product f1 f1
group_rotations.rotate_back i2 f1 f3 f3 f3 f1
group_rotations.rotate_forward i2 f3 f1
body_factor.write_gradients i2 f1 i2 f3 f f2 f2 f2 f2
body_factor.connect_bodies i2 f1 i2 f2 f2 f2
body_factor.reduce_to_connections i2 f1 i2 i1 i2 f1 f2 f1 f1 f1
body_factor.expand_from_connections i2 f1 i2 i1 i2 f1 f2 f1 f1 f1
time_steps.correct f1 f f f f f1 f1 f1 f1 f1
floating_frame.integrals i2 f1 f1 f1 f1
time_steps.step_rotations f1 i1 f3 f3
time_steps.rotate_rows f3 i1 b f2
elimination.eliminate f2 b i2 i1 i1 i1 f1 i1 f2
elimination.reduce_columns i2 i1 i1 f1 i1 f2 f2
elimination.expand_columns i2 i1 i1 f1 f2 f2
parameter_terms.inertia_forces i2 f1 f2 f2 f2 f1 f2
parameter_terms.joint_wrenches i2 f1 f2 f3 f2 i1 i1 f2 f1 i2 f2 f2 f3 f2
parameter_terms.wrench_forces i2 f1 f2 f3 f2
contacts.contact_wrenches f1 f2 f1 f1 f2 f1 f2 f2 f1
contacts.contact_elastic_power f1 f2 f1 f1 f2 f1 f2 f2 f1
contacts.contact_derivatives f1 f2 f1 f1 f2 f1 f2 f2 f1
""".strip().splitlines()


@cache
def kernel_sources(folder: Path = Path(__file__).parent) -> str:
    """Return a digest that identifies the version of all source files with kernels."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        if any(
            mark in source for mark in (b"@kernel", b"@inner_kernel", b"@sums_in", b"@intrinsic")
        ):
            digest.update(source)
    return digest.hexdigest()


def _type(code: str) -> Any:
    """Return the numba type of an argument in `KERNELS`."""
    from numba import types

    scalar = {"i": types.int64, "b": types.boolean}.get(code[0], types.float64)
    layout = "F" if code[0] == "c" else "C"
    return types.Array(scalar, int(code[1]), layout) if code[1:] else scalar


def compile_part(part: int, parts: int) -> None:
    """Compile all kernels of `KERNELS`, starting at the end of a part of the list.

    The order is backwards to the start of the list, then from the end of the part to the end of the
    list. Processes with different parts thus share the work.
    """
    stop = len(KERNELS) * (part + 1) // parts
    for line in [*KERNELS[:stop][::-1], *KERNELS[stop:][::-1]]:
        name, *arguments = line.split()
        module, _, function = name.partition(".")
        kernel = getattr(importlib.import_module(f"dolfinx_mbd.kernels.{module}"), function)
        kernel.compile(tuple(_type(code) for code in arguments))
    _complete_mark().touch()


def _complete_mark() -> Path:
    """Return the path of an empty file that exists if all compiled kernels are on disk."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__"
    return Path(folder) / f"{kernel_sources()}.{sys.implementation.cache_tag}.all"


def start_kernel_compilation() -> None:
    """Start the processes that compile kernels, unless all kernels are on disk.

    Nothing is started if the folder of the compiled kernels is not writable.

    A reduction calls this function, because a simulation usually follows.
    """
    compiled = os.environ.get("DOLFINX_MBD_NUMBA", "1") != "0" and importlib.util.find_spec("numba")
    mark = _complete_mark()
    if ENABLED and compiled and not mark.exists() and os.access(mark.parent, os.W_OK):
        start_helpers()


@cache
def start_helpers() -> None:
    """Start helpers on idle processors once, but not from MPI ranks and worker processes."""
    ranks = max(int(os.environ.get(n, 1)) for n in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
    processors = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    count = min(_MAX_HELPERS, processors - 1)
    if ranks > 1 or multiprocessing.parent_process() or not sys.executable:
        return
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "DOLFINX_MBD_PRECOMPILE": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    for part in range(count):
        program = f"from {__name__} import compile_part; compile_part({part}, {count})"
        helper = subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(helper.terminate)
