"""Estimators with scikit-learn's conventions: `fit` plans, charges and releases.

In reading order:

`_estimator`            the private estimator: parameters, fit, release
`_declared_bounds`      bounds and classes that a user declares
`_whole_features`       features and targets as whole numbers, row by row
`_identity`             which dataset and ledger an estimator names, and how its data is recognised again
`_fits`                 one Gaussian for the whole promise, shared among the steps of a fit
`_fitted_numbers`       the content of an estimator's release; of boosting, its bins and shapes with bands
`_linear`               linear and ridge regression from noisy moments
`_generalised_linear`   logistic and Poisson regression: noisy gradient descent on whole gradients
`_naive_bayes`          naive Bayes from noisy sums of classes
`_rows`                 rows on a grid with a public radius, and their moments
`_transformers`         standardised features and principal components
`_kmeans`               k-means by a private coreset
`_boosting`             explainable boosting
`_prepaid`              one charge for all fits of a search, and folds
`_search`               a private choice of parameters
"""
