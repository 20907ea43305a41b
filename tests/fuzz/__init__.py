"""A fuzzer: valid inputs, damaged at random from a seed, handed to the commands in children with limits.

``make fuzz`` runs ten thousand cases and prints a table; ``tests/fuzz/test_sample.py`` runs some of them in CI.
A case is named by its target, its seed and its number, and is repeated alone by ``python -m tests.fuzz --only NAME``.
"""
