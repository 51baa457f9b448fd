// Writes src/schema.ts (types) and src/operations.ts (method and path of every operation) from spec/openapi.yaml.
// Usage: node generate.mjs [--out DIR]. A test compares the result with the committed files.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const spec = path.resolve(here, '../../spec/openapi.yaml')
const at = process.argv.indexOf('--out')
const out = path.resolve(at > 0 ? process.argv[at + 1] : path.join(here, 'src'))
const find = createRequire(path.join(process.cwd(), 'x.js'))
const { default: openapiTS, astToString } = find('openapi-typescript')
const yaml = find('js-yaml')

const note = '// Generated from spec/openapi.yaml by generate.mjs: do not edit.\n'
// A member with a default may be left out of a request: it is optional.
const types = astToString(await openapiTS(pathToFileURL(spec), { defaultNonNullable: false }))
writeFileSync(path.join(out, 'schema.ts'), note + types)

const { paths } = yaml.load(readFileSync(spec, 'utf8'))
const rows = []
for (const [where, item] of Object.entries(paths)) {
  for (const method of ['get', 'put', 'post', 'delete', 'patch']) {
    if (item[method]) rows.push(`  ${item[method].operationId}: ['${method.toUpperCase()}', '${where}'],\n`)
  }
}
writeFileSync(path.join(out, 'operations.ts'), `${note}export const operations = {\n${rows.join('')}} as const\n`)
