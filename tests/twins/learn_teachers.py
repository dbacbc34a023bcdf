"""Broken twins of a teacher ensemble: exact votes with a deliberate error each, and noise of a wrong size.

Each takes examples (rows of features, then the class) and returns the votes on `QUERIES`.
"""

from __future__ import annotations

import numpy as np

from tacit.learn.teachers._teachers import units_by_teacher

TEACHERS, CLASSES, SECRET = 5, 3, 11
QUERIES = np.array([[-1.5], [-0.5], [0.5], [1.5], [2.5], [9.0]])


class NearestMean:
    """A tiny classifier: the class whose mean is nearest."""

    def fit(self, features, labels):
        self.classes = np.unique(labels)
        self.means = np.array([features[labels == one].mean(axis=0) for one in self.classes])
        return self

    def predict(self, queries):
        return self.classes[np.abs(queries[:, None, :] - self.means[None]).sum(axis=2).argmin(axis=1)]


def tally(parts):
    """Return the votes of teachers on these parts."""
    votes = np.zeros((len(QUERIES), CLASSES), dtype=np.int64)
    for rows in parts:
        chosen = np.zeros(len(QUERIES), dtype=np.int64)
        if len(rows):
            chosen = NearestMean().fit(rows[:, :-1], rows[:, -1].astype(int)).predict(QUERIES)
        votes[np.arange(len(QUERIES)), chosen] += 1
    return votes


def hashed(rows, shift=0):
    names = [row.tobytes() + bytes([shift]) for row in rows]
    return units_by_teacher(names, TEACHERS, SECRET)


def right(rows):
    """Each example belongs to one teacher, by a hash of the example alone."""
    return tally([rows[hashed(rows) == teacher] for teacher in range(TEACHERS)])


def dealt_by_place(rows):
    """Deals examples by their place in the data: one more example moves all that follow."""
    place = np.arange(len(rows)) % TEACHERS
    return tally([rows[place == teacher] for teacher in range(TEACHERS)])


def equal_parts(rows):
    """Cuts the data into parts of equal size: every border moves with the number of examples."""
    return tally(np.array_split(rows, TEACHERS))


def two_teachers_each(rows):
    """Gives each example to two teachers, as bagging does."""
    first, second = hashed(rows), hashed(rows, 1)
    return tally([rows[(first == teacher) | (second == teacher)] for teacher in range(TEACHERS)])


def centred_at_all(rows):
    """Centres the examples at the mean of all data before the parts are made."""
    moved = rows.copy()
    middle = rows[:, :-1].mean(axis=0) if len(rows) else 0.0
    moved[:, :-1] -= middle
    return tally([moved[hashed(rows) == teacher] for teacher in range(TEACHERS)])


def started_from_the_last(rows):
    """Starts each teacher from what the one before it learned."""
    of_row, parts = hashed(rows), []
    for teacher in range(TEACHERS):
        own = rows[of_row == teacher]
        parts.append(np.concatenate([own, parts[-1][-1:]]) if parts and len(parts[-1]) else own)
    return tally(parts)


BROKEN = [dealt_by_place, equal_parts, two_teachers_each, centred_at_all, started_from_the_last]


def neighbours_of(random):
    """Return data with and without one example, at a random place."""
    size = int(random.integers(1, 25))
    rows = np.column_stack([random.normal(0, 2, size), random.integers(0, CLASSES, size)])
    one = np.array([[random.normal(0, 8), float(random.integers(0, CLASSES))]])
    place = int(random.integers(0, size + 1))
    return rows, np.concatenate([rows[:place], one, rows[place:]])
