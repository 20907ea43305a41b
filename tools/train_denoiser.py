"""Train the denoiser that fouriscope ships as the prior "cnn", and write its weights.

    python tools/train_denoiser.py --images photographs --out src/fouriscope/priors/weights/small_cnn.safetensors

It takes less than an hour on two cores, and needs torch (``pip install "fouriscope[learned]"``). Seeds are explicit,
but where a machine is slow the number of steps follows the clock (``--minutes``). The shipped weights are 13473 steps,
done in 38 minutes on one thread of a busy machine (``--minutes 38 --steps 40000 --threads 1``).

The images
----------
The shipped weights were trained on drawn images (``training_images.py``; they belong to nobody) and these photographs,
all free to use and none of them with a share-alike clause:

* from Debian's package lomiri-wallpapers-16.04, licences as its copyright file states them,
  CC-BY-4.0: ``aitzgorri``, ``friends``, ``life``, ``picosdeeuropa`` and ``sunset`` by Aitzol Berasategi, ``Picture_0B``
  and ``Picture_1A`` by Trevor "Freespace", ``umang`` by Abhishek Mudgal, ``Wine`` by Jakub Mede;
  CC0-1.0: ``seeding`` by Clemens Engelhardt;
* from the Python package scikit-learn, CC-BY-2.0: ``flower`` by vultilion, and ``china`` by danielbuechele, which is
  held out to watch the progress.

To gather them (no root needed)::

    mkdir photographs && apt-get download lomiri-wallpapers-16.04 && dpkg -x lomiri-wallpapers-16.04_*.deb unpacked
    cd unpacked/usr/share/backgrounds
    cp *Aitzol* *freespace* *Abhishek* *Jakkub* *Clements* ../../../../photographs/ && cd -
    cp $(python -c 'import sklearn.datasets as d; print(d.__path__[0])')/images/*.jpg photographs/

None of the images that the project measures with (the paper's six, scikit-image's) is among them.

The network
-----------
The image is split into its 2 × 2 phases, four planes of half the size; a fifth plane holds σ. Convolutions of 3 × 3
with ReLU in between, none with a bias, predict the noise of the four phases. Without biases the prediction is
homogeneous, n(a·x, a·σ) = a·n(x, σ) for a > 0, so that it does not matter in which units an image comes. Images are
centred at zero before they are shown, as the run time does.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from training_images import Array, dead_leaves, photographs

VERSION = 1
SIGMAS = (0.5 / 255, 80 / 255)
"""The noise levels of training, log-uniform, for images in [0, 1]."""
PATCH = 64
BATCH = 16
DRAWN = 250
HELD_OUT = "china"
"""One photograph that is not trained on: its PSNR is printed as training goes."""


class Network(nn.Module):
    """n(x, σ): the noise in x, as a network without biases sees it."""

    def __init__(self, channels: int, layers: int) -> None:
        super().__init__()
        sizes = [5, *[channels] * (layers - 1), 4]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in pairwise(sizes))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        # Begin with layers that pass on what they get, which trains a deep chain as fast as skip connections would and
        # costs nothing at run time.
        with torch.no_grad():
            for layer in self.layers[1:-1]:
                layer.weight *= 0.3
                layer.weight[:, :, 1, 1] += torch.eye(channels)
        # Begin near "no noise found", from where every direction is an improvement.
        nn.init.normal_(self.layers[-1].weight, std=1e-3)

    def forward(self, noisy: Tensor, sigma: Tensor) -> Tensor:
        phases = nn.functional.pixel_unshuffle(noisy, 2)
        level = sigma.view(-1, 1, 1, 1).expand(-1, 1, *phases.shape[2:])
        x = torch.cat([phases, level], dim=1).contiguous(memory_format=torch.channels_last)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return nn.functional.pixel_shuffle(self.layers[-1](x), 2)


class Patches:
    """Random patches: three of five from photographs, if there are any, the others from drawn images."""

    def __init__(self, photos: list[list[Array]], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.drawn = [dead_leaves(self.rng) for _ in range(DRAWN)]
        self.photos = photos
        # Large versions of a photograph have more to show than small ones.
        self.chances = [np.sqrt([image.size for image in sizes]) for sizes in photos]
        self.chances = [chance / chance.sum() for chance in self.chances]

    def one(self) -> Array:
        rng = self.rng
        if self.photos and rng.random() < 0.6:
            which = rng.integers(len(self.photos))
            image = self.photos[which][rng.choice(len(self.photos[which]), p=self.chances[which])]
        else:
            image = self.drawn[rng.integers(len(self.drawn))]
        row, column = (rng.integers(length - PATCH + 1) for length in image.shape)
        # Centred with the whole image, as at run time: a patch keeps its own brightness.
        patch = image[row : row + PATCH, column : column + PATCH] - image.mean()
        patch = np.rot90(patch if rng.random() < 0.5 else patch[::-1], rng.integers(4))
        # Negatives are images too, and so are images of little contrast, of which a solver's first ones consist.
        factor = rng.choice([-1.0, 1.0]) * (np.exp(rng.uniform(-3, 0)) if rng.random() < 0.15 else 1)
        return (factor * patch).astype(np.float32)

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return clean patches, noisy patches and their σ."""
        clean = torch.from_numpy(np.stack([self.one() for _ in range(BATCH)])[:, None])
        low, high = np.log(SIGMAS)
        sigma = torch.from_numpy(np.exp(self.rng.uniform(low, high, BATCH)).astype(np.float32))
        return clean, clean + sigma.view(-1, 1, 1, 1) * torch.randn(clean.shape), sigma


def psnr_of(network: Network, image: Array, sigma: float) -> float:
    """Return the PSNR after denoising an image in [0, 1] with noise of σ, from a seed of its own."""
    rows, columns = (length - length % 2 for length in image.shape)
    clean = image[:rows, :columns] - image.mean()
    noisy = clean + np.random.default_rng(7).normal(0, sigma, clean.shape).astype(np.float32)
    with torch.no_grad():
        found = network(torch.from_numpy(noisy)[None, None], torch.tensor([sigma], dtype=torch.float32))[0, 0].numpy()
    return float(-10 * np.log10(np.mean((noisy - found - clean) ** 2)))


def save(network: Network, path: Path, about: dict[str, str]) -> None:
    tensors = {f"layer{k}": layer.weight.detach().contiguous() for k, layer in enumerate(network.layers)}
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, str(path), metadata=about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=Path, help="folder of photographs; without it, drawn images alone")
    parser.add_argument("--out", type=Path, required=True, help="where the weights go (.safetensors)")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument(
        "--minutes", type=float, default=55, help="a slow machine does fewer steps instead of longer ones"
    )
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--layers", type=int, default=9)
    parser.add_argument("--rate", type=float, default=1.5e-3, help="the largest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(options.seed)
    photos: dict[str, list[Array]] = {}
    if options.images is None:
        print("NO PHOTOGRAPHS: training on drawn images alone (--images FOLDER adds photographs)", flush=True)
        test = dead_leaves(np.random.default_rng(options.seed + 1))
    else:
        photos = photographs(options.images)
        test = photos.pop(HELD_OUT, [next(iter(photos.values()))[0]])[-1]
        print(f"photographs: {', '.join(photos)}; held out: {HELD_OUT}", flush=True)
    patches = Patches(list(photos.values()), options.seed)

    network = Network(options.channels, options.layers).to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.rate, weight_decay=0)
    size = sum(p.numel() for p in network.parameters())
    print(f"{size} weights, {options.layers} layers of {options.channels} channels", flush=True)
    about = {
        "script": f"tools/train_denoiser.py version {VERSION}",
        "network": f"{options.layers} layers, {options.channels} channels, bias-free, residual, phases 2x2 and sigma",
        "images": ", ".join([*photos, f"{DRAWN} drawn images"]),
        "image_licences": "CC-BY-4.0, CC-BY-2.0, CC0-1.0 and drawn; see tools/train_denoiser.py",
        "licence": "BSD-3-Clause",
        "sigma_range": json.dumps([round(sigma, 6) for sigma in SIGMAS]),
        "seed": str(options.seed),
        "torch": torch.__version__,
    }
    start = time.perf_counter()
    step, done = 0, 0.0
    while done < 1:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, 50 * done + 0.02) * (0.005 + 0.4975 * (1 + np.cos(np.pi * done)))
        clean, noisy, sigma = patches.batch()
        error = (noisy - network(noisy, sigma) - clean).abs().mean(dim=(1, 2, 3))
        # What remains grows with σ less than σ itself: with this weight all noise levels count about the same.
        loss = (error / sigma**0.7).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(network)
        step += 1
        seconds = time.perf_counter() - start
        done = max(step / options.steps, seconds / (60 * options.minutes))
        if step % 250 == 0 or done >= 1:
            scores = " ".join(f"{psnr_of(average.module, test, level / 255):.2f}" for level in (2, 10, 25, 50))
            print(f"step {step}: loss {loss.item():.4f}, PSNR at 2, 10, 25, 50: {scores}, {seconds:.0f} s", flush=True)
            save(average.module, options.out, {**about, "steps": str(step), "held_out_psnr": scores})


if __name__ == "__main__":
    main()
