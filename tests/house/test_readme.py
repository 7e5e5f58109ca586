"""What README.md shows is there and runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from paddlelike.formats import registry
from tests.helpers.fresh import fresh_programs

PROJECT = Path(__file__).parent.parent.parent
README = (PROJECT / "README.md").read_text()
GUIDES = sorted(p for p in (PROJECT / "tutorials").rglob("*.md") if "out" not in p.parts)
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "paddlelike").rglob("*.md")), *GUIDES]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_ten_lines_of_the_readme_resume_at_their_second_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (script,) = blocks("python")
    assert len([line for line in script.splitlines() if line]) == 10
    printed = []
    for _ in range(2):
        with fresh_programs():
            exec(compile(script, "README.md", "exec"), {"__name__": "__main__"})
        printed.append(capsys.readouterr().out)
    assert "loaded" not in printed[0]
    assert printed[1].startswith("loaded 5 variables")
    first, second = ([float(loss) for loss in re.findall(r"\[(.*?)\]", one)] for one in printed)
    assert second[0] < first[0] / 1000  # it does not begin anew


def test_the_readme_script_for_old_models_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PROJECT / "tests" / "golden" / "fit_a_line" / "inference", tmp_path / "old_model")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    page = (PROJECT / "tutorials" / "how_to" / "old_models.md").read_text()
    for script in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(script, "old_models.md", "exec"), names)
    assert names["result"].shape == (4, 1)
    assert set(names["values"]) == {"fc_0.w_0", "fc_0.b_0"}
    assert (tmp_path / "values.safetensors").stat().st_size > 56


def test_the_formats_page_lists_every_format_and_its_contents() -> None:
    page = (PROJECT / "tutorials" / "reference" / "formats.md").read_text()
    rows = {
        row[0]: row[1:]
        for row in re.findall(r"^\| `(\w+)` \| .* \| (\w+).* \| (\w+) \| (\w+) \| .* \|", page, re.MULTILINE)
    }
    said = {name: tuple(word == "yes" for word in words) for name, words in rows.items()}
    formats = {name: registry.find(name).holds for name in registry.all_formats()}
    assert said == {name: (held.names, held.lod, held.selected_rows) for name, held in formats.items()}


def test_the_index_of_tutorials_has_every_file() -> None:
    folder = PROJECT / "tutorials"
    index = (folder / "README.md").read_text()
    listed = [
        *folder.iterdir(),
        *(page for room in ("how_to", "explanation", "measurements") for page in (folder / room).iterdir()),
    ]
    names = {path.relative_to(folder).as_posix() for path in listed if path.is_file()} - {"README.md"}
    assert sorted(name for name in names if f"]({name})" not in index) == []


def test_the_front_page_fits_one_screen_and_a_terminal() -> None:
    assert len(README.splitlines()) <= 43  # 1280 x 900, as GitHub shows it
    assert [line for line in README.splitlines() if len(line) >= 120] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_path_and_link_of_a_page_exists(page: Path) -> None:
    text = page.read_text()
    named = {
        path
        for path in re.findall(r"`((?:paddlelike|tests|tutorials)/[\w./]*)`", text)
        if not path.startswith("tutorials/out/")  # git-ignored
    }
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link}
    assert [path for path in sorted(named) if not (PROJECT / path).exists()] == []
    assert [path for path in sorted(linked) if path and not (page.parent / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_section_that_a_page_links_to_exists(page: Path) -> None:
    text = page.read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    sections = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    assert [at for at in re.findall(r"\]\(#([^)]+)\)", text) if at not in sections] == []


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    (command,) = re.findall(r"bin/(python -m pytest -n .*)", README)
    assert command in (PROJECT / "noxfile.py").read_text()
    assert "--sessions tests" in (PROJECT / ".ci" / "run").read_text()


def test_readme_commands_use_separate_environments() -> None:
    made = re.findall(r"python3 -m venv (\S+) &&", README)
    assert len(made) == len(set(made)) == 2


def test_the_repository_root_has_only_the_listed_files() -> None:
    known = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    known |= {
        "conftest.py",
        "noxfile.py",
        "pyproject.toml",
        "PKG-INFO",
    }  # the last one in a source distribution
    known |= {"conftest.py", "findings", "paddlelike", "tests", "tutorials"}
    ignored = {"build", "dist", "__pycache__"}
    there = {path.name for path in PROJECT.iterdir() if not path.name.startswith(".")}
    assert there - ignored <= known
