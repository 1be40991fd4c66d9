"""Compilation of units in C, their identifiers and archives."""

from __future__ import annotations

import hashlib
import io
import platform
import shutil
import subprocess
import tempfile
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path

from dolfinx_mbd.errors import MissingFileError, SolverError

__all__ = ["archive", "c_compiler", "compiled_library", "identifier_of", "platform_folder"]

_PLATFORMS = {
    (2, "Linux"): ("linux64", ".so"),
    (2, "Darwin"): ("darwin64", ".dylib"),
    (3, "Linux"): ("x86_64-linux", ".so"),
    (3, "Darwin"): ("x86_64-darwin", ".dylib"),
}
"""Folders and suffixes of binaries by version of the standard and system."""


def platform_folder(fmi: int = 2) -> tuple[str, str]:
    """Return the folder and the suffix of binaries for this machine."""
    names = _PLATFORMS.get((fmi, platform.system()))
    if names is None or platform.machine() not in ("x86_64", "AMD64"):
        machine = f"{platform.system()} on {platform.machine()}"
        raise MissingFileError(f"there are no binaries for {machine}; use binary=False")
    return names


def c_compiler() -> str:
    """Return the path of the C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        text = "there is no C compiler (cc, gcc, clang): install one, for example gcc, or use "
        raise MissingFileError(f"{text}binary=False, which writes the source only")
    return compiler


def compiled_library(main: str, sources: Mapping[str, str]) -> bytes:
    """Return the shared library of the source `main`, which may include the other sources."""
    compiler = c_compiler()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        command = [compiler, "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared"]
        command += ["-fvisibility=hidden", "-Werror=implicit-function-declaration"]
        command += [main, "-o", "library", "-lm"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SolverError(f"{compiler} failed: {process.stderr.strip()[-500:]}")
        return (Path(folder) / "library").read_bytes()


def identifier_of(*parts: str | float) -> str:
    """Return an identifier that only FMUs with equal contents share."""
    digest = hashlib.sha256("\n".join(map(str, parts)).encode()).digest()
    return f"{{{uuid.UUID(bytes=digest[:16])}}}"


def archive(contents: Mapping[str, bytes]) -> bytes:
    """Return a ZIP archive; equal contents give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
