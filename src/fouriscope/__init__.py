"""fouriscope: high-resolution images from the frames of an LED-array microscope (Fourier ptychography).

Names are loaded when they are first used, so that ``import fouriscope`` stays fast; ``__init__.pyi`` lists them.
"""

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
