/**
 * Goal: the events of every transcript are the ones that were reviewed.
 * Method: decode the stream and compare with the events file (`UPDATE=1` writes it anew); the whole
 * reply must fold to the same blocks and reason, and the request must be accepted.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { decode, decodeBody, decodeFrames, framesOf, must } from './driver.js'

const FOLDER = join('test', 'transcripts', 'openai-chat')
const UPDATE = process.env['UPDATE'] === '1'
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')
const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.stream.sse'))
  .map((name) => name.slice(0, -'.stream.sse'.length))

t.ok(names.length >= 6, 'there are transcripts')

for (const name of names) {
  void t.test(name, (t) => {
    const asked = decode(must(JSON.parse(read(`${name}.request.json`))))
    const outcome = decodeFrames(framesOf(read(`${name}.stream.sse`)), asked)
    t.equal(outcome.breach, null)
    const events = outcome.events.map((event) => `${JSON.stringify(event)}\n`).join('')
    const golden = `${name}.events.ndjson`
    if (UPDATE) writeFileSync(join(FOLDER, golden), events)
    t.ok(existsSync(join(FOLDER, golden)), 'reviewed events are there; UPDATE=1 writes them')
    t.equal(events, read(golden))
    const whole = decodeBody(must(JSON.parse(read(`${name}.reply.json`))), asked)
    t.equal(whole.breach, null)
    t.same(whole.reply?.blocks, outcome.reply?.blocks)
    t.equal(whole.reply?.reason, outcome.reply?.reason)
    t.equal(whole.reply?.raw, outcome.reply?.raw)
    t.end()
  })
}
