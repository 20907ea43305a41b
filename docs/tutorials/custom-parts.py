# %% [markdown]
# # A prior, loss, sampler and stop rule of your own
#
# You can replace every part of the solver. This page writes one of each, in a few lines, and runs them together.
#
# The example is a camera with hot pixels: one pixel in a hundred reads far too much light.

# %%
import numpy as np
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.disc(pitch=4e-3, height=70e-3, radius=5)
model = fs.ForwardModel(optics, leds, frame_shape=(64, 64))
phase = 0.5 * resize(camera() / 255, model.object_shape)
frames = np.array(fs.simulate(model, phase, snr_db=40, seed=0).frames)
hot = np.random.default_rng(0).random(frames.shape) < 0.01
frames[hot] += 3

# %% [markdown]
# ## A prior
#
# A prior is a denoiser. Any function `f(image, sigma)` will do, where $\sigma$ is the noise level to remove, in units of the
# image. So will any object with a method `denoise(image, sigma)`. For more, derive from
# [`fs.Prior`](../reference/priors.md) and write `_denoise`.

# %%
from scipy.ndimage import gaussian_filter, median_filter


def gentle_median(image, sigma):
    """A median filter. It acts more where the noise is stronger than the detail that the median removes."""
    smooth = median_filter(image, 3)
    detail = gaussian_filter((image - smooth) ** 2, 2)
    return smooth + (image - smooth) * detail / (detail + sigma**2)


# %% [markdown]
# ## A loss
#
# A loss $d(I, y)$ compares the predicted intensity $I = |\psi|^2$ with the frame $y$. The gradient needs the factor $q$ with
# $\partial d / \partial \bar\psi = q\,\psi$. The pseudo-Huber loss forgives outliers: with $r = I - y$,
#
# $$d = \delta^2 \left(\sqrt{1 + r^2/\delta^2} - 1\right), \qquad q = \frac{r}{\sqrt{1 + r^2/\delta^2}}.$$
#
# `row` is compiled by numba, so it uses plain loops and NumPy functions. It replaces $\psi$ by $q\,\psi$.

# %%
from dataclasses import dataclass

from fouriscope.fidelity import Loss


@dataclass(frozen=True)
class PseudoHuber(Loss):
    name = "pseudo-huber"
    delta: float = 0.1

    @property
    def epsilon(self):  # the one number that `row` gets
        return self.delta

    @staticmethod
    def row(field, frame, mask, epsilon):
        total, one = frame.dtype.type(0), frame.dtype.type(1)
        for c in range(frame.size):
            psi = field[c]
            r = (psi.real * psi.real + psi.imag * psi.imag - frame[c]) * mask[c]
            root = np.sqrt(one + (r / epsilon) ** 2)
            total += epsilon * epsilon * (root - one)
            field[c] = complex(psi.real * r / root, psi.imag * r / root)
        return total

    def curvature(self, intensity):  # of d with respect to the amplitude, at a perfect fit
        return 4 * intensity

    def best_gain(self, intensity, frame):
        return float(np.sum(frame * intensity) / max(np.sum(intensity**2), 1e-12)) or 1.0


# %% [markdown]
# Check the gradient against finite differences before you trust it, in double precision:

# %%
exact = fs.ForwardModel(optics, leds, frame_shape=(64, 64), dtype="float64")
checked = fs.DataFidelity(exact, frames.astype(np.float64), loss=PseudoHuber())
fs.check_gradient(checked.value, lambda x: checked.gradient(x).gradient, phase)

# %% [markdown]
# ## A sampler
#
# A sampler draws the LEDs of an iteration. It must be unbiased: LED $i$, drawn with probability $p_i$ out of $N$, gets the
# weight $1/(N p_i)$. This one draws bright-field LEDs three times as often as dark-field ones.

# %%
from fouriscope.fidelity import Minibatch, Sampler


class BrightOften(Sampler):
    name = "bright-often"

    def __init__(self, bright_field, batch):
        self.population, self.batch = np.arange(len(bright_field)), batch
        share = np.where(bright_field, 3.0, 1.0)
        self.p = share / share.sum()

    def draw(self, rng):
        drawn, counts = np.unique(rng.choice(self.population, self.batch, p=self.p), return_counts=True)
        return Minibatch(drawn, counts / (len(self.population) * self.p[drawn]), self.batch)


# %% [markdown]
# ## A stop rule
#
# A stop rule sees the history and returns a reason to stop, or None. Rules combine with `|` and `&`.

# %%
from fouriscope.solvers import StopRule


class Stalled(StopRule):
    """Stop when the misfit of the last 50 iterations is not below that of the 50 before."""

    def __call__(self, history):
        misfit = history["misfit"]
        stalled = len(misfit) >= 100 and misfit[-50:].mean() >= misfit[-100:-50].mean()
        return "the misfit no longer falls" if stalled else None


# %% [markdown]
# ## All together

# %%
from fouriscope.priors import CallablePrior

fidelity = fs.DataFidelity(model, frames, loss=PseudoHuber())
sampler = BrightOften(model.geometry.bright_field, batch=25)
mine = fs.PnP(fidelity, sampler, [CallablePrior(gentle_median)], seed=0)
mine.solve(Stalled() | fs.Iterations(300))
print(mine.stop_reason, "after", len(mine.history), "iterations")

plain = fs.PnP(fs.DataFidelity(model, frames, loss=fs.IntensityLoss()), sampler, [fs.TV()], seed=0)
plain.solve(fs.Iterations(len(mine.history)))

panels = [
    fs.plots.Panel("a frame with hot pixels", frames[34], own_scale=True),
    fs.plots.snr_panel("intensity loss, TV", plain.x, phase),
    fs.plots.snr_panel("pseudo-Huber, median", mine.x, phase),
]
fs.plots.comparison_figure(panels, pixel=model.object_pixel[0])

# %% [markdown]
# `fs.reconstruct` takes the parts too: `fs.reconstruct(data, prior=gentle_median, loss=PseudoHuber())`.
