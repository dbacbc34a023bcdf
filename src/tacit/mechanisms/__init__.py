"""Mechanisms: the only place where privacy is made. Each states its guarantee, its cost and its error."""

from __future__ import annotations

from tacit.mechanisms._integer import IntegerMechanism
from tacit.mechanisms._key_selection import KeySelection
from tacit.mechanisms._lattice import GaussianLaw, LaplaceLaw
from tacit.mechanisms._mechanism import Interval, Mechanism
from tacit.mechanisms._quantile_choice import QuantileChoice
from tacit.mechanisms._ranking import ranking_secret
from tacit.mechanisms.aggregates import Count, Mean, MeanAndCount, Sum
from tacit.mechanisms.bounds import Bounds
from tacit.mechanisms.clipping import clip, fold, truncate
from tacit.mechanisms.discrete_gaussian import DiscreteGaussian
from tacit.mechanisms.discrete_laplace import DiscreteLaplace
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.histogram import Histogram
from tacit.mechanisms.laplace import Laplace, LaplaceTextbook
from tacit.mechanisms.noisy_max import NoisyMax
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile, Quantiles
from tacit.mechanisms.randomized_response import Estimate, RandomizedResponse
from tacit.mechanisms.sparse_vector import SparseVector, SparseVectorRun
from tacit.mechanisms.subsampled import Subsampled
from tacit.mechanisms.top_k import TopK
from tacit.mechanisms.variance import Variance, VarianceAndCount

__all__ = [
    "Bounds",
    "Count",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Estimate",
    "Exponential",
    "Gaussian",
    "GaussianLaw",
    "Histogram",
    "IntegerMechanism",
    "Interval",
    "KeySelection",
    "Laplace",
    "LaplaceLaw",
    "LaplaceTextbook",
    "Mean",
    "MeanAndCount",
    "Mechanism",
    "NoisyMax",
    "PermuteAndFlip",
    "Quantile",
    "QuantileChoice",
    "Quantiles",
    "RandomizedResponse",
    "SparseVector",
    "SparseVectorRun",
    "Subsampled",
    "Sum",
    "TopK",
    "Variance",
    "VarianceAndCount",
    "clip",
    "fold",
    "ranking_secret",
    "truncate",
]
