"""Figures that open, show what they were given, and never leave half a file behind."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from skimage.io import imread

from fouriscope import plots
from fouriscope.acquisition import ArrayFrames
from fouriscope.errors import InvalidInputError

pytestmark = pytest.mark.usefixtures("drawn")
Image = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def truth() -> Image:
    rows, columns = np.mgrid[0:60, 0:60]
    return np.asarray(np.sin(rows / 6.0) + np.cos(columns / 9.0), dtype=np.float64)


@pytest.fixture(scope="module")
def panels(truth: Image) -> list[plots.Panel]:
    noisy = truth + 0.1 * np.random.default_rng(0).normal(size=truth.shape) + 5.0
    return [
        plots.Panel("Raw frame", 1000 * truth[::5, ::5], "12 × 12", own_scale=True),
        plots.Panel("Truth", truth),
        plots.snr_panel("TV-Online", noisy, truth),
    ]


def _image_axes(figure: Any) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_images()]


def _all_axes(figure: Any) -> list[Any]:
    """Panels, and their colour bars."""
    return [one for axes in figure.axes for one in (axes, *axes.child_axes)]


def _words(figure: Any) -> str:
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    return "\n".join(text.get_text() for text in texts)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_comparison_is_written_whole_and_leaves_nothing_else(
    panels: list[plots.Panel], tmp_path: Path, suffix: str
) -> None:
    figure = plots.comparison_figure(panels, pixel=0.16e-6, zoom=(5, 20, 15), title="Cameraman")
    path = plots.save_figure(figure, tmp_path / f"figure{suffix}")
    assert os.listdir(tmp_path) == [f"figure{suffix}"]
    assert path.stat().st_size > 2000


def test_png_opens_with_the_resolution_asked_for(panels: list[plots.Panel], tmp_path: Path) -> None:
    figure = plots.comparison_figure(panels)
    pixels = imread(plots.save_figure(figure, tmp_path / "figure.png", dpi=100))
    assert pixels.shape[:2] == pytest.approx(figure.get_size_inches()[::-1] * 100, abs=1)
    assert pixels[..., :3].std() > 10  # something is drawn


def test_every_panel_is_shown_once_and_again_in_the_zoom(panels: list[plots.Panel]) -> None:
    assert len(_image_axes(plots.comparison_figure(panels))) == 3
    assert len(_image_axes(plots.comparison_figure(panels, zoom=(0, 0, 10)))) == 6


def test_panels_of_different_pixels_have_one_physical_size(panels: list[plots.Panel]) -> None:
    shown = _image_axes(plots.comparison_figure(panels))
    assert {axes.get_images()[0].get_array().shape for axes in shown} == {(12, 12), (60, 60)}
    assert {tuple(axes.get_images()[0].get_extent()) for axes in shown} == {(0, 60, 60, 0)}
    sizes = np.array([axes.get_position().size for axes in shown])
    np.testing.assert_allclose(sizes, np.broadcast_to(sizes[0], sizes.shape))


def test_colour_scale_is_shared_except_for_panels_with_their_own(panels: list[plots.Panel]) -> None:
    raw, truth, estimate = (axes.get_images()[0].get_clim() for axes in _image_axes(plots.comparison_figure(panels)))
    assert truth == estimate
    assert raw[1] > 100 * truth[1]
    fixed = _image_axes(plots.comparison_figure(panels, limits=(-1.0, 2.0)))
    assert [axes.get_images()[0].get_clim() for axes in fixed[1:]] == [(-1.0, 2.0)] * 2


def test_words_name_scale_and_score(panels: list[plots.Panel]) -> None:
    figure = plots.comparison_figure(panels, pixel=0.16e-6, zoom=(0, 0, 10), title="The whole")
    words = _words(figure)
    for expected in ("The whole", "Raw frame", "12 × 12 · own scale", "SNR 2", "raw", "2 µm", "200 nm"):
        assert expected in words
    assert "µm" not in _words(plots.comparison_figure(panels))
    assert any("rad" in axes.get_ylabel() for axes in _all_axes(figure))


def test_scale_bar_has_the_length_that_it_names(truth: Image) -> None:
    figure = plots.comparison_figure([plots.Panel("Truth", truth)], pixel=0.5e-6)
    (bar,) = _image_axes(figure)[0].patches
    assert "5 µm" in _words(figure)
    assert bar.get_width() * 0.5 == pytest.approx(5.0)


def test_snr_panel_takes_away_the_constant(truth: Image) -> None:
    panel = plots.snr_panel("Shifted", truth + 3.0, truth)
    np.testing.assert_allclose(panel.image, truth, atol=1e-12)
    assert "raw −" in panel.caption


def test_long_titles_stay_within_their_panel(truth: Image) -> None:
    panels = [plots.Panel("a very long title indeed " * 5, truth, "and a caption as long " * 6)] * 2
    figure = plots.comparison_figure(panels)
    panel = _image_axes(figure)[0]
    assert [text.get_text()[:3] for text in panel.texts] == ["a v", "and"]
    for text in panel.texts:
        assert text.get_window_extent().x1 <= panel.get_window_extent().x1 + 1


@pytest.mark.parametrize("image", [np.zeros((8, 8)), np.full((8, 8), 7), np.array([[np.nan, 1.0], [2.0, 3.0]])])
def test_flat_and_masked_images_are_drawn_without_warnings(image: Image, tmp_path: Path) -> None:
    plots.save_figure(plots.comparison_figure([plots.Panel("image", image)], pixel=1e-6), tmp_path / "flat.png")


def test_oblong_fields(tmp_path: Path) -> None:
    tall = plots.Panel("tall", np.random.default_rng(0).normal(size=(90, 20)))
    figure = plots.comparison_figure([tall], pixel=1e-6, zoom=(0, 0, 10))
    assert figure.get_size_inches()[1] < 9
    position = _image_axes(figure)[0].get_window_extent()
    assert position.height / position.width == pytest.approx(4.5)


def test_convergence_labels_every_curve_without_overlap(tmp_path: Path) -> None:
    steps = np.arange(1, 100)
    curves: dict[str, tuple[npt.ArrayLike, npt.ArrayLike]] = {
        f"method {number}": (steps, 20 + 0.01 * number - 10 / steps) for number in range(9)
    }
    figure = plots.convergence_figure(curves, title="Close together")
    plots.save_figure(figure, tmp_path / "curves.png")
    figure.canvas.draw()
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.get_lines()] == list(curves)
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: float(box.y0))
    assert len(boxes) == 9
    assert all(lower.y1 <= upper.y0 + 2 for lower, upper in itertools.pairwise(boxes))
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 9


def test_convergence_on_a_logarithmic_axis_skips_what_has_no_logarithm(tmp_path: Path) -> None:
    figure = plots.convergence_figure(
        {"misfit": ([1, 2, 3, 4], [10.0, np.inf, -1.0, 0.1])}, log_y=True, ylabel="misfit"
    )
    plots.save_figure(figure, tmp_path / "misfit.png")
    assert figure.axes[0].get_yscale() == "log"
    assert np.isfinite(figure.axes[0].get_lines()[0].get_ydata()).tolist() == [True, False, False, True]


def test_single_points_are_drawn(tmp_path: Path) -> None:
    plots.save_figure(plots.convergence_figure({"one": ([1], [3.0])}), tmp_path / "one.png")


@pytest.mark.parametrize("with_amplitude", [False, True])
@pytest.mark.parametrize("pixel", [None, 0.16e-6])
def test_result_page(truth: Image, tmp_path: Path, with_amplitude: bool, pixel: float | None) -> None:
    amplitude = np.abs(truth) if with_amplitude else None
    history = {"iteration": [5.0, 10.0, 15.0], "misfit": [3.0, 2.0, 1.0], "fixed-point residual": [1.0, 0.1, 0.01]}
    figure = plots.result_figure(truth, amplitude, history, pixel=pixel, title="A run")
    plots.save_figure(figure, tmp_path / "result.png")
    assert len(_image_axes(figure)) == (3 if with_amplitude else 2)
    (curves,) = [axes for axes in figure.axes if len(axes.get_lines()) == 2]
    assert np.array_equal(curves.get_lines()[0].get_xdata(), [5, 10, 15])
    assert ("µm" in _words(figure)) == (pixel is not None)


def test_spectrum_of_an_oblong_field_is_square(truth: Image) -> None:
    figure = plots.result_figure(truth[:30], history={}, pixel=1e-6)
    box = next(axes for axes in figure.axes if "frequency" in axes.get_xlabel()).get_window_extent()
    assert box.width == pytest.approx(box.height)


def test_spectrum_puts_a_grating_at_its_frequency() -> None:
    pixel, period = 0.25e-6, 2e-6
    phase = np.broadcast_to(0.1 * np.cos(2 * np.pi * np.arange(64) * pixel / period), (64, 64))
    figure = plots.result_figure(phase, history={}, pixel=pixel)
    axes = next(axes for axes in figure.axes if "frequency" in axes.get_xlabel())
    spectrum = np.asarray(axes.get_images()[0].get_array())
    peaks = np.flatnonzero(spectrum[32] > -2)
    ticks = {label.get_text(): place for label, place in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)}
    # 0.5 cycles per µm lies at half the distance from zero to the tick of one cycle per µm.
    assert peaks.tolist() == [24, 32, 40]
    assert ticks["1"] - ticks["0"] == pytest.approx(2 * (40 - 32))
    assert ticks["0"] == 32.5


@pytest.mark.parametrize("history", [{}, {"misfit": []}, {"misfit": [float("nan")]}])
def test_result_page_of_a_run_without_history(truth: Image, tmp_path: Path, history: dict[str, list[float]]) -> None:
    figure = plots.result_figure(truth, history=history)
    assert "no history yet" in _words(figure)
    plots.save_figure(figure, tmp_path / "result.png")


# Files -------------------------------------------------------------------------------------------------------------


def test_a_failed_save_keeps_the_old_file_and_no_temporary_one(
    panels: list[plots.Panel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "figure.png"
    path.write_bytes(b"the old figure")
    figure = plots.comparison_figure(panels)

    def interrupted(stream: Any, **_: object) -> None:
        stream.write(b"half of")
        raise KeyboardInterrupt

    monkeypatch.setattr(figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plots.save_figure(figure, path)
    assert path.read_bytes() == b"the old figure"
    assert os.listdir(tmp_path) == ["figure.png"]


def test_save_replaces_and_is_readable_like_any_new_file(panels: list[plots.Panel], tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "figure.png").write_bytes(b"the old figure")
    path = plots.save_figure(plots.comparison_figure(panels), str(tmp_path / "figure.png"))
    assert imread(path).ndim == 3
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_paths_that_cannot_be_written(panels: list[plots.Panel], tmp_path: Path) -> None:
    figure = plots.comparison_figure(panels)
    with pytest.raises(InvalidInputError, match=r"missing/figure\.png: No such file.*existing, writable folder"):
        plots.save_figure(figure, tmp_path / "missing" / "figure.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InvalidInputError, match="cannot write the figure"):
        plots.save_figure(figure, tmp_path / "folder.png")
    with pytest.raises(InvalidInputError, match=r"'figure\.docx'.*\.png"):
        plots.save_figure(figure, tmp_path / "figure.docx")
    assert os.listdir(tmp_path) == ["folder.png"]


def test_no_pyplot_and_nothing_heavy_before_it_is_used() -> None:
    program = (
        "import sys, numpy as np, fouriscope.metrics, fouriscope.plots as plots\n"
        "heavy = {'matplotlib', 'skimage', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "plots.comparison_figure([plots.Panel('image', np.eye(4))])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# What people get wrong ---------------------------------------------------------------------------------------------


def test_comparison_refuses_what_it_cannot_draw(truth: Image) -> None:
    panel = plots.Panel("Truth", truth)
    with pytest.raises(InvalidInputError, match="at least one panel"):
        plots.comparison_figure([])
    with pytest.raises(InvalidInputError, match=r"'Wide' has shape \(10, 30\).*\(60, 60\)"):
        plots.comparison_figure([panel, plots.Panel("Wide", truth[:10, :30])])
    with pytest.raises(InvalidInputError, match=r"'Stack' must be a real 2-D image.*\(1, 60, 60\)"):
        plots.comparison_figure([plots.Panel("Stack", truth[np.newaxis])])
    with pytest.raises(InvalidInputError, match="complex128"):
        plots.comparison_figure([plots.Panel("Field", truth * 1j)])
    with pytest.raises(InvalidInputError, match="no finite value"):
        plots.comparison_figure([plots.Panel("Diverged", truth * np.nan)])
    with pytest.raises(InvalidInputError, match=r"inside the image of shape \(60, 60\).*\(50, 0, 20\)"):
        plots.comparison_figure([panel], zoom=(50, 0, 20))
    with pytest.raises(InvalidInputError, match="positive size in metres"):
        plots.comparison_figure([panel], pixel=-1.0)
    with pytest.raises(InvalidInputError, match="'greyish'"):
        plots.comparison_figure([panel], cmap="greyish")


def test_curves_that_cannot_be_drawn(truth: Image) -> None:
    with pytest.raises(InvalidInputError, match="at least one curve"):
        plots.convergence_figure({})
    with pytest.raises(InvalidInputError, match=r"'SNR' needs x and y of one length.*\(2,\).*\(3,\)"):
        plots.convergence_figure({"SNR": ([1, 2], [1, 2, 3])})
    with pytest.raises(InvalidInputError, match="finite and positive"):
        plots.convergence_figure({"misfit": ([1, 2], [0.0, -1.0])}, log_y=True)
    with pytest.raises(InvalidInputError, match=r"phase has \(60, 60\) and amplitude has \(30, 60\)"):
        plots.result_figure(truth, truth[:30])


def test_contact_sheet_places_frames_at_their_leds() -> None:
    """A frame's mean is found on the sheet at its direction: rows down, columns to the right."""
    directions = np.array([(0.0, 0.0), (0.0, 0.2), (0.2, 0.0), (-0.2, -0.2)])
    frames = ArrayFrames(np.ones((4, 16, 16)) * np.array([1.0, 0.25, 0.5, 0.75])[:, None, None])
    figure = plots.contact_sheet(frames, directions, 0.5, frames.array.mean(axis=(1, 2)), {2: "dead"})
    axes, brightness = figure.axes
    canvas = np.asarray(axes.get_images()[0].get_array())
    reach = axes.get_xlim()[1]
    for (y, x), value in zip(directions, (1.0, 0.25, 0.5, 0.75), strict=True):
        row, column = (int((place + reach) / (2 * reach) * len(canvas)) for place in (y, x))
        assert canvas[row, column] == pytest.approx(value)
    assert axes.get_ylim() == (reach, -reach)
    assert "1 rejected" in figure.texts[0].get_text()
    assert len(brightness.get_lines()) == 2
    with pytest.raises(InvalidInputError, match="each of 4 frames needs a direction and a brightness"):
        plots.contact_sheet(frames, directions[:3], 0.5, np.ones(4))


# The pupil and the LEDs of a result ----------------------------------------------------------------------------------


def _disc(phase: float = 0.0, shape: tuple[int, int] = (40, 50)) -> plots.PupilView:
    """A pupil of NA 0.2 on a grid of 0.02 × 0.015 NA, with astigmatism of ``phase`` radians at its edge."""
    y, x = np.meshgrid(
        (np.arange(shape[0]) - shape[0] // 2) * 0.02, (np.arange(shape[1]) - shape[1] // 2) * 0.015, indexing="ij"
    )
    values = (np.hypot(y, x) <= 0.2) * np.exp(1j * (phase * 2 * x * y / 0.2**2 + 1.0))
    return plots.PupilView(values, (0.02, 0.015), 0.2)


def _leds(**options: Any) -> plots.LEDView:
    na = np.stack(np.meshgrid(np.linspace(-0.4, 0.4, 9), np.linspace(-0.4, 0.4, 9)), axis=-1).reshape(-1, 2)
    return plots.LEDView(na, np.hypot(*na.T) < 0.21, 0.2, **options)


def _axes_titled(figure: Any, xlabel: str) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_xlabel() == xlabel]


def _words_with_boxes(figure: Any) -> list[tuple[str, Any]]:
    """Everything that is written on a page, and where; labels of ticks outside of their axis are not drawn."""
    figure.canvas.draw()
    texts = [*figure.texts, *(text for part in figure.subfigs for text in part.texts)]
    for axes in _all_axes(figure):
        texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for minor in (False, True):
                ticks = zip(axis.get_ticklabels(minor=minor), axis.get_ticklocs(minor=minor), strict=True)
                texts += [label for label, place in ticks if low <= place <= high]
    return [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text().strip()]


@pytest.mark.parametrize("shape", [(60, 60), (24, 64), (64, 20)])
@pytest.mark.parametrize("everything", [False, True])
def test_nothing_on_the_page_of_a_result_overlaps(shape: tuple[int, int], everything: bool) -> None:
    y, x = (np.linspace(0, 1, size) for size in shape)
    phase = 8 * y[:, None] + 4 * x[None, :]
    rng = np.random.default_rng(0)
    leds = _leds(gains=rng.uniform(0.8, 1.2, 81), nominal=_leds().na + 0.01) if everything else _leds()
    figure = plots.result_figure(
        phase,
        np.exp(-0.1 * phase) if everything else None,
        {"misfit": [3.0, 1.0, 0.5]},
        pixel=0.16e-6,
        flattened=phase,
        wrapped=everything,
        pupil=_disc(3.0),
        leds=leds,
        title="A run",
        verdict="What is there is good.",
    )
    written, page = _words_with_boxes(figure), figure.bbox
    assert len(written) > 40
    assert not [word for word, box in written if box.x0 < 0 or box.y0 < 0 or box.x1 > page.x1 or box.y1 > page.y1]
    assert not [(a, b) for (a, one), (b, other) in itertools.combinations(written, 2) if one.overlaps(other)]
    panels = [axes.get_window_extent() for axes in _all_axes(figure)]
    assert not [(a, b) for a, b in itertools.combinations(panels, 2) if a.overlaps(b)]


def test_a_wrapped_phase_has_a_cyclic_map_and_an_unwrapped_one_does_not(truth: Image) -> None:
    steep = 5 * truth
    figure = plots.result_figure(np.angle(np.exp(1j * steep)), history={}, unwrapped=steep)
    wrapped, unwrapped = (axes.get_images()[0] for axes in _image_axes(figure)[:2])
    np.testing.assert_allclose(wrapped.get_cmap()(0.0), wrapped.get_cmap()(1.0), atol=0.02)
    assert wrapped.get_clim() == (-np.pi, np.pi)
    assert unwrapped.get_cmap().name == "gray"
    with pytest.raises(InvalidInputError, match=r"unwrapped has \(30, 60\)"):
        plots.result_figure(steep, unwrapped=steep[:30])


def test_a_flattened_phase_is_shown_and_says_so(truth: Image) -> None:
    found = truth + 0.5
    for wrapped in (False, True):
        figure = plots.result_figure(found, history={}, flattened=truth, wrapped=wrapped)
        shown = np.asarray(_image_axes(figure)[int(wrapped)].get_images()[0].get_array())
        np.testing.assert_allclose(shown, truth, atol=1e-6)
        words = [word for word, _ in _words_with_boxes(figure)]
        assert "Phase, background removed" in words
        assert "Phase" not in words


def test_the_pupil_is_drawn_where_its_na_is(truth: Image) -> None:
    """The pixel under (na_y, na_x) is the one of that NA; nothing is drawn where nothing passes."""
    pupil = _disc(3.0)
    figure = plots.result_figure(truth, history={}, pupil=pupil)
    modulus, phase = _axes_titled(figure, "na_x")
    assert modulus.get_ylim()[0] > modulus.get_ylim()[1], "na_y runs down, as rows do"
    image = phase.get_images()[0]
    left, right, bottom, top = image.get_extent()
    values = np.ma.getdata(image.get_array())
    for na_y, na_x in [(0.0, 0.0), (0.1, 0.075), (-0.1, 0.12), (0.0, 0.21)]:
        row = int((na_y - top) / (bottom - top) * values.shape[0])
        column = int((na_x - left) / (right - left) * values.shape[1])
        expected = 3.0 * 2 * na_x * na_y / 0.2**2 if np.hypot(na_y, na_x) <= 0.2 else np.nan
        np.testing.assert_allclose(values[row, column], expected, atol=1e-9)
    assert image.get_clim() == (-np.pi, np.pi)
    np.testing.assert_allclose(image.get_cmap()(0.0), image.get_cmap()(1.0), atol=0.02)


def test_a_small_aberration_has_a_scale_on_which_it_is_seen(truth: Image) -> None:
    figure = plots.result_figure(truth, history={}, pupil=_disc(0.4))
    low, high = _axes_titled(figure, "na_x")[1].get_images()[0].get_clim()
    assert -low == high
    assert 0.3 < high <= 0.4
    flat = plots.result_figure(truth, history={}, pupil=_disc(0.0))
    assert _axes_titled(flat, "na_x")[1].get_images()[0].get_clim() == (-0.1, 0.1), "rounding is not an aberration"


def test_the_map_shows_every_led_at_its_direction_and_how_it_moved(truth: Image) -> None:
    nominal = _leds().na + np.array([0.02, -0.03])
    gains = np.linspace(0.5, 2.0, 81)
    view = _leds(nominal=nominal, gains=gains)
    figure = plots.result_figure(truth, history={}, leds=view)
    (axes,) = _axes_titled(figure, "na_x")
    arrows, bright, dark = axes.collections
    assert (bright.get_label(), dark.get_label()) == ("bright field", "dark field")
    np.testing.assert_allclose(bright.get_offsets(), view.na[view.bright][:, ::-1])
    np.testing.assert_allclose(dark.get_offsets(), view.na[~view.bright][:, ::-1])
    np.testing.assert_allclose(dark.get_array(), gains[~view.bright])
    assert bright.get_clim() == dark.get_clim() == (0.5, 2.0), "one scale for both"
    np.testing.assert_allclose(arrows.get_offsets(), nominal[:, ::-1])
    np.testing.assert_allclose(np.stack([arrows.V, arrows.U], axis=1), view.na - nominal)
    circles = sorted(patch.get_radius() for patch in axes.patches)
    assert circles == pytest.approx([0.2, np.hypot(0.4, 0.4) + 0.2])
    assert "13 in NA 0.2, 68 dark field" in _words(figure)
    with pytest.raises(InvalidInputError, match=r"gains of the 81 LEDs to draw must have shape \(81,\), got \(3,\)"):
        _leds(gains=np.ones(3))
    with pytest.raises(InvalidInputError, match="positive NA"):
        plots.PupilView(np.ones((4, 4)), (0.1, 0.1), -1.0)


def test_a_grid_shows_the_same_squares_of_every_image_on_one_scale(truth: Image) -> None:
    rows = [[plots.Panel(f"{row}{column}", truth * (1 + row)) for column in range(3)] for row in range(2)]
    figure = plots.grid_figure(rows, pixel=1e-6, zooms=[(0, 5, 20), (30, 10, 25)], title="Six")
    axes = _image_axes(figure)
    assert len(axes) == 18
    assert len({one.get_images()[0].get_clim() for one in axes}) == 1
    assert {(one.get_xlim(), one.get_ylim()) for one in axes} == {
        ((0.0, 60.0), (60.0, 0.0)),
        ((5.0, 25.0), (20.0, 0.0)),
        ((10.0, 35.0), (55.0, 30.0)),
    }
    assert all(panel.title in _words(figure) for row in rows for panel in row)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": []}, "all of one length"),
        ({"zooms": [(0, 0, 5)] * 3}, "room for 2 close-ups, but 3"),
        ({"zooms": [(50, 50, 20)]}, "a square inside the image"),
    ],
)
def test_grids_that_cannot_be_drawn(truth: Image, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        plots.grid_figure(**{"rows": [[plots.Panel("one", truth)]], **arguments})
    with pytest.raises(InvalidInputError, match="must have the same shape"):
        plots.grid_figure([[plots.Panel("one", truth), plots.Panel("other", truth[::2])]])
