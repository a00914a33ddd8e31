"""The demonstration; run it with `./dev demo`."""
