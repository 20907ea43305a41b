"""The rules of OME-NGFF 0.5, for every test that writes an OME-Zarr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def check_ngff(folder: Path) -> dict[str, Any]:
    """The rules of OME-NGFF 0.5 for an image, as its text states them; returns the metadata."""
    stored = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
    assert (stored["zarr_format"], stored["node_type"]) == (3, "group")
    ome: dict[str, Any] = stored["attributes"]["ome"]
    assert ome["version"] == "0.5"
    (multiscale,) = ome["multiscales"]
    axes = multiscale["axes"]
    assert [axis["name"] for axis in axes] == ["c", "y", "x"]
    assert [axis["type"] for axis in axes] == ["channel", "space", "space"], "channels before space"
    assert [axis.get("unit") for axis in axes] == [None, "micrometer", "micrometer"]
    for dataset in multiscale["datasets"]:
        array = json.loads((folder / dataset["path"] / "zarr.json").read_text(encoding="utf-8"))
        assert (array["zarr_format"], array["node_type"], array["data_type"]) == (3, "array", "float32")
        assert array["dimension_names"] == ["c", "y", "x"], "must match the axes"
        scale, translation = dataset["coordinateTransformations"]  # exactly one scale, then at most one translation
        assert (scale["type"], translation["type"]) == ("scale", "translation")
        assert len(scale["scale"]) == len(translation["translation"]) == len(axes)
    sizes = [json.loads((folder / d["path"] / "zarr.json").read_text("utf-8"))["shape"] for d in multiscale["datasets"]]
    assert sizes == sorted(sizes, reverse=True), "from the largest to the smallest"
    for channel in ome["omero"]["channels"]:
        assert len(channel["color"]) == 6
        int(channel["color"], 16)
        assert set(channel["window"]) == {"min", "max", "start", "end"}
        assert channel["window"]["min"] <= channel["window"]["start"] < channel["window"]["end"]
        assert channel["window"]["end"] <= channel["window"]["max"]
    assert len(ome["omero"]["channels"]) == sizes[0][0]
    return ome
