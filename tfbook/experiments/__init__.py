"""One module per claim that the chapters demonstrate. Each function returns plain data.

Every run takes a seed and leaves torch's global random state as it found it. Settings that
were run over several seeds are recorded with their results in `recorded/`; see `recorded.py`.
"""
