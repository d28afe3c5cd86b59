from __future__ import annotations

import gc

from kb.structure.reader import read_blob

SOURCE = (
    b"""import os
class A:
    x = f(1)
    def f(self): return [lambda: (yield), g(h(2))]
"""
    * 20
)


def test_reading_leaves_nothing_for_the_garbage_collector_and_does_not_run_it():
    read_blob("oid", SOURCE, "python", ())  # whatever is made once is made
    gc.collect()
    gc.disable()
    try:
        read_blob("oid", SOURCE, "python", ())
        assert gc.collect() == 0
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_reading_is_a_function_of_the_bytes():
    assert read_blob("oid", SOURCE, "python", ()) == read_blob("oid", bytes(bytearray(SOURCE)), "python", ())
