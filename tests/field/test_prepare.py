"""What must be the same for all tiles is found once, from whole frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, open_frames, survey_frames
from fouriscope.acquisition.tiled_store import write_tiled
from fouriscope.field.folder import FieldFolder
from fouriscope.field.identity import identity
from fouriscope.field.patchwork import PatchworkModel
from fouriscope.field.plan import FieldPlan
from fouriscope.field.prepare import STRENGTH_ITERATIONS, prepare, settled_choices, settled_frames
from fouriscope.field.tile_acquisition import contradicted, evened, tile_acquisition, weights_in_tile
from fouriscope.field.tile_store import TileRecord, TileStore, checksum
from fouriscope.field.tile_task import last_misfit, mean_pupil, thumbnail
from fouriscope.field.tiling import Tiling
from fouriscope.optics import Directions, LEDArray, Optics, Pupil
from fouriscope.run import load_config
from fouriscope.run.assemble import build_solver
from fouriscope.run.config import parse_config
from fouriscope.run.rehearsal import rehearsed
from fouriscope.settings import Spectral
from fouriscope.solvers import History, Iterations, Record
from tests.conftest import LEDS
from tests.field.problems import TILE, write_field
from tests.run.problems import document


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    return write_field(tmp_path)


def counts(configuration: Path) -> NDArray[np.uint16]:
    """The frames as a camera with a dead pixel and a hot one would have stored them."""
    frames = np.load(configuration.parent / "frames.npy")
    stored: NDArray[np.uint16] = np.clip(frames * 900 + 100, 0, 1023).astype(np.uint16)
    stored[:, 70, 50] = 0
    stored[0, :6, :6] = 1023
    np.save(configuration.parent / "frames.npy", stored)
    return stored


def test_what_is_found_automatically_is_found_in_whole_frames(configuration: Path, tmp_path: Path) -> None:
    stored = counts(configuration)
    automatic = {
        "offset": 100.0,
        "gain": 900.0,
        "saturation": "auto",
        "background": "auto",
        "bad_pixels": "auto",
        "reject": "auto",
    }
    config = load_config(configuration)
    config = config.model_copy(update={"frames": config.frames.model_copy(update=automatic)})
    section, images = settled_frames(config, configuration.parent, tmp_path / "field")
    survey = survey_frames(open_frames(configuration.parent / "frames.npy"))
    assert section["saturation"] == survey.saturation == 1023
    assert "auto" not in [value for value in section.values() if isinstance(value, str)]
    assert len(section["background"]) == len(stored)
    mask = images["mask.npy"]
    assert mask.shape == stored.shape[1:]
    assert not mask[70, 50]
    assert mask.mean() > 0.99
    assert section["mask"] == str((tmp_path / "field" / "mask.npy").resolve())


def test_a_region_of_interest_is_the_field(configuration: Path) -> None:
    config = load_config(configuration)
    part = config.model_copy(update={"frames": config.frames.model_copy(update={"roi": (8, 10, 64, 48)})})
    plan = FieldPlan.of(part, configuration.parent, tile=TILE)
    assert plan.tiling.frame_shape == (64, 48)
    last = plan.tiling[len(plan.tiling) - 1]
    assert plan.tile_config(part, last).frames.roi == (8 + 32, 10 + 16, 32, 32)


def test_directions_that_are_the_same_everywhere(configuration: Path) -> None:
    config = load_config(configuration)
    na = LEDS.directions().tolist()
    same = parse_config(
        config.model_dump(exclude_none=True) | {"illumination": {"kind": "directions", "na": na}}, where="test"
    )
    plan = FieldPlan.of(same, configuration.parent, tile=TILE)
    assert plan == FieldPlan.of(config, configuration.parent, tile=TILE)
    for tile in plan.tiling:
        acquisition = tile_acquisition(plan.tile_config(same, tile), configuration.parent, plan.margin)
        assert acquisition.patch_center == (0.0, 0.0)


def test_one_strength_for_all_tiles(configuration: Path) -> None:
    said: list[str] = []
    config = load_config(configuration)
    plan = FieldPlan.of(config, configuration.parent, tile=TILE)
    sections = settled_choices(config, configuration.parent, plan, {}, said.append)
    assert sections["prior"]["name"] == "tv"
    assert sections["prior"]["strength"] > 0
    assert "which has the most contrast" in said[0]
    given = config.model_copy(update={"prior": {"name": "tv", "strength": 1e-4}})
    assert settled_choices(given, configuration.parent, plan, {}, said.append) == {}
    assert len(said) == 1


def test_all_tiles_choose_as_a_run_of_the_most_detailed_one(configuration: Path) -> None:
    said: list[str] = []
    config = parse_config(
        load_config(configuration).model_dump(exclude_none=True)
        | {
            "object": {"model": "wave"},
            "solver": {"method": "spectral", "loss": "amplitude"},
            "calibration": {"gains": True},
            "stop": {"iterations": 100},
        },
        where="test",
    )
    plan = FieldPlan.of(config, configuration.parent, tile=TILE)
    sections = settled_choices(config, configuration.parent, plan, {}, said.append)
    tile = plan.tiling[int(said[-1].split("tile ")[1].split(",")[0])]
    as_described = plan.tile_config(config, tile)
    acquisition = tile_acquisition(as_described, configuration.parent, plan.margin)
    alone = rehearsed(acquisition, as_described)
    assert isinstance(alone.solver, Spectral)
    assert alone.solver.strength_factor != "auto"
    assert sections["solver"]["long_steps"] == alone.solver.long_steps
    assert sections["solver"]["seed"] == config.solver.seed
    assert sections["calibration"]["gains_by"] == alone.calibration.gains_by
    solver = build_solver(acquisition, alone)
    solver.solve(Iterations(STRENGTH_ITERATIONS))
    assert sections["prior"]["strength"] == pytest.approx(solver.strengths[0], rel=1e-6)


def test_the_masked_field_runs(configuration: Path, tmp_path: Path) -> None:
    counts(configuration)
    config = load_config(configuration)
    frames = config.frames.model_copy(update={"offset": 100.0, "gain": 900.0, "bad_pixels": "auto"})
    ready = prepare(
        config.model_copy(update={"frames": frames}), configuration.parent, tmp_path / "field", tile=TILE, overlap=0.2
    )
    field = FieldFolder.create(tmp_path / "field", ready.document, ready.provenance, ready.plan, ready.images)
    field.run.close()
    from fouriscope.run.assemble import build_acquisition

    holder = next(tile for tile in ready.plan.tiling if tile.top <= 70 < tile.top + TILE and tile.left + TILE > 50)
    acquisition = build_acquisition(ready.plan.tile_config(field.config(), holder), field.path)
    assert not np.asarray(acquisition.mask)[70 - holder.top, 50 - holder.left]


def test_frames_are_known_by_their_checksum_or_their_files(configuration: Path, tmp_path: Path) -> None:
    frames = open_frames(configuration.parent / "frames.npy")
    plain = identity(frames)
    assert plain["bytes"] == (configuration.parent / "frames.npy").stat().st_size
    found = write_tiled(frames, tmp_path / "frames.zarr")
    assert identity(open_frames(tmp_path / "frames.zarr")) == {"shape": list(frames.shape), "checksum": found}


def record(index: int, pupil: NDArray[np.complex64] | None = None, **zernike: float) -> TileRecord:
    return TileRecord(
        index=index,
        request="",
        checksum=checksum(np.zeros((1, 4, 4), np.float32)),
        misfit=1.0,
        iterations=1,
        seconds=1.0,
        stop_reason="",
        attempts=1,
        worker="",
        zernike={name.removeprefix("z"): value for name, value in zernike.items()},
        pupil_checksum=None if pupil is None else checksum(pupil),
    )


def test_a_tile_starts_from_the_mean_pupil_of_its_teachers(tmp_path: Path) -> None:
    tiling = Tiling((512, 512))
    store = TileStore(tmp_path)
    store.create(25, 1, (4, 4), (6, 6))
    images = np.zeros((1, 4, 4), np.float32)
    arrays = {0: np.full((6, 6), 1.0, np.complex64), 2: np.full((6, 6), 1j, np.complex64)}
    store.commit(record(0, arrays[0], z4=0.2, z5=0.1), images, arrays[0])
    store.commit(record(2, arrays[2], z4=0.4), images, arrays[2])
    configured = Pupil({4: 9.0}, defocus=1e-6)
    sources = [store.record(tile.index) for tile in tiling.pupil_sources(tiling[1])]
    learnt = mean_pupil(configured, [source for source in sources if source is not None], store)
    assert learnt.zernike == pytest.approx({4: 0.3, 5: 0.05})
    assert learnt.defocus == 1e-6
    assert learnt.array is not None
    np.testing.assert_allclose(learnt.array, 0.5 + 0.5j)
    assert [tile.index for tile in tiling.pupil_sources(tiling[1])] == [0, 2]
    assert mean_pupil(configured, [], store) is configured


def test_leds_on_both_sides_of_the_pupils_edge_are_left_out_of_a_tile() -> None:
    optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    height = 70e-3
    edge = height * np.tan(np.arcsin(0.2))
    reach = (32 + 4) * optics.pixel  # half a tile of 64 pixels and its margin
    inside, on, outside = edge - 1.5 * reach, edge + 0.5 * reach, edge + 1.5 * reach
    leds = LEDArray.at([(0.0, 0.0), (0.0, inside), (0.0, on), (0.0, outside), (on, 0.0)], height)
    frames = ArrayFrames(np.ones((5, 64, 64), np.float32))
    tile = Acquisition(optics, leds, frames)
    np.testing.assert_array_equal(weights_in_tile(tile, 4), [1, 1, 0, 1, 0])
    weighted = Acquisition(optics, leds, frames, weights=np.array([0.0, 2.0, 1.0, 3.0, 1.0]))
    np.testing.assert_array_equal(weights_in_tile(weighted, 4), [0, 2, 0, 3, 0])
    # Elsewhere the same LED is on one side; directions without a height are on one side everywhere.
    moved = Acquisition(optics, leds, frames, patch_center=(0.0, 3 * reach))
    assert weights_in_tile(moved, 4)[2] == 1
    everywhere = Acquisition(optics, Directions(leds.directions()), frames)
    np.testing.assert_array_equal(weights_in_tile(everywhere, 4), np.ones(5))


def test_frames_of_leds_across_the_edge_are_as_bright_everywhere_as_in_the_middle() -> None:
    """An empty field under LEDs of 1 mm: seen from each place, another share of the die lies inside the pupil."""
    optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    height, die = 70e-3, 1e-3
    edge = height * np.tan(np.arcsin(0.2))
    places = [(0.0, 0.0), (0.0, edge), (edge - 0.2e-3, 0.0), (0.0, -edge - 0.45e-3), (0.0, 1.5 * edge)]
    leds = LEDArray.at(places, height, die=die)
    model = PatchworkModel(optics, leds, (96, 96))
    frames = model.intensity(np.zeros(model.object_shape))
    tile = Acquisition(optics, leds, ArrayFrames(frames))
    np.testing.assert_array_equal(weights_in_tile(tile, 4), [1, 1, 1, 0, 1])
    assert len(contradicted(tile)) == 0
    even = evened(tile, weights_in_tile(tile, 4))
    for led, share in ((1, 0.5), (2, 0.7)):
        before, after = frames[led], even.frame(led)
        assert np.ptp(before) > 0.05
        assert np.std(after) < 0.2 * np.std(before)  # along its side, a die is cut in steps
        assert after.mean() == pytest.approx(share, abs=0.02)
    for led in (0, 3, 4):  # not across, or left out
        assert np.array_equal(even.frame(led), frames[led])
    points = Acquisition(optics, LEDArray.at(places, height), ArrayFrames(frames))
    assert evened(points, np.ones(5)) is points.frames
    # A frame that is not as bright as the size says is in the wrong place.
    wrong = frames.copy()
    wrong[1] *= 0.3
    assert contradicted(Acquisition(optics, leds, ArrayFrames(wrong))).tolist() == [1]


def test_leds_whose_frames_contradict_the_model_are_left_out_of_a_tile() -> None:
    optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    leds = Directions(
        np.array([(0.0, 0.0), (0.0, 0.1), (0.0, 0.18), (0.18, 0.0), (0.0, 0.22), (0.22, 0.0), (0.4, 0.0)])
    )
    brightness = np.array([1.0, 1.1, 0.95, 0.1, 0.02, 0.9, 0.8])
    frames = brightness[:, None, None] * np.ones((7, 16, 16), np.float32)
    tile = Acquisition(optics, leds, ArrayFrames(frames.astype(np.float32)))
    np.testing.assert_array_equal(contradicted(tile), [3, 5])  # the last is too far out to be a matter of the edge
    frames[3, :8] = 1.9  # masked below: what is masked is not looked at
    mask = np.ones((16, 16), bool)
    mask[:8] = False
    masked = Acquisition(optics, leds, ArrayFrames(frames.astype(np.float32)), mask=mask)
    np.testing.assert_array_equal(contradicted(masked), [3, 5])
    without = Acquisition(optics, leds, ArrayFrames(frames.astype(np.float32)), weights=np.array([0, 0, 1, 1, 1, 1, 1]))
    assert len(contradicted(without)) == 0  # nobody to compare with


def test_the_misfit_is_that_of_the_last_pass() -> None:
    history = History([Record(n, 10 * n, 0.0, float(n), 0.0, 1.0, 0.0) for n in range(1, 9)])
    assert last_misfit(history, 30) == pytest.approx((6 + 7 + 8) / 3)
    assert last_misfit(history, 10**6) == pytest.approx(4.5)


def test_thumbnails_are_local_means() -> None:
    image = np.repeat(np.repeat(np.arange(24.0 * 24).reshape(24, 24), 5, axis=0), 5, axis=1)
    small = thumbnail(image)
    np.testing.assert_allclose(small, np.arange(24.0 * 24).reshape(24, 24) - np.median(np.arange(24.0 * 24)))
    assert thumbnail(np.ones((7, 90))).shape == (7, 24)


def test_configurations_of_tiles_differ_in_seed_and_window(configuration: Path) -> None:
    config = parse_config(document(frames={"truth": None}, solver={"seed": 3}), where="test")
    plan = FieldPlan.of(config, configuration.parent, tile=TILE)
    tiles = [plan.tile_config(config, tile) for tile in plan.tiling]
    assert len({tile.solver.seed for tile in tiles}) == len({tile.frames.roi for tile in tiles}) == 12
