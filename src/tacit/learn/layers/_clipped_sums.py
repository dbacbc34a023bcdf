"""Clipped sums of per-unit gradients, fast by book-keeping and exact where book-keeping has no rule.

Clipped sums by the definition take the gradient of every unit, then its norm, then the sum. Both need losses
with one value for each example.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Say
from tacit.learn.layers._bookkeeping import LayoutChangedError
from tacit.learn.layers._clipped_step import ClippedStep, Tensors, UnknownUseError, clip_factors, gradients
from tacit.learn.layers._kernels import computing, norm_margin, read_precision
from tacit.learn.layers._normalisation import batch_norm_refused
from tacit.learn.layers._total_functions import TotalFunctions
from tacit.learn.layers._trials import (
    check_batch_independence,
    check_layers,
    check_mixing,
    find_layouts,
    fixed_chance,
    follows_data,
    invented,
    label_width,
)
from tacit.parameters import Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from tacit.learn.layers._bookkeeping import BatchLayout
    from tacit.learn.layers._clipped_step import CompiledStep


def example_losses(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a loss that gives one value for each example.

    A loss module of PyTorch is copied with ``reduction="none"``, a loss function of PyTorch is called with
    it; values that remain for one example (the positions of a text, the pixels of an image) are averaged.
    Every other function must give one value for each example itself.

    Examples
    --------
    >>> import torch
    >>> loss = example_losses(torch.nn.MSELoss())
    >>> loss(torch.zeros(2, 3), torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    tensor([1., 0.])
    """
    options: dict[str, Any] = {}
    if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):
        loss = copy.copy(loss)
        loss.__dict__["reduction"] = "none"
        if any(True for _ in loss.parameters()):
            raise TacitError(
                "not-allowed", "the loss has parameters of its own", fix="put them into the model"
            )
    elif getattr(loss, "__module__", "") == functional.__name__ and _reduces(loss):
        options = {"reduction": "none"}

    def one_for_each(outputs: Any, *targets: Tensor) -> Tensor:
        values = loss(outputs, *targets, **options)
        size = targets[0].shape[0] if targets else None
        if values.dim() == 0 or size not in (None, values.shape[0]):
            raise TacitError(
                "not-allowed",
                "the loss does not give one value for each example",
                why="a value that mixes examples has no separate gradient for each example",
                fix=Code('loss=torch.nn.CrossEntropyLoss(reduction="none")'),
            )
        return values.flatten(1).mean(1) if values.dim() > 1 else values

    return one_for_each


def _reduces(loss: Callable[..., Tensor]) -> bool:
    return "reduction" in inspect.signature(loss).parameters


def unit_gradients(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    weights: Tensor,
    *,
    vectorised: bool | None = None,
) -> list[Tensor]:
    """Return the gradient of each unit, from `vmap` where the model allows it and one by one elsewhere.

    With `vectorised` one of the two is chosen: then a unit on which `vmap` fails cannot change how others are
    computed.
    """
    units = len(weights) // step.per_unit
    inputs, targets = (tuple(v.reshape(units, -1, *v.shape[1:]) for v in part) for part in (inputs, targets))
    weights = weights.reshape(units, -1)
    each = torch.func.vmap(
        torch.func.grad(_unit_loss(step)),
        in_dims=(None, 0, 0, 0),
        randomness="different",
        chunk_size=max(1, min(units, 2**27 // max(1, sum(p.numel() for p in parameters)))),
    )
    try:
        if vectorised is not False:
            return list(each(tuple(p.detach() for p in parameters), inputs, targets, weights))
    except (RuntimeError, ValueError, NotImplementedError, TypeError):
        if vectorised:
            raise
    by_unit = [  # of fresh copies: kernels may round by where in memory an example lies
        _gradient_alone(
            step, parameters, tuple(v[i].clone() for v in inputs), tuple(v[i].clone() for v in targets),
            weights[i].clone(),
        )
        for i in range(units)
    ]  # fmt: skip
    return [torch.stack(values) for values in zip(*by_unit, strict=True)]


@torch.enable_grad()
def _gradient_alone(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors, weights: Tensor
) -> list[Tensor]:
    """Return the gradient of one unit by an ordinary backward pass, which every model can do."""
    with TotalFunctions():
        with torch.autocast(weights.device.type, dtype=torch.bfloat16, enabled=step.precision == "bfloat16"):
            outputs = step.model(*inputs)
        total = (step.losses(outputs, *targets).float() * weights).sum()
    own_gradients = gradients(total, parameters)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(own_gradients, parameters, strict=True)]


def _unit_loss(step: ClippedStep) -> Callable[..., Any]:
    mixed = step.precision == "bfloat16"

    def loss(parameters: Tensors, inputs: Tensors, targets: Tensors, weights: Tensor) -> Tensor:
        values = dict(zip(step.names, parameters, strict=True))
        with TotalFunctions():
            with torch.autocast(weights.device.type, dtype=torch.bfloat16, enabled=mixed):
                outputs = torch.func.functional_call(step.model, values, inputs)
            return (step.losses(outputs, *targets).float() * weights).sum()

    return loss


def exact_sums(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    weights: Tensor,
    clip: Tensor,
    *,
    vectorised: bool | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Return clipped sums and norms by the definition; a unit whose gradient is not finite adds zero."""
    with computing(step.precision, parameters[0].device):
        by_unit = unit_gradients(step, parameters, inputs, targets, weights, vectorised=vectorised)
        norms = torch.stack([v.reshape(len(v), -1).float().square().sum(1) for v in by_unit]).sum(0).sqrt()
        factors = clip_factors(norms, clip / (1 + norm_margin(step.precision)), automatic=step.automatic)
        sums = [_weighted(values.float(), factors, norms.isfinite()) for values in by_unit]
    return sums, norms


def _weighted(values: Tensor, factors: Tensor, finite: Tensor) -> Tensor:
    shape = (-1,) + (1,) * (values.dim() - 1)
    values = torch.where(finite.reshape(shape), values, torch.zeros_like(values))
    return (factors @ values.reshape(len(values), -1)).reshape(values.shape[1:])


#: How sums are formed: ``book-keeping`` (fast), ``exact`` (by the definition) or whichever fits (``auto``).
SumMethod: TypeAlias = Literal["auto", "book-keeping", "exact"]
#: How often a step is repeated without units whose gradients are not finite, before it goes the exact way.
MAX_REPEATS: Final = 2


class ClippedSums:
    """The sum of every unit's gradient, each scaled down to a norm of at most `clip`.

    A unit is a block of `per_unit` consecutive examples; the sum of its examples' gradients, each times its
    weight, is what is clipped. A unit whose gradient is not finite adds exactly zero.

    Guarantee: with exact arithmetic, adding or removing one unit moves the sums by at most `clip` in the norm
    over all parameters together. For the rounding of floats the bound inside is lower, by 1e-5 in
    ``float32`` and by 2^-8 in ``tf32`` and ``bfloat16``. This is not enough in two cases that were measured:
    1.0016 clips where the rows of a unit partly cancel, 1.00015 where 32,768 units agree. Batches must have
    one shape, because float kernels round by slot and by size (`tacit.learn.training._gradient_sums`).

    Parameters
    ----------
    model
        The module to train. Parameters with ``requires_grad=False`` stay as they are.
    loss
        A loss of PyTorch, or a function that takes outputs and targets and gives one value for each example.
    clip
        The bound on a unit's contribution.
    per_unit
        How many consecutive examples form a unit.
    precision
        ``float32``, ``tf32`` or ``bfloat16``.
    method
        ``auto`` takes book-keeping where trial steps on invented examples agree with the definition, and the
        exact way elsewhere; ``book-keeping`` refuses instead.
    automatic
        Scale by ``clip / (norm + 0.01)`` instead of ``min(1, clip / norm)``.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> sums = ClippedSums(model, torch.nn.CrossEntropyLoss(), clip=1.0)
    >>> inputs, targets = (torch.ones(4, 3),), (torch.tensor([0, 1, 0, 1]),)
    >>> found, norms = sums(inputs, targets, torch.ones(4))
    >>> [tuple(value.shape) for value in found], tuple(norms.shape), sums.method
    ([(2, 3), (2,)], (4,), 'book-keeping')
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Tensor],
        *,
        clip: float,
        per_unit: int = 1,
        precision: str = "float32",
        method: SumMethod = "auto",
        automatic: bool = False,
    ) -> None:
        RealNumber(instead=1.0).read("clip", clip)
        Integer(1, instead=1).read("per_unit", per_unit)
        refuse_mixers(model)
        trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
        if not trained:
            raise bad_parameter(
                "model", "a module with parameters that require gradients", type(model).__name__
            )
        self.parameters: Final = [value for _, value in trained]
        self.method: str = method
        self.reason = ""
        self._may_be_exact = method != "book-keeping"
        self.step = ClippedStep(
            model=model,
            losses=example_losses(loss),
            names=tuple(name for name, _ in trained),
            per_unit=per_unit,
            precision=read_precision(precision),
            automatic=automatic,
        )
        self.clip: Final = torch.tensor(float(clip), device=self.parameters[0].device)
        self._compiled: dict[Any, CompiledStep] | None = None
        self._layouts: dict[Any, list[BatchLayout] | None] = {}
        self._vectorised: bool | None = None
        #: Whether a model that takes another way than in its trials fails, so that the caller can find the
        #: units that made it do so. Else the whole batch is computed by the definition.
        self.strict = False

    @torch.enable_grad()
    def __call__(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the clipped sums in the order of `parameters`, and the norm of each unit's gradient.

        A norm that is not finite is reported as infinite, and its unit has added zero.
        """
        if len(weights) % self.step.per_unit:
            raise bad_parameter("weights", f"a whole number of units of {self.step.per_unit}", len(weights))
        layouts = self.prepare(inputs, targets)
        if layouts is None:
            return self.exactly(inputs, targets, weights)
        sums, norms = self._run(inputs, targets, weights, layouts)
        finite = norms.isfinite()
        if bool(finite.all()):
            return sums, norms
        return self._repeated(inputs, targets, weights, layouts, norms)

    @torch.enable_grad()
    def exactly(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the clipped sums and the norms by the definition, unit by unit."""
        sums, norms = exact_sums(
            self.step, self.parameters, inputs, targets, weights, self.clip, vectorised=self._vectorised
        )
        return sums, torch.where(norms.isfinite(), norms, torch.inf)

    @torch.enable_grad()
    def unit_values(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> list[Tensor]:
        """Return all numbers from which the sums are formed, each tensor with one part for each unit.

        Units with equal bits here add the same to a sum. A compiled step shows its norms alone.
        """
        layouts = self.prepare(inputs, targets)
        if layouts is None:
            with computing(self.step.precision, self.parameters[0].device):
                return unit_gradients(
                    self.step, self.parameters, inputs, targets, weights, vectorised=self._vectorised
                )
        if self._compiled is not None:
            return [self._run(inputs, targets, weights, layouts)[1]]
        return self.step.unit_values(self.parameters, inputs, targets, weights, layouts)

    @torch.enable_grad()
    def unchecked(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return sums and norms without a look at the norms, so that a device need not wait.

        Where a norm is not finite the sums are of no use, and the call must be repeated with care.
        """
        layouts = self.prepare(inputs, targets)
        return (
            self(inputs, targets, weights)
            if layouts is None
            else self._run(inputs, targets, weights, layouts)
        )

    @torch.enable_grad()
    def prepare(self, inputs: Tensors, targets: Tensors) -> list[BatchLayout] | None:
        """Settle the method for examples of these shapes, from trial steps; nothing means the exact way."""
        key = tuple((tuple(v.shape[1:]), v.dtype) for v in (*inputs, *targets)), self.step.model.training
        if key not in self._layouts:
            self._layouts[key] = self._settled(inputs, targets)
        return self._layouts[key]

    def _settled(self, inputs: Tensors, targets: Tensors) -> list[BatchLayout] | None:
        with computing("float32", self.parameters[0].device):  # whatever precision PyTorch is set to
            self.step = replace(self.step, labels=label_width(self.step, inputs, targets))
            layouts = self._tried(inputs, targets)
            if layouts is None and self._vectorised is None:
                self._vectorised = self._try_vectorised(inputs, targets)
            return layouts

    def _try_vectorised(self, inputs: Tensors, targets: Tensors) -> bool:
        """Say whether `vmap` computes this model: settled on invented examples, and then for all units."""
        size = 2 * self.step.per_unit
        examples = invented(inputs, size), invented(targets, size, 1, targets=True, labels=self.step.labels)
        weights = torch.ones(size, device=self.parameters[0].device)
        try:
            with fixed_chance(weights.device):
                unit_gradients(self.step, self.parameters, *examples, weights, vectorised=True)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001 - whatever a model raises where `vmap` does not know it
            return False
        return True

    def _tried(self, inputs: Tensors, targets: Tensors) -> list[BatchLayout] | None:
        check_mixing(self.step, self.parameters, inputs, targets)
        check_batch_independence(self.step, self.parameters, inputs, targets)
        if self.method == "exact":
            return None
        course = follows_data(self.step, inputs, targets)
        if course:
            error = course_refused(course)
            if self.method == "book-keeping":
                raise error
            self.method, self.reason = "exact", error.what
            return None
        try:
            layouts = find_layouts(self.step, self.parameters, inputs, targets)
            check_layers(self.step, self.parameters, inputs, targets, layouts)
        except (UnknownUseError, LayoutChangedError, RuntimeError) as error:
            if self.method == "book-keeping":
                raise
            self.method, self.reason = "exact", str(error).splitlines()[0]
            return None
        self.method = "book-keeping"
        return layouts

    def compiled(self) -> ClippedSums:
        """Compile the step for each shape of batch, and capture it on CUDA; returns itself.

        What a compiled step returns may be overwritten by the next one, so add it up before.
        """
        self._compiled = {}
        return self

    def _run(
        self, inputs: Tensors, targets: Tensors, weights: Tensor, layouts: list[BatchLayout]
    ) -> tuple[list[Tensor], Tensor]:
        if self._compiled is not None:
            places = tuple(value.data_ptr() for value in self.parameters)
            key = tuple((v.shape, v.dtype) for v in (*inputs, *targets)), self.step.model.training, places
            if key not in self._compiled:
                from tacit.learn.layers._clipped_step import CompiledStep

                self._compiled[key] = CompiledStep(
                    self.step, self.parameters, inputs, targets, weights, self.clip, layouts
                )
            return self._compiled[key](inputs, targets, weights)
        try:
            return self.step.run(self.parameters, inputs, targets, weights, self.clip, layouts)
        except (UnknownUseError, LayoutChangedError):
            if self.strict or not self._may_be_exact:
                raise
        # These values took another way through the model than the trial. Whether they do is private, so the
        # step goes on: by the definition, where no unit decides on the way of another.
        return exact_sums(self.step, self.parameters, inputs, targets, weights, self.clip)

    def _repeated(
        self, inputs: Tensors, targets: Tensors, weights: Tensor, layouts: list[BatchLayout], norms: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        """Repeat a step in which some gradients are not finite.

        A factor of zero does not remove such a unit, because zero times infinity is not a number. So a copy
        of a sound unit with weight zero takes its place.
        """
        reported = torch.where(norms.isfinite(), norms, torch.inf)
        sound = norms.isfinite()
        for _ in range(MAX_REPEATS):
            if not bool(sound.any()):
                return [torch.zeros_like(p, dtype=torch.float32) for p in self.parameters], reported
            per_unit = self.step.per_unit
            index = torch.where(sound, torch.arange(len(sound), device=sound.device), sound.int().argmax())
            rows = (index.unsqueeze(1) * per_unit + torch.arange(per_unit, device=sound.device)).flatten()
            sound_weights = weights * sound.repeat_interleave(per_unit)
            replaced = (tuple(v[rows] for v in inputs), tuple(v[rows] for v in targets))
            sums, again = self._run(*replaced, sound_weights, layouts)
            if bool(again.isfinite().all()):
                return sums, reported
            sound = sound & again.isfinite()
        sound_weights = weights * sound.repeat_interleave(self.step.per_unit)
        sums, _ = exact_sums(self.step, self.parameters, inputs, targets, sound_weights, self.clip)
        return sums, reported


def refuse_mixers(model: nn.Module) -> None:
    """Refuse modules that are known to mix examples, by their names."""
    for name, module in model.named_modules():
        where = f"{type(module).__name__} ({name})" if name else type(module).__name__
        running = getattr(module, "track_running_stats", False)
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and (module.training or not running):  # noqa: SLF001
            raise batch_norm_refused(where)
        if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.training and running:  # noqa: SLF001
            raise batch_norm_refused(f"{where} with running averages")
    for name, value in model.named_parameters():
        if isinstance(value, nn.parameter.UninitializedParameter):
            raise TacitError(
                "not-allowed",
                f"the parameter {name} has no shape yet",
                fix=Say("run the model once on invented examples before training"),
            )


def course_refused(function: str) -> UnknownUseError:
    """Return why a model whose course follows its examples has no fast sums."""
    return UnknownUseError(
        "not-allowed",
        f"the model or the loss makes decisions or sorts by the values of its examples ({function})",
        why="what happens to one example could then depend on the other examples in its batch",
        fix=Say("a model that treats every batch in the same way, or the exact method"),
    )
