"""Which failed requests are sent again. Pure: the clients do the waiting."""
from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional

from ..errors import ConnectionFailedError, CoveError, TooManyError, UnavailableError


@dataclass(frozen=True)
class RetryPolicy:
    """At most `attempts` tries in all, and `longest_wait` seconds between two of them."""

    attempts: int = 3
    first_wait: float = 0.1
    longest_wait: float = 5.0

    def wait(self, error: CoveError, tried: int, *, repeatable: bool, sent: bool) -> Optional[float]:
        """Seconds to wait before the next try, or None: the error is the caller's.

        `repeatable`: doing it twice is the same as once. `sent`: a part of the request may have reached the server.
        Where nothing was sent, and where the server refused because there was too much to do, nothing has happened yet:
        such requests are always safe to repeat. Others are repeated only if they are repeatable.
        """
        if tried >= self.attempts:
            return None
        if isinstance(error, ConnectionFailedError):
            return self._backoff(tried) if repeatable or not sent else None
        if isinstance(error, TooManyError):
            # Without a time the limit is not about speed: trying again does not help.
            return error.retry_after if error.retry_after is not None and error.retry_after <= self.longest_wait else None
        if isinstance(error, UnavailableError) and error.status == 503 and repeatable:
            after = error.retry_after if error.retry_after is not None else self._backoff(tried)
            return after if after <= self.longest_wait else None
        return None

    def _backoff(self, tried: int) -> float:
        return float(min(self.longest_wait, self.first_wait * 2 ** (tried - 1)) * random.uniform(0.5, 1.0))


NO_RETRY = RetryPolicy(attempts=1)

