/**
 * Goal: recorded replies of the Messages API, whole and streamed, are decoded completely. Method: a naive
 * extraction that shares no code with the decoder reads every recording; text, thinking, tool calls,
 * citations, stop reason and usage must be equal.
 */
import t from 'tap'
import { Fold, type Reply } from '../../../src/formats/chat/fold.js'
import { arrayOf, isObject, objectOf, type JsonObject } from '../../../src/base/json.js'
import { fixturesFolder, recordings } from '../../helpers/fixtures.js'
import { framesOf } from '../sse-frames.js'
import type { Decoded } from '../collect-events.js'
import { upstreamCodec, decodeReply, decodeStream, request, stringOrEmpty } from './driver.js'

/** Recordings whose usage differs from the top-level counts, each with the reason. */
const EXCEPTIONS: Record<string, string> = {
  'anthropic/test_anthropic__test_anthropic_compaction_end_to_end.1.json':
    'usage: the top level leaves out the compaction itself; its iterations hold all',
  'anthropic/test_anthropic__test_anthropic_compaction_usage_with_cache_streaming.json':
    'usage: as above, and the compaction read the cache',
}

interface Naive {
  text: string
  thinking: string
  signatures: string[]
  redacted: string[]
  calls: { id: string; name: string; args: unknown }[]
  cited: string[]
  opaque: string[]
  stop: unknown
  usage: JsonObject
}

/** The message of a whole reply, or the message assembled from a stream. */
function message(body: string, stream: boolean): JsonObject {
  if (!stream) return objectOf(JSON.parse(body) as unknown)
  const whole: JsonObject = {}
  const content: JsonObject[] = []
  const json: string[] = []
  for (const line of body.split('\n')) {
    if (!line.startsWith('data:')) continue
    const event = objectOf(JSON.parse(line.slice(5)) as unknown)
    const at = Number(event.index)
    const delta = objectOf(event.delta)
    if (event.type === 'message_start') Object.assign(whole, event.message)
    if (event.type === 'content_block_start') {
      content[at] = { citations: [], ...objectOf(event.content_block) }
      json[at] = ''
    }
    const block = content[at] ?? {}
    if (delta.type === 'text_delta') block.text = `${block.text as string}${delta.text as string}`
    if (delta.type === 'thinking_delta') {
      block.thinking = `${block.thinking as string}${delta.thinking as string}`
    }
    if (delta.type === 'signature_delta') block.signature = delta.signature
    if (delta.type === 'citations_delta') arrayOf(block.citations).push(delta.citation ?? null)
    if (delta.type === 'compaction_delta') block.content = delta.content
    if (delta.type === 'input_json_delta') json[at] = `${json[at] ?? ''}${delta.partial_json as string}`
    if (event.type === 'content_block_stop' && json[at]) block.input = JSON.parse(json[at]) as JsonObject
    if (event.type === 'message_delta') {
      Object.assign(whole, delta, {
        usage: { ...objectOf(whole.usage), ...objectOf(event.usage) },
      })
    }
  }
  return { ...whole, content }
}

function naive(body: string, stream: boolean): Naive {
  const whole = message(body, stream)
  const blocks = arrayOf(whole.content).map(objectOf)
  const blocksOfType = (type: string) => blocks.filter((block) => block.type === type)
  return {
    text: blocksOfType('text')
      .map((block) => stringOrEmpty(block.text))
      .join(''),
    thinking: blocksOfType('thinking')
      .map((block) => stringOrEmpty(block.thinking))
      .join(''),
    signatures: blocksOfType('thinking').map((block) => stringOrEmpty(block.signature)),
    redacted: blocksOfType('redacted_thinking').map((block) => stringOrEmpty(block.data)),
    calls: blocksOfType('tool_use').map((block) => ({
      id: stringOrEmpty(block.id),
      name: stringOrEmpty(block.name),
      args: block.input,
    })),
    cited: blocksOfType('text').flatMap((block) =>
      arrayOf(block.citations).map((one) => stringOrEmpty(objectOf(one).url)),
    ),
    opaque: blocks
      .filter((block) => /^(server_tool_use|compaction|.*_tool_result)$/.test(stringOrEmpty(block.type)))
      .map((block) => JSON.stringify(block.input ?? block.content)),
    stop: whole.stop_reason,
    usage: objectOf(whole.usage),
  }
}

function seen(reply: Reply): Omit<Naive, 'stop' | 'usage'> {
  const found: Omit<Naive, 'stop' | 'usage'> = {
    text: '',
    thinking: '',
    signatures: [],
    redacted: [],
    calls: [],
    cited: [],
    opaque: [],
  }
  for (const block of reply.blocks) {
    if (block.type === 'text') {
      found.text += block.text
      for (const citation of block.citations) found.cited.push(citation.url ?? '')
    } else if (block.type === 'thinking') {
      found.thinking += block.text
      if (block.redacted !== undefined) found.redacted.push(block.redacted)
      else found.signatures.push(block.signature ?? '')
    } else if (block.type === 'tool') {
      found.calls.push({ id: block.id, name: block.name, args: JSON.parse(block.json) as unknown })
    } else if (block.type === 'opaque') {
      found.opaque.push(JSON.stringify(block.block.input ?? block.block.content))
    }
  }
  return found
}

/** The calls of tools that Anthropic ran, and of advisors. */
function callsIn(usage: JsonObject): Record<string, unknown> | undefined {
  const { web_search_requests: search, web_fetch_requests: fetched } = objectOf(usage.server_tool_use)
  const advised = arrayOf(usage.iterations).filter((one) => objectOf(one).type === 'advisor_message')
  const all = { web_search: search, web_fetch: fetched, advisor: advised.length }
  const found = Object.entries(all).filter(([, count]) => typeof count === 'number' && count > 0)
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

/** The tokens of advisors, each of which has a model of its own. */
function elsewhereIn(usage: JsonObject): object[] | undefined {
  const found = arrayOf(usage.iterations)
    .map(objectOf)
    .filter(({ type }) => type === 'advisor_message')
    .map(({ model, ...own }) => ({ tool: 'advisor', model, count: 1, usage: counts(own, false) }))
  return found.length === 0 ? undefined : found
}

/** The top-level counts, or the sums over the iterations. */
function counts(usage: JsonObject, iterations: boolean): Record<string, unknown> {
  const parts = iterations ? arrayOf(usage.iterations).map(objectOf) : [usage]
  const sum = (...names: string[]): number | undefined => {
    const values = parts.flatMap((part) => names.map((name) => part[name]))
    const numbers = values.filter((value) => typeof value === 'number')
    return numbers.length === 0 ? undefined : numbers.reduce((a, b) => a + b, 0)
  }
  const written = 'cache_creation_input_tokens'
  const read = 'cache_read_input_tokens'
  const all: Record<string, unknown> = {
    input: sum('input_tokens', written, read),
    output: sum('output_tokens'),
    cacheRead: sum(read),
    cacheWrite: sum(written),
    reasoning: objectOf(usage.output_tokens_details).thinking_tokens ?? undefined,
    calls: callsIn(usage),
    elsewhere: elsewhereIn(usage),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

const REASONS: Record<string, string> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-use',
  max_tokens: 'length',
  pause_turn: 'pause',
  refusal: 'filter',
}

const folder = fixturesFolder()

void t.test('every recorded reply is decoded completely', { skip: folder === null }, (t) => {
  const used = new Set<string>()
  const tally = { whole: 0, streamed: 0, failed: 0, calls: 0, citations: 0, opaque: 0, frames: 0 }
  for (const { name, recording } of recordings(folder ?? '')) {
    if (!name.startsWith('anthropic/') || !isObject(recording)) continue
    if (recording.api !== 'messages') continue
    const body = stringOrEmpty(recording.response_body)
    if (recording.status !== 200) {
      tally.failed += 1
      const error = upstreamCodec.decodeError(Number(recording.status), {}, body)
      t.equal(error.kind, 'unknown_model', name)
      continue
    }
    const stream = recording.stream === true
    const frames = stream ? framesOf(body) : []
    tally[stream ? 'streamed' : 'whole'] += 1
    tally.frames += frames.length
    const decoded: Decoded = stream ? decodeStream(frames) : decodeReply(message(body, false))
    const expected = naive(body, stream)
    if (decoded.reply === null) {
      t.fail(`${name}: ${decoded.error?.message ?? 'no reply'}`)
      continue
    }
    const { stop, usage, ...content } = expected
    const found = seen(decoded.reply)
    t.same(found, content, name)
    t.equal(decoded.breach, null)
    t.equal(decoded.reply.raw, stop)
    t.equal(decoded.reply.reason, REASONS[stringOrEmpty(stop)])
    if (name in EXCEPTIONS) used.add(name)
    t.same(decoded.reply.usage, counts(usage, name in EXCEPTIONS), `${name}: usage`)
    tally.calls += found.calls.length
    tally.citations += found.cited.length
    tally.opaque += found.opaque.length
  }
  t.comment(JSON.stringify(tally))
  for (const [name, why] of Object.entries(EXCEPTIONS)) t.comment(`exception: ${name}: ${why}`)
  t.same([...used].sort(), Object.keys(EXCEPTIONS).sort(), 'every exception still applies')
  t.ok(tally.whole + tally.streamed >= 239, 'all recordings were read')
  t.end()
})

void t.test('a stream and its whole reply decode to the same reply', { skip: folder === null }, (t) => {
  let compared = 0
  for (const { name, recording } of recordings(folder ?? '')) {
    if (!name.startsWith('anthropic/') || !isObject(recording)) continue
    if (recording.api !== 'messages' || recording.stream !== true) continue
    const body = stringOrEmpty(recording.response_body)
    const fold = new Fold()
    upstreamCodec.decodeReply(message(body, true), request(), fold)
    t.same(comparable(fold.reply()), comparable(decodeStream(framesOf(body)).reply), name)
    compared += 1
  }
  t.comment(`${compared} streams compared with the same reply as a whole`)
  t.ok(compared > 0)
  t.end()
})

/** The reply with parsed arguments, because a stream keeps the upstream's spacing. */
function comparable(reply: Reply | null): unknown {
  if (reply === null) return null
  const blocks = reply.blocks.map((block) => {
    if (block.type === 'tool') return { ...block, json: JSON.parse(block.json) as unknown }
    if (block.type !== 'opaque') return block
    return { ...block, block: { ...block.block, citations: undefined } }
  })
  return { ...reply, blocks }
}
