"""``import fouriscope`` is small, and everything it promises is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fouriscope

HEAVY = ("matplotlib", "dask", "torch", "numba", "scipy", "skimage", "zarr", "numpy", "pydantic", "typer", "rich")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stdout.split()}


def test_import_loads_nothing_heavy() -> None:
    assert not loaded_by("import fouriscope") & set(HEAVY)


def test_help_needs_no_science() -> None:
    """What the command line needs before it knows what is wanted."""
    assert not loaded_by("import fouriscope.cli.app") & {"matplotlib", "numba", "scipy", "skimage", "zarr", "numpy"}


def test_a_model_can_be_described_without_drawing() -> None:
    loaded = loaded_by("import fouriscope; fouriscope.Optics; fouriscope.ForwardModel; fouriscope.TV")
    assert not loaded & {"matplotlib", "dask", "torch", "skimage", "zarr", "h5py", "tifffile", "PIL"}


@pytest.mark.parametrize("name", fouriscope.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fouriscope, name) is not None
    assert name in dir(fouriscope)


def test_public_names_are_sorted_out() -> None:
    assert len(set(fouriscope.__all__)) == len(fouriscope.__all__)
    assert not set(dir(fouriscope)) ^ set(fouriscope.__all__)


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="No fouriscope attribute reconstrukt"):
        _ = fouriscope.reconstrukt  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from fouriscope import reconstrukt  # type: ignore[attr-defined]  # noqa: F401
