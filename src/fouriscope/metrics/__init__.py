"""How close is an estimate to the truth, and how fine is the detail that two estimates share?

**The gauge.** An intensity camera cannot see a constant phase: d(x + c) = d(x) for every constant c. A perfect
reconstruction may therefore differ from the truth by any constant, and a score that counts it measures the starting
point and not the algorithm. ``align=True``, the default throughout, removes the best constant before it compares;
``align=False`` gives the raw score. :func:`snr_both` reports the two side by side.

All scores are computed in float64, whatever the input.
"""

from __future__ import annotations

from fouriscope.metrics.fields import field_nrmse, phase_difference, wrap
from fouriscope.metrics.rings import RingCorrelation, fourier_ring_correlation, frc_resolution
from fouriscope.metrics.signal_to_noise import SNR, psnr, remove_constant, snr, snr_both, ssim

__all__ = [
    "SNR",
    "RingCorrelation",
    "field_nrmse",
    "fourier_ring_correlation",
    "frc_resolution",
    "phase_difference",
    "psnr",
    "remove_constant",
    "snr",
    "snr_both",
    "ssim",
    "wrap",
]
