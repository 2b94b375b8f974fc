/**
 * Goal: the OpenAPI document is valid and has every endpoint of the data plane and of the ops port.
 * Method: a parser validates it; its paths are compared with the table of endpoints and with the list of
 * paths that the ops port gives in its 404.
 */
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { parse } from 'yaml'
import { isObject, objectOf } from '../../src/base/json.js'
import { ENDPOINTS } from '../../src/formats/match-endpoint.js'
import { OPS_ENDPOINTS } from '../../docs/generate/ops-endpoints.js'
import { startServe } from '../process/program.js'

const FILE = 'docs/reference/openapi.yaml'
const document: unknown = parse(readFileSync(FILE, 'utf8'))
const paths = objectOf(isObject(document) ? (document['paths'] ?? {}) : {})

void t.test('the document is valid OpenAPI 3.1', async (t) => {
  const validator = new Validator()
  const result = await validator.validate(FILE)
  t.strictSame(result.errors ?? [], [])
  t.equal(result.valid, true)
  t.equal(validator.version, '3.1')
})

void t.test('every operation has an id of its own', (t) => {
  const ids = Object.values(paths)
    .flatMap((item) => Object.values(objectOf(item)))
    .flatMap((operation) => (isObject(operation) ? [operation['operationId']] : []))
    .filter((id) => id !== undefined)
  t.ok(ids.length > 25)
  t.equal(new Set(ids).size, ids.length)
  t.end()
})

void t.test('every endpoint of the data plane is in the document', (t) => {
  for (const { method, path } of ENDPOINTS) {
    t.ok(isObject(objectOf(paths[path] ?? {})[method.toLowerCase()]), `${method} ${path}`)
  }
  t.end()
})

void t.test('every path of the ops port is in the document', async (t) => {
  const served = await startServe(t, { server: 'workers: 1' })
  const { text } = await served.ops('/no-such-page')
  const paths = [...text.matchAll(/\/[a-z-]+/g)].map(([path]) => path)
  t.ok(paths.includes('/metrics'))
  const documented = new Set(OPS_ENDPOINTS.map(({ path }) => `/${path.split('/')[1] ?? ''}`))
  t.strictSame(
    paths.filter((path) => !documented.has(path)),
    [],
  )
  t.strictSame(
    [...documented].filter((path) => !paths.includes(path)),
    [],
  )
})
