"""The published experiments, one module each: ``python -m experiments NAME``; see :mod:`experiments.__main__`."""
