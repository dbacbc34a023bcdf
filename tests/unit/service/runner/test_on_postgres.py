"""The same queries with the service's database on PostgreSQL."""

import pytest

from unit.service.runner.test_queries import (  # noqa: F401 - run again
    test_a_question_is_answered_at_its_time,
    test_a_stored_answer_that_was_paid_for_comes_at_once_and_free,
    test_fifty_equal_keys_at_two_workers_are_charged_and_answered_once,
    test_lists_show_own_queries_and_those_of_datasets_that_one_oversees,
    test_the_card_names_the_account_that_the_draw_charges_whichever_allotments_there_are,
)


@pytest.fixture
def settings(settings, postgres_url):
    return type(settings)(folder=settings.folder, sources=settings.sources, database=postgres_url)
