"""The audit log: what users and operators did, as it was told, as lines of JSON in files that take turns."""
