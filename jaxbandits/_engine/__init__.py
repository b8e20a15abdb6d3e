"""Engines, which run the lanes. Not for users."""
