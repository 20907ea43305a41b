"""All searches are repeated from where the last of them has moved the LEDs, if that is far away and pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition import ArrayFrames
from fouriscope.alignment import repeats
from fouriscope.alignment.course import Course
from fouriscope.optics import LEDArray, Pupil

OPTICS = fs.Optics(wavelength=513e-9, na=0.1, magnification=4, camera_pixel=6.5e-6)
LEDS = LEDArray.square(5, pitch=4e-3, height=70e-3)


def given() -> fs.Acquisition:
    frames = np.random.default_rng(0).random((25, 16, 16))
    return fs.Acquisition(OPTICS, LEDS, ArrayFrames(frames), pupil=Pupil({5: 0.1}))


def course(notes: list[str]) -> Course:
    return Course(
        circles=True,
        exposure=True,
        focus=True,
        focus_reach=1e-4,
        response=True,
        array=True,
        na=True,
        die=True,
        edge=True,
        curvature=True,
        motions=("shift",),
        tiles=False,
        tell=None,
        stage=None,
        notes=notes,
    )


def pretend(monkeypatch: pytest.MonkeyPatch, ways: list[float], evidence: list[float]) -> list[fs.Acquisition]:
    """Searches that move the LEDs so far; returns what each of them is given."""
    begun: list[fs.Acquisition] = []

    def search(self: Course, data: fs.Acquisition) -> tuple[fs.Acquisition, float]:
        begun.append(data)
        self.ways.append(ways[len(begun) - 1])
        self.say(f"search {len(begun)}")
        leds = replace(LEDS, height=(70 + len(begun)) * 1e-3, die=1e-3)
        pupil = replace(data.pupil, defocus=len(begun) * 1e-6)
        optics, gains = replace(OPTICS, na=0.09), np.full(25, 2.0)
        return replace(data, illumination=leds, pupil=pupil, optics=optics, gains=gains), 1.0

    monkeypatch.setattr(Course, "search", search)
    monkeypatch.setattr(repeats, "evidence_for", lambda other, found: evidence[len(begun) - 2])
    return begun


def height_of(data: fs.Acquisition) -> float:
    assert isinstance(data.illumination, LEDArray)
    return round(data.illumination.height * 1e3, 6)


def test_a_short_way_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = pretend(monkeypatch, [0.9 * repeats.FAR], [])
    notes: list[str] = []
    found, power = repeats.until_settled(course(notes), given())
    assert (len(begun), height_of(found), power, notes) == (1, 71, 1.0, ["search 1"])


def test_after_a_long_way_all_is_searched_again_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, data, notes = pretend(monkeypatch, [3.0, 2.0, 0.1], [5.0, 4.0]), given(), list[str]()
    found, _ = repeats.until_settled(course(notes), data)
    assert height_of(found) == 73
    assert [height_of(one) for one in begun] == [70, 71, 72]
    assert [note for note in notes if note.startswith("search")] == ["search 1", "search 2", "search 3"]
    again = begun[1]
    assert again.pupil.defocus == 1e-6
    assert again.pupil.zernike == data.pupil.zernike
    assert isinstance(again.illumination, LEDArray)
    assert again.illumination.die == LEDS.die, "the size was found in the wrong place"
    assert (again.optics, again.gains) == (data.optics, data.gains), "as given"


def test_what_predicts_no_better_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = pretend(monkeypatch, [3.0, 3.0], [-1.0])
    notes: list[str] = []
    found, _ = repeats.until_settled(course(notes), given())
    assert (len(begun), height_of(found)) == (2, 71)
    assert "search 2" not in notes
    assert "are not used" in notes[-1]


def test_there_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = pretend(monkeypatch, [3.0] * 9, [5.0] * 9)
    repeats.until_settled(course([]), given())
    assert len(begun) == 1 + repeats.MOST


def test_with_another_power_the_old_place_gets_an_exposure_that_fits_the_new_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = given()
    other = replace(data, frames=ArrayFrames(np.sqrt(np.asarray(data.frames))), gains=np.full(25, 3.0))
    found = replace(data, illumination=LEDS.moved(shift=(1e-3, 0)), gains=np.full(25, 5.0))
    monkeypatch.setattr(repeats, "exposed", lambda one, before, say: replace(one, gains=before))
    seen = repeats._seen_in(other, found, data)
    assert seen.illumination is found.illumination
    assert seen.frames is other.frames
    assert seen.gains is None
