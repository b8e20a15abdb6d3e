"""The published experiments, a folder for each paper: ``python -m experiments NAME``, see :mod:`experiments.__main__`."""
