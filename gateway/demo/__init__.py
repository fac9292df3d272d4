"""A fleet of simulated devices against a real gateway, and a count of what arrived where."""
