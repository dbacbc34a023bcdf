"""Mechanisms of surveys: each respondent's own device randomizes the answer.

In reading order:

- ``_local_randomizer``: what a local randomizer is, and its odds
- ``_randomized_response``: the true answer or, by a coin, another one
- ``_response_designs``: the cards and dice of social scientists
- ``_subset_selection``: a report that names several answers
- ``_linear_hashing``: parities of the answer, for very long lists
- ``_number_window``: reports of numbers
- ``_memo``: the same question asked again and again
- ``_randomizer_choice``: the best randomizer for a list, and one of several questions
"""
