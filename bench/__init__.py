"""The bench harness: every engine in a worker process of its own, asked in turn over pipes, idle ones blocked
in a read.

`python -m bench` prints the table of figures; see `bench/README.md`.
"""
