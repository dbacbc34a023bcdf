"""The check of a model before training is planned: on invented examples, so that no refusal needs data.

The tests of slots find out whether an example has the same bits in each slot and in any company. A ReLU makes
a whole gradient of one last bit, so "nearly equal" is not enough.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Say
from tacit.learn.layers._trials import fixed_chance, invented
from tacit.learn.training._gradient_sums import BlockSlots
from tacit.learn.training._optimizer_steps import CheckedOptimizer
from tacit.learn.training._setup import as_model_input, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor, nn

    from tacit.learn.layers._clipped_sums import ClippedSums
    from tacit.learn.training._setup import TrainingSetup


#: One example shows about half of the slots that differ, or more: 20 miss one in a million.
_SLOT_EXAMPLES: Final = 20
_TWICE: Final = 3  # of them run twice
#: What the other slots hold while a slot must keep its bits.
_HOSTILE: Final = (1e30, float("nan"), float("inf"), 1e-42, 0.0, -1e4)
_EXAMPLES = 4


class _Trial:
    """Blocks of one shape, and the digest of what each of their units brings to the sums."""

    def __init__(self, sums: ClippedSums, inputs: Sequence[Tensor], targets: Sequence[Tensor], units: int):
        self.sums, self.units = sums, units
        self._inputs, self._targets = tuple(inputs), tuple(targets)
        self._rows = units * sums.step.per_unit

    def block(self, seed: int, *, units: int | None = None) -> list[Tensor]:
        """Return invented examples for so many units; inputs, then targets."""
        rows = (self.units if units is None else units) * self.sums.step.per_unit
        labels = self.sums.step.labels
        return [
            *invented(self._inputs, rows, 2 * seed),
            *invented(self._targets, rows, 2 * seed + 1, targets=True, labels=labels),
        ]

    def digests(self, block: Sequence[Tensor], seed: int = 0) -> list[bytes]:
        """Return a digest for each unit: equal only if all its operands and its norm have equal bits."""
        cut = len(self._inputs)
        weights = torch.ones(self._rows, device=self.sums.parameters[0].device)
        with fixed_chance(weights.device, seed):
            values = self.sums.unit_values(tuple(block[:cut]), tuple(block[cut:]), weights)
        rows = [one.detach().reshape(self.units, -1).cpu().contiguous() for one in values if one.numel()]
        contents = np.concatenate([one.view(torch.uint8).numpy() for one in rows], axis=1)
        return [hashlib.blake2b(row, digest_size=16).digest() for row in contents]


def find_slots(
    sums: ClippedSums, inputs: Sequence[Tensor], targets: Sequence[Tensor], units: int
) -> BlockSlots:
    """Return the slots of blocks of so many units; where rows depend on others, of blocks of one unit.

    The slot test puts one example into all slots. The company test puts hostile values into half of the
    slots. Parts of both run twice: rows whose bits differ between two runs count as not separate.

    Parameters
    ----------
    sums
        The model and its loss.
    inputs, targets
        Tensors of the shapes and types of the examples; their values are not read.
    units
        How many units a block should have.
    """
    threads = torch.get_num_threads()
    for size in dict.fromkeys((units, 1)):
        trial = _Trial(sums, inputs, targets, size)
        fill = _filling(trial)
        if size == 1:
            return BlockSlots(np.zeros(1, np.int64), fill, threads, tested=units == 1)
        with _without_chance(trial) as settled:
            classes = _slot_classes(trial) if settled else None
            if classes is not None and _independent_of_others(trial):
                return BlockSlots(classes, fill, threads)
    raise AssertionError("a block of one unit needs no test")


def _slot_classes(trial: _Trial) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return the class of each slot: slots that gave all examples equal bits; None if two runs differ."""
    keys = [b""] * trial.units
    for seed in range(_SLOT_EXAMPLES):
        example = [torch.cat([one] * trial.units) for one in trial.block(seed, units=1)]
        expected = trial.digests(example)
        if seed < _TWICE and trial.digests(example) != expected:
            return None
        keys = [key + digest for key, digest in zip(keys, expected, strict=True)]
    classes: dict[bytes, int] = {}
    return np.array([classes.setdefault(key, len(classes)) for key in keys], dtype=np.int64)


def _independent_of_others(trial: _Trial) -> bool:
    """Say whether units keep their bits while the units in half of the slots change, and in a second run."""
    slots = torch.arange(trial.units).repeat_interleave(trial.sums.step.per_unit)
    for base in (trial.block(0), [_ones(one) for one in trial.block(0)]):
        expected = trial.digests(base)
        for parity in (0, 1):
            neighbours = slice(1 - parity, None, 2)
            kinds = torch.where(slots % 2 == parity, slots // 2 % len(_HOSTILE), -1)
            blocks = [kinds, *(torch.where(kinds >= 0, one, -1) for one in range(len(_HOSTILE)))]
            digests = [_digests_of(trial, base, one) for one in (kinds, kinds)]
            if None in digests:  # the model fails on some of the values: each by itself
                digests = [_digests_of(trial, base, one) for one in blocks[1:]]
            if any(one is not None and one[neighbours] != expected[neighbours] for one in digests):
                return False
    return True


def _digests_of(trial: _Trial, base: Sequence[Tensor], kinds: Tensor) -> list[bytes] | None:
    """Return the digests of a block with hostile values of these kinds; None where the model fails."""
    try:
        return trial.digests([_hostile(one, kinds.to(one.device)) for one in base])
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001 - a model that fails on such values never sums them up
        return None


def _ones(values: Tensor) -> Tensor:
    """Return whole numbers as ones, as in a mask that hides nothing; other values stay."""
    return values if values.is_floating_point() else torch.ones_like(values)


def _hostile(values: Tensor, kinds: Tensor) -> Tensor:
    """Return examples of which some are hostile, by the number of their kind; -1 keeps an example."""
    if values.is_floating_point():
        strange = torch.tensor(_HOSTILE, dtype=values.dtype, device=values.device)
    else:  # among whole numbers, 0 and the largest are hostile
        largest = 1 if values.dtype == torch.bool else torch.iinfo(values.dtype).max
        strange = torch.tensor([0, largest] * 3, dtype=values.dtype, device=values.device)
    shape = (-1, *(1,) * (values.dim() - 1))
    return torch.where((kinds >= 0).reshape(shape), strange[kinds.clamp_min(0)].reshape(shape), values)


def _filling(trial: _Trial) -> tuple[Tensor, ...]:
    """Return the example that fills empty slots: zeros, or an invented one where zeros have no gradient."""
    invented_one = trial.block(0, units=1)
    weights = torch.zeros(trial.units * trial.sums.step.per_unit, device=trial.sums.parameters[0].device)
    weights[: trial.sums.step.per_unit] = 1
    failure: Exception | None = None
    usable = []
    for fill in ([torch.zeros_like(one[:1]) for one in invented_one], [one[:1] for one in invented_one]):
        empty = len(weights) - trial.sums.step.per_unit
        block = [
            torch.cat([one, other.expand(empty, *one.shape[1:])])
            for one, other in zip(invented_one, fill, strict=True)
        ]
        cut = len(trial._inputs)  # noqa: SLF001 - of this module
        try:
            with fixed_chance(weights.device):
                _, norms = trial.sums.unchecked(tuple(block[:cut]), tuple(block[cut:]), weights)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the other filling may do
            failure = error
            continue
        usable.append(tuple(fill))
        if bool(norms.isfinite().all()):
            return usable[-1]
    if not usable:
        assert failure is not None  # noqa: S101 - both have failed
        raise failure
    return usable[0]


@contextmanager
def _without_chance(trial: _Trial) -> Iterator[bool]:
    """Let the model draw nothing, in evaluation mode if it must; say whether two runs are then equal."""
    model = trial.sums.step.model
    modes = [(module, module.training) for module in model.modules()]
    block = trial.block(0)
    try:
        settled = trial.digests(block, 1) == trial.digests(block, 2)
        if not settled:
            model.eval()
            settled = trial.digests(block, 1) == trial.digests(block, 2)
        yield settled
    finally:
        for module, mode in modes:
            module.training = mode


def _examples_in_words(arrays: Sequence[Any]) -> str:
    """Return the shape and the type of one example of each array; both are public."""
    columns = [one if hasattr(one, "dtype") else np.asarray(one) for one in arrays]
    return ", ".join(f"{' x '.join(map(str, one.shape[1:])) or 'one'} of {one.dtype}" for one in columns)


def check_model(setup: TrainingSetup, arrays: Sequence[Any]) -> TrainingSetup:
    """Refuse what could not be trained privately on such examples; return the setup with its slots.

    Only the types and the shapes of single examples are read, which are public.
    """
    model, optimizer = setup.start()
    sums = setup.clipped_sums(model)
    dtype = next(model.parameters()).dtype
    try:
        shapes = tuple(as_model_input(tensor_of(one[:0]), dtype).to(setup.device) for one in arrays)
        inputs, targets = shapes[: setup.inputs], shapes[setup.inputs :]
        if setup.augment is not None:
            inputs = _augmented(setup, inputs)
        if sums.prepare(inputs, targets) is None:
            _try_exactly(sums, inputs, targets)
        slots = find_slots(sums, inputs, targets, setup.physical)
        output = model(*invented(inputs, _EXAMPLES))
        labels = invented(targets, _EXAMPLES, 1, targets=True, labels=sums.step.labels)
        total = sums.step.losses(output, *labels).sum()
        gradients: tuple[Tensor | None, ...] = torch.autograd.grad(total, sums.parameters, allow_unused=True)
    except TacitError:
        raise
    except Exception as error:
        raise TacitError(
            "bad-parameter",
            "the model or the loss fails on invented examples of the dataset's shapes",
            why=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}",
            fix=Say(f"try the model and the loss on tensors like one example: {_examples_in_words(arrays)}"),
        ) from error
    unused = [name for name, one in zip(setup.names, gradients, strict=True) if one is None]
    if unused:
        raise TacitError(
            "bad-parameter",
            f"the model does not use the parameter {unused[0]}, which is to be trained",
            why="it would be moved by noise alone",
            fix=Code("parameter.requires_grad_(False)"),
        )
    _check_step(setup, model, optimizer)
    return replace(setup, physical=slots.size, slots=slots)


def _try_exactly(sums: ClippedSums, inputs: tuple[Tensor, ...], targets: tuple[Tensor, ...]) -> None:
    """Compute two units by the definition, so that a model that cannot do so fails before the charge."""
    size = 2 * sums.step.per_unit
    weights = torch.ones(size, device=sums.parameters[0].device)
    labels = invented(targets, size, 1, targets=True, labels=sums.step.labels)
    sums.exactly(invented(inputs, size), labels, weights)


def _check_step(setup: TrainingSetup, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer whose step on an invented gradient does not move the model as it says."""
    parameters = dict(model.named_parameters())
    try:
        CheckedOptimizer(model, optimizer).step(
            setup.names, [torch.ones_like(parameters[n]) for n in setup.names]
        )
    except Exception as error:
        why = f"its step on an invented gradient failed: {str(error).partition(chr(10))[0][:200]}"
        raise _wrong_optimizer(optimizer, "one that takes a step with one gradient", why) from error


def _wrong_optimizer(optimizer: object, must_be: str, why: str = "") -> TacitError:
    """Refuse an optimizer; its kind alone is shown."""
    fix = Code("torch.optim.SGD(model.parameters(), lr=0.1)")
    return bad_parameter("optimizer", must_be, type(optimizer).__name__, why=why, fix=fix)


def check_optimizer(model: nn.Module, optimizer: object) -> None:
    """Refuse an optimizer that does not hold exactly the parameters to be trained, or that looks back."""
    for module in model.modules():
        if isinstance(module, torch.nn.parallel.DistributedDataParallel | torch.nn.DataParallel):
            raise TacitError(
                "not-allowed",
                f"{type(module).__name__} wraps the model",
                why="it adds up gradients over devices before they are clipped",
                fix=Say("the model itself; on several processes, call release() of the trainer on each"),
            )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise _wrong_optimizer(optimizer, "an optimizer of PyTorch")
    if isinstance(optimizer, torch.optim.LBFGS | torch.optim.SparseAdam):
        why = "each further gradient would need its own noise"
        raise _wrong_optimizer(optimizer, "one that takes a step with one dense gradient", why)
    trained = {id(one): name for name, one in model.named_parameters() if one.requires_grad}
    optimized = {id(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}
    missing = [name for key, name in trained.items() if key not in optimized]
    if not trained or missing or optimized - set(trained):
        sentence = (
            f"the optimizer does not hold {missing[0]}" if missing else "the optimizer holds other parameters"
        )
        raise TacitError(
            "bad-parameter",
            sentence if trained else "no parameter of the model is trained",
            why="a step must move exactly the parameters that got a noisy gradient",
            fix=Code("torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)"),
        )


def _augmented(setup: TrainingSetup, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the inputs of the model as the augmentation makes them."""
    assert setup.augment is not None  # noqa: S101 - the caller looked
    examples = invented(inputs, _EXAMPLES)
    augmented = setup.augment(examples)
    expected = [(len(one) * setup.augment.times, *one.shape[1:]) for one in examples]
    if [tuple(one.shape) for one in augmented] != expected:
        raise TacitError(
            "bad-parameter",
            "the augmentation changes the number or the shapes of the inputs",
            fix=Say("return as many tensors as it takes, each with its shape"),
        )
    return tuple(one[:0] for one in augmented)
