"""The command ``jaxbandits``. Not for users to import."""
