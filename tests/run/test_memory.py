"""What is said to be free is the least of what the machine and the control group allow."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fouriscope.acquisition.machine_memory import memory_available


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=800 * 1024))


def test_the_machine_alone(tmp_path: Path) -> None:
    assert memory_available(tmp_path / "none") == 800 * 1024


@pytest.mark.parametrize(
    ("limit", "expected"), [("500000", 300000), ("100", 0), ("max", 800 * 1024), ("9" * 12, 800 * 1024)]
)
def test_a_container_may_allow_less(tmp_path: Path, limit: str, expected: int) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("200000\n", encoding="ascii")
    assert memory_available(tmp_path) == expected
