"""Private training of PyTorch models.

In reading order:

`_trainer`         from a model, a loss and an optimizer to a plan and its release; how long steps take
`_settings`        sampling, steps, clip and noise, read from what a user gives; the adaptive clip
`_setup`           model, loss and optimizer as a plan keeps them, and the digests that identify them
`_model_check`     refusals of a model before the charge, on invented examples
`_draft`           the plan: all steps in one draw, or instalments with checkpoints
`_mechanisms`      sampled steps with noise drawn on the device, independent or correlated
`_optimizer_steps` sums of gradients over samples, steps of the model, and its state between instalments
`_gradient_sums`   blocks of examples, their slots, and several processes
`_trained_model`   the content of the release: weights, and a model that has them
"""
