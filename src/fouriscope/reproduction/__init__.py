"""The experiments of the paper, run again with one command, beside its numbers."""
