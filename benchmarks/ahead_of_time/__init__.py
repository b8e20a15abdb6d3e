"""``python -m benchmarks.ahead_of_time cuda|tpu|cpu``: compile for an absent device and read it."""
