// The javascript and typescript kernel. Started by kernel.py with the numbers of two descriptors: cells come in on the
// first, one JSON line each, events go out on the second. What is printed goes to the ordinary stdout, a pipe.
//
// A cell runs as a script in this process's own global scope, so names live on from cell to cell. What scripts cannot do is
// rewritten first: `const` and `let` at the top level (a second cell may declare them again), static `import`, and
// top-level `await`, for which the cell becomes the body of an async function that assigns to globals.
'use strict'

const fs = require('fs')
const net = require('net')
const path = require('path')
const vm = require('vm')
const util = require('util')
const { createRequire } = require('module')
const { pathToFileURL } = require('url')

const [language, cellsFd, eventsFd] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const EVENT_MAX = 31 << 20
let count = 0

// ---- events ----

function ascii(value) {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
}

function emit(event) {
  let data = Buffer.from(ascii(event) + '\n', 'latin1')
  if (data.length > EVENT_MAX) {
    process.stderr.write(`a result of ${data.length >> 20} MB is too big to be sent\n`)
    return
  }
  while (data.length > 0) {
    try {
      data = data.subarray(fs.writeSync(eventsFd, data))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

function textOf(value) {
  return typeof value === 'string' ? util.inspect(value) : util.inspect(value, { depth: 4, maxArrayLength: 200 })
}

// An object may say itself what it looks like: by a method of its own, or by the symbol that deno's kernel knows.
function bundleOf(value) {
  const show = value !== null && typeof value === 'object' && (value[Symbol.for('Jupyter.display')] || value._repr_mimebundle_)
  if (typeof show === 'function') {
    const bundle = show.call(value)
    if (bundle && typeof bundle === 'object') return { 'text/plain': textOf(value), ...bundle }
  }
  const bundle = { 'text/plain': textOf(value) }
  if (value !== null && typeof value === 'object' && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)) {
    try {
      const json = JSON.stringify(value)
      if (json && json.length < 8 << 20) bundle['application/json'] = JSON.parse(json)
    } catch {}
  }
  return bundle
}

function display(value, options) {
  const raw = options && options.raw && value && typeof value === 'object'
  emit({ type: 'result', is_main_result: false, data: raw ? value : bundleOf(value) })
}

// ---- rewriting: a scanner that knows texts, comments, regular expressions and brackets, and nothing of grammar ----

const WORD = /[A-Za-z0-9_$\u0080-\uffff]/
const BEFORE_REGEX = /(^|[=(,;:[!&|?{}+\-*%~^<>]|\b(return|typeof|case|in|of|delete|void|throw|new|instanceof|await|yield|else|do))$/

function skipText(code, at, quote) {
  for (at++; at < code.length; at++) {
    if (code[at] === '\\') at++
    else if (code[at] === quote) return at + 1
    else if (quote === '`' && code.startsWith('${', at)) at = skipBraces(code, at + 1) - 1
  }
  return at
}

function skipRegex(code, at) {
  for (let inClass = false, i = at + 1; i < code.length && code[i] !== '\n'; i++) {
    if (code[i] === '\\') i++
    else if (code[i] === '[') inClass = true
    else if (code[i] === ']') inClass = false
    else if (code[i] === '/' && !inClass) return i + 1
  }
  return at + 1
}

function skipBraces(code, at) {
  let depth = 0
  for (const token of tokens(code, at)) {
    if (token.text === '{') depth++
    if (token.text === '}' && --depth === 0) return token.end
  }
  return code.length
}

// Words, single characters, and as one token each: texts, comments, regular expressions, line ends.
function* tokens(code, at = 0) {
  let before = ''
  while (at < code.length) {
    const start = at
    const c = code[at]
    let kind = 'mark'
    if (c === '\n') {
      at++
      kind = 'line'
    } else if (/\s/.test(c)) {
      at++
      kind = 'blank'
    } else if (code.startsWith('//', at)) {
      at = (code + '\n').indexOf('\n', at)
      kind = 'blank'
    } else if (code.startsWith('/*', at)) {
      const end = code.indexOf('*/', at)
      at = end < 0 ? code.length : end + 2
      kind = 'blank'
    } else if (c === '"' || c === "'" || c === '`') {
      at = skipText(code, at, c)
      kind = 'text'
    } else if (c === '/' && BEFORE_REGEX.test(before)) {
      at = skipRegex(code, at)
      kind = 'text'
    } else if (WORD.test(c)) {
      while (at < code.length && WORD.test(code[at])) at++
      kind = 'word'
    } else {
      at++
    }
    const token = { kind, text: code.slice(start, at), start, end: at }
    if (kind === 'word' || kind === 'mark' || kind === 'text') before = kind === 'text' ? 'x' : token.text
    yield token
  }
}

// The statements at the top level, roughly: where each begins, and its first tokens.
function topLevel(code) {
  const statements = []
  let depth = 0
  let fresh = true
  for (const token of tokens(code)) {
    if (token.kind === 'blank' || token.kind === 'line') {
      if (token.kind === 'line' && depth === 0) fresh = true
      continue
    }
    if (depth === 0 && fresh) statements.push({ start: token.start, word: token.kind === 'word' ? token.text : '', mark: token.text })
    fresh = false
    if ('([{'.includes(token.text) && token.text.length === 1) depth++
    if (')]}'.includes(token.text) && token.text.length === 1) {
      depth--
      if (depth === 0 && token.text === '}') fresh = true
    }
    if (depth === 0 && token.text === ';') fresh = true
  }
  return statements
}

function namesOf(pattern) {
  const names = []
  for (const part of pattern.replace(/[{}]/g, '').split(',')) {
    const [from, to] = part.trim().split(/\s+as\s+/)
    if (from) names.push([from, to || from])
  }
  return names
}

const IMPORT = /^import\s+(?:type\s+[^;\n]*from\s*(['"])[^'"]+\1|(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*)?(?:\{([^}]*)\}\s*)?(?:from\s*)?(['"])([^'"]+)\5)(?:\s*(?:with|assert)\s*\{[^}]*\})?/

function rewriteImport(code) {
  const found = IMPORT.exec(code)
  if (!found) return null
  const [whole, typeOnly, preset, all, named, , from] = found
  if (typeOnly) return [whole.length, '']
  const source = `await __import__(${JSON.stringify(from)})`
  const lines = []
  if (all) lines.push(`globalThis.${all} = ${source}`)
  if (preset) lines.push(`globalThis.${preset} = __preset__(${source})`)
  for (const [name, as] of namesOf(named || '')) lines.push(`globalThis.${as} = __named__(${source}, ${JSON.stringify(name)})`)
  if (lines.length === 0) lines.push(source)
  return [whole.length, lines.join('; ') + ';']
}

// Replaces at the top level, from the end to the beginning so that places stay right. Line numbers stay, too.
function rewrite(code) {
  const imports = []
  for (const { start, word } of topLevel(code).reverse()) {
    if (word === 'import' && !/^import\s*[.(]/.test(code.slice(start))) {
      const found = rewriteImport(code.slice(start))
      if (!found) continue
      const lines = code.slice(start, start + found[0]).split('\n').length - 1
      imports.unshift(found[1])
      code = code.slice(0, start) + '\n'.repeat(lines) + code.slice(start + found[0])
    } else if (word === 'const' || word === 'let') {
      code = code.slice(0, start) + 'var' + code.slice(start + word.length)
    } else if (word === 'class') {
      const name = /^class\s+([\w$]+)/.exec(code.slice(start))
      if (name && name[1] !== 'extends') code = code.slice(0, start) + `var ${name[1]} = ` + code.slice(start)
    } else if (word === 'export') {
      code = code.slice(0, start) + code.slice(start).replace(/^export\s+(default\s+)?/, '')
    }
  }
  return { code, imports: imports.join(' ') }
}

// ---- running ----

const requireHere = createRequire(path.join(process.cwd(), 'cell.js'))

function importHere(name) {
  if (name.startsWith('.') || name.startsWith('/')) return import(pathToFileURL(path.resolve(name)).href)
  if (name.startsWith('node:') || name.includes('://')) return import(name)
  try {
    return import(pathToFileURL(createRequire(path.join(process.cwd(), 'cell.js')).resolve(name)).href).catch(() => import(name))
  } catch {
    return import(name)
  }
}

Object.assign(globalThis, { require: requireHere, display, module: { exports: {} }, exports: {} })
for (const [name, value] of [
  ['__import__', (name) => (require('module').builtinModules.includes(name.replace(/^node:/, '')) ? import(name) : importHere(name))],
  ['__preset__', (module) => ('default' in module ? module.default : module)],
  ['__named__', (module, name) => (name in module || !module.default ? module[name] : module.default[name])],
]) Object.defineProperty(globalThis, name, { value, enumerable: false })

function compile(code, name) {
  return new vm.Script(code, { filename: name, importModuleDynamically: (wanted) => importHere(wanted) })
}

const usesAwait = (code) => {
  for (const token of tokens(code)) if (token.kind === 'word' && (token.text === 'await')) return true
  return false
}

// The body of an async function: declarations become assignments, and the last expression is returned.
function wrap(code) {
  const starts = topLevel(code)
  const declared = new Set()
  for (const { start, word } of [...starts].reverse()) {
    if (word === 'var') {
      const rest = code.slice(start + 3)
      const pattern = /^\s*[{[]/.test(rest)
      declare(rest, declared)
      code = code.slice(0, start) + (pattern ? ';(' : '  ;') + rest
      if (pattern) code = closeAssignment(code, start + 2)
    } else if (word === 'function' || (word === 'async' && /^async\s+function/.test(code.slice(start)))) {
      const name = /^(?:async\s+)?function\s*\*?\s*([\w$]+)/.exec(code.slice(start))
      if (name) code = `globalThis.${name[1]} = ${name[1]}; ` + code
    }
  }
  const last = topLevel(code).pop()
  const plain = last && !/^(if|for|while|do|switch|try|throw|function|class|return|break|continue|async\s+function|\})\b/.test(code.slice(last.start))
  if (last && plain) {
    const tail = code.slice(last.start).replace(/;\s*$/, '')
    const tried = code.slice(0, last.start) + 'return (' + tail + '\n)'
    if (parses(tried)) code = tried
  }
  const names = [...declared].map((name) => `if (!('${name}' in globalThis)) globalThis.${name} = undefined;`).join(' ')
  return `${names} (async () => { ${code}\n})()`
}

function parses(code) {
  try {
    new vm.Script(`(async () => { ${code}\n})`)
    return true
  } catch {
    return false
  }
}

// The names that `var …` declares: at depth 0 before `=`, `,` or the end; in a pattern, all of its targets.
function declare(rest, into) {
  let depth = 0
  let wanted = true
  let patterned = false
  let previous = null
  for (const token of tokens(rest)) {
    if (token.kind === 'blank') continue
    if (token.text === ';' && depth === 0) return
    if (token.kind === 'line') {
      if (depth === 0 && previous && previous.text !== ',' && previous.text !== '=') return
      continue
    }
    if ('([{'.includes(token.text) && token.kind === 'mark') {
      if (depth === 0 && wanted) patterned = true
      depth++
    } else if (')]}'.includes(token.text) && token.kind === 'mark') {
      depth--
      if (depth === 0 && patterned) wanted = patterned = false
    } else if (token.text === '=' && depth === 0) wanted = false
    else if (token.text === ',' && depth === 0) wanted = true
    else if (token.kind === 'word' && wanted && (depth === 0 || patterned) && !/^\d/.test(token.text)) {
      into.add(token.text)
      if (depth === 0) wanted = false
    }
    previous = token
  }
}

function closeAssignment(code, at) {
  let depth = 0
  let last = at
  for (const token of tokens(code, at)) {
    if (token.kind === 'mark' && '([{'.includes(token.text)) depth++
    if (token.kind === 'mark' && ')]}'.includes(token.text)) depth--
    if (depth === 0 && (token.text === ';' || token.kind === 'line') && last > at) break
    if (token.kind !== 'blank' && token.kind !== 'line') last = token.end
  }
  return code.slice(0, last) + ')' + code.slice(last)
}

function rethrown(error, name) {
  const value = error instanceof Error || (error && typeof error === 'object' && 'message' in error)
  const stack = value && typeof error.stack === 'string' ? error.stack : util.inspect(error)
  const traceback = stack.split('\n').filter((line) => !line.includes(__filename) && !line.includes('node:vm') && !/node:internal/.test(line)).join('\n')
  return { type: 'error', name: value ? String(error.name || 'Error') : 'Error', value: value ? String(error.message) : textOf(error), traceback }
}

let interrupt = null // of the cell that waits for a promise

async function evaluate(code, name) {
  if (language === 'typescript') code = stripTypes(code, name)
  const { code: plain, imports } = rewrite(code)
  let script
  let waits = imports !== '' || usesAwait(plain)
  if (waits) {
    try {
      script = imports ? null : compile(plain, name)
      waits = script === null
    } catch {}
  }
  if (!waits) {
    script = script || compile(plain, name)
    const value = script.runInThisContext({ breakOnSigint: true })
    return value instanceof Promise && /^\s*await\b/.test(plain) ? await value : value
  }
  script = compile(`${imports ? '(async () => {' + imports + '})().then(() => ' : ''}${wrap(plain)}${imports ? ')' : ''}`, name)
  const work = script.runInThisContext({ breakOnSigint: true })
  const stop = new Promise((_, reject) => {
    interrupt = () => reject(Object.assign(new Error('the execution was interrupted'), { name: 'KeyboardInterrupt' }))
  })
  try {
    return await Promise.race([work, stop])
  } finally {
    interrupt = null
  }
}

// TypeScript is compiled by whichever compiler the sandbox has; each cell by itself, so types are not checked.
let compiler = null

function findCompiler() {
  const places = [process.cwd(), '/usr/share/nodejs', '/usr/lib/node_modules', '/usr/local/lib/node_modules', `${process.env.HOME}/.local/lib/node_modules`]
  for (const [name, use] of [
    ['typescript', (ts) => (code, file) => ts.transpileModule(code, { fileName: file, compilerOptions: { target: 'ES2022', module: 'ESNext', removeComments: false } }).outputText],
    ['esbuild', (es) => (code) => es.transformSync(code, { loader: 'ts', target: 'es2022' }).code],
    ['sucrase', (su) => (code) => su.transform(code, { transforms: ['typescript'], disableESTransforms: true }).code],
  ]) {
    for (const place of places) {
      try {
        return use(createRequire(path.join(place, 'x.js'))(require.resolve(name, { paths: [place, path.join(place, 'node_modules')] })))
      } catch {}
      try {
        return use(require(path.join(place, name)))
      } catch {}
    }
  }
  const module = require('module')
  if (module.stripTypeScriptTypes) return (code) => module.stripTypeScriptTypes(code, { mode: 'transform' })
  return null
}

function stripTypes(code, name) {
  compiler = compiler || findCompiler()
  if (!compiler) {
    throw Object.assign(new Error("there is no TypeScript compiler in this sandbox: install one with `npm install -g typescript`, or use the template code-interpreter-v1"), { name: 'KernelError' })
  }
  return compiler(code, name.replace(/\W/g, '_') + '.ts').replace(/^export \{\};\s*$/m, '')
}

function setEnv(env) {
  const saved = {}
  for (const [name, value] of Object.entries(env || {})) {
    saved[name] = process.env[name]
    process.env[name] = value
  }
  return () => {
    for (const [name, value] of Object.entries(saved)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}

async function run(cell) {
  emit({ type: 'begin', id: cell.id, execution_count: ++count })
  const restore = setEnv(cell.env)
  try {
    const value = await evaluate(cell.code, `<cell ${count}>`)
    if (value !== undefined) emit({ type: 'result', is_main_result: true, data: bundleOf(value) })
  } catch (error) {
    const stopped = error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED'
    emit(rethrown(stopped ? Object.assign(new Error('the execution was interrupted'), { name: 'KeyboardInterrupt' }) : error))
  }
  restore()
  emit({ type: 'end', id: cell.id })
}

// ---- cells ----

process.on('SIGINT', () => interrupt && interrupt())
process.on('uncaughtException', (error) => process.stderr.write(util.inspect(error) + '\n'))
process.on('unhandledRejection', (error) => process.stderr.write('Unhandled rejection: ' + util.inspect(error) + '\n'))

async function serve() {
  let pending = ''
  // Not a stream of fs: its reads wait in a thread, and process.exit() would wait for them.
  const input = new net.Socket({ fd: cellsFd, readable: true, writable: false }).setEncoding('utf8')
  for await (const piece of input) {
    pending += piece
    for (let at; (at = pending.indexOf('\n')) >= 0;) {
      const line = pending.slice(0, at)
      pending = pending.slice(at + 1)
      await run(JSON.parse(line))
    }
  }
  process.exit(0)
}

serve()
