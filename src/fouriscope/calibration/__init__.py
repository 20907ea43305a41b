"""Calibration: what the files do not say about the microscope, found while a solver works."""

from fouriscope.calibration.base import Calibrator
from fouriscope.calibration.calibration import Calibration
from fouriscope.calibration.gains import LEDGains
from fouriscope.calibration.pixel_pupil import PixelPupil
from fouriscope.calibration.positions import LEDPositions
from fouriscope.calibration.zernike_pupil import ZernikePupil

__all__ = ["Calibration", "Calibrator", "LEDGains", "LEDPositions", "PixelPupil", "ZernikePupil"]
