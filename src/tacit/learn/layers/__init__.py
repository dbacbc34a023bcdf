"""Clipped sums of per-unit gradients, layer by layer, for PyTorch.

In reading order:

`_clipped_sums`      the sums, fast by book-keeping and exact where book-keeping has no rule
`_clipped_step`      one step: forward, backward, norms, factors and weighted sums; compiled where possible
`_bookkeeping`       what a layer leaves behind in the backward pass, enough for norms and weighted sums
`_rules`             which PyTorch function is replaced by which layer
`_linear`            linear layers, embeddings, attention and recurrent layers
`_convolutions`      convolutions and transposed convolutions
`_normalisation`     normalisation inside an example
`_total_functions`   look-ups and losses that never fail on a number out of range
`_kernels`           precision, and kernels where a device has them
`_triton_kernels`    these kernels in Triton
`_trials`            trial steps on invented examples, and whether an example counts the same alone
"""
