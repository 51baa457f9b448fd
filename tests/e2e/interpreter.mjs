// The real package against the real server. Run by tests/e2e/interpreter_test from where npm installed it, with TEMPLATE.
import { Sandbox } from '@e2b/code-interpreter'
import { NotFoundError, TimeoutError, SandboxError } from 'e2b'
import { isDeepStrictEqual, inspect } from 'node:util'

let failed = 0
function check(sentence, good, why) {
  console.log(good ? `ok - SDK: ${sentence}` : `not ok - SDK: ${sentence}: ${inspect(why, { breakLength: Infinity }).slice(0, 300)}`)
  failed += good ? 0 : 1
}
const same = (sentence, want, got) => check(sentence, isDeepStrictEqual(want, got), got)
async function throws(sentence, kind, act) {
  try {
    await act()
    check(sentence, false, 'nothing was thrown')
  } catch (error) {
    check(sentence, error instanceof kind, error)
    return error
  }
}

const box = await Sandbox.create(process.env.TEMPLATE, { timeoutMs: 300_000 })

async function basics() {
  const x = await box.runCode('x = 1; x')
  same('runCode gives the text of the main result', '1', x.text)
  same('the count', 1, x.executionCount)
  same('state stays', '2', (await box.runCode('x += 1; x')).text)
  const logs = await box.runCode("import sys\nprint('out')\nprint('err', file=sys.stderr)")
  same('stdout and stderr', { stdout: ['out\n'], stderr: ['err\n'] }, logs.logs)
  same('no result without an expression', [], logs.results)
  const error = (await box.runCode('1/0')).error
  same('an error has name and value', ['ZeroDivisionError', 'division by zero'], [error.name, error.value])
  check('an error has a traceback', error.traceback.includes('Traceback'), error)
  same('empty code', undefined, (await box.runCode('')).text)
  same('unicode', 'héllo 😀 世界', (await box.runCode("'héllo 😀 世界'")).text)
  same('a long text', 300000, (await box.runCode("'é' * 300000")).text.length)
}

async function callbacks() {
  const seen = []
  const run = await box.runCode("import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.1)\ndisplay(7)\nraise ValueError('v')", {
    onStdout: (m) => seen.push(['out', m.line.trim(), m.error]),
    onResult: (r) => seen.push(['result', r.text]),
    onError: (e) => seen.push(['error', e.name]),
  })
  same('callbacks come in order', [['out', '0', false], ['out', '1', false], ['out', '2', false], ['result', '7'], ['error', 'ValueError']], seen)
  same('results that are not the main one', [false], run.results.map((r) => r.isMainResult))
}

async function results() {
  const run = await box.runCode("class A:\n  def _repr_html_(self): return '<b>h</b>'\n  def _repr_png_(self): return b'png'\nA()")
  same('formats', ['html', 'png'], run.results[0].formats())
  same('html', '<b>h</b>', run.results[0].html)
  same('png as base64', 'cG5n', run.results[0].png)
  const json = await box.runCode("display({'application/json': {'a': [1, None]}}, raw=True)")
  same('json', { a: [1, null] }, json.results[0].json)
}

async function environment() {
  const code = "import os; os.environ.get('FOO', 'none')"
  same('variables of a cell', 'bar', (await box.runCode(code, { envs: { FOO: 'bar' } })).text)
  same('variables of a cell are gone after the cell', 'none', (await box.runCode(code)).text)
  const other = await Sandbox.create(process.env.TEMPLATE, { envs: { FOO: 'of the sandbox' } })
  same('variables of the sandbox', 'of the sandbox', (await other.runCode(code)).text)
  same('variables of the sandbox in javascript', 'of the sandbox', (await other.runCode('process.env.FOO', { language: 'javascript' })).text)
  await other.kill()
}

async function contexts() {
  const before = await box.listCodeContexts()
  same('two at the start', ['python', 'javascript'], before.map((c) => c.language))
  const context = await box.createCodeContext({ cwd: '/tmp', language: 'python' })
  same('a context', ['python', '/tmp'], [context.language, context.cwd])
  same('a new context is listed last', context, (await box.listCodeContexts()).at(-1))
  const rooted = await box.createCodeContext({ cwd: '/root' })
  same("a context in root's home", '/root root', (await box.runCode('import os, getpass; os.getcwd() + " " + getpass.getuser()', { context: rooted })).text)
  await box.removeCodeContext(rooted)
  same('a context has its directory', '/tmp', (await box.runCode('import os; os.getcwd()', { context })).text)
  same('a context has its own names', 'NameError', (await box.runCode('x', { context })).error.name)
  await box.runCode('y = 1', { context })
  await box.restartCodeContext(context)
  same('a restarted context has forgotten its names', 'NameError', (await box.runCode('y', { context: context })).error.name)
  await box.restartCodeContext(context.id)
  await box.removeCodeContext(context)
  same('a removed context is not listed', before, await box.listCodeContexts())
  await throws('a removed context runs nothing', NotFoundError, () => box.runCode('1', { context }))
  await throws('a removed context cannot be removed again', NotFoundError, () => box.removeCodeContext(context.id))
  await throws('a removed context cannot be restarted', NotFoundError, () => box.restartCodeContext(context.id))
  const js = await box.createCodeContext({ language: 'js' })
  same('a context of javascript', '3', (await box.runCode('let a = 1; a + 2', { context: js })).text)
  const refused = await throws('no context of a language that is none', SandboxError, () => box.createCodeContext({ language: 'cobol' }))
  check('a refusal shows its sentence', refused?.message.includes("'cobol' is not supported"), refused?.message)
}

async function javascript() {
  const js = (code) => box.runCode(code, { language: 'javascript' })
  same('the value of a JavaScript cell is its last expression', '2', (await js('const a = 1; a + 1')).text)
  same('const again', '3', (await js('const a = 2; a + 1')).text)
  same('top-level await', '42', (await js('const b = await Promise.resolve(42); b')).text)
  same('names of JavaScript stay for the next cell', '43', (await js('b + 1')).text)
  same('import', 'a/b', (await js("import { join } from 'path'\njoin('a', 'b')")).text)
  same('require', 'function', (await js("typeof require('fs').readFileSync")).text)
  same('console.log', { stdout: ['x\n'], stderr: ['y\n'] }, (await js("console.log('x'); console.error('y')")).logs)
  const error = (await js("throw new TypeError('bad')")).error
  same('an error', ['TypeError', 'bad'], [error.name, error.value])
  same('functions and classes', '12', (await js('function f() { return 5 }\nclass K { m() { return 7 } }\nf() + new K().m()')).text)
  same('an object', { a: [1, 2] }, (await js('({ a: [1, 2] })')).results[0].json)
  same('an error of syntax', 'SyntaxError', (await js('let =')).error.name)
  const ts = await box.runCode('const n: number = 5; interface A { a: string }\nn as number', { language: 'ts' })
  if (ts.error?.value.includes('no TypeScript compiler')) console.log('skip - SDK: typescript: the template has no compiler')
  else same('typescript', '5', ts.text)
}

async function bash() {
  const sh = (code) => box.runCode(code, { language: 'bash' })
  same('bash', ['hi\n'], (await sh('echo hi; cd /tmp; V=1; f() { echo "f$1"; }')).logs.stdout)
  same('bash keeps its state for the next cell', '/tmp 1\nf2\n', (await sh('echo $PWD $V; f 2')).logs.stdout.join(''))
  const error = (await sh('false')).error
  same('a command that fails', ['ExitCode', '1'], [error.name, error.value])
  same('exit', 'ExitCode', (await sh('exit 3')).error.name)
  same('continues', ['ok\n'], (await sh('echo ok')).logs.stdout)
}

async function together() {
  const all = await Promise.all(Array.from({ length: 10 }, (_, i) => box.runCode(`import time; time.sleep(0.02); ${i}`)))
  same('ten at once wait for each other', [...Array(10).keys()].map(String), all.map((e) => e.text))
  await throws('a timeout', TimeoutError, () => box.runCode('import time; time.sleep(30)', { timeoutMs: 500 }))
  same('interrupts the cell, and the kernel stays', '2', (await box.runCode('x')).text)
  same('magics', ['3\n'], (await box.runCode('!echo $((1+2))')).logs.stdout)
  await box.runCode("open('f.txt', 'w').write('from the cell')")
  same('commands see the files of cells', 'from the cell', (await box.commands.run('cat /home/user/f.txt')).stdout)
}

async function death() {
  const other = await Sandbox.create(process.env.TEMPLATE)
  await other.runCode('x = 1')
  const run = await other.runCode('import os; os._exit(1)')
  same('a kernel that ends', 'UnexpectedEndOfExecution', run.error.name)
  same('a kernel that ended is replaced by a new one', 'NameError', (await other.runCode('x')).error.name)
  const running = other.runCode('import time; time.sleep(30)')
  setTimeout(() => other.kill(), 300)
  await throws('a sandbox that is killed', TimeoutError, () => running)
  await throws('a cell in a killed sandbox is refused', TimeoutError, () => other.runCode('1'))
}

try {
  for (const part of [basics, callbacks, results, environment, contexts, javascript, bash, together, death]) {
    try {
      await part()
    } catch (error) {
      check(part.name, false, error)
    }
  }
} finally {
  await box.kill()
}
process.exit(failed ? 1 : 0)
