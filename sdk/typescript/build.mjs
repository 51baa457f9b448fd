// Builds dist/esm and dist/cjs from src, with types for each. Usage: node build.mjs [--out DIR]
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const at = process.argv.indexOf('--out')
const out = path.resolve(at > 0 ? process.argv[at + 1] : path.join(here, 'dist'))
// The compiler is found beside this package or beside the working directory (tests install it apart).
const compiler = createRequire(path.join(process.cwd(), 'x.js')).resolve('typescript/bin/tsc')

for (const [kind, config, type] of [['esm', 'tsconfig.json', 'module'], ['cjs', 'tsconfig.cjs.json', 'commonjs']]) {
  const folder = path.join(out, kind)
  rmSync(folder, { recursive: true, force: true })
  const roots = path.join(process.cwd(), 'node_modules', '@types')
  const done = spawnSync(process.execPath, [compiler, '-p', path.join(here, config), '--outDir', folder, '--typeRoots', roots], { stdio: 'inherit' })
  if (done.status !== 0) process.exit(done.status ?? 1)
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ type }) + '\n')
}
