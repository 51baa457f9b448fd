// The code interpreter's Sandbox: every call, every kind of result, in every language that is there.
import { NotFoundError, Sandbox, TimeoutError } from '@e2b/code-interpreter'
import { finish, holds, is, like, part, refuses, sandbox, sleep, until } from './check.mjs'

const box = await sandbox({ envs: { GREETING: 'hello from create' } }, Sandbox)
const has = async (command) => (await box.commands.run(`${command} >/dev/null 2>&1 && echo yes || echo no`)).stdout === 'yes\n'

await part('runCode', async () => {
  const first = await box.runCode('x = 41\nx + 1')
  is('the last expression is the text', '42', first.text)
  is('one result', 1, first.results.length)
  is('the main one', true, first.results[0]?.isMainResult)
  is('no error', undefined, first.error)
  is('counted', 1, first.executionCount)
  const second = await box.runCode('x += 1; print(x)')
  is('state is kept', ['42\n'], second.logs.stdout)
  is('a statement has no result', [undefined, 0], [second.text, second.results.length])
  is('counted on', 2, second.executionCount)
  is('an empty cell', [0, undefined], await box.runCode('').then((e) => [e.results.length, e.error]))
  is('None is no result', 0, (await box.runCode('None')).results.length)
  is('a text without its quotes', "it's", (await box.runCode('"it\'s"')).text)
  is('unicode', '日本 🐎 é', (await box.runCode("'日本 ' + '🐎 é'")).text)
  is('a function from an earlier cell', '49', (await box.runCode('def square(n):\n    return n * n'), await box.runCode('square(7)')).text)
  is('imports', '3.14159', (await box.runCode('import math\nround(math.pi, 5)')).text)
  is('files of the sandbox', 'from files', (await box.files.write('/home/user/in.txt', 'from files'), await box.runCode("open('/home/user/in.txt').read()")).text)
  is('cells begin in the home', '/home/user', (await box.runCode('import os\nos.getcwd()')).text)
  is('cells are root\'s, as with E2B', 'root', (await box.runCode('import getpass\ngetpass.getuser()')).text)
  is('a large text', 300_000, (await box.runCode("'x' * 300000")).text?.length)
  is('top-level await', '5', (await box.runCode('import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\nawait f()')).text)
  is('a shell command', ['from shell\n'], (await box.runCode('!echo from shell')).logs.stdout)
  is('toJSON has what it says', ['error', 'logs', 'results'], Object.keys(first.toJSON()).sort())
})

await part('streams', async () => {
  const out = []
  const err = []
  const times = []
  const done = await box.runCode("import sys, time\nfor i in range(3):\n    print('o', i, flush=True)\n    print('e', i, file=sys.stderr, flush=True)\n    time.sleep(0.3)", {
    onStdout: (m) => { out.push(m.line); times.push(Date.now()) },
    onStderr: (m) => { err.push([m.line, m.error]) },
  })
  is('stdout by its callback', 'o 0\no 1\no 2\n', out.join(''))
  is('stderr by its own', 'e 0\ne 1\ne 2\n', err.map((e) => e[0]).join(''))
  is('marked as errors', true, err.every((e) => e[1]))
  is('stdout and stderr are in the logs', ['o 0\no 1\no 2\n', 'e 0\ne 1\ne 2\n'], [done.logs.stdout.join(''), done.logs.stderr.join('')])
  holds('callbacks get output as it is written', times.at(-1) - times[0] > 100, times)
  const results = []
  const errors = []
  await box.runCode('display(1)\ndisplay(2)\n3', { onResult: (r) => results.push([r.text, r.isMainResult]) })
  is('results by their callback', [['1', false], ['2', false], ['3', true]], results)
  await box.runCode('1/0', { onError: (e) => errors.push(e.name) })
  is('errors by theirs', ['ZeroDivisionError'], errors)
  const many = await box.runCode('for i in range(20000): print(i)')
  is('twenty thousand lines', 20_000, many.logs.stdout.join('').trim().split('\n').length)
})

await part('errors', async () => {
  const zero = await box.runCode('a = 1\na / 0')
  is('an error has its name', 'ZeroDivisionError', zero.error?.name)
  is('an error has its value', 'division by zero', zero.error?.value)
  like('the traceback of an error names the line', /a \/ 0/, zero.error?.traceback)
  is('no result', 0, zero.results.length)
  is('a syntax error', 'SyntaxError', (await box.runCode('def (')).error?.name)
  is('a name that is not there', ['NameError', "name 'nope' is not defined"], await box.runCode('nope').then((e) => [e.error?.name, e.error?.value]))
  is('an exception of its own', ['Mine', 'why'], await box.runCode('class Mine(Exception): pass\nraise Mine("why")').then((e) => [e.error?.name, e.error?.value]))
  is('output before it stays', ['before\n'], (await box.runCode("print('before')\nraise ValueError('x')")).logs.stdout)
  is('the kernel lives on', '1', (await box.runCode('a')).text)
  like('an exit ends no sandbox', /./, (await box.runCode('import sys; sys.exit(3)')).error?.name ?? 'none')
  is('cells run after an exit', '2', (await box.runCode('1 + 1')).text)
})

await part('kinds of results', async () => {
  const shown = async (code) => (await box.runCode(code)).results[0] ?? {}
  const kinds = [
    ['html', '<b>x</b>', 'html'], ['markdown', '# x', 'markdown'], ['svg', '<svg></svg>', 'svg'], ['latex', '$x$', 'latex'],
    ['javascript', 'alert(1)', 'javascript'],
  ]
  for (const [kind, value, field] of kinds)
    is(kind, value, (await shown(`class K:\n    def _repr_${kind}_(self): return ${JSON.stringify(value)}\nK()`))[field])
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  is('png', png, (await shown(`import base64\nclass K:\n    def _repr_png_(self): return base64.b64decode('${png}')\nK()`)).png?.trim())
  is('jpeg', 'AQID', (await shown('class K:\n    def _repr_jpeg_(self): return bytes([1, 2, 3])\nK()')).jpeg?.trim())
  is('pdf', 'AQID', (await shown('class K:\n    def _repr_pdf_(self): return bytes([1, 2, 3])\nK()')).pdf?.trim())
  is('json', { a: [1, 2] }, await shown("class K:\n    def _repr_json_(self): return {'a': [1, 2]}\nK()").then((r) => (typeof r.json === 'string' ? JSON.parse(r.json) : r.json)))
  const several = await shown("class K:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/html': '<i>', 'text/plain': 'i', 'application/x-own': 'own'}\nK()")
  is('several at once', ['<i>', 'i'], [several.html, several.text])
  is('a type that is not known is kept as extra', 'own', several.raw.extra?.['application/x-own'])
  is('formats() names what it knows', ['html'], several.formats())
  like('a list', /^\[1, 2, 3\]$/, (await shown('[1, 2, 3]')).text)
  like('a dictionary', /^\{'a': 1\}$/, (await shown("{'a': 1}")).text)
})

await part('environment', async () => {
  is('a variable of the sandbox', 'hello from create', (await box.runCode("import os\nos.environ['GREETING']")).text)
  is('a variable of the cell', 'per cell', (await box.runCode("os.environ['MINE']", { envs: { MINE: 'per cell' } })).text)
  is('a variable of a cell is not in the next', 'None', (await box.runCode("str(os.environ.get('MINE'))")).text)
  is('a cell may cover a variable of the sandbox', 'other', (await box.runCode("os.environ['GREETING']", { envs: { GREETING: 'other' } })).text)
  is('a variable of the sandbox is as before after a cell covered it', 'hello from create', (await box.runCode("os.environ['GREETING']")).text)
})

await part('contexts', async () => {
  const before = await box.listCodeContexts()
  holds('python is there', before.some((c) => c.language === 'python'), before)
  const own = await box.createCodeContext({ cwd: '/tmp' })
  is('a new one', ['python', '/tmp'], [own.language, own.cwd])
  is('a new context is the last in the list', own.id, (await box.listCodeContexts()).at(-1)?.id)
  is('begins where it was asked to', '/tmp', (await box.runCode('import os\nos.getcwd()', { context: own })).text)
  await box.runCode('only_here = 1', { context: own })
  is('a context keeps its own names', 'NameError', (await box.runCode('only_here')).error?.name)
  is('a context has its own names', '1', (await box.runCode('only_here', { context: own })).text)
  await box.restartCodeContext(own)
  is('a restarted context forgets its names', 'NameError', (await box.runCode('only_here', { context: own })).error?.name)
  is('a restarted context stays in its directory', '/tmp', (await box.runCode('import os\nos.getcwd()', { context: own })).text)
  await box.removeCodeContext(own)
  is('a removed context is not listed', undefined, (await box.listCodeContexts()).find((c) => c.id === own.id))
  await refuses('code for a removed context', NotFoundError, /./, () => box.runCode('1', { context: own }))
  await refuses('the removal of a removed context', NotFoundError, /./, () => box.removeCodeContext(own.id))
  await refuses('the restart of a removed context', NotFoundError, /./, () => box.restartCodeContext(own.id))
  const two = await Promise.all([box.createCodeContext(), box.createCodeContext()])
  const meet = (i) => `import os, time\nopen('/tmp/here${i}', 'w').close()\nwhile not os.path.exists('/tmp/here${1 - i}'): time.sleep(0.01)\n${i}`
  const both = await Promise.all(two.map((context, i) => box.runCode(meet(i), { context })))
  is('two run at once: each waits for the other', ['0', '1'], both.map((e) => e.text))
  const turns = await Promise.all([...Array(10).keys()].map((i) => box.runCode(`import time; time.sleep(0.02); ${i}`)))
  is('ten cells in one context take turns', [...Array(10).keys()].map(String), turns.map((e) => e.text))
  await Promise.all(two.map((c) => box.removeCodeContext(c)))
})

await part('timeouts', async () => {
  await refuses('a cell past its time', TimeoutError, /timeout/i, () => box.runCode('import time\ntime.sleep(60)', { timeoutMs: 800 }))
  is('a cell past its time is interrupted, and the next one runs', '7', (await box.runCode('3 + 4')).text)
  is('a silent cell continues', 'late', (await box.runCode("import time; time.sleep(6); 'late'", { timeoutMs: 30_000 })).text)
})

await part('javascript', async () => {
  if (!(await has('node --version'))) return console.log('skip - javascript: the template has no node')
  const run = async (code, opts) => box.runCode(code, { language: 'javascript', ...opts })
  is('the last expression', '3', (await run('1 + 2')).text)
  is('console.log', ['hi\n'], (await run("console.log('hi')")).logs.stdout)
  is('console.error', ['no\n'], (await run("console.error('no')")).logs.stderr)
  is('state', '10', (await run('const kept = 5'), await run('kept * 2')).text)
  is('await', '7', (await run('await Promise.resolve(7)')).text)
  is('require', 'function', (await run("typeof require('fs').readFileSync")).text)
  is('import', 'function', (await run("import { readFileSync } from 'fs'\ntypeof readFileSync")).text)
  is('an error', ['TypeError', true], await run('null.x').then((e) => [e.error?.name, /null/.test(e.error?.value)]))
  is('lives on', '2', (await run('1 + 1')).text)
  is('js is the same', '10', (await run('kept * 2', { language: 'js' })).text)
  const ctx = await box.createCodeContext({ language: 'javascript' })
  is('a context of its own', 'javascript', ctx.language)
  is('knows nothing of the other', 'ReferenceError', (await box.runCode('kept', { context: ctx })).error?.name)
  const typed = await box.runCode('const f = (n: number): number => n * 2\nf(3)', { language: 'typescript' })
  if (typed.error?.name === 'KernelError') return like('typescript needs a compiler, and says which', /npm install/, typed.error.value)
  is('typescript', '6', typed.text)
  is('typescript has types', 'ok', (await box.runCode("interface P { name: string }\nconst p: P = { name: 'ok' }\np.name as string", { language: 'ts' })).text)
})

await part('bash', async () => {
  const run = async (code, opts) => box.runCode(code, { language: 'bash', ...opts })
  is('output', 'hi\n', (await run('echo hi')).logs.stdout.join(''))
  is('errors', 'no\n', (await run('echo no >&2')).logs.stderr.join(''))
  is('state', '5\n', (await run('kept=5; cd /tmp'), await run('echo $kept')).logs.stdout.join(''))
  is('where it is', '/tmp\n', (await run('pwd')).logs.stdout.join(''))
  is('a pipe', '3\n', (await run('seq 3 | wc -l')).logs.stdout.join(''))
})

for (const [language, program, code, want] of [['r', 'Rscript', '1 + 2', /3/], ['java', 'jshell', '1 + 2', /3/]])
  await part(language, async () => {
    if (!(await has(`command -v ${program}`))) return console.log(`skip - ${language}: the template has no ${program}`)
    const done = await box.runCode(code, { language }).catch((err) => err)
    if (done instanceof Error) return like('is refused, not misunderstood', /^400/, done.message)
    like('the last expression', want, done.text)
  })

await part('charts', async () => {
  if (!(await has("python3 -c 'import matplotlib'"))) return console.log('skip - charts: the template has no matplotlib')
  const line = (await box.runCode("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [4, 5, 6], label='up')\nplt.title('Line'); plt.xlabel('x'); plt.ylabel('y')\nplt.show()")).results[0]
  holds('a picture', line?.png?.length > 1000)
  is('a chart has its data', ['line', 'Line', 'x', 'y'], [line?.chart?.type, line?.chart?.title, line?.chart?.x_label, line?.chart?.y_label])
  is('points', [[1, 4], [2, 5], [3, 6]], line?.chart?.elements[0]?.points)
  const bar = (await box.runCode("plt.figure(); plt.bar(['a', 'b'], [1, 2]); plt.show()")).results[0]
  is('bars', ['bar', 'a'], [bar?.chart?.type, bar?.chart?.elements[0]?.label])
  const pie = (await box.runCode("plt.figure(); plt.pie([1, 3], labels=['a', 'b']); plt.show()")).results[0]
  is('a pie', ['pie', 2], [pie?.chart?.type, pie?.chart?.elements.length])
})

await part('what is refused', async () => {
  holds('a language that is none', await box.runCode('1', { language: 'cobol' }).then(() => false, () => true))
  holds('a language and a context', await box.createCodeContext().then((context) => box.runCode('1', { language: 'python', context })).then(() => false, () => true))
  const doomed = await sandbox({}, Sandbox)
  await doomed.runCode('1')
  const running = doomed.runCode('import time; time.sleep(60)').catch((err) => err)
  await sleep(500)
  await doomed.kill()
  is('a sandbox that is killed meanwhile', TimeoutError, (await running)?.constructor)
  await refuses('a cell in a killed sandbox is refused', TimeoutError, /./, () => doomed.runCode('1'))
})

await finish()
