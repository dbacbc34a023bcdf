"""Look-ups and losses are total: a number out of range is "not a number" in its example and ends nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tacit.learn.layers._clipped_sums import ClippedSums  # noqa: E402
from tacit.learn.layers._total_functions import TotalFunctions  # noqa: E402

TABLE = torch.arange(12.0).reshape(4, 3) + 1
#: Each looks something up in its example: with a table, a score of each class, and a number of the example.
LOOKUPS = {
    "gather": lambda scores, y: scores.gather(1, y[:, None])[:, 0],
    "gather of torch": lambda scores, y: torch.gather(scores, -1, index=y[:, None]).squeeze(1),
    "take along": lambda scores, y: torch.take_along_dim(scores, y[:, None], 1)[:, 0],
    "index": lambda scores, y: scores[torch.arange(len(y)), y],
    "index of a table": lambda scores, y: (TABLE[y] * scores).sum(1),
    "index after an ellipsis": lambda scores, y: (TABLE.T[..., y].T * scores).sum(1),
    "index beside a new axis": lambda scores, y: (TABLE[y, None] * scores[:, None]).sum((1, 2)),
    "two indices apart": lambda scores, y: (TABLE[:3].expand(4, 3, 3)[y, :, y.clamp(0, 2)] * scores).sum(1),
    "select": lambda scores, y: (TABLE.index_select(0, y) * scores).sum(1),
    "take": lambda scores, y: (TABLE[0].take(y) * scores[:, 0]),
    "scatter": lambda scores, y: (torch.zeros_like(scores).scatter(1, y[:, None], 1.0) * scores).sum(1),
    "scatter in place": lambda scores, y: (
        torch.zeros_like(scores).scatter_(1, y[:, None], scores[:, :1]) * scores
    ).sum(1),
    "scatter add": lambda scores, y: (
        torch.zeros_like(scores).scatter_add(1, y[:, None], scores[:, :1])
    ).sum(1),
    "bag": lambda scores, y: (functional.embedding_bag(y[:, None], TABLE, mode="sum") * scores).sum(1),
}  # fmt: skip


def scored(rows=6):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(rows, 5, generator=generator), torch.tensor([0, 1, 2, 0, 1, 2])[:rows]


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_out_of_range_is_not_a_number_in_its_example_alone(name):
    look = LOOKUPS[name]
    scores = torch.randn(4, 3, requires_grad=True)
    y = torch.tensor([0, 1, 9, 2])
    good = torch.tensor([0, 1, 3])
    with TotalFunctions():
        found = look(scores, y)
        same = look(scores, y.masked_fill(y == 9, 1))
    assert found.isnan().tolist() == [False, False, True, False]
    assert torch.equal(found[good], same[good])
    found[2].backward()
    assert scores.grad[2].isnan().any()
    assert torch.equal(look(scores, y.clamp(0, 2))[good], found[good])  # as without the mode


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("way", ["auto", "exact"])
def test_a_record_with_a_number_out_of_range_adds_zero(name, way):
    torch.manual_seed(0)
    sums = ClippedSums(nn.Linear(5, 3), LOOKUPS[name], clip=1.0, method=way)
    x, y = scored()
    y[2], y[4] = 17, -9
    found, norms = sums((x,), (y,), torch.ones(6))
    assert norms.isfinite().tolist() == [True, True, False, True, False, True]
    good = [0, 1, 3, 5]
    expected, _ = sums((x[good],), (y[good],), torch.ones(4))
    for one, two in zip(found, expected, strict=True):
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-6)


def test_negative_indices_count_from_the_end_where_they_did_before():
    with TotalFunctions():
        assert TABLE[torch.tensor([-1, -4])].tolist() == [[10, 11, 12], [1, 2, 3]]
        assert TABLE[torch.tensor([-5])].isnan().all()
        assert TABLE.take(torch.tensor([-1])).item() == 12


def test_masks_slices_and_lists_are_indices_as_before():
    with TotalFunctions():
        assert TABLE[TABLE[:, 0] > 4].tolist() == [[7, 8, 9], [10, 11, 12]]
        assert torch.equal(TABLE[1:3, [0, 2]], torch.tensor([[4.0, 6], [7, 9]]))
        assert TABLE[torch.tensor([0, 2]), 1:].tolist() == [[2, 3], [8, 9]]
        assert TABLE.long()[torch.tensor([0, 9])].tolist() == [[1, 2, 3], [1, 2, 3]]  # whole numbers


def test_writing_out_of_range_makes_the_first_place_not_a_number():
    held = torch.zeros(3, 4)
    with TotalFunctions():
        held[torch.arange(3), torch.tensor([1, 8, 3])] = 5.0
        added = torch.zeros(4, 2).index_add(0, torch.tensor([1, 7]), torch.ones(2, 2))
        hot = functional.one_hot(torch.tensor([2, 5, -1]), 3)
    assert held.nan_to_num(-1).tolist() == [[0, 5, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 5]]
    assert added.nan_to_num(-1).tolist() == [[-1, -1], [1, 1], [0, 0], [0, 0]]
    assert hot.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_bags_with_offsets_are_marked_by_bag():
    words, offsets = torch.tensor([0, 1, 9, 2]), torch.tensor([0, 2, 3])
    with TotalFunctions():
        found = functional.embedding_bag(words, TABLE, offsets, mode="sum")
        last = functional.embedding_bag(
            words, TABLE, torch.tensor([0, 2, 4]), mode="mean", include_last_offset=True
        )
    assert found.isnan().any(1).tolist() == [False, True, False]
    assert found[0].tolist() == [5, 7, 9]
    assert last.isnan().any(1).tolist() == [False, True]


@pytest.mark.parametrize("chance", [1.5, -0.1, torch.nan])
def test_a_chance_that_is_not_one_has_a_loss_that_is_not_a_number(chance):
    """On a device, this loss would end the process, and one feature that is not a number is enough for it."""
    given = torch.tensor([0.2, chance, 0.7], requires_grad=True)
    with TotalFunctions():
        losses = functional.binary_cross_entropy(given, torch.ones(3), reduction="none")
    assert losses.isnan().tolist() == [False, True, False]
    assert losses[0].item() == pytest.approx(1.6094, abs=1e-4)


def test_a_record_with_a_feature_that_is_not_a_number_is_dropped_by_a_loss_of_chances():
    model = nn.Sequential(nn.Linear(5, 1), nn.Sigmoid(), nn.Flatten(0))
    sums = ClippedSums(model, nn.BCELoss(), clip=1.0)
    x, _ = scored()
    x[3, 1] = torch.nan
    _, norms = sums((x,), (torch.ones(6),), torch.ones(6))
    assert norms.isfinite().tolist() == [True, True, True, False, True, True]
    margins = ClippedSums(nn.Linear(5, 3), nn.MultiMarginLoss(), clip=1.0)
    _, norms = margins((scored()[0],), (torch.tensor([0, 1, 2, 3, 1, 0]),), torch.ones(6))
    assert norms.isfinite().tolist() == [True, True, True, False, True, True]
