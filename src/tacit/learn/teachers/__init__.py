"""Teacher ensembles: models that are trained on disjoint parts of the data and vote on public queries.

In reading order:

`_teachers`       parts of the data, training, votes on every query; the question for labels
`_labelling`      exact votes, noise, and labels off the noisy votes
`_noisy_labels`   the content of the release, from which a student learns; which queries to ask
`_vote_reading`   what the votes themselves reveal, for teaching
"""
