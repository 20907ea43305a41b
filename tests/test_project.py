"""Files about the project agree with each other: the package, the conda recipe, the workflows, the citation."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any

import yaml

import fouriscope as fs

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Where conda-forge has another name than PyPI.
CONDA_NAMES = {"dask": "dask-core", "matplotlib": "matplotlib-base"}


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def requirement(line: str) -> tuple[str, str]:
    """Name, as conda-forge has it, and range of a requirement.

    >>> requirement("dask>=2025.1")
    ('dask-core', '>=2025.1')
    """
    found = re.fullmatch(r"([A-Za-z0-9-]+)\s*([<>=!~.,0-9]*)", line)
    assert found is not None, line
    name = found[1].lower()
    return CONDA_NAMES.get(name, name), found[2]


def test_the_version_has_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert version("fouriscope") == fs.__version__
    init = (ROOT / "src" / "fouriscope" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall('__version__ = "(.+)"', init) == [fs.__version__]  # as the conda recipe reads it


def test_the_last_release_is_the_first_in_the_change_log() -> None:
    headings = re.findall("^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    releases = [heading for heading in headings if heading != "Unreleased"]
    assert re.fullmatch(rf"{re.escape(fs.__version__)} \(\d{{4}}-\d\d-\d\d\)", releases[0])


def relative_links(text: str) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)]+)\)", text) if not re.match(r"https://|#", link)]


def test_no_link_of_the_description_needs_a_file_beside_it() -> None:
    """PyPI shows the README alone."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    addressed = runpy.run_path(str(ROOT / "setup.py"))["with_addresses"](readme, "https://example.org")
    assert {"docs/pictures/real-target.png", "docs/python.md"} <= set(relative_links(readme))
    assert relative_links(addressed) == []
    assert "](https://example.org/raw/main/docs/pictures/real-target.png)" in addressed
    assert "](https://example.org/blob/main/docs/python.md)" in addressed


def test_the_package_was_built_with_that_description() -> None:
    description = metadata("fouriscope")["Description"]
    assert f"]({PROJECT['urls']['Repository']}/raw/main/docs/pictures/" in description
    assert relative_links(description) == []


def test_the_conda_recipe_has_the_requirements_of_the_package() -> None:
    recipe = re.sub(r"\{%.*?%\}", "", (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8"))
    run = yaml.safe_load(re.sub(r"\{\{.*?\}\}", "x", recipe))["requirements"]["run"]
    wanted = [("python", PROJECT["requires-python"]), *map(requirement, PROJECT["dependencies"])]
    assert [requirement(line) for line in run] == wanted


def test_every_python_that_is_promised_is_tested() -> None:
    promised = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    workflow = read_yaml(".github/workflows/tests.yml")
    assert workflow["jobs"]["fast"]["strategy"]["matrix"]["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    names = [re.split(r"[<>=\[]", line)[0].lower() for line in [*PROJECT["dependencies"], *extras]]
    assert [name for name in names if name not in page] == []


def test_templates_and_hooks_are_understood() -> None:
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = read_yaml(str(path.relative_to(ROOT)))
        assert "blank_issues_enabled" in form or {"name", "description", "body"} <= set(form)
    hooks = [hook["id"] for repo in read_yaml(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert hooks == ["ruff-check", "ruff-format", "mypy"]
    citation = read_yaml("CITATION.cff")
    assert {"cff-version", "title", "message", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
