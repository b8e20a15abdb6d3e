"""What is built on the simulator: the comparison of an arms file, the service, the command. Nothing
else imports it.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
