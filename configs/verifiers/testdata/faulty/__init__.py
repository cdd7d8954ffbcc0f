"""faulty: the words environment, whose server process dies as the model's answer tells it.

"!exit 23" ends the process that hears it, at once, with code 23. So a test chooses the moment, and the tasks
and the command are the same when the run is resumed.
"""

import os

from words import Words, WordsHarness

__all__ = ["Faulty", "FaultyHarness"]


class Faulty(Words):
    pass


class FaultyHarness(WordsHarness):
    def heard(self, message):
        verb, _, code = (message.get("content") or "").partition(" ")
        if verb == "!exit":
            os._exit(int(code))
