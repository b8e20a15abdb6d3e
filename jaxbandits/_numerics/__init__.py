"""Numerical methods behind worlds, policies and constraints. Not for users."""
