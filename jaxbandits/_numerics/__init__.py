"""Numerical methods for environments, policies and constraints. Not for users."""
