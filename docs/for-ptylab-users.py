# %% [markdown]
# # For users of PtyLab
#
# This page shows the same reconstruction in the words of fouriscope. It reads your PtyLab files as they are.
#
# ## Words
#
# | PtyLab | fouriscope |
# |---|---|
# | `ptychogram` | the frames: `data.frames` |
# | `encoder`, `zled` | `fs.LEDArray.at(positions, height=…)` |
# | `dxd` | `camera_pixel` of `fs.Optics` |
# | `ExperimentalData` | `fs.Acquisition` |
# | `Reconstruction` with object and probe | `fs.Result` with phase, amplitude and pupil |
# | probe, in Fourier ptychography | the *pupil* |
# | `Params`, and settings of the engine | arguments of `fs.reconstruct`; more in `fs.settings` |
# | an engine, `doReconstruction()` | `fs.reconstruct(data, method=…)` |
# | `numIterations`: sweeps over all frames | `iterations`: steps over a few frames |
# | position calibration before the run | `fs.align`, or `align=` |
# | position correction during the run | `calibrate="leds"` |
# | `Monitor` | `fouriscope view`, in the browser |
#
# ## Methods
#
# | PtyLab | fouriscope |
# |---|---|
# | qNewton, ePIE with a pupil | `method="epry"` |
# | mqNewton, mPIE (momentum) | the default; momentum is built in |
# | zPIE (defocus) | `align="focus"`, `calibrate="zernike"` |
# | pcPIE, aPIE (positions, angles) | `align="array"`, `calibrate="leds"` |
# | `objectTVregSwitch` | `prior="tv"`; there are other priors |
#
# PtyLab also does conventional (scanning) ptychography, multi-slice and mixed-state models, and runs on GPUs. fouriscope does
# none of these.
#
# ## A PtyLab file
#
# This page writes a PtyLab file first. Use your own instead.

# %%
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs
from fouriscope.acquisition import write_ptylab

optics = fs.Optics(wavelength=523e-9, na=0.1, magnification=4, camera_pixel=4e-6)
leds = fs.LEDArray.square(9, pitch=4e-3, height=0.09)
lens = fs.ForwardModel(optics, leds, frame_shape=(64, 64), pupil=fs.Pupil({5: 0.4}))
phase = 0.8 * resize(camera() / 255, lens.object_shape)
write_ptylab("cells.hdf5", fs.simulate(lens, phase, camera=fs.Camera(photons=5000), seed=0))

# %% [markdown]
# ## Read it
#
# PtyLab's file holds frames, LEDs and optics, so nothing else is needed.

# %%
data = fs.load("cells.hdf5")
data

# %% [markdown]
# ## Reconstruct it twice
#
# EPRY is close to what PtyLab's engines do. The second run is the default method of fouriscope for measured frames.

# %%
epry = fs.reconstruct(data, method="epry", align=())
ours = fs.reconstruct(data, align=(), iterations=80)
panels = [
    fs.plots.Panel("EPRY, phase", epry.phase - epry.phase.mean()),
    fs.plots.Panel("default, phase", ours.phase - ours.phase.mean()),
]
fs.plots.comparison_figure(panels, pixel=ours.pixel[0])

# %% [markdown]
# From a terminal, `fouriscope import cells.hdf5` writes an `acquisition.toml` from the same file.
#
# **Conventions.** Positions are (y, x). PtyLab crops the object's spectrum at whole frequency bins; fouriscope does not round
# directions. `orientation` of a PtyLab file is reported, not applied. [Formats](formats.md) has the details, and
# [benchmarks](benchmarks.md) compares both on the same frames.
#
# **Licence.** PtyLab is licensed for academic, non-commercial use. fouriscope is BSD-3-Clause and contains none of its code.
