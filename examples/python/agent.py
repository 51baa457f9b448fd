"""A coding agent: writes files, runs the tests, reads the failure, fixes it, until they pass. What a model would say is in STEPS."""
from cove import Sandbox

TEST = "import calc, unittest\nclass T(unittest.TestCase):\n    def test_add(self): self.assertEqual(calc.add(2, 3), 5)\nunittest.main()\n"
STEPS = iter(["def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"])


def model(failure: str) -> str:
    """A real one gets the failure and answers with code."""
    return next(STEPS)


with Sandbox.create(timeout=300) as sandbox:
    sandbox.files.write("test_calc.py", TEST)
    failure = "write calc.py"
    while failure:
        sandbox.files.write("calc.py", model(failure))
        result = sandbox.commands.run("python3 -B test_calc.py", timeout=60)
        failure = "" if result.ok else result.stderr
        print(result.stderr.strip().splitlines()[-1])
    print("the tests pass; calc.py is:\n" + sandbox.files.read("calc.py"))
