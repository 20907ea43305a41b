"""The one page that a result shows of itself: ``figure.png`` of a run folder, and :meth:`Result.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fouriscope import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fouriscope.run.result import Result


def figure_of(result: Result, flat: NDArray[Any], *, jumps: bool) -> Figure:
    """The page of ``result`` with ``flat``, its phase without the background; ``jumps`` draws it wrapped, too."""
    is_flat = result.phase_background != "none"
    return plots.result_figure(
        result.phase,
        None if result.absorption is None else result.amplitude,
        {"iteration": result.history["iteration"], "misfit": result.history["misfit"]},
        pixel=result.pixel[1],  # its bar and its frequencies lie along a row
        flattened=flat if is_flat else None,
        unwrapped=flat if jumps and not is_flat else None,
        wrapped=jumps,
        pupil=_pupil_view(result),
        leds=_led_view(result),
        verdict="" if result.verdict is None else result.verdict.sentence,
    )


def _pupil_view(result: Result) -> plots.PupilView | None:
    if result.pupil is None or result.pupil_na_step is None or result.geometry is None:
        return None
    return plots.PupilView(
        result.pupil, result.pupil_na_step, result.geometry.objective_na, recovered=result.pupil_recovered
    )


def _led_view(result: Result) -> plots.LEDView | None:
    geometry = result.geometry
    if geometry is None:
        return None
    return plots.LEDView(
        geometry.na, geometry.bright_field, geometry.objective_na, gains=geometry.gains, nominal=geometry.nominal_na
    )
