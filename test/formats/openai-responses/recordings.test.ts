/**
 * Goal: recorded replies of the Responses API, whole and streamed, are decoded completely; a stream and the
 * response in its last event decode to the same reply.
 * Method: every recording of the format is also read by a naive extraction that shares no code with the
 * decoder.
 */
import t from 'tap'
import type { Reply } from '../../../src/formats/chat/fold.js'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { fixtures, skipWithoutFixtures, type Recording, labelOf } from '../../helpers/fixtures.js'
import { framesOf, decodeWhole, decodeStream, expectString } from './driver.js'

const PROVIDERS = ['openai', 'azure', 'openrouter', 'deepseek']
const all = PROVIDERS.flatMap((provider) => fixtures({ provider, api: 'responses' }))
const good = all.filter(({ status }) => status === 200)
const streams = good.filter(({ stream }) => stream)
const wholes = good.filter(({ stream }) => !stream)

interface Naive {
  text: string
  thinking: string
  sealed: string[]
  calls: { id: string; name: string; json: string }[]
  cited: unknown[]
  opaque: string[]
  usage: unknown
}

function naive(response: JsonObject): Naive {
  const items = arrayOf(response.output).map(objectOf)
  const itemsOfType = (type: string): JsonObject[] => items.filter((item) => item.type === type)
  const parts = itemsOfType('message').flatMap((item) => arrayOf(item.content).map(objectOf))
  const textIn = (list: unknown): string =>
    arrayOf(list)
      .map((part) => expectString(objectOf(part).text))
      .filter((text) => text !== '')
      .join('\n\n')
  return {
    text: parts.map((part) => expectString(part.text)).join(''),
    thinking: itemsOfType('reasoning')
      .map((item) => textIn([...arrayOf(item.summary), ...arrayOf(item.content)]))
      .join(''),
    sealed: itemsOfType('reasoning').flatMap(({ id, encrypted_content: sealed }) =>
      typeof sealed === 'string' && sealed !== '' ? [`${expectString(id)}:${sealed}`] : [],
    ),
    calls: itemsOfType('function_call').map(({ call_id: id, name, arguments: json }) => ({
      id: expectString(id),
      name: expectString(name),
      json: expectString(json),
    })),
    cited: parts
      .flatMap((part) => arrayOf(part.annotations).map(objectOf))
      .map((it) => it.url ?? it.filename),
    opaque: items
      .map((item) => expectString(item.type))
      .filter((type) => !['message', 'reasoning', 'function_call'].includes(type)),
    usage: { ...countsOf(objectOf(response.usage)), ...callsIn(items) },
  }
}

/** The calls of hosted tools, which are billed by number. */
const BILLED: Readonly<Record<string, string>> = {
  code_interpreter_call: 'code_interpreter',
  file_search_call: 'file_search',
  image_generation_call: 'image_generation',
  mcp_call: 'mcp',
  web_search_call: 'web_search',
}

function callsIn(items: readonly JsonObject[]): { calls?: Record<string, number> } {
  const calls: Record<string, number> = {}
  for (const { type, action } of items) {
    const name = BILLED[expectString(type)]
    const isBilled = !['open_page', 'find_in_page'].some((free) => free === objectOf(action).type)
    if (name !== undefined && isBilled) calls[name] = (calls[name] ?? 0) + 1
  }
  return Object.keys(calls).length === 0 ? {} : { calls }
}

function countsOf(usage: JsonObject): object {
  const input = objectOf(usage.input_tokens_details)
  const all = {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cacheRead: input.cached_tokens,
    cacheWrite: input.cache_write_tokens,
    reasoning: objectOf(usage.output_tokens_details).reasoning_tokens,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => typeof value === 'number'))
}

function seen(reply: Reply): Naive {
  const found: Naive = {
    text: '',
    thinking: '',
    sealed: [],
    calls: [],
    cited: [],
    opaque: [],
    usage: reply.usage,
  }
  for (const block of reply.blocks) {
    switch (block.type) {
      case 'text':
        found.text += block.text
        found.cited.push(...block.citations.map(({ url, title }) => url ?? title))
        break
      case 'thinking':
        found.thinking += block.text
        if (block.signature !== undefined) found.sealed.push(block.signature)
        break
      case 'tool':
        found.calls.push({ id: block.id, name: block.name, json: block.json })
        break
      case 'opaque':
        found.opaque.push(expectString(block.block.type))
        break
      default:
        found.text += '?'
    }
  }
  return found
}

/**
 * The response in the last event of a stream, with the items of the done events, because encrypted content
 * differs in each event.
 */
function lastOf(recording: Recording): JsonObject {
  const events = framesOf(recording.response_body)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => objectOf(JSON.parse(data)))
  const output: JsonObject[] = []
  for (const { type, item, output_index: at } of events) {
    if (type === 'response.output_item.done') output[Number(at)] = objectOf(item)
  }
  const last = objectOf(events.at(-1)?.response)
  t.equal(output.length, arrayOf(last.output).length, labelOf(recording))
  return { ...last, output }
}

void t.test('every whole response decodes to its content', skipWithoutFixtures(), (t) => {
  const tally = { answers: 0, unfinished: 0, calls: 0, sealed: 0, cited: 0, opaque: 0 }
  for (const recording of wholes) {
    const label = labelOf(recording)
    const body = objectOf(JSON.parse(recording.response_body))
    const decoded = decodeWhole(body)
    t.equal(decoded.breach, null, label)
    if (body.status === 'queued') {
      t.equal(decoded.error?.kind, 'upstream_truncated', label)
      tally.unfinished += 1
      continue
    }
    if (decoded.reply === null) {
      t.fail(`${label}: ${decoded.error?.message ?? 'no reply'}`)
      continue
    }
    const expected = naive(body)
    t.same(seen(decoded.reply), expected, label)
    t.equal(decoded.reply.reason, expected.calls.length > 0 ? 'tool-use' : 'stop', label)
    t.equal(decoded.reply.id, body.id)
    t.equal(decoded.reply.model, body.model)
    tally.answers += 1
    tally.calls += expected.calls.length
    tally.sealed += expected.sealed.length
    tally.cited += expected.cited.length
    tally.opaque += expected.opaque.length
  }
  t.comment(JSON.stringify(tally))
  t.ok(tally.answers >= 185)
  t.end()
})

void t.test('every stream decodes like the response in its last event', skipWithoutFixtures(), (t) => {
  const tally = { streams: 0, frames: 0, calls: 0, sealed: 0, cited: 0, opaque: 0 }
  for (const recording of streams) {
    const label = labelOf(recording)
    // The streams of four turns in one file.
    if (/azure-reasoning-encrypted-content\.1\.chunks/.test(label)) continue
    const events = framesOf(recording.response_body)
    const received = decodeStream(events)
    t.equal(received.breach, null, label)
    if (received.reply === null) {
      t.fail(`${label}: ${received.error?.message ?? 'no reply'}`)
      continue
    }
    const last = lastOf(recording)
    const expected = naive(last)
    t.same(seen(received.reply), expected, label)
    t.same(received.reply, decodeWhole(last).reply, label)
    tally.streams += 1
    tally.frames += events.length
    tally.calls += expected.calls.length
    tally.sealed += expected.sealed.length
    tally.cited += expected.cited.length
    tally.opaque += expected.opaque.length
  }
  t.comment(JSON.stringify(tally))
  t.ok(tally.streams >= 40)
  t.end()
})

void t.test('a recorded stream decodes without duplicates', skipWithoutFixtures(), (t) => {
  for (const recording of streams) {
    const label = labelOf(recording)
    const events = framesOf(recording.response_body)
    // Without deltas, the text of the done events is the same.
    const bare = events.filter(({ data }) => !/"type": ?"[a-z._]+\.delta"/.test(data))
    const recorder = decodeStream(events).reply
    t.same(decodeStream(bare).reply, recorder, label)
    // Without done events, the text of the deltas is the same.
    const lean = events.filter(({ name }) => !name.endsWith('.done') || name.includes('item.done'))
    t.same(decodeStream(lean).reply, recorder, label)
  }
  t.end()
})
