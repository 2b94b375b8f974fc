/**
 * Goal: what a transcript means does not change unnoticed.
 * Method: each stream and each whole reply under `test/transcripts/openai-responses` is decoded and
 * compared with the events on record; `UPDATE=1` rewrites them, and the difference is then reviewed.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../../src/chat/json.js'
import { framesOf, hearReply, hearStream, str } from './driver.js'

const folder = join(process.cwd(), 'test/transcripts/openai-responses')
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.stream.sse'))
  .map((file) => file.slice(0, -'.stream.sse'.length))

function read(name: string, kind: string): string {
  return readFileSync(join(folder, `${name}.${kind}`), 'utf8')
}

function json(name: string, kind: string): JsonObject {
  return objectOf(JSON.parse(read(name, kind)) as unknown)
}

void t.test('every stream means what is on record', (t) => {
  for (const name of names) {
    const heard = hearStream(framesOf(read(name, 'stream.sse')))
    t.equal(heard.breach, null, name)
    const events = heard.events.map((event) => `${JSON.stringify(event)}\n`).join('')
    if (process.env['UPDATE'] === '1') writeFileSync(join(folder, `${name}.events.ndjson`), events)
    t.equal(events, read(name, 'events.ndjson'), name)
  }
  t.ok(names.length >= 11)
  t.end()
})

void t.test('a whole reply and its stream fold to one reply', (t) => {
  const whole = names.filter((name) => existsSync(join(folder, `${name}.reply.json`)))
  for (const name of whole) {
    const streamed = hearStream(framesOf(read(name, 'stream.sse'))).reply
    const heard = hearReply(json(name, 'reply.json'))
    t.equal(heard.breach, null, name)
    t.same(heard.reply, streamed, name)
    t.ok(streamed, `${name} is an answer`)
  }
  t.ok(whole.length >= 9)
  t.end()
})

void t.test('a transcript belongs together', (t) => {
  for (const name of names) {
    const asked = json(name, 'request.json')
    const tools = arrayOf(asked.tools).map((tool) => objectOf(tool).name)
    for (const event of hearStream(framesOf(read(name, 'stream.sse'))).events) {
      if (event.type === 'start') t.equal(event.model, str(asked.model), name)
      if (event.type === 'tool-start') t.ok(tools.includes(event.name), name)
    }
  }
  t.end()
})
