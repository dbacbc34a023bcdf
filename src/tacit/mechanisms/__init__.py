"""Mechanisms, the only place where noise is added. Each states its guarantee, its cost and its error."""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.mechanisms._adaptive_tables import (
    AdaptiveTables,
    ChooseTable,
    MeasureTable,
    TableCandidate,
    TableSteps,
)
from tacit.mechanisms._aggregates import Count, Mean, MeanAndCount, Sum
from tacit.mechanisms._band_choice import BandChoice, choose_bands
from tacit.mechanisms._banded_run import BandedRun
from tacit.mechanisms._banded_steps import BandedSteps
from tacit.mechanisms._best_run import BestRun, CandidateRuns
from tacit.mechanisms._bounds import Bounds
from tacit.mechanisms._clipping import clip, fold, truncate
from tacit.mechanisms._design_estimates import DesignEstimate, TwoGroupDesign
from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
from tacit.mechanisms._discrete_laplace import DiscreteLaplace
from tacit.mechanisms._exponential import Exponential
from tacit.mechanisms._gaussian import Gaussian
from tacit.mechanisms._histogram import Histogram
from tacit.mechanisms._integer_mechanism import IntegerMechanism
from tacit.mechanisms._key_selection import KeySelection
from tacit.mechanisms._keys_by_size import KeysBySize
from tacit.mechanisms._ladder_noise import LadderNoise
from tacit.mechanisms._laplace import Laplace, LaplaceTextbook
from tacit.mechanisms._linear_hashing import LinearHashing
from tacit.mechanisms._linear_noise import LinearNoise, linear_half_width, linear_tail
from tacit.mechanisms._local_randomizer import LocalRandomizer, SupportRandomizer
from tacit.mechanisms._measurement_noise import MeasurementNoise, half_widths_of
from tacit.mechanisms._mechanism import Interval, Mechanism
from tacit.mechanisms._memo import Memo
from tacit.mechanisms._moment_sets import mean_sets, passing_hull, variance_sets
from tacit.mechanisms._moments import Moments
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw
from tacit.mechanisms._noisy_max import NoisyMax
from tacit.mechanisms._number_window import NumberWindow
from tacit.mechanisms._permute_and_flip import PermuteAndFlip
from tacit.mechanisms._quantile_bracket import QuantileBracket
from tacit.mechanisms._quantile_choice import QuantileChoice
from tacit.mechanisms._quantiles import Quantile, Quantiles
from tacit.mechanisms._question_sample import QuestionSample
from tacit.mechanisms._randomized_response import RandomizedResponse, ResponseEstimate
from tacit.mechanisms._randomizer_choice import choose_randomizer, randomizer_from_json
from tacit.mechanisms._randomness_check import check_randomness
from tacit.mechanisms._ranking_secret import ranking_secret
from tacit.mechanisms._residual_noise import ResidualNoise, residual
from tacit.mechanisms._response_designs import Design
from tacit.mechanisms._rounded_gaussian import RoundedGaussian
from tacit.mechanisms._sampled_steps import SampledSteps, StepSums
from tacit.mechanisms._sampling_secret import sampling_secret
from tacit.mechanisms._shared_steps import SharedSteps
from tacit.mechanisms._sparse_vector import SparseVector, SparseVectorRun
from tacit.mechanisms._splitting_tree import SplittingTree
from tacit.mechanisms._star_ladder import StarLadder
from tacit.mechanisms._stated_costs import cost_is_too_small
from tacit.mechanisms._strategy_noise import StrategyNoise, weighted_half_widths
from tacit.mechanisms._stream_noise import StreamNoise
from tacit.mechanisms._subsampled import Subsampled
from tacit.mechanisms._subset_selection import SubsetSelection
from tacit.mechanisms._toeplitz_noise import ToeplitzNoise
from tacit.mechanisms._top_k import TopK
from tacit.mechanisms._training_noise import generator_seed, random_slots, training_noise
from tacit.mechanisms._tree_noise import TreeNoise
from tacit.mechanisms._upper_tails import chance_above
from tacit.mechanisms._variance import Variance, VarianceAndCount
from tacit.mechanisms._walsh_hadamard import walsh_hadamard

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
