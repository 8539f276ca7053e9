"""The standby thread: derives corrections in the background, so that answers after forgetting need not wait."""

from __future__ import annotations

import threading
from contextlib import suppress

from priory.errors import PrioryError
from priory.service.model_store import ModelStore

SECONDS_OF_QUIET = 1.0  # after a change: changes that follow one another are followed once


class StandbyWorker:
    """A thread that prepares the current models; see `priory.learning.standby`."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._is_due, self._is_closed = threading.Event(), threading.Event()
        self._is_due.set()  # the models that were loaded have no standby sets yet
        self._thread = threading.Thread(target=self._run, name="priory-standby", daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """Prepare the models, after rows were forgotten."""
        self._is_due.set()

    def close(self) -> None:
        """Stop the thread, after the model that it is working on."""
        self._is_closed.set()
        self._is_due.set()
        self._thread.join()

    def _run(self) -> None:
        while self._is_due.wait() and not self._is_closed.wait(SECONDS_OF_QUIET):
            self._is_due.clear()
            for model in self._store.models.values():
                if model.is_fitted and not self._is_closed.is_set():
                    with suppress(PrioryError):  # the next answer derives its corrections, or says what is wrong
                        model.estimator.prepare_standby()
