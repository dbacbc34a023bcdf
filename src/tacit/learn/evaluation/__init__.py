"""Evaluation of models on held-out units, with noise and a charge.

In reading order:

`_evaluation`   the question, and rows by score and class, from which all measures are read
`_measures`     the content: accuracy, AUC and calibration, with intervals and figures
`_scorer`       one priced score, for scikit-learn's ``scoring=``
"""
