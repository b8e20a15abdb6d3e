"""Plain Numba loops, one for each policy: what a user would write who wants speed and needs one policy only.

Float32 sums, xorshift, fast math, every lane on its own, lanes over all cores; no exact money, no addresses, no marks.
"""
