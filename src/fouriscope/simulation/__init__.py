"""From an object to an acquisition: the model's own frames with noise, or those of a microscope with faults."""

from fouriscope.simulation.frames import Camera, check_noise, simulate
from fouriscope.simulation.hostile import HostileMicroscope
from fouriscope.simulation.scoring import field_error
from fouriscope.simulation.truth import Truth

__all__ = ["Camera", "HostileMicroscope", "Truth", "check_noise", "field_error", "simulate"]
