"""What the server says of runs that are finished, running, empty, broken and gone."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from fouriscope.errors import RunFolderError
from fouriscope.forward import ForwardModel
from fouriscope.run import RunFolder, load_config
from fouriscope.run.assemble import build_acquisition, build_model
from fouriscope.run.files import write_arrays
from fouriscope.run.snapshot import read_snapshot
from fouriscope.run.stored_arrays import read_arrays
from fouriscope.viewer.events import Watcher
from fouriscope.viewer.images import log_spectrum
from fouriscope.viewer.runs import run_folders, viewed_runs
from tests.viewer.served import TOKEN, Pages, real_run, show, written_run


def get(pages: Pages, address: str) -> Any:
    answer = pages.get(f"/{TOKEN}/api/{address}")
    assert answer.status_code == 200, answer.text
    return answer


def image(pages: Pages, address: str) -> NDArray[np.float32]:
    answer = get(pages, address)
    rows, columns = map(int, answer.headers["x-shape"].split(","))
    return np.frombuffer(answer.content, "<f4").reshape(rows, columns)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_run(tmp_path_factory.mktemp("finished"), object={"model": "complex", "margin": 2})


def test_a_finished_run_shows_all_its_images(finished: Path) -> None:
    pages = Pages([finished])
    (about,) = get(pages, "runs").json()
    assert (about["state"], about["iteration"], about["fraction"]) == ("finished", 20, 1.0)
    assert about["images"] == ["phase", "amplitude", "spectrum", "pupil_amplitude", "pupil_phase", "phase_flat"]
    flat = np.frombuffer(get(pages, "runs/0/image/phase_flat").content, "<f4")
    np.testing.assert_array_equal(flat, tifffile.imread(finished / "result" / "phase_flat.ome.tif").ravel())
    phase = np.squeeze(tifffile.imread(finished / "result" / "phase.ome.tif"))
    amplitude = np.squeeze(tifffile.imread(finished / "result" / "amplitude.ome.tif"))
    assert np.array_equal(image(pages, "runs/0/image/phase"), phase)
    assert np.allclose(image(pages, "runs/0/image/amplitude"), amplitude, rtol=1e-6)
    spectrum = image(pages, "runs/0/image/spectrum")
    assert spectrum.max() == 0
    assert np.unravel_index(spectrum.argmax(), spectrum.shape) == tuple(size // 2 for size in spectrum.shape)
    assert image(pages, "runs/0/image/pupil_amplitude").max() == pytest.approx(1.0)


def test_without_a_snapshot_the_result_is_shown_and_is_the_same(finished: Path, tmp_path: Path) -> None:
    saved = Path(shutil.copytree(finished, tmp_path / "saved"))
    (saved / "snapshot.npz").unlink()
    before, after = Pages([finished]), Pages([saved])
    assert get(before, "runs").json()[0]["images"] == get(after, "runs").json()[0]["images"]
    for name in get(after, "runs").json()[0]["images"]:
        one, other = (get(pages, f"runs/0/image/{name}").headers for pages in (before, after))
        assert [float(n) for n in one["x-step"].split(",")] == pytest.approx(
            [float(n) for n in other["x-step"].split(",")]
        )
        shown, saved_one = (image(pages, f"runs/0/image/{name}") for pages in (before, after))
        assert np.allclose(shown, saved_one, atol=1e-5, equal_nan=True)
    one, other = (get(pages, "runs/0/leds").json() for pages in (before, after))
    assert np.allclose(one["na"], other["na"])
    assert one["objective_na"] == other["objective_na"] == 0.2


def test_the_scale_of_each_image_is_told(finished: Path) -> None:
    pages, snapshot = Pages([finished]), read_snapshot(finished)
    assert snapshot is not None
    headers = get(pages, "runs/0/image/phase").headers
    assert [float(n) for n in headers["x-step"].split(",")] == pytest.approx([p * 1e6 for p in snapshot.pixel])
    assert (headers["x-axis-unit"], headers["x-unit"], headers["x-centred"]) == ("um", "rad", "0")
    headers = get(pages, "runs/0/image/spectrum").headers
    rows = snapshot.phase.shape[0]
    assert float(headers["x-step"].split(",")[0]) == pytest.approx(513e-9 / (rows * snapshot.pixel[0]))
    assert (headers["x-axis-unit"], headers["x-centred"]) == ("NA", "1")


def test_a_tiff_holds_the_data_and_its_scale(finished: Path) -> None:
    data = get(Pages([finished]), "runs/0/image/phase.tif").content
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        page = file.pages[0]
        assert np.array_equal(page.asarray(), np.squeeze(tifffile.imread(finished / "result" / "phase.ome.tif")))
        numerator, denominator = page.tags["XResolution"].value
        snapshot = read_snapshot(finished)
        assert snapshot is not None
        assert denominator / numerator == pytest.approx(snapshot.pixel[1] * 100, rel=1e-4)


def test_frames_of_an_led_are_measured_predicted_and_their_difference(finished: Path) -> None:
    pages = Pages([finished])
    frames = np.load(finished.parent / "frames.npy")
    asked = get(pages, "runs/0/leds?misfits=1").json()
    misfits = asked["misfit"]
    assert 0.1 < np.median(np.array(misfits) / np.array(asked["noise"])) < 10
    assert set(get(pages, "runs/0/leds").json()["noise"]) == {None}, "nothing is computed unasked"
    assert len(misfits) == len(frames)
    assert all(misfit > 0 for misfit in misfits)
    for led in (0, 24, 48):
        measured, predicted, difference = (
            image(pages, f"runs/0/led/{led}/{kind}") for kind in ("measured", "predicted", "difference")
        )
        assert np.array_equal(measured, frames[led])
        assert np.array_equal(difference, predicted - measured)
        # d_j is a sum over pixels, of which the mean is what the noise left: 0.01 and little more.
        assert np.sqrt((difference**2).mean()) < 0.03
    assert pages.get(f"/{TOKEN}/api/runs/0/led/49/measured").status_code == 404


def test_predictions_are_those_of_the_calibrated_model(tmp_path: Path) -> None:
    run = real_run(
        tmp_path,
        object={"model": "complex", "margin": 0},
        pupil={"defocus": 2e-5},  # which is wrong: there was none
        calibration={"gains": True, "zernike": True},
        prior={"name": "none"},
        stop={"iterations": 60},
    )
    model = _model(run)
    snapshot, frames = read_snapshot(run), np.load(tmp_path / "frames.npy")
    assert snapshot is not None
    x = np.stack([snapshot.phase, np.asarray(snapshot.absorption)])
    for led in (24, 2):
        calibrated = (image(Pages([run]), f"runs/0/led/{led}/difference") ** 2).mean()
        assert calibrated < 0.5 * ((model.intensity(x, [led])[0] - frames[led]) ** 2).mean()


def test_epry_predicts_with_the_pupil_that_it_found(tmp_path: Path) -> None:
    run = real_run(
        tmp_path,
        solver={"method": "epry", "pupil_step": 1.0, "batch": 49},
        object={"model": "complex", "margin": 0},
        prior={"name": "none"},
    )
    model, checkpoint = _model(run), RunFolder.open(run).read_checkpoint()
    assert checkpoint is not None
    spectrum, correction = (checkpoint[0].arrays[name] for name in ("spectrum", "correction"))
    centre = np.array([24])  # the LED on the axis, whose box lies on whole bins
    source, target = model.boxes(24)
    stack, index = model.pupils(centre)
    grid = np.zeros(model.geometry.grid_shape, complex)
    grid[target] = spectrum[source] * stack[index[0]] * correction
    expected = np.abs(np.fft.ifft2(grid) * grid.size / spectrum.size) ** 2
    assert np.allclose(image(Pages([run]), "runs/0/led/24/predicted"), expected, atol=1e-4)
    assert not np.allclose(np.abs(correction), np.abs(correction) > 0, atol=1e-2)


def test_a_checkpoint_of_another_version_is_told_and_the_rest_is_shown(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    arrays, values = read_arrays(run / "checkpoint.npz")
    write_arrays(run / "checkpoint.npz", arrays, values | {"version": 99})
    pages = Pages([run])
    answer = pages.get(f"/{TOKEN}/api/runs/0/led/3/predicted")
    assert (answer.status_code, "format 99, this one reads 1" in answer.text) == (404, True)
    assert image(pages, "runs/0/image/phase").size


def _model(run: Path) -> ForwardModel:
    """As the configuration describes it, before anything was found."""
    config = load_config(run / "config.toml")
    return build_model(build_acquisition(config, run), config)


def test_an_image_has_a_version_that_changes_with_it(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    pages = Pages([run])
    version = get(pages, "runs/0/image/phase").headers["etag"]
    same = pages.get(f"/{TOKEN}/api/runs/0/image/phase", headers={"If-None-Match": version})
    assert (same.status_code, same.content) == (304, b"")
    snapshot = show(run, seed=5)
    new = pages.get(f"/{TOKEN}/api/runs/0/image/phase", headers={"If-None-Match": version})
    assert new.status_code == 200
    assert np.array_equal(np.frombuffer(new.content, "<f4").reshape(snapshot.phase.shape), snapshot.phase)


def test_metrics_come_from_where_one_left_off_and_anew_after_a_resume(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    pages = Pages([run])
    first = get(pages, "runs/0/metrics").json()
    assert first["columns"]["iteration"] == [1, 2, 3, 4, 5]
    assert first["columns"]["snr"] == [None] * 5
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"iteration": 6, "misfit": 0.1}\n{"iteration": 7, "mis')
    more = get(pages, f"runs/0/metrics?from=5&generation={first['generation']}").json()
    assert (more["from"], more["columns"]["iteration"]) == (5, [6])
    (run / "metrics.jsonl").write_text('{"iteration": 1, "misfit": 3.0}\n', encoding="utf-8")
    again = get(pages, f"runs/0/metrics?from=6&generation={first['generation']}").json()
    assert (again["from"], again["columns"]["misfit"]) == (0, [3.0])


def test_progress_and_time_left_of_a_live_run(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run", state="running")
    (about,) = get(Pages([run]), "runs").json()
    assert (about["state"], about["fraction"]) == ("running", 0.5)
    assert about["seconds_left"] == pytest.approx(2.5)


def test_a_flat_phase_is_of_the_end_of_a_run(finished: Path, tmp_path: Path) -> None:
    """While a run goes on again, the flat phase of its end before does not belong to what else is shown."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "status.json").write_text('{"state": "running"}', encoding="utf-8")
    pages = Pages([run])
    assert "phase_flat" not in get(pages, "runs").json()[0]["images"]
    assert "no phase flat" in pages.get(f"/{TOKEN}/api/runs/0/image/phase_flat").text


def test_a_summary_in_words_and_units(finished: Path) -> None:
    parts = {part["title"]: dict(part["rows"]) for part in get(Pages([finished]), "runs/0/summary").json()}
    assert parts["Microscope"]["Wavelength"] == "513 nm"
    assert parts["Method"]["Solver"] == "pnp"
    assert parts["Result"]["Stopped by"].endswith("iterations")
    assert "×" in parts["Result"]["Field"]


def test_a_summary_of_a_strange_configuration(tmp_path: Path) -> None:
    """Anything may stand in the file: it is shown as text, or left out."""
    run = written_run(tmp_path / "run")
    (run / "config.toml").write_text(
        'prior = 3\n[microscope]\nwavelength = "<b>red</b>"\nna = inf\n[frames]\nreject = 7\n[solver]\nmethod = [1]\n'
    )
    (run / "result").mkdir()
    (run / "result" / "summary.json").write_text(
        '{"shape": "large", "pixel_size_m": 3, "verdict": {"warnings": 3, "resolution": []}}'
    )
    parts = {part["title"]: dict(part["rows"]) for part in get(Pages([run]), "runs/0/summary").json()}
    assert parts["Microscope"] == {"Wavelength": "<b>red</b>", "NA of the objective": "inf"}
    assert parts["Method"] == {"Solver": "[1]"}
    assert "Result" not in parts


def test_leds_that_have_not_arrived_are_told(tmp_path: Path) -> None:
    leds = get(Pages([written_run(tmp_path / "run")]), "runs/0/leds").json()
    assert leds["arrived"] == [True, True, False]
    assert leds["weight"] == [1.0, 0.5, 0.0]
    assert leds["misfit"] == [None, None, None], "nothing is computed unasked"


def test_runs_that_are_empty_gone_broken_or_killed_say_so(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    runs = {name: written_run(tmp_path / name) for name in ("killed", "alive", "half", "json", "snapshot", "metrics")}
    for name, pid in (("killed", int(dead.stdout)), ("alive", os.getpid())):
        status = {"state": "running", "pid": pid, "host": socket.gethostname()}
        (runs[name] / "status.json").write_text(json.dumps(status), encoding="utf-8")
    (runs["half"] / "config.toml").unlink()
    (runs["json"] / "status.json").write_text("[1, 2", encoding="utf-8")
    (runs["snapshot"] / "snapshot.npz").write_bytes(b"PK")
    (runs["metrics"] / "metrics.jsonl").write_text('{"unknown": 1}\n', encoding="utf-8")
    (tmp_path / "empty").mkdir()
    runs |= {"empty": tmp_path / "empty", "gone": tmp_path / "gone"}
    found = {about["name"]: about for about in get(Pages(list(runs.values())), "runs").json()}
    expected = {
        "killed": ("stalled", "ended unexpectedly"),
        "alive": ("running", ""),
        "half": ("broken", "config.toml is missing"),
        "json": ("broken", "status.json"),
        "snapshot": ("broken", "not a readable snapshot"),
        "metrics": ("broken", "line 1"),
        "empty": ("empty", "Waiting for a run"),
        "gone": ("gone", "does not exist yet"),
    }
    for name, (state, words) in expected.items():
        assert (found[name]["state"], words in found[name]["message"]) == (state, True), found[name]
    pages = Pages([runs["gone"], runs["empty"], runs["snapshot"]])
    for index in range(3):
        answer = pages.get(f"/{TOKEN}/api/runs/{index}/image/phase")
        assert (answer.status_code, len(answer.text) > 20) == (404, True)


def test_events_tell_what_changed(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")

    async def listen() -> list[dict[str, Any]]:
        events = Watcher(viewed_runs([tmp_path / "other", run])).events()
        assert "hello" in await anext(events)
        told: list[dict[str, Any]] = []
        for change in (
            lambda: show(run, seed=9),
            lambda: (run / "status.json").write_text('{"state": "failed"}', encoding="utf-8"),
        ):
            await asyncio.sleep(0.3)  # the watcher has looked at what is there
            change()
            told.append(json.loads((await anext(events)).split("data: ")[1]))
        await events.aclose()  # type: ignore[attr-defined]
        return told

    picture, status = asyncio.run(asyncio.wait_for(listen(), 60))
    assert picture["run"] == status["run"] == 1
    assert "images" in picture["changed"]
    assert "status" in status["changed"]


def test_a_folder_of_runs_stands_for_its_runs(tmp_path: Path) -> None:
    first, second = written_run(tmp_path / "many" / "a"), written_run(tmp_path / "many" / "b")
    (tmp_path / "many" / "notes").mkdir()
    assert run_folders([tmp_path / "many"]) == [first, second]
    assert run_folders([first]) == [first]
    (tmp_path / "empty").mkdir()
    assert run_folders([tmp_path / "empty"]) == [tmp_path / "empty"]
    for wrong, words in ((tmp_path / "no", "no such folder"), (first / "config.toml", "not a folder")):
        with pytest.raises(RunFolderError, match=words):
            run_folders([wrong])
    with pytest.raises(RunFolderError, match="neither a run folder"):
        run_folders([tmp_path])


def test_the_spectrum_of_a_grating_has_two_orders() -> None:
    wave = 0.1 * np.sin(2 * np.pi * 4 * np.arange(32) / 32)[None, :] * np.ones((32, 1))
    spectrum = log_spectrum(wave.astype(np.float32), None)
    orders = {tuple(place) for place in np.argwhere(spectrum > -1.5)}
    assert orders == {(16, 12), (16, 16), (16, 20)}
