"""Engines: what runs the lanes. Not for users."""
