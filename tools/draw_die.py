"""Draw a die at the pupil's edge for docs: ``python tools/draw_die.py docs/pictures/die-at-the-edge.png``."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from fouriscope.forward import ForwardModel
from fouriscope.optics import Sources
from fouriscope.optics.frame_sources import fine_sources
from fouriscope.paper import paper_leds, paper_optics
from fouriscope.plots import save_figure, sources_figure
from fouriscope.simulation.samples import sample

DIE, FRAME, OBJECT = 1e-3, (64, 64), (320, 320)


def main(path: str) -> None:
    lights, optics = replace(paper_leds(), die=DIE), paper_optics()
    model = ForwardModel(optics, lights, FRAME, object="complex", object_shape=OBJECT)
    share = model.geometry.direct_light
    led = int(np.argmin(np.abs(share - 0.4)))
    o = sample("cells", OBJECT, np.random.default_rng(1))
    x = np.stack([np.angle(o), -np.log(np.abs(o))])
    points, fine = Sources.points(model.geometry.na), fine_sources(lights, optics, (0.0, 0.0))
    assert fine is not None
    images = {
        "as a point": model.revised(sources=points).intensity(x, [led])[0],
        "a few sources": model.intensity(x, [led])[0],
        "27 × 27 points": model.revised(sources=fine).intensity(x, [led])[0],
    }
    save_figure(sources_figure(model, led, images), path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
