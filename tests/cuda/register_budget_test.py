# SPDX-License-Identifier: Apache-2.0
"""That register_budget.py can fail, and for each of its reasons."""
import pathlib
import tempfile
import unittest

import register_budget

SAMPLE = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN9onnxtrain12cuda_kernels3NotEPKbPbl' for 'sm_90'
ptxas info    : Function properties for _ZN9onnxtrain12cuda_kernels3NotEPKbPbl
    {stack} bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, used 0 barriers
"""


class RegisterBudget(unittest.TestCase):
    def offences(self, budgets, registers=20, stores=0, stack=0):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "not.ptxas"
            file.write_text(SAMPLE.format(registers=registers, stores=stores, stack=stack))
            usage = register_budget.by_short_name(register_budget.read_usage([file]))
        return list(register_budget.offences(usage, budgets))

    def test_accepts_a_kernel_within_its_budget(self):
        self.assertEqual(self.offences({"Not": (20, 0)}), [])
        self.assertEqual(self.offences({"Not": (20, 8)}, stack=8), [])

    def test_names_what_exceeds_spills_or_is_unknown(self):
        budgets = {"Not": (20, 0)}
        self.assertIn("21 registers, budget 20", self.offences(budgets, registers=21)[0])
        self.assertIn("8 bytes of spills", self.offences(budgets, stores=8)[0])
        self.assertIn("8 bytes of stack, budget 0", self.offences(budgets, stack=8)[0])
        self.assertIn("no budget", self.offences({})[0])
        self.assertIn("no such kernel", self.offences(budgets | {"Gone": (20, 0)})[0])

    def test_reads_budgets(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "budgets"
            file.write_text("# a comment\n32 Not\n40+8 F<A, B>\n")
            self.assertEqual(register_budget.read_budgets(file), {"Not": (32, 0), "F<A, B>": (40, 8)})

    def test_template_arguments_are_part_of_the_name(self):
        name = "void onnxtrain::cuda_kernels::Softmax<onnxtrain::cuda_kernels::RowTeam<32u> >(onnxtrain::SoftmaxArguments)"
        self.assertEqual(register_budget.short_name(name), "Softmax<RowTeam<32u> >")


if __name__ == "__main__":
    unittest.main()
