"""The published experiments, one module or folder a paper: ``python -m experiments NAME``.

Each lists its items in an ``EXPERIMENT``; an item draws what a page shows, and gives rows of
``summary.csv``, each made by :func:`experiments.common.row`. ``experiments.published`` writes what
pages quote of finished runs. :mod:`experiments.data_ames` is a command of its own: its workers are
forked, which must not happen after jax has started.
"""
