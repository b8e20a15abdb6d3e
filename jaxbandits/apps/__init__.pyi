from . import comparison as comparison
from . import live as live
