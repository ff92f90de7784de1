#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
pmreorder_procedure.py LOG ENGINE prog COMMAND | lib LIBRARY SYMBOL

What pmreorder does with a log, written down once more in its own language and without its code: the pool is changed in place,
each sequence of stores is written, the checker is called, the stores are taken back. Prints how many states there were, how many
of them were bad, and the seconds. To compare states with (test_pmreorder.sh).
"""
import ctypes
import itertools
import mmap
import os
import subprocess
import sys
import time


def sequences(engine, stores):
    n = len(stores)
    if engine == "ReorderFull":
        return itertools.chain.from_iterable(itertools.permutations(stores, k) for k in range(n + 1))
    if engine == "ReorderAccumulative":
        return (stores[:k] for k in range(n + 1))
    if engine == "ReorderReverseAccumulative":
        return (stores[::-1][:k] for k in range(n + 1))
    return [stores] if engine == "NoReorderDoCheck" else []


class Store:
    def __init__(self, address, value, size):
        self.begin, self.end, self.flushed, self.old = address, address + size, False, None
        self.new = value.to_bytes(size, sys.byteorder)


class Pool:
    def __init__(self, path, base):
        self.path, self.base = path, base
        with open(path, "r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), 0)

    def write(self, s):
        s.old = self.bytes[s.begin - self.base : s.end - self.base]
        self.bytes[s.begin - self.base : s.end - self.base] = s.new
        self.bytes.flush((s.begin - self.base) & ~4095, 4096)

    def take_back(self, s):
        self.bytes[s.begin - self.base : s.end - self.base] = s.old
        self.bytes.flush((s.begin - self.base) & ~4095, 4096)


def checker(words):
    if words[0] == "prog":
        return lambda path: subprocess.call(f"{words[1]} {path}", shell=True)
    function = getattr(ctypes.cdll.LoadLibrary(os.path.abspath(words[1])), words[2])
    function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int
    return lambda path: function(path.encode())


def run(log, engine, check):
    pool, stores, waiting, states, bad = None, [], "store", 0, 0
    for token in log.strip().split("|"):
        name, *field = token.split(";")
        if name == "REGISTER_FILE":
            pool = Pool(field[0], int(field[1], 16))
        elif name == "STORE":
            stores.append(Store(*(int(f, 16) for f in field[:3])))
            waiting = "flush" if waiting == "store" else waiting
        elif name == "FLUSH":
            begin = int(field[0], 16)
            end = begin + int(field[1], 16)
            for s in stores:
                s.flushed = s.flushed or (s.begin < end and begin < s.end)
            waiting = "fence"
        elif name == "FENCE" and waiting == "fence":
            flushed = [s for s in stores if s.flushed]
            stores = [s for s in stores if not s.flushed]
            for sequence in sequences(engine, flushed):
                for s in sequence:
                    pool.write(s)
                states += 1
                bad += check(pool.path) != 0
                for s in reversed(sequence):
                    pool.take_back(s)
            for s in flushed:
                pool.write(s)
            waiting = "store"
    return states, bad


def main():
    with open(sys.argv[1]) as file:
        log = file.read()
    check = checker(sys.argv[3:])
    begin = time.monotonic()
    states, bad = run(log, sys.argv[2], check)
    print(states, bad, f"{time.monotonic() - begin:.6f}")


main()
