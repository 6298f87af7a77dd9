"""`make setup` on a `.venv` that an earlier version of Cortex made: the recipe of the Makefile with real make and pip.

The packages are empty ones of the same names, so that nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What the recipe imports after the install.
MODULES = ("app", "surfaces/cli", "surfaces/http/server", "core/embedding/backends/runtime")
BACKEND = """
import pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(pathlib.Path(folder) / "cortex_py-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("cortex.pth", str(pathlib.Path.cwd()))
        at = "cortex_py-1.dist-info/"
        wheel.writestr(at + "METADATA", "Metadata-Version: 2.1\\nName: cortex-py\\nVersion: 1\\n")
        wheel.writestr(at + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(at + "RECORD", "cortex.pth,,\\n" + at + "METADATA,,\\n" + at + "WHEEL,,\\n" + at + "RECORD,,\\n")
    return "cortex_py-1-py3-none-any.whl"
"""


def _add_wheel(folder: Path, name: str, module: str) -> str:
    """Write a wheel whose only module is `apsw`; returns the line of requirements that asks for it."""
    path = folder / f"{name.replace('-', '_')}-1-py3-none-any.whl"
    at = f"{name.replace('-', '_')}-1.dist-info/"
    files = {
        "apsw/__init__.py": module,
        f"{at}METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{at}WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
        wheel.writestr(f"{at}RECORD", "".join(f"{file},,\n" for file in [*files, f"{at}RECORD"]))
    return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.mark.slow
def test_setup_ends_with_the_sqlite_of_this_version(tmp_path: Path) -> None:
    """However often somebody went back to a version that uses the other package of the same module."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    earlier = tmp_path / "earlier.txt"
    earlier.write_text(_add_wheel(wheels, "apsw", ""))
    locked = "# The lock.\n" + _add_wheel(wheels, "apsw-sqlite3mc", "mc_version = '1'") + "    # groups: runtime dev\n"
    (tmp_path / "requirements.txt").write_text(locked)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "lock.py", tmp_path / "tools")
    (tmp_path / "backend.py").write_text(BACKEND)
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    for module in MODULES:
        path = tmp_path / "cortex_py" / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def import_onnxruntime(): pass\n")
    shutil.copy(ROOT / "Makefile", tmp_path)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE"))}
    environment = {**inherited, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    python = tmp_path / ".venv" / "bin" / "python"
    told = run("make", "setup", f"PYTHON={sys.executable}")
    assert "Skipping" not in told
    assert "Installing the packages" in told
    for _ in range(2):
        run(python, "-m", "pip", "install", "-q", "--require-hashes", "-r", earlier)
        (tmp_path / ".make" / "runtime").unlink()
        run("make", "setup", f"PYTHON={sys.executable}")
    assert run(python, "-c", "import apsw; print(apsw.mc_version)") == "1\n"
