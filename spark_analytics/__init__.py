"""PySpark over the log itself; reads, never writes."""
