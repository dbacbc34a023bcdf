"""Deliberately broken copies of our mechanisms. The auditor must catch every one. Never import them.

Each mirrors a defect that a real system has shipped. Noise is NumPy's here: that is what is broken in some,
and good enough for the others.
"""
