"""Private training on a CPU: clipped steps of Tacit, Opacus 1.6 and a step without privacy, on the same nets.

Run: python benchmarks/training.py [net ...]
Each contender runs forward, backward, clipping and the sum of clipped gradients on the same batches, with one
thread. Times are CPU seconds of the fastest of several steps. Opacus runs in an environment of its own, with
its per-sample gradients (hooks) and with ghost clipping; nets that it refuses have no time.
"""

from __future__ import annotations

import sys

from peers import ask_peer, peer_python

#: The nets and how to time a step; both sides run this text.
NETS = """
import json, sys, time
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
        self.c1, self.c2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
    def forward(self, x):
        return x + self.c2(F.relu(self.n2(self.c1(F.relu(self.n1(x))))))

def images():
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), Block(32), nn.AvgPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), Block(64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )
    return net, torch.randn(64, 3, 16, 16), torch.randint(0, 10, (64,)), F.cross_entropy

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.inward, self.outward = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in self.inward(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.outward(y.transpose(1, 2).reshape(b, t, d))

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, 4)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x))))

class Words(nn.Module):
    def __init__(self, words=2048, width=128, length=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]).expand_as(ids))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).transpose(1, 2)

def words():
    return Words(), torch.randint(0, 2048, (16, 64)), torch.randint(0, 2048, (16, 64)), F.cross_entropy

def table():
    net = nn.Sequential(nn.Linear(100, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return net, torch.randn(512, 100), torch.randint(0, 10, (512,)), F.cross_entropy

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = LSTM(40, 64, batch_first=True), nn.Linear(64, 5)
    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])

def series():
    return Recurrent(), torch.randn(64, 30, 40), torch.randint(0, 5, (64,)), F.cross_entropy

def each(loss):
    def values(out, target):
        found = loss(out, target, reduction="none")
        return found.flatten(1).mean(1) if found.dim() > 1 else found
    return values

def seconds(step, least=5.0):
    step(), step()
    found, start = [], time.process_time()
    while time.process_time() - start < least or len(found) < 3:
        began = time.process_time()
        step()
        found.append(time.process_time() - began)
    return min(found)
"""

OPACUS = (
    NETS
    + """
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from opacus.layers import DPLSTM as LSTM
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

def hooks(net, x, y, loss):
    model = GradSampleModule(net)
    settings = {"noise_multiplier": 0.0, "max_grad_norm": 1.0, "expected_batch_size": len(x)}
    optimizer = DPOptimizer(torch.optim.SGD(net.parameters(), lr=0.0), **settings)
    def step():
        each(loss)(model(x), y).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def ghost(net, x, y, loss):
    model = GradSampleModuleFastGradientClipping(net, max_grad_norm=1.0, use_ghost_clipping=True)
    settings = {"noise_multiplier": 0.0, "max_grad_norm": 1.0, "expected_batch_size": len(x)}
    optimizer = DPOptimizerFastGradientClipping(torch.optim.SGD(net.parameters(), lr=0.0), **settings)
    def values(out, target, reduction="none", **_):
        return each(loss)(out, target)
    values.reduction = "mean"
    criterion = DPLossFastGradientClipping(model, optimizer, values)
    def step():
        criterion(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

found = {}
for way in (hooks, ghost):
    torch.manual_seed(0)
    try:
        found[way.__name__] = seconds(way(*globals()[sys.argv[1]]()))
    except Exception as error:
        found[way.__name__] = None
print(json.dumps(found))
"""
)


def ours(net: str) -> dict[str, float]:
    """Time a step without privacy and a clipped one."""
    space: dict[str, object] = {}
    exec(compile(NETS, "nets", "exec"), space)
    import torch

    from tacit.learn.layers._clipped_sums import ClippedSums

    space["LSTM"] = torch.nn.LSTM
    torch.manual_seed(0)
    model, x, y, loss = space[net]()  # type: ignore[operator]
    sums = ClippedSums(model, space["each"](loss), clip=1.0)  # type: ignore[operator]
    weights = torch.ones(len(x))

    def plain() -> None:
        model.zero_grad()
        space["each"](loss)(model(x), y).mean().backward()  # type: ignore[operator]

    seconds = space["seconds"]
    found = {
        "plain": seconds(plain),  # type: ignore[operator]
        "clipped": seconds(lambda: sums((x,), (y,), weights)),  # type: ignore[operator]
    }
    assert sums.method == "book-keeping", sums.reason
    return found


def main() -> None:
    opacus = peer_python("opacus==1.6.0", "torch==2.13.0")
    print("milliseconds of CPU time for one step; the last columns are ratios")
    columns = ("net", "plain", "Tacit", "hooks", "ghost", "of plain", "Opacus' best / Tacit")
    print("{:10}{:>9}{:>9}{:>9}{:>9}{:>10}{:>22}".format(*columns))
    for net in sys.argv[1:] or ("images", "words", "table", "series"):
        peer = ask_peer(opacus, OPACUS, net)
        mine = ours(net)
        times = [mine["plain"], mine["clipped"], peer["hooks"], peer["ghost"]]
        best = min(value for value in times[2:] if value is not None)
        shown = "".join(f"{'-':>9}" if value is None else f"{value * 1e3:9.1f}" for value in times)
        print(f"{net:10}{shown}{times[1] / times[0]:9.2f}x{best / times[1]:21.2f}x", flush=True)


if __name__ == "__main__":
    main()
