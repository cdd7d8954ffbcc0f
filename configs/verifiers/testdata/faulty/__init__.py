"""faulty: the words environment, whose server process dies as the model's answer tells it.

"!exit 23" ends the process that hears it, at once, with code 23. So a test chooses the moment, and the tasks
and the command are the same when the run is resumed. A rollout that is cancelled says so when it is torn down.
"""

import asyncio
import os
import sys

from words import Words, WordsHarness

__all__ = ["Faulty", "FaultyHarness"]


class Faulty(Words):
    pass


class FaultyHarness(WordsHarness):
    async def launch(self, *args, **kwargs):
        try:
            return await super().launch(*args, **kwargs)
        except asyncio.CancelledError:
            print("torn down", file=sys.stderr, flush=True)
            raise

    def heard(self, message):
        verb, _, code = (message.get("content") or "").partition(" ")
        if verb == "!exit":
            os._exit(int(code))
