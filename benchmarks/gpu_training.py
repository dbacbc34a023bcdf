"""Private training on a GPU: the non-private step, Opacus and Tacit on the same nets, in one run.

python benchmarks/gpu_training.py [wrn gpt perceptron convnet]

Opacus 1.6 is timed if it can be imported. Samples per second are those of whole logical steps, noise and
optimizer included; every contender gets the same fixed micro-batches of random data.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch

from training_nets import GPT, Perceptron, SmallConvNet, WideResNet, class_loss, sequence_loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Case:
    name: str
    make: Any
    loss: Any
    batch: int
    micro: int
    sample: Any  # how many -> (inputs, targets)
    channels_last: bool = False
    steps: int = 40  # of Tacit; the others take steps for some seconds
    small: int | None = None  # a smaller micro-batch, which takes less memory
    physical: int | None = None  # the micro-batch of Poisson samples, whose size varies


def images(classes: int = 10):
    return lambda n: (torch.randn(n, 3, 32, 32, device=DEVICE), torch.randint(classes, (n,), device=DEVICE))


def sequences(length: int = 256, words: int = 50257):
    def draw(n: int):
        ids = torch.randint(words, (n, length + 1), device=DEVICE)
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    return draw


def rows(n: int):
    return torch.randn(n, 784, device=DEVICE), torch.randint(10, (n,), device=DEVICE)


CASES = {
    "wrn": Case(
        "WRN-16-4, group norms",
        WideResNet,
        class_loss,
        4096,
        1024,
        images(),
        channels_last=True,
        physical=1088,
    ),
    "gpt": Case("GPT, 12 layers, 768 wide, 256 long", GPT, sequence_loss, 256, 32, sequences(), steps=12),
    "perceptron": Case("perceptron 784-1024-1024-10", Perceptron, class_loss, 8192, 8192, rows, steps=2000),
    "convnet": Case("convolutions of odd shapes", SmallConvNet, class_loss, 4096, 1024, images(), steps=200),
}


def build(case: Case, device: str = DEVICE):
    torch.manual_seed(0)
    net = case.make().to(device)
    return net.to(memory_format=torch.channels_last) if case.channels_last else net


def data(case: Case):
    x, y = case.sample(case.batch)
    return (x.to(memory_format=torch.channels_last) if case.channels_last else x), y


def timed(case: Case, step, warm: int = 3, least: float = 2.0) -> tuple[float, float]:
    """Return samples per second and peak GiB of a step."""
    for _ in range(warm):
        step()
    steady()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < least:
        step()
        steps += 1
        torch.cuda.synchronize()
    return case.batch * steps / (time.perf_counter() - start), peak()


def plain_step(case: Case, *, compiled: bool, bf16: bool = False):
    net = build(case)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = data(case)

    def micro(inputs, targets):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=bf16):
            out = net(inputs)
        return case.loss(out, targets).sum() / case.batch

    run = torch.compile(micro) if compiled else micro

    def step():
        optimizer.zero_grad(set_to_none=False)
        for a, b in zip(x.split(case.micro), y.split(case.micro), strict=True):
            run(a, b).backward()
        optimizer.step()

    return step


def opacus_step(case: Case, *, ghost: bool):
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    net = build(case)
    inner = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": case.batch}
    x, y = data(case)
    if ghost:
        model = GradSampleModuleFastGradientClipping(net, max_grad_norm=1.0, use_ghost_clipping=True)
        optimizer = DPOptimizerFastGradientClipping(inner, **settings)

        def each(out, target, reduction="none", **_):
            del reduction
            return case.loss(out, target)

        each.reduction = "mean"  # what the wrapper asks for
        criterion = DPLossFastGradientClipping(model, optimizer, each)
    else:
        model = GradSampleModule(net)
        optimizer = DPOptimizer(inner, **settings)
        criterion = lambda out, target: case.loss(out, target).mean()  # noqa: E731
    parts = list(zip(x.split(case.micro), y.split(case.micro), strict=True))

    def step():
        for place, (a, b) in enumerate(parts):
            optimizer.signal_skip_step(place < len(parts) - 1)
            criterion(model(a), b).backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def tacit_steps(case: Case, *, sampled: bool, physical: int | None = None) -> tuple[float, float]:
    """Time the steps of the public Trainer, with its noise; all units in each step, or a Poisson sample."""
    import tacit as tc
    from tacit.learn.training import _trainer

    net = build(case, "cpu")  # the trainer copies the model to the device
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    size = 50_000 if sampled else case.batch
    few = tc.learn.examples(
        *case.sample(8),
        unit=tc.Unit.row(),
        size=size,
        name=case.name,
        budget=tc.Budget(epsilon=1000, delta=1e-6),
    )
    trainer = tc.learn.Trainer(
        net, case.loss, optimizer, data=few, clip=1.0, batch=case.batch, steps=100, noise=1.0, delta=1e-6,
        physical_batch=physical or case.micro, precision="tf32", compile=True, device=DEVICE,
    )  # fmt: skip
    waits = iter((steady, torch.cuda.synchronize))
    _trainer._wait = lambda _: next(waits)()  # it waits before the first step and after the last
    seconds = trainer.seconds_per_step(case.steps, warm=5)
    return case.batch / seconds, peak()


def steady() -> None:
    """Wait, and from here on measure the memory of steps alone: what warming up took is given back."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def peak() -> float:
    """Return the most GiB that PyTorch held since `steady`, captured graphs included."""
    return torch.cuda.max_memory_reserved() / 2**30


def shown(label: str, measure) -> tuple[float, float] | None:
    """Print samples per second and peak GiB of a contender, and return both; nothing if it fails."""
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    began = time.perf_counter()
    try:
        rate, peak = measure()
    except Exception as error:  # a peer that fails says why and loses its line
        print(f"  {label:36} failed: {type(error).__name__}: {str(error)[:300]}", flush=True)
        return None
    print(
        f"  {label:36} {rate:10,.0f} samples/s  {peak:6.2f} GiB  ({time.perf_counter() - began:.0f} s)",
        flush=True,
    )
    return rate, peak


def compare(case: Case) -> None:
    print(f"{case.name}: batch {case.batch:,} in micro-batches of {case.micro:,}, TF32", flush=True)
    shown("non-private, eager", lambda: timed(case, plain_step(case, compiled=False)))
    compiled = shown("non-private, compiled", lambda: timed(case, plain_step(case, compiled=True)))
    hooks = shown("Opacus 1.6, hooks", lambda: timed(case, opacus_step(case, ghost=False)))
    ghost = shown("Opacus 1.6, ghost clipping", lambda: timed(case, opacus_step(case, ghost=True)))
    ours = shown("Tacit, fixed batches", lambda: tacit_steps(case, sampled=False))
    if case.small:
        shown(f"Tacit, by {case.small:,}", lambda: tacit_steps(case, sampled=False, physical=case.small))
    shown("Tacit, Poisson samples", lambda: tacit_steps(case, sampled=True, physical=case.physical))
    best = max([one[0] for one in (hooks, ghost) if one], default=None)
    if ours and compiled:
        time_ratio, memory_ratio = compiled[0] / ours[0], ours[1] / compiled[1]
        print(f"  Tacit takes {time_ratio:.2f} x the time of the compiled non-private step", flush=True)
        print(f"  and {memory_ratio:.2f} x its memory, at the same micro-batch", flush=True)
    if ours and best:
        print(f"  Tacit is {ours[0] / best:.2f} x as fast as the best of Opacus", flush=True)


def main() -> None:
    if DEVICE != "cuda":
        print("no GPU here: nothing to time")
        return
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    names = sys.argv[1:] or list(CASES)
    if len(names) == 1:
        compare(CASES[names[0]])
        return
    for name in names:  # each in a process of its own, so that none inherits memory
        subprocess.run([sys.executable, *sys.argv[:1], name], check=False)


if __name__ == "__main__":
    main()
