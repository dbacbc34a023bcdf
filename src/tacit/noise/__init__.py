"""Exact noise: draws that follow their stated law exactly, from secure bits, at NumPy's speed.

All draws are integers. There is no seed, and no law is computed in floating point. Parameters are exact: a
Fraction, an int, or a float at its decimal reading (0.1 is one tenth). ``size=None`` returns a Python int of
any size. A shape returns an array of 64-bit integers; if a draw does not fit, the call is refused with code
``does-not-fit``. If the operating system's generator fails, the call is refused with ``randomness-failed``.

Modules, in reading order:

_bits         secure random bits: the operating system's entropy, expanded
_parameters   the parameters of a draw: one exact number, or one for each element
_coins        coins whose chance is a rational number, or exp(-x) of one
_uniform      uniform whole numbers and random orders
_intervals    certified integers around reals, which decide what floats cannot
_floats       exp and log with proven errors, for the quick case
_geometric    geometric numbers, digit by digit
_laplace      Laplace and geometric noise
_gaussian     the discrete and the rounded Gaussian
_bulk         the same laws in bulk: one table look-up for each draw
_ladders      ladder noise: rungs of growing width
_selection    chances proportional to exp(score / scale)
_exceedances  only those of many draws that reach a level
_grid         real numbers to whole multiples and back
"""

from tacit.calls import refuse_wrong_calls
from tacit.noise._coins import bernoulli, bernoulli_exp
from tacit.noise._exceedances import gaussian_exceedances, laplace_exceedances
from tacit.noise._gaussian import discrete_gaussian, rounded_gaussian
from tacit.noise._grid import from_grid, quantise
from tacit.noise._ladders import ladder, star_ladder
from tacit.noise._laplace import discrete_laplace, geometric
from tacit.noise._selection import select, select_top
from tacit.noise._uniform import permutation, uniform_below

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "from_grid",
    "gaussian_exceedances",
    "geometric",
    "ladder",
    "laplace_exceedances",
    "permutation",
    "quantise",
    "rounded_gaussian",
    "select",
    "select_top",
    "star_ladder",
    "uniform_below",
]

refuse_wrong_calls(__name__, __all__)
