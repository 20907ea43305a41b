"""`fouriscope tune`: what it prints, and what it leaves of a file that a person wrote."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import tomlkit

from fouriscope.run.recipe import measured_sections
from tests.cli.test_cli import Command, fouriscope

__all__ = ["fouriscope"]


@pytest.fixture
def config(fouriscope: Command, tmp_path: Path) -> Path:
    fouriscope("simulate", tmp_path / "data", "--frame", 24, "--radius", 3.2)
    path = tmp_path / "data" / "config.toml"
    path.write_text(f"# taken on a Tuesday\n{path.read_text()}\n[stop]\niterations = 30 # short\n")
    return path


def test_the_choice_is_written_and_comments_stay(fouriscope: Command, config: Path) -> None:
    ended = fouriscope("tune", config, "--evaluations", 3, "--criterion", "held-out")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("misfit of held-out frames") == 3
    text = config.read_text()
    assert text.startswith("# taken on a Tuesday\n")
    assert "# short" in text
    strength = tomllib.loads(text)["prior"]["strength"]
    assert 0 < strength < 1
    assert f"prior.strength = {strength:.4g}" in ended.out
    assert config.with_suffix(".tuning.png").read_bytes().startswith(b"\x89PNG")
    assert fouriscope("reconstruct", config, "-q").code == 0


def test_a_key_of_an_earlier_version_is_replaced(fouriscope: Command, config: Path) -> None:
    document = tomlkit.parse(config.read_text())
    document["solver"] = {"method": "red", "denoiser_weight": 0.5}
    document["prior"] = {"name": "tv", "strength": 1e-5}
    config.write_text(tomlkit.dumps(document))
    assert fouriscope("tune", config, "--key", "solver.denoiser_weight", "--evaluations", 3).code == 0
    document = tomlkit.parse(config.read_text())
    document["solver"] = {"method": "epry", "epry_decay": 0.1}
    document["prior"] = {"name": "none"}
    config.write_text(tomlkit.dumps(document))
    ended = fouriscope("tune", config, "--key", "solver.epry_decay", "--evaluations", 3)
    assert (ended.code, ended.err) == (0, "")
    found = tomllib.loads(config.read_text())["solver"]
    assert set(found) == {"method", "decay"}
    assert found["decay"] > 0


def test_a_dry_run_changes_nothing(fouriscope: Command, config: Path) -> None:
    before = config.read_bytes()
    ended = fouriscope("tune", config, "--evaluations", 3, "--dry-run")
    assert ended.code == 0
    assert "SNR" in ended.out, "the configuration names a truth"
    assert config.read_bytes() == before


def test_a_flat_curve_is_said_to_be_flat_and_changes_nothing(fouriscope: Command, config: Path) -> None:
    """A prior a million times too weak: between its strengths there is nothing to choose."""
    document = tomlkit.parse(config.read_text())
    document["prior"] = {"name": "tv", "strength": 1e-16}
    config.write_text(tomlkit.dumps(document))
    before = config.read_bytes()
    ended = fouriscope("tune", config, "--evaluations", 3, "--criterion", "held-out")
    assert (ended.code, ended.err) == (1, "")
    (line,) = [line for line in ended.out.splitlines() if "flat" in line]
    assert "nothing was written" in line
    assert config.read_bytes() == before
    assert not config.with_suffix(".tuning.png").exists()


def test_the_recipe_of_import_with_a_prior_for_each_image(fouriscope: Command, config: Path) -> None:
    document = tomllib.loads(config.read_text())
    kept = {name: document[name] for name in ("frames", "microscope", "illumination")}
    del kept["frames"]["truth"]  # a phase, where a wave is to be found
    recipe = {name: keys for name, keys in measured_sections().items() if name != "alignment"}
    recipe |= {"stop": {"iterations": 20}, "prior_absorption": {"name": "l1"}}
    config.write_text(tomlkit.dumps(kept | recipe))
    ended = fouriscope("tune", config, "--evaluations", 3, "--criterion", "held-out")
    assert (ended.code, ended.err) == (0, "")
    written = tomllib.loads(config.read_text())
    for section in ("prior", "prior_absorption"):
        assert f"{section}.strength = {written[section]['strength']:.4g}" in ended.out
    assert fouriscope("reconstruct", config, "-q").code == 0


def test_a_section_that_is_not_there_is_added(fouriscope: Command, config: Path) -> None:
    assert "[prior]" not in config.read_text()
    assert fouriscope("tune", config, "--evaluations", 3).code == 0
    prior = tomllib.loads(config.read_text())["prior"]
    assert prior["name"] == "tv"
    assert prior["strength"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--criterion", "guess"), "--criterion must be truth or held-out"),
        (("--key", "prior.colour"), "'prior.colour' is not in the configuration"),
        (("--held-out", 30, "--criterion", "held-out"), "frames can be held out, got 30"),
    ],
)
def test_wrong_requests(fouriscope: Command, config: Path, arguments: tuple[object, ...], message: str) -> None:
    before = config.read_bytes()
    assert message in fouriscope.fails("tune", config, *arguments)
    assert config.read_bytes() == before


def test_no_file(fouriscope: Command, tmp_path: Path) -> None:
    assert "no such file" in fouriscope.fails("tune", tmp_path / "nothing.toml")


def test_the_better_prior_is_written_and_a_tie_is_not(fouriscope: Command, config: Path) -> None:
    ended = fouriscope("tune", config, "--priors", "none,tv", "--criterion", "held-out")
    assert (ended.code, ended.err) == (0, "")
    assert "'tv' predicts held-out frames best" in ended.out
    assert tomllib.loads(config.read_text())["prior"] == {"name": "tv"}
    assert "# short" in config.read_text()
    before = config.read_bytes()
    ended = fouriscope("tune", config, "--priors", "tv, tv", "--criterion", "held-out")
    assert ended.code == 1
    assert "a tie: 'tv' and 'tv'" in ended.out
    assert config.read_bytes() == before
    ended = fouriscope("tune", config, "--priors", "tv,none", "--key", "prior.strength")
    assert ended.code == 2
    assert "two searches" in ended.err


def test_a_comparison_of_priors_for_scripts(fouriscope: Command, config: Path) -> None:
    ended = fouriscope("tune", config, "--priors", "none,tv", "--criterion", "held-out", "--dry-run", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert (found["prior"], found["written"], found["searches"]) == ("tv", False, [])
    assert [one["prior"] for one in found["priors"]] == ["none", "tv"]
    assert [one["as_good_as_the_best"] for one in found["priors"]] == [False, True]
    assert found["priors"][1]["score"] > found["priors"][0]["score"]
    assert "[prior]" not in config.read_text()
