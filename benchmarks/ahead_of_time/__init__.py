"""``python -m benchmarks.ahead_of_time cuda|tpu|cpu``: compile for a device that is not there, and
read the program.
"""
