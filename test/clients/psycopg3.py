#!/usr/bin/python3
"""Sends a batch of keys from Python with psycopg 3: as a binary array, as text, and to gpuds_contains.

psycopg3.py NKEYS    connects as PGHOST, PGPORT, ... say; prints "form answer milliseconds"
"""
import sys
import time

import psycopg


def timed(connection, query, keys):
    """The query's row, and the time of the fastest of ten executions."""
    times = []
    for _ in range(10):
        began = time.monotonic()
        row = connection.execute(query, [keys], prepare=True, binary=True).fetchone()
        times.append((time.monotonic() - began) * 1000)
    return row, min(times)


keys = [i * 3 for i in range(int(sys.argv[1]))]
with psycopg.connect("") as connection:
    # %b sends the list in binary, %t as text.  The cast says bigint: a list of small numbers would be smallint[].
    row, ms = timed(connection, "SELECT count(*), sum(v) FROM items WHERE key = ANY (%b::bigint[])", keys)
    print(f"binary {row[0]}|{row[1]} {ms:.1f}")
    row, ms = timed(connection, "SELECT gpuds_contains('items_key_idx', %b::bigint[])", keys)
    print(f"contains {sum(row[0])} {ms:.1f}")
    row, ms = timed(connection, "SELECT count(*), sum(v) FROM items WHERE key = ANY (%t::bigint[])", keys)
    print(f"text {row[0]}|{row[1]} {ms:.1f}")
