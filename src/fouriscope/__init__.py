"""fouriscope: Fourier ptychographic microscopy with plug-and-play priors, solved online."""
