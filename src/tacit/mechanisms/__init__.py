"""Mechanisms, the only place where noise is added. Each states its guarantee, its cost and its error.

In reading order:

- ``_mechanism``: what a mechanism is, and the integer mechanisms that every field uses
- ``_input_values``: numbers, read exactly
- ``_grid``: real numbers to integer steps and back
- ``_noise_laws``: the exact laws of integer noise
- ``additive``: noise that is added to numbers
- ``choices``: one candidate out of several, groups that are large enough, values above a threshold
- ``local``: answers that are randomized before anybody collects them
- ``rows``: statistics of rows, one per person, with the noise for the promise
- ``training``: steps of training, and the best of several runs
- ``_randomness``: secrets, seeds and coins that are not the noise of a release
- ``_stated_costs``: costs in certificates, worked out again
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.mechanisms._mechanism import IntegerMechanism, Interval, Mechanism
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw
from tacit.mechanisms._randomness import (
    check_randomness,
    generator_seed,
    random_slots,
    ranking_secret,
    sampling_secret,
    training_noise,
)
from tacit.mechanisms._stated_costs import cost_is_too_small
from tacit.mechanisms.additive._cross_tables import (
    AdaptiveTables,
    ChooseTable,
    MeasureTable,
    ResidualNoise,
    TableCandidate,
    TableSteps,
    residual,
)
from tacit.mechanisms.additive._grid_noise import Gaussian, Laplace, LaplaceTextbook
from tacit.mechanisms.additive._integer_noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from tacit.mechanisms.additive._ladders import LadderNoise, StarLadder
from tacit.mechanisms.additive._linear_noise import LinearNoise, linear_half_width, linear_tail
from tacit.mechanisms.additive._measurements import (
    MeasurementNoise,
    StrategyNoise,
    chance_above,
    half_widths_of,
    weighted_half_widths,
)
from tacit.mechanisms.additive._moments import Moments, mean_sets, passing_hull, variance_sets
from tacit.mechanisms.additive._stream_noise import StreamNoise, ToeplitzNoise, TreeNoise
from tacit.mechanisms.choices._key_selection import KeysBySize, KeySelection
from tacit.mechanisms.choices._quantile_choice import QuantileBracket, QuantileChoice
from tacit.mechanisms.choices._selection import Exponential, NoisyMax, PermuteAndFlip, TopK
from tacit.mechanisms.choices._thresholds import SparseVector, SparseVectorRun, SplittingTree
from tacit.mechanisms.local._linear_hashing import LinearHashing, walsh_hadamard
from tacit.mechanisms.local._local_randomizer import LocalRandomizer, SupportRandomizer
from tacit.mechanisms.local._memo import Memo
from tacit.mechanisms.local._number_window import NumberWindow
from tacit.mechanisms.local._randomized_response import RandomizedResponse, ResponseEstimate
from tacit.mechanisms.local._randomizer_choice import QuestionSample, choose_randomizer, randomizer_from_json
from tacit.mechanisms.local._response_designs import Design, DesignEstimate, TwoGroupDesign
from tacit.mechanisms.local._subset_selection import SubsetSelection
from tacit.mechanisms.rows._aggregates import (
    Count,
    Histogram,
    Mean,
    MeanAndCount,
    Sum,
    Variance,
    VarianceAndCount,
)
from tacit.mechanisms.rows._input_rows import clip, fold, truncate
from tacit.mechanisms.rows._quantiles import Bounds, Quantile, Quantiles
from tacit.mechanisms.rows._row_mechanism import Subsampled
from tacit.mechanisms.training._banded_steps import BandedRun, BandedSteps
from tacit.mechanisms.training._best_run import BestRun, CandidateRuns
from tacit.mechanisms.training._sampled_steps import (
    BandChoice,
    SampledSteps,
    SharedSteps,
    StepSums,
    choose_bands,
)

__all__ = [
    "AdaptiveTables",
    "BandChoice",
    "BandedRun",
    "BandedSteps",
    "BestRun",
    "Bounds",
    "CandidateRuns",
    "ChooseTable",
    "Count",
    "Design",
    "DesignEstimate",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "GaussianLaw",
    "Histogram",
    "IntegerMechanism",
    "Interval",
    "KeySelection",
    "KeysBySize",
    "LadderNoise",
    "Laplace",
    "LaplaceLaw",
    "LaplaceTextbook",
    "LinearHashing",
    "LinearNoise",
    "LocalRandomizer",
    "Mean",
    "MeanAndCount",
    "MeasureTable",
    "MeasurementNoise",
    "Mechanism",
    "Memo",
    "Moments",
    "NoisyMax",
    "NumberWindow",
    "PermuteAndFlip",
    "Quantile",
    "QuantileBracket",
    "QuantileChoice",
    "Quantiles",
    "QuestionSample",
    "RandomizedResponse",
    "ResidualNoise",
    "ResponseEstimate",
    "RoundedGaussian",
    "SampledSteps",
    "SharedSteps",
    "SparseVector",
    "SparseVectorRun",
    "SplittingTree",
    "StarLadder",
    "StepSums",
    "StrategyNoise",
    "StreamNoise",
    "Subsampled",
    "SubsetSelection",
    "Sum",
    "SupportRandomizer",
    "TableCandidate",
    "TableSteps",
    "ToeplitzNoise",
    "TopK",
    "TreeNoise",
    "TwoGroupDesign",
    "Variance",
    "VarianceAndCount",
    "chance_above",
    "check_randomness",
    "choose_bands",
    "choose_randomizer",
    "clip",
    "cost_is_too_small",
    "fold",
    "generator_seed",
    "half_widths_of",
    "linear_half_width",
    "linear_tail",
    "mean_sets",
    "passing_hull",
    "random_slots",
    "randomizer_from_json",
    "ranking_secret",
    "residual",
    "sampling_secret",
    "training_noise",
    "truncate",
    "variance_sets",
    "walsh_hadamard",
    "weighted_half_widths",
]

refuse_wrong_calls(__name__, __all__)
