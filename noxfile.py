"""The checks of the project, one session each. ``nox`` runs them all; ``nox -s types`` runs one.

``nox -s dev`` makes ``.venv`` for daily work. CI runs the same sessions in its own environment (``.ci/run``).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [
    "lint",
    "format",
    "types",
    "floors",
    "size",
    "tests",
    "numpys",
    "plugins",
    "tutorials",
    "docs",
]

PROJECT = Path(__file__).parent
TEST = "python -m pytest -n auto --maxprocesses 8 --dist worksteal".split()  # noqa: SIM905  (as in README.md)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


def install(session: nox.Session, *extras: str) -> None:
    """Install the project with extras; without an environment of nox's own, the caller has done so."""
    if session.virtualenv.venv_backend != "none":
        session.install("--quiet", "-e", f".[{','.join(extras)}]")


@nox.session(default=False)
def dev(session: nox.Session) -> None:
    """Make ``.venv`` with the project, editable, and every tool."""
    session.run("python", "-m", "venv", ".venv")
    python = PROJECT / ".venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    session.run(str(python), "-m", "pip", "install", "-e", ".[dev,docs,test-all,tutorials]", external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint with ruff."""
    install(session, "dev")
    session.run("ruff", "check", "--no-cache", ".")


@nox.session
def format(session: nox.Session) -> None:  # noqa: A001  (the step's name)
    """Check the formatting; ``nox -s format -- --fix`` formats."""
    install(session, "dev")
    check = [] if "--fix" in session.posargs else ["--check"]
    session.run("ruff", "format", "--no-cache", *check, ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types with mypy --strict."""
    install(session, "dev")
    session.run("mypy", *session.posargs)


@nox.session
def floors(session: nox.Session) -> None:
    """Check the import contracts."""
    install(session, "dev")
    session.run("lint-imports", "--no-cache")


@nox.session
def size(session: nox.Session) -> None:
    """Compare each room's tokens with its budget; ``nox -s size -- --fix`` writes CONTRIBUTING.md's table."""
    session.run("python", ".ci/size.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests, the slow ones too; arguments behind ``--`` go to pytest."""
    install(session, "dev", "test-all", "tutorials")
    session.run(*TEST, "-m", "", *session.posargs, env=ONE_THREAD)


@nox.session
def plugins(session: nox.Session) -> None:
    """Install the wheel and a package that adds a format and a store; test it from that install alone."""
    empty = Path(session.create_tmp()).resolve() / "plugins"
    shutil.rmtree(empty, ignore_errors=True)
    session.run("python", "-m", "venv", str(empty))
    session.run(
        "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(empty / "wheels"), "."
    )
    (built,) = (empty / "wheels").glob("*.whl")
    toy = PROJECT / "tests" / "plugins" / "toy"
    pip = (str(empty / "bin" / "pip"), "install", "--quiet")
    session.run(*pip, f"paddlelike[testing] @ {built.as_uri()}", str(toy), external=True)
    shutil.copy(toy / "test_toy.py", empty)
    with session.chdir(empty):  # where neither a checkout nor the source of the package is imported instead
        session.run(str(empty / "bin" / "pytest"), "-q", "test_toy.py", env={"PYTHONPATH": ""}, external=True)


@nox.session(default=False)
def quick(session: nox.Session) -> None:
    """Run the tests of files, operators and layers against golden data, within a minute."""
    install(session, "test")
    folders = [
        "tests/core",
        "tests/formats",
        "tests/framework",
        "tests/ops/test_ops.py",
        "tests/zoo",
        "tests/ops/kernels/test_traceable.py",
    ]
    session.run(*TEST, *folders, env=ONE_THREAD)


@nox.session
def numpys(session: nox.Session) -> None:
    """Run an old script with the oldest numpy that is supported and with the newest."""
    there = Path(session.create_tmp()).resolve() / "numpys"
    for version in ("numpy==1.26.*", "numpy"):
        session.run("python", "-m", "venv", "--clear", str(there))
        pip = (str(there / "bin" / "pip"), "install", "--quiet")
        session.run(*pip, version, "hypothesis", "pillow", "pytest", ".", external=True)
        session.run(
            str(there / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "tests/import_paddle/test_run.py", "-k", "dropped or no_longer_do",
            env={"PYTHONPATH": str(PROJECT)}, external=True,
        )  # fmt: skip


@nox.session(default=False)
def packages(session: nox.Session) -> None:
    """Drive whole packages of Fluid's time, from the folders that ``PADDLELIKE_PACKAGES`` names."""
    install(session, "test")
    session.run("python", "-m", "pytest", "-q", "-rs", "-m", "", "tests/import_paddle/test_packages.py")


@nox.session(default=False)
def compatibility(session: nox.Session) -> None:
    """Write ``tutorials/reference/compatibility.md`` from models, and packages ``-- NAME=FOLDER ...``."""
    install(session, "test-all")
    session.run("python", ".ci/compatibility.py", *session.posargs)


@nox.session(default=False)
def torture(session: nox.Session) -> None:
    """Kill saves, cut the power and damage files, of this library and of others; prints a table.

    ``-- --peers`` installs PyTorch and Orbax into environments of their own first.
    """
    install(session, "test-all")
    found = {}
    for peer, packages in {"TORCH": ["torch", "numpy"], "ORBAX": ["orbax-checkpoint"]}.items():
        place = Path(session.create_tmp()).resolve() / peer.lower()
        if "--peers" in session.posargs and not os.environ.get(f"PADDLELIKE_{peer}_PYTHON"):
            session.run("python", "-m", "venv", str(place))
            session.run(str(place / "bin" / "pip"), "install", "--quiet", *packages, external=True)
            found[f"PADDLELIKE_{peer}_PYTHON"] = str(place / "bin" / "python")
    rest = [one for one in session.posargs if one != "--peers"]
    session.run("python", "-m", "tests.torture", *rest, env=found)


@nox.session(default=False)
def findings(session: nox.Session) -> None:
    """Run the scripts of ``findings/``, which show what surprised in other software; ``-- NAME`` runs one.

    ``PYTHON``, ``PYTHON37`` and ``PYTHON38`` name the interpreters that they install packages for.
    """
    for script in sorted((PROJECT / "findings").glob("*.sh")):
        if not session.posargs or script.stem in session.posargs:
            session.run("bash", str(script), external=True)


@nox.session(default=False)
def mutations(session: nox.Session) -> None:
    """Try plausible faults, one at a time: which tests find them? Hours; ``-- --help`` shows the options."""
    install(session, "dev", "test-all", "tutorials")
    session.run("python", "-m", "tests.mutations", *session.posargs)


@nox.session
def tutorials(session: nox.Session) -> None:
    """Run every tutorial as a notebook in ``tutorials/out/``, which is deleted first."""
    install(session, "docs", "test-all", "tutorials")
    shutil.rmtree(PROJECT / "tutorials" / "out", ignore_errors=True)
    session.run("python", ".ci/notebooks.py", "--execute", env=ONE_THREAD)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in ``build/site``; a warning is an error. Tutorials have outputs if they have run."""
    install(session, "docs", "tutorials")
    session.run("python", ".ci/notebooks.py", "--missing")
    output = session.posargs or ["build/site"]
    folders = ["-c", ".ci/site", "-d", "build/doctrees"]
    session.run("sphinx-build", "-q", "-W", "--keep-going", "-E", *folders, ".", *output)


@nox.session(default=False)
def release(session: nox.Session) -> None:
    """Check and build a release, ``dist/`` and ``build/site/VERSION``; with ``-- --quick`` run few tests."""
    install(session, "docs", "tutorials")
    session.install("--quiet", "build", "twine")
    version = session.run("python", "-c", "import paddlelike; print(paddlelike.__version__)", silent=True)
    version = str(version).strip()
    if f"\n## [{version}] - " not in (PROJECT / "CHANGELOG.md").read_text():
        session.error(f"CHANGELOG.md has no section of {version}")
    if session.run("git", "status", "--porcelain", external=True, silent=True) and not session.posargs:
        session.error("the working tree has changes that are not committed")
    shutil.rmtree(PROJECT / "dist", ignore_errors=True)
    session.run("python", "-m", "build")
    session.run("python", "-m", "twine", "check", "--strict", *map(str, (PROJECT / "dist").iterdir()))
    there = Path(session.create_tmp()).resolve() / "release"
    shutil.rmtree(there, ignore_errors=True)
    session.run("python", "-m", "venv", str(there))
    pip, python = (str(there / "bin" / name) for name in ("pip", "python"))
    (wheel,) = (PROJECT / "dist").glob("*-none-any.whl")
    session.run(pip, "install", "--quiet", str(wheel), external=True)
    with session.chdir(there):  # where no checkout is imported instead
        for arguments in (["--help"], ["run", "--help"], ["launch", "--help"]):
            session.run(str(there / "bin" / "paddlelike"), *arguments, external=True, silent=True)
    (sources,) = (PROJECT / "dist").glob("*.tar.gz")
    shutil.unpack_archive(sources, there, filter="data")
    with session.chdir(there / f"paddlelike-{version}"):  # the sources alone, without a repository
        session.run(pip, "install", "--quiet", ".[test]", external=True)
        part = ["tests/house", "tests/core"] if session.posargs else []
        session.run(python, *TEST[1:], *part, external=True, env={**ONE_THREAD, "PYTHONPATH": ""})
    site = PROJECT / "build" / "site"
    shutil.rmtree(site / version, ignore_errors=True)
    session.notify("docs", [str(site / version)])
