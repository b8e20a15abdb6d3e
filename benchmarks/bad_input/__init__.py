"""Bad input of every kind, tried: ``python -m benchmarks.bad_input``."""
