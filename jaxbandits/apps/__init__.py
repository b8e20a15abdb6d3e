"""What is built on the simulator: the comparison of an arms file, the service, the command. Nothing
else imports it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
