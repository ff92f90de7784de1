# SPDX-License-Identifier: BSD-3-Clause
# run_pyverbs.py [REGEX REASON]... -- [OPTION]...: the tests of pyverbs in the working directory, as their run_tests.py
# runs them. Tests whose names a REGEX matches are skipped, and its REASON says why.
import os
import re
import sys
import unittest
from importlib.machinery import SourceFileLoader

skips = []
while sys.argv[1] != '--':
    skips.append((re.compile(sys.argv.pop(1)), sys.argv.pop(1)))
sys.argv.pop(1)
sys.path[0] = os.getcwd()
from args_parser import parser  # theirs; it takes its options out of sys.argv


class Loader(unittest.TestLoader):
    def loadTestsFromTestCase(self, case):
        for name in self.getTestCaseNames(case):
            for pattern, reason in skips:
                if pattern.search(name):
                    setattr(case, name, unittest.skip(reason)(getattr(case, name)))
        return super().loadTestsFromTestCase(case)


tests = SourceFileLoader('tests', os.path.join(os.getcwd(), '__init__.py')).load_module()
parser.parse_args()
unittest.main(module=tests, testLoader=Loader())
