"""Code that uses a functional mock-up unit, in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def run(code: str, unit: Path) -> Any:
    """Run code in a separate process, and return its variable `result`.

    The code may use the modules json and np, and `unit`, the path of the mock-up unit.
    """
    code = f"import json, numpy as np\nunit = {str(unit)!r}\n{code}\n"
    code += f"with open({str(unit.with_suffix('.json'))!r}, 'w') as file: json.dump(result, file)"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(unit.with_suffix(".json").read_text())
