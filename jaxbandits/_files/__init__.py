"""Files: read if they are sound, written whole or not at all. Not for users to import."""
