/**
 * The client formats other than chat completions: their requests and how to read their replies. A client
 * format is one more entry; the tests of recordings use all entries.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { type Answered, checkInto, type Check } from '../check-completion.js'
import { fromAnthropic, objectsOf, type Format, type Gist } from '../recordings/recorded.js'

/** One client format. */
export interface ClientForm {
  /** Its dialect, whose recordings must pass byte for byte. */
  readonly own: Format
  path(model: string, stream: boolean): string
  /** A request with only the text `words`. */
  body(model: string, words: string, stream: boolean): object
  /** The content of a reply in the terms of a chat completion. */
  read(objects: readonly JsonObject[]): Gist
  /** Changes the expected content to what this format can express. */
  expected(gist: Gist): Gist
  /** The finish reason of a refusal that its provider reports as a stop. */
  readonly refusal: string
  /** Faults of a reply. */
  faults(answered: Answered, stream: boolean): string[]
  /** The error kind in which a reply ended. */
  errorKind(last: JsonObject): string | undefined
  /** Whether a stream has its terminator. */
  claimsEnd(text: string): boolean
}

/** Anthropic's Messages. */
const messages: ClientForm = {
  own: 'anthropic',
  refusal: 'content_filter',
  path: () => '/v1/messages',
  body: (model, content, stream) => ({
    model,
    max_tokens: 1_000,
    messages: [{ role: 'user', content }],
    stream,
  }),
  read: fromAnthropic,
  // The format always has counts of cache reads and writes.
  // The parts of the input add up: tokens that a provider counts as read and as written were read.
  expected: ({ usage, ...gist }) => {
    const { cached = 0, written = 0, ...counts } = usage ?? { prompt: 0, completion: 0 }
    const fresh = Math.max(0, counts.prompt - cached)
    return { ...gist, usage: { ...counts, cached, written: Math.min(written, fresh) } }
  },
  faults: faultsOfReply,
  errorKind: (last) => stringOf(objectOf(last['error'])['kind']),
  claimsEnd: (text) => text.includes('"message_stop"'),
}

/** Every client format except chat completions, which has separate tests. */
export const CLIENT_FORMS: Readonly<Record<string, ClientForm>> = { messages }

const STOPS = new Set([
  'end_turn',
  'max_tokens',
  'model_context_window_exceeded',
  'pause_turn',
  'refusal',
  'stop_sequence',
  'tool_use',
])

const OWN_BLOCK = /^(?:\w+_tool_use|\w+_tool_result|compaction|container_upload)$/

/** Faults of a reply of the Messages format. */
export function faultsOfReply(answered: Answered, stream: boolean): string[] {
  return stream ? faultsOfEvents(answered) : faultsOfMessage(answered)
}

function faultsOfMessage({ status, type, text, whole }: Answered): string[] {
  if (status !== 200) return [`status ${status}: ${text.slice(0, 300)}`]
  const faults: string[] = []
  const check = checkInto(faults)
  const body = objectOf(JSON.parse(text))
  check(whole, 'the connection broke')
  check(type.startsWith('application/json'), `content-type ${type}`)
  checkHead(body, check)
  check(STOPS.has(stringOf(body['stop_reason']) ?? ''), `stop_reason ${JSON.stringify(body['stop_reason'])}`)
  for (const block of arrayOf(body['content']).map(objectOf)) checkBlock(block, check)
  return faults
}

function checkHead(message: JsonObject, check: Check): void {
  check(message['type'] === 'message' && message['role'] === 'assistant', 'type and role')
  check(/^msg_./.test(stringOf(message['id']) ?? ''), 'id')
  check((stringOf(message['model']) ?? '') !== '', 'model')
  check(Array.isArray(message['content']), 'content')
  checkCounts(message['usage'], check)
}

function checkCounts(usage: unknown, check: Check): void {
  const counts = objectOf(usage)
  for (const name of ['input_tokens', 'output_tokens']) {
    check(Number.isInteger(counts[name]), `usage.${name}`)
  }
}

function checkBlock(block: JsonObject, check: Check): void {
  switch (block['type']) {
    case 'text':
      check((stringOf(block['text']) ?? '') !== '', 'an empty text block')
      return
    case 'thinking':
      check((stringOf(block['signature']) ?? '') !== '', 'thinking without a signature')
      return
    case 'redacted_thinking':
      check((stringOf(block['data']) ?? '') !== '', 'redacted thinking without data')
      return
    case 'tool_use':
      check((stringOf(block['id']) ?? '') !== '', 'a call without an id')
      check((stringOf(block['name']) ?? '') !== '', 'a call without a name')
      check(isObject(block['input']), 'input is no object')
      return
    default:
      // Blocks of Anthropic's own tools, in a reply of Anthropic's.
      check(OWN_BLOCK.test(stringOf(block['type']) ?? ''), `a block of type ${JSON.stringify(block['type'])}`)
  }
}

/** The order of the format: a message, its blocks in sequence, its end. */
function faultsOfEvents({ status, type, text, whole }: Answered): string[] {
  if (status !== 200) return [`status ${status}: ${text.slice(0, 300)}`]
  const faults: string[] = []
  const check = checkInto(faults)
  check(whole, 'the connection broke')
  check(type.startsWith('text/event-stream'), `content-type ${type}`)
  for (const event of text.split('\n\n').filter((each) => each !== '')) {
    const [, name, data] = /^event: (\w+)\ndata: ([^\n]*)$/.exec(event) ?? []
    check(name !== undefined && objectOf(JSON.parse(data ?? '{}'))['type'] === name, "an event's name")
  }
  const all = objectsOf(text)
  check(
    all.some((event) => event['type'] === 'ping'),
    'no ping',
  )
  const events = all.filter((event) => event['type'] !== 'ping')
  const [first = {}] = events
  check(first['type'] === 'message_start', 'message_start is not first')
  checkHead(objectOf(first['message']), check)
  check(events.at(-1)?.['type'] === 'message_stop', 'message_stop is not last')
  const end = events.at(-2) ?? {}
  check(end['type'] === 'message_delta', 'message_delta is not before it')
  check(STOPS.has(stringOf(objectOf(end['delta'])['stop_reason']) ?? ''), 'stop_reason')
  checkCounts(end['usage'], check)
  checkBlocks(events.slice(1, -2), check)
  return [...new Set(faults)]
}

function checkBlocks(events: readonly JsonObject[], check: Check): void {
  let next = 0
  let open: JsonObject | null = null
  let text = ''
  for (const event of events) {
    check(event['index'] === next, `index ${JSON.stringify(event['index'])} where ${next} was due`)
    if (event['type'] === 'content_block_start') {
      check(open === null, 'a block starts inside another')
      open = { ...objectOf(event['content_block']) }
      text = ''
    } else if (event['type'] === 'content_block_delta') {
      check(open !== null, 'a delta outside a block')
      const delta = objectOf(event['delta'])
      text += stringOf(delta['text'] ?? delta['thinking'] ?? delta['partial_json']) ?? ''
      if (delta['type'] === 'signature_delta')
        open = { ...objectOf(open), signature: delta['signature'] ?? '' }
    } else {
      check(event['type'] === 'content_block_stop', `${JSON.stringify(event['type'])} among the blocks`)
      checkBlock(finished(open ?? {}, text), check)
      open = null
      next += 1
    }
  }
  check(open === null, 'a block that is never stopped')
}

function finished(block: JsonObject, text: string): JsonObject {
  if (block['type'] === 'text') return { ...block, text }
  if (block['type'] !== 'tool_use') return block
  return { ...block, input: objectOf(JSON.parse(text)) }
}
