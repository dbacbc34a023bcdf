"""Inference: what releases say about the population, with noise and sampling together."""
