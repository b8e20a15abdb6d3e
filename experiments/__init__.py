"""The published experiments, one folder a paper: ``python -m experiments NAME``; see :mod:`experiments.__main__`.

A folder's ``__init__.py`` lists its items in an ``EXPERIMENT``; its modules play (``play.py``), hold what is printed
(``published.py``), make the tables of its page (``pages.py``) and tell what was found. An
item writes its pictures and gives rows of ``summary.csv``, each made by :func:`experiments.common.rows.row`.
:mod:`experiments.data_ames` is a command of its own: its workers are forked, which must not happen after jax has
started.
"""
