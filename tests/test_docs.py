"""Code in the documentation runs, and the configuration it shows is understood."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fouriscope.run.config import parse_config

ROOT = Path(__file__).parent.parent


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_readme_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks(ROOT / "README.md", "python")
    assert len(examples) == 1
    names: dict[str, object] = {}
    exec(compile(examples[0], "README.md", "exec"), names)
    result = names["result"]
    assert result.snr(names["phase"]).aligned > 20  # type: ignore[attr-defined]
    assert (tmp_path / "runs" / "first" / "result" / "phase.tif").is_file()


def test_documented_configuration_is_complete_and_understood() -> None:
    (document,) = (tomllib.loads(block) for block in blocks(ROOT / "docs" / "configuration.md", "toml"))
    config = parse_config(document, where="docs/configuration.md")
    # Every key with a default is shown with its default, so that the page cannot drift from the code.
    for section in ("object", "solver", "stop"):
        shown = getattr(config, section)
        assert shown == type(shown)(), section
        optional = {name for name, value in shown if value is None}
        assert set(document[section]) == set(type(shown).model_fields) - optional, section


def test_every_page_that_the_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing
