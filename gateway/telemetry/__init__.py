"""Traces and metrics by OpenTelemetry; its library is an extra, and imported where a setting asks for it."""
