"""The whole field of view: cut into tiles, reconstructed by many workers, put together."""

from fouriscope.field.cluster import connected
from fouriscope.field.coordinator import FieldProgress
from fouriscope.field.dispatch import ClusterError
from fouriscope.field.folder import FieldFolder
from fouriscope.field.front import reconstruct_field
from fouriscope.field.plan import FieldPlan
from fouriscope.field.planner import Forecast, forecast
from fouriscope.field.reconstruct import FieldResult
from fouriscope.field.tiling import Tile, Tiling

__all__ = [
    "ClusterError",
    "FieldFolder",
    "FieldPlan",
    "FieldProgress",
    "FieldResult",
    "Forecast",
    "Tile",
    "Tiling",
    "connected",
    "forecast",
    "reconstruct_field",
]
