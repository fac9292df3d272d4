"""The fan-out report as a page and as JSON, made from the job's Parquet tables alone; needs no Spark."""
