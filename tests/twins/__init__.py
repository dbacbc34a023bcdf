"""Deliberately broken copies of our mechanisms. The auditor must catch every one of them. Never import these elsewhere.

Each mirrors a defect that a real system has shipped. Noise is NumPy's here: that is part of what is broken in some, and
good enough for the others.
"""
