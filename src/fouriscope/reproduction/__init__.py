"""The experiments of the paper, repeated with one command and compared with its numbers."""
