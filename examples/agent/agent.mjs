// A coding agent: a model that says what to do next, tools that do it in a sandbox, and the loop between them.
import { CommandExitError, Sandbox } from 'e2b'

const sandbox = await Sandbox.create({ metadata: { app: 'agent example' } })

const tools = {
  write: async ({ path, content }) => {
    const { path: at } = await sandbox.files.write(path, content)
    return `wrote ${at}`
  },
  read: ({ path }) => sandbox.files.read(path),
  run: async ({ command }) => {
    try {
      const { stdout, stderr } = await sandbox.commands.run(command, { cwd: '/home/user/work', timeoutMs: 30_000 })
      return `exit code 0\n${stdout}${stderr}`
    } catch (err) {
      if (!(err instanceof CommandExitError)) throw err
      return `exit code ${err.exitCode}\n${err.stdout}${err.stderr}`
    }
  },
}

const tests = `import unittest
from roman import roman

class Roman(unittest.TestCase):
    def test_ones(self):
        self.assertEqual(roman(3), 'III')
    def test_subtractive(self):
        self.assertEqual(roman(4), 'IV')
        self.assertEqual(roman(1994), 'MCMXCIV')
    def test_nothing(self):
        with self.assertRaises(ValueError):
            roman(0)
`
const first = `def roman(n):
    if n <= 0:
        raise ValueError(n)
    out = ''
    for value, letter in [(1000, 'M'), (500, 'D'), (100, 'C'), (50, 'L'), (10, 'X'), (5, 'V'), (1, 'I')]:
        out += letter * (n // value)
        n %= value
    return out
`
const fixed = first.replace("[(1000, 'M'), (500, 'D'), (100, 'C'), (50, 'L'), (10, 'X'), (5, 'V'), (1, 'I')]",
  "[(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'), (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]")

// In the place of a language model: it looks at the last answer and says which tool is next; nothing when it is done.
function model(history) {
  const last = history.at(-1)
  if (!last) return { tool: 'write', args: { path: 'work/test_roman.py', content: tests } }
  if (last.args.path === 'work/test_roman.py') return { tool: 'write', args: { path: 'work/roman.py', content: first } }
  if (last.tool === 'write') return { tool: 'run', args: { command: 'python3 -m unittest -v' } }
  if (last.tool === 'run' && last.answer.includes('AssertionError')) return { tool: 'read', args: { path: 'work/roman.py' } }
  if (last.tool === 'read') return { tool: 'write', args: { path: 'work/roman.py', content: fixed } }
}

const history = []
try {
  for (let step = 1; step <= 20; step++) {
    const next = model(history)
    if (!next) break
    const answer = await tools[next.tool](next.args)
    console.log(`${step}. ${next.tool} ${next.args.path ?? next.args.command}: ${answer.trim().split('\n').at(next.tool === 'run' ? -1 : 0)}`)
    history.push({ ...next, answer })
  }
} finally {
  await sandbox.kill()
}

const passed = history.at(-1)?.answer.startsWith('exit code 0')
console.log(passed ? 'the tests pass' : 'the tests do not pass')
process.exit(passed ? 0 : 1)
