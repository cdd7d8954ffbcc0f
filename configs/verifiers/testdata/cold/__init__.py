"""cold: the words environment, whose pool workers take their time: each waits until the file `go` is in the
working directory. The broker answers health from the start.
"""

import multiprocessing
import os
import time

from words import Words, WordsHarness

__all__ = ["Cold", "ColdHarness"]

while multiprocessing.parent_process() and not os.path.exists("go"):
    time.sleep(0.05)


class Cold(Words):
    pass


class ColdHarness(WordsHarness):
    pass
