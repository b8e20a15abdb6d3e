"""How :mod:`jaxbandits.comparison.arms_file` reads: bytes, text, cells, columns, numbers, rows."""
