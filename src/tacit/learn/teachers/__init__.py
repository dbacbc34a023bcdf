"""Teacher ensembles: models that are trained on disjoint parts of the data and vote on public queries.

In reading order:

`_teachers`       the ensemble, and its question for labels
`_votes`          parts of the data, training, and votes on every query
`_labelling`      exact votes, noise, and labels off the noisy votes
`_noisy_labels`   the content of the release, from which a student learns; which queries to ask
`_vote_reading`   what the votes themselves reveal, for teaching
"""
