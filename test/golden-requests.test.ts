/**
 * Goal: changes in the translation of requests are noticed: one request per row of the field table, for
 * models of the catalogue that accept different fields.
 * Method: each request under `test/transcripts/requests` is translated: the edits to its bytes for a model of
 * the same format, the whole body for the others, the lost fields, or the reason for a refusal. The results
 * are compared with stored files. `UPDATE=1` rewrites the files; review the difference.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { JsonObject } from '../src/base/json.js'
import { factsFor } from '../src/config/catalogue.js'
import { loadConfig } from '../src/config/load-config.js'
import type { DialectName } from '../src/formats/dialect.js'
import { GatewayError } from '../src/errors.js'
import { stringifyExact } from '../src/formats/wire/json/exact-numbers.js'
import { parseObject } from '../src/formats/wire/json/parse-body.js'
import { splice } from '../src/formats/wire/json/splice.js'
import { client, upstream } from './properties/transcript-streams.js'

const FOLDER = join(process.cwd(), 'test/transcripts/requests')
const MODELS: readonly (readonly [model: string, dialect: DialectName])[] = [
  ['gpt-5.4', 'openai-chat'],
  ['claude-haiku-4-5', 'anthropic'],
  ['claude-opus-5-5', 'anthropic'],
  ['gemini-2.5-flash', 'gemini'],
  ['gemini-3.5-flash', 'gemini'],
]

const loaded = loadConfig('config/gateway.yaml', {})
if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
const { catalogue } = loaded

/** One line per finding, so that a difference is easy to review. */
function sent(bytes: Buffer, model: string, dialect: DialectName): string[] {
  const reported = new Set<string>()
  const losses = {
    drop: (path: string, why: string): void => void reported.add(`  lost ${path}: ${why}`),
  }
  const facts = factsFor(catalogue, model)
  const { value, members } = parseObject(bytes)
  try {
    const upstreamCodec = upstream(dialect)
    const request = client.decodeRequest(value, { operation: 'chat' })
    if (dialect !== 'openai-chat') {
      const body = upstreamCodec.encodeRequest({ ...request, model }, facts, losses)
      const headers = Object.entries(upstreamCodec.headers(body)).map(([name, is]) => `  ${name}: ${is}`)
      return [...reported, ...headers, indented(stringifyExact(body))]
    }
    const edits = upstreamCodec.edits(value, model, { model: facts, losses })
    const made = parseObject(splice(bytes, members, edits)).value
    return [...reported, ...edits.map(({ key }) => `  ${key} = ${shown(made, key)}`)]
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return [`  refused: ${error.kind}: ${error.message}`]
  }
}

function shown(body: JsonObject, key: string): string {
  const value = body[key]
  return value === undefined ? 'nothing' : stringifyExact(value)
}

/** Each top-level member on a line of its own. */
function indented(json: string): string {
  const { members } = parseObject(Buffer.from(json))
  return members
    .map(({ key, valueStart, valueEnd }) => {
      return `  ${key} = ${Buffer.from(json).subarray(valueStart, valueEnd).toString()}`
    })
    .join('\n')
}

const names = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.request.json'))
  .map((file) => file.slice(0, -'.request.json'.length))

t.ok(names.length >= 37, 'there are requests')

for (const name of names) {
  void t.test(name, (t) => {
    const bytes = readFileSync(join(FOLDER, `${name}.request.json`))
    const text = MODELS.map(([model, dialect]) =>
      [model, ...sent(bytes, model, dialect), ''].join('\n'),
    ).join('\n')
    const record = join(FOLDER, `${name}.sent.txt`)
    if (process.env['UPDATE'] === '1') writeFileSync(record, text)
    t.ok(existsSync(record), 'is on record; UPDATE=1 writes it')
    t.equal(text, readFileSync(record, 'utf8'), name)
    t.end()
  })
}
