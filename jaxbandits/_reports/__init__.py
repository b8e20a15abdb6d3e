"""Pictures, text and progress for people. Not for users to import."""
