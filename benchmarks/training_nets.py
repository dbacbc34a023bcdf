"""The nets of the training benchmarks: a wide residual net, a GPT, and two that nobody tuned for."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name


class Block(nn.Module):
    def __init__(self, inward: int, outward: int, stride: int, groups: int = 16) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(min(groups, inward), inward)
        self.conv1 = nn.Conv2d(inward, outward, 3, stride, 1, bias=False)
        self.norm2 = nn.GroupNorm(groups, outward)
        self.conv2 = nn.Conv2d(outward, outward, 3, 1, 1, bias=False)
        same = inward == outward and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inward, outward, 1, stride, bias=False)
        self.same = same

    def forward(self, x):
        y = F.relu(self.norm1(x))
        kept = x if self.same else self.shortcut(y)
        return kept + self.conv2(F.relu(self.norm2(self.conv1(y))))


class WideResNet(nn.Module):
    """WRN-16-4 with group norms, as in De et al. 2022, without weight standardisation."""

    def __init__(self, width: int = 4, blocks: int = 2, classes: int = 10) -> None:
        super().__init__()
        widths = [16, 16 * width, 32 * width, 64 * width]
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)]
        for group in range(3):
            for block in range(blocks):
                inward = widths[group] if block == 0 else widths[group + 1]
                layers.append(Block(inward, widths[group + 1], 2 if group and block == 0 else 1))
        self.body = nn.Sequential(*layers)
        self.norm = nn.GroupNorm(16, widths[3])
        self.head = nn.Linear(widths[3], classes)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.body(x))).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in self.inward(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.outward(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A GPT of 12 layers; the vocabulary is padded to a multiple of 64."""

    def __init__(
        self, layers: int = 12, width: int = 768, heads: int = 12, length: int = 256, words: int = 50304
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device).repeat(ids.shape[0], 1)
        x = self.words(ids) + self.places(places)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Perceptron(nn.Module):
    """Three wide layers on 784 features."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        )

    def forward(self, x):
        return self.body(x)


class SmallConvNet(nn.Module):
    """Plain convolutions of odd widths and kernels, as beginners write them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 40, 5, padding=2), nn.GroupNorm(8, 40), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(40, 80, 3, padding=1), nn.GroupNorm(8, 80), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(80, 96, 3), nn.ReLU(), nn.Flatten(),
            nn.Linear(96 * 36, 120), nn.ReLU(), nn.Linear(120, 10),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


def sequence_loss(logits, targets):
    """Return the mean cross-entropy over the places of each sequence: one number for each sample."""
    each = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none")
    return each.view(targets.shape).mean(1)


def class_loss(logits, targets):
    """Return the cross-entropy of each sample."""
    return F.cross_entropy(logits.float(), targets, reduction="none")
