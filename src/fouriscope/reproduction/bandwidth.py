"""What the bandwidth of the LEDs changes, which the paper names and its model leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.paper import paper_model
from fouriscope.reproduction.experiment import Cell, Experiment, Listener, run_all
from fouriscope.reproduction.images import TestImage
from fouriscope.reproduction.pages import Block, Heading, Table, Words
from fouriscope.reproduction.protocol import Method, Protocol
from fouriscope.reproduction.summary import Summary

# The methods that are run again; all would take as long as the paper.
SHOWN = ("NoReg-Online", "TV-Online", "BM3D-Online")


class BroadExperiment(Experiment):
    """The experiment with light of a ``bandwidth``, which a reconstruction knows (``modelled``) or takes for one
    wavelength, as the paper does."""

    def __init__(
        self,
        protocol: Protocol,
        images: Sequence[TestImage],
        phase_range: float,
        folder: Path,
        *,
        bandwidth: float,
        modelled: bool,
    ) -> None:
        super().__init__(protocol, images, phase_range, folder)
        self.bandwidth, self.modelled = bandwidth, modelled
        self.folder = folder / "cells" / ("broad, modelled" if modelled else "broad")
        self.model = paper_model(protocol.frame, protocol.radius, bandwidth)

    def acquisition(self, image: TestImage) -> Acquisition:
        data = super().acquisition(image)
        return data if self.modelled else replace(data, optics=replace(data.optics, bandwidth=0.0))

    def words(self, image: TestImage, method: Method, strength: float | None) -> dict[str, Any]:
        told = {"bandwidth": self.bandwidth, "modelled": self.modelled}
        return super().words(image, method, strength) | told


@dataclass(frozen=True, eq=False)
class BandwidthChange:
    """SNR in dB over all images, by method: with one wavelength, and with a bandwidth that is not or is modelled."""

    bandwidth: float
    ideal: dict[str, float]
    ignored: dict[str, float]
    modelled: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return {
            "bandwidth_m": self.bandwidth,
            "snr_db": {
                name: {
                    "one_wavelength": self.ideal[name],
                    "ignored": self.ignored[name],
                    "modelled": self.modelled[name],
                }
                for name in self.ideal
            },
        }

    def blocks(self) -> list[Block]:
        """A section of the report."""
        width = f"{self.bandwidth * 1e9:g} nm"
        rows = [
            [
                name,
                f"{self.ideal[name]:.2f}",
                f"{self.ignored[name]:.2f} ({self.ignored[name] - self.ideal[name]:+.2f})",
                f"{self.modelled[name]:.2f} ({self.modelled[name] - self.ideal[name]:+.2f})",
            ]
            for name in self.ideal
        ]
        return [
            Heading(f"{width} of bandwidth"),
            Words(
                f"The paper names {width} for its LEDs and reconstructs with one wavelength. Here frames were "
                f"simulated with eleven wavelengths per LED (a Gaussian of {width}, full width at half maximum), the "
                "same noise and strengths, and reconstructed as the paper does and with a model of the bandwidth "
                "(docs/sources.md). SNR in dB at the end, and the difference from light of one wavelength:"
            ),
            Table(("method", "one wavelength", f"{width}, taken for one", f"{width}, modelled"), rows),
        ]


def run_bandwidth(
    ideal: Experiment,
    summary: Summary,
    methods: Sequence[Method],
    strengths: dict[str, dict[str, float]],
    folder: Path,
    *,
    bandwidth: float,
    listener: Listener,
) -> BandwidthChange:
    """Run the shown methods again with light of ``bandwidth``, twice; what is there already is used."""
    again = [method for method in methods if method.name in SHOWN]
    found: dict[bool, dict[str, float]] = {}
    for modelled in (False, True):
        experiment = BroadExperiment(
            ideal.protocol, ideal.images, ideal.phase_range, folder, bandwidth=bandwidth, modelled=modelled
        )
        found[modelled] = _means(run_all(experiment, again, strengths, listener))
    names = {method.name: summary[method.name].final for method in again}
    return BandwidthChange(bandwidth, names, found[False], found[True])


def _means(cells: Sequence[Cell]) -> dict[str, float]:
    names = dict.fromkeys(cell.method for cell in cells)
    return {name: float(np.mean([cell.final for cell in cells if cell.method == name])) for name in names}
