"""How :mod:`jaxbandits.apps.comparison.arms_file` reads: bytes, text, cells, columns, numbers,
rows.
"""
