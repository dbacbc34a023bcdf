"""Plans of table questions: what is measured, by which mechanism and at which cost; the exact integers.

In reading order:

- `_steps`: steps, the split of a budget among them, and samples of units
- `_minimum_people`: how many people a line needs to be shown
- `_pricing`: from aggregates to steps, and from a goal to what each step pays
- `_advice`: what would make the error much smaller, found by planning again
- `_drafts`: the draft of a plan: cost, forecast, SQL and task
- `_table_subject`: the task of a table: exact integers for its steps, columns read off noisy ones
- `_bounds_search`, `_found_bounds_subject`: plans that find bounds first, and the task of a table on them
- `_exact_integers`: the exact integers of public and of private groups
"""
