"""Traces and metrics by OpenTelemetry, where the settings ask for them; else nothing of it is imported."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from core.broker import Broker
from core.settings import StoreSettings
from core.store.embedded import EmbeddedEngine
from gateway.settings.models import SettingsError
from gateway.settings.observing import TelemetrySettings


class Telemetry:
    """One gateway's.

    Args:
        settings: What is sent, and where to.

    Raises:
        SettingsError: The library is missing.
    """

    def __init__(self, settings: TelemetrySettings) -> None:
        self._settings = settings
        self._sender: Any = None
        self._tracer: Any = None
        self.collect: Callable[[], Iterable[Any]] = tuple  # the numbers of now, in Prometheus's form
        if settings.is_on:
            self._sender = _import("gateway.telemetry.otlp").OtlpSender(settings)
            self._tracer = self._sender.make_tracer(settings.sample_ratio)

    @property
    def interval_ms(self) -> int:
        """How often `send_metrics` is wanted, 0 for never."""
        return self._settings.interval_s * 1_000 if self._sender is not None and self._settings.metrics else 0

    def open_engine(self, data_dir: Path, store: StoreSettings, *, now_ms: int) -> EmbeddedEngine:
        """Open the engine: one that is watched only where something watches it."""
        if self._tracer is None:
            return EmbeddedEngine.open(data_dir, store, now_ms=now_ms)
        traced = _import("gateway.telemetry.traced_engine").TracedEngine
        engine = traced.open(data_dir, store, now_ms=now_ms)
        engine.tracer = self._tracer
        assert isinstance(engine, EmbeddedEngine)
        return engine

    def watch(self, broker: Broker, engine: EmbeddedEngine) -> None:
        """Know the queues of the broker that stands on `engine`."""
        if self._tracer is not None:
            engine.pop_names = broker.pop.journal.names  # type: ignore[attr-defined]  # of a traced one

    def send_metrics(self, now_ms: int) -> None:
        """Send the numbers of now; work for an interval."""
        del now_ms
        if self._sender is not None:
            self._sender.send_metrics(self.collect())

    async def stop(self) -> None:
        """Send what waits, for a moment."""
        if self._sender is not None:
            await asyncio.to_thread(self._sender.stop)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        why = f"telemetry needs the extra otel: pip install 'lmq-gateway[otel]' ({error})"
        raise SettingsError(why) from error
