"""Evaluation of models on held-out units, with noise and a charge.

In reading order:

`_evaluate`          the question: which model, which classes, which bins
`_score_histogram`   rows by score and class, from which all measures are read
`_evaluation`        the content: accuracy, AUC and calibration, with intervals and figures
`_scorer`            one priced score, for scikit-learn's ``scoring=``
"""
