"""The pages that belong to no dataset: the start, the learn corner, and what each error code means.

In reading order:

- `_start`: the start page, the glossary, the error codes
- `_lessons`: the explorer, the game and the attack lab
"""

from __future__ import annotations

from tacit.service._operations import ANYONE, Operation
from tacit.service.pages._lessons import (
    attack_form,
    attack_page,
    attacks_page,
    epsilon_form,
    epsilon_page,
    game_form,
    game_page,
)
from tacit.service.pages._start import error_code_page, glossary_page, learn_page, robots_file, start_page

__all__ = ["OPERATIONS"]

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/", ANYONE, start_page, page="pages/start.html", summary="What to do here"),
    Operation("GET", "/learn", ANYONE, learn_page, page="pages/learn.html", summary="The learn corner"),
    Operation(
        "GET", "/learn/epsilon", ANYONE, epsilon_page, page="pages/epsilon.html", form=epsilon_form,
        summary="What an epsilon means: odds, bits, an attacker's success",
    ),
    Operation(
        "GET", "/learn/attacks", ANYONE, attacks_page, page="pages/attacks.html",
        summary="The attacks of the lab",
    ),
    Operation(
        "GET", "/learn/attacks/{attack}", ANYONE, attack_page, page="pages/attack.html",
        form=attack_form, summary="One attack on invented people",
    ),
    Operation(
        "GET", "/learn/game", ANYONE, game_page, page="pages/game.html", form=game_form,
        summary="A game: guess from noisy counts whether one person is in the data",
    ),
    Operation(
        "GET", "/learn/glossary", ANYONE, glossary_page, page="pages/glossary.html",
        summary="What the words mean",
    ),
    Operation(
        "GET", "/errors/{code}", ANYONE, error_code_page, page="pages/error_code.html",
        summary="What an error code means",
    ),
    Operation("GET", "/robots.txt", ANYONE, robots_file, page="problem.html", api=False),
)  # fmt: skip
