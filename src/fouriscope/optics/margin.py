"""How much of the sample beyond a frame is modelled with it."""

from __future__ import annotations

LEAST_MARGIN = 16
MOST_MARGIN = 24


def automatic_margin(frame_shape: tuple[int, int]) -> int:
    """Frame pixels to estimate on every side of a frame that was cut out of a larger one: 16, or a few more.

    Light from beyond the frame reaches into it over some widths of the point spread function, and a periodic model
    would take it from the opposite border instead. The margin is the one from 16 to 24 with the cheapest Fourier
    transforms.

    Parameters
    ----------
    frame_shape
        (rows, columns) of a frame.

    Examples
    --------
    >>> automatic_margin((128, 128)), automatic_margin((100, 100))
    (17, 22)
    """
    return min(
        range(LEAST_MARGIN, MOST_MARGIN + 1),
        key=lambda margin: sum(_cost(size + 2 * margin) for size in frame_shape),
    )


def _cost(size: int) -> float:
    """The cost of an FFT of ``size`` points, times the other axis: size² times the sum of its prime factors."""
    factors, rest, factor = 0, size, 2
    while rest > 1:
        while rest % factor == 0:
            factors += factor
            rest //= factor
        factor += 1
    return float(size * size * factors)
