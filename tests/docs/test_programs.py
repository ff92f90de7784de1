#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_programs.py TIDEMARK SOURCES

Each command of docs/programs.md runs, in its order, and prints what stands below it: those lines, in that order, where "..." is
anything; it ends with status 0, or as a last line "status N" says. 77: a library that the examples need is missing.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

tidemark, sources = (os.path.realpath(path) for path in sys.argv[1:3])
PAGE = os.path.join(sources, "docs/programs.md")
for header, package in ("libpmemobj.h", "libpmemobj-dev"), ("librpma.h", "librpma-dev"), ("immintrin.h", "gcc for x86-64"):
    probe = subprocess.run(["gcc", "-E", "-x", "c", "-"], input="#include <%s>" % header, text=True, capture_output=True)
    if probe.returncode:
        print("%s is not there (%s)" % (header, package), file=sys.stderr)
        sys.exit(77)


def steps():
    """Commands with their line, and what they print: (line, command, [output], status)."""
    found = []
    with open(PAGE, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            text = line[4:].rstrip("\n")
            if not line.startswith("    "):
                continue
            if text.startswith("$ "):
                found.append([number, text[2:], [], 0])
            elif re.fullmatch(r"status \d", text):
                found[-1][3] = int(text[-1])
            else:
                found[-1][2].append(text)
    return found


def misses(printed, expected):
    """The first line that is expected and not there, or None."""
    at = 0
    for text in expected:
        pattern = "^" + r".*".join(re.escape(part) for part in text.split("...")) + "$"
        match = re.compile(pattern, re.M).search(printed, at)
        if not match:
            return text
        at = match.end()
    return None


def main():
    here = tempfile.mkdtemp()
    failed = 0
    os.mkdir(os.path.join(here, "bin"))
    os.symlink(tidemark, os.path.join(here, "bin/tidemark"))
    for folder in "examples", "tests":
        os.symlink(os.path.join(sources, folder), os.path.join(here, folder))
    port = str(20000 + os.getpid() % 20000)
    env = dict(os.environ, PATH=here + "/bin:" + os.environ["PATH"], TIDEMARK_FABRIC=here + "/fabric")
    commands = steps()
    if len(commands) < 20:
        print("docs/programs.md has hardly any command: is the pattern right?", file=sys.stderr)
        failed = 1
    for line, command, expected, status in commands:
        run = subprocess.run(command.replace("7471", port), shell=True, executable="/bin/bash", cwd=here, env=env, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        wrong = misses(run.stdout, expected)
        if run.returncode != status or wrong is not None:
            print("docs/programs.md:%d: %s\nstatus %d, not %d; %s\n%s" % (
                line, command, run.returncode, status, "not printed: " + wrong if wrong else "", run.stdout), file=sys.stderr)
            failed = 1
            break
    shutil.rmtree(here)
    sys.exit(failed)


main()
