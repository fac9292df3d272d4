"""Transactional messages: half ones wait until their producer says how the transaction ended."""
