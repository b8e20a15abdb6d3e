"""Engines: what runs the lanes."""
