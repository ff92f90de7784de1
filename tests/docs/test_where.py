#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_where.py SOURCES: a function that a paragraph, item or row of the pages for developers names is defined in one
of the sources that the same paragraph names. Those that are defined nowhere are a library's."""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
rooms = "core checker cli faultinject fuzz report scenarios valgrind".split()
sources = [f for room in rooms for f in (top / room).rglob("*.[ch]")]
defined = {}
for f in sources:
    for name in re.findall(r"^(?:[a-z_].*[ *])?([a-z_0-9]+)\(", f.read_text(), re.M):
        defined.setdefault(name, set()).add(f)
    for name in re.findall(r"#define ([a-z_0-9]+)\(", f.read_text()):
        defined.setdefault(name, set()).add(f)

wrong = checked = 0
for page in "architecture contributing glossary".split():
    page = top / f"docs/{page}.md"
    blocks = [[]]
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.strip() or re.match(r"(\d+\.|\*|\|) ", line):
            blocks.append([])
        blocks[-1].append((number, line))
    for block in blocks:
        named = re.findall(r"`([\w/*]+\.[ch])`", "\n".join(line for _, line in block))
        files = {f for f in sources for n in named if f.match(n)}
        for at, line in block:
            for name in re.findall(r"`(\w+)\(\)`", line):
                if name not in defined:
                    continue
                checked += 1
                if not defined[name] & files:
                    where = ", ".join(sorted(str(f.relative_to(top)) for f in defined[name]))
                    print(f"{page}:{at}: {name}() is in {where}, which is not named there")
                    wrong += 1
if checked < 80:
    sys.exit(f"the pages name only {checked} functions: is the pattern right?")
sys.exit(wrong > 0)
