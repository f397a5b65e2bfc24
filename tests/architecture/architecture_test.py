# SPDX-License-Identifier: Apache-2.0
"""The check of the source tree finds each kind of offence, and nothing in a tree that is right."""
import pathlib
import tempfile
import unittest

import architecture
import isa_symbols

LICENCE = f"// {architecture.LICENCE}\n"


def offences(path, text):
    """What the check says of a tree that holds only this file."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
        return list(architecture.check_tree(pathlib.Path(folder)))


class ArchitectureTest(unittest.TestCase):
    def assert_clean(self, path, line):
        self.assertEqual(offences(path, LICENCE + line), [])

    def assert_offence(self, path, line, message):
        found = offences(path, LICENCE + line)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:2: "), found)
        self.assertIn(message, found[0])

    def test_arrows(self):
        for i, folder in enumerate(architecture.ORDER):
            for j, other in enumerate(architecture.ORDER):
                line = f'#include "{other}/a.h"'
                if j <= i:
                    self.assert_clean(f"{folder}/deep/b.cc", line)
                else:
                    self.assert_offence(f"{folder}/deep/b.cc", line, f"{folder} must not know {other}")

    def test_includes_are_relative_to_the_root(self):
        self.assert_offence("graph/b.cc", '#include "a.h"', "relative to the root")
        self.assert_offence("graph/b.cc", '#include "../graph/a.h"', "relative to the root")

    def test_heavy_headers(self):
        for target in ("iostream", "regex", "nlohmann/json.hpp", "oneapi/dnnl/dnnl.hpp", "onnx/onnx_pb.h"):
            self.assert_offence("graph/b.h", f"#include <{target}>", "must not include")
            self.assert_clean("graph/b.cc", f"#include <{target}>")

    def test_serialized_types(self):
        self.assert_offence("runtime/b.cc", "#include <onnx/onnx_pb.h>", "behind graph's own types")
        self.assert_offence("tools/b.cc", "#include <google/protobuf/message.h>", "behind graph's own types")

    def test_environment(self):
        self.assert_offence("runtime/b.cc", 'auto* x = std::getenv("X");', "in tools only")
        self.assert_clean("tools/b.cc", 'auto* x = std::getenv("X");')
        self.assert_clean("runtime/b.cc", "// never getenv(here)")

    def test_licence(self):
        self.assertIn("missing", offences("graph/b.cc", "int x;\n")[0])
        self.assertEqual(offences("graph/b.cc", LICENCE), [])


class IsaSymbolsTest(unittest.TestCase):
    def test_shared_symbols_outside_the_namespace(self):
        lines = ["T onnxtrain::Add(float*)", "W onnxtrain::isa_v4::Add(float*)", "W std::max(float)", "t local"]
        self.assertEqual(list(isa_symbols.shared_outside("isa_v4", lines)), ["std::max(float)"])


if __name__ == "__main__":
    unittest.main()
