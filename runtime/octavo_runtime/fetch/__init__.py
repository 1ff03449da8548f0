"""Fetching models: from a hub or a URL onto this machine's disk, verified, resumed where it stopped."""
