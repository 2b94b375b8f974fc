/**
 * Goal: every byte sequence gives the messages that AWS's own codec reads, regardless of chunk boundaries,
 * and nothing of a damaged message.
 * Method: messages that AWS's codec encodes, split at every boundary, with every byte changed in turn, cut
 * everywhere, and with lengths beyond the limits.
 */
import t from 'tap'
import {
  AwsMessageReader,
  newFramer,
  type AwsMessage,
} from '../../../../src/formats/wire/aws/event-stream.js'
import type { Framing } from '../../../../src/formats/wire/frames/sse-framer.js'
import { awsChunk, awsCodec, awsEvent, awsException, awsMessage } from './aws-messages.js'

interface Read {
  readonly messages: readonly AwsMessage[]
  readonly fault: string | null
  readonly isWithinMessage: boolean
}

function read(...chunks: readonly Uint8Array[]): Read {
  const messages: AwsMessage[] = []
  const reader = new AwsMessageReader((message) => messages.push(message))
  for (const chunk of chunks) reader.write(Buffer.from(chunk))
  const { fault, isWithinMessage } = reader
  return { messages, fault, isWithinMessage }
}

interface Framed {
  readonly frames: readonly (readonly [name: string, data: string])[]
  readonly overflow: boolean
  readonly kind: string | undefined
}

function framed(framing: Framing, ...chunks: readonly Buffer[]): Framed {
  const frames: [string, string][] = []
  const framer = newFramer(framing, { frame: (name, data) => frames.push([name, data]) })
  for (const chunk of chunks) framer.write(chunk)
  framer.end()
  return { frames, overflow: framer.overflow, kind: framer.fault?.kind }
}

const FIRST = awsEvent('messageStart', { role: 'assistant', p: 'ab' })
const SECOND = awsEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Grüße 👋' } })
const BOTH = Buffer.concat([FIRST, SECOND])

void t.test('all kinds of headers are skipped or read as AWS reads them', (t) => {
  const encoded = awsCodec.encode({
    headers: {
      yes: { type: 'boolean', value: true },
      no: { type: 'boolean', value: false },
      byte: { type: 'byte', value: 7 },
      short: { type: 'short', value: 300 },
      integer: { type: 'integer', value: 70_000 },
      binary: { type: 'binary', value: Buffer.from('bytes') },
      ':event-type': { type: 'string', value: 'x' },
      uuid: { type: 'uuid', value: '123e4567-e89b-42d3-a456-426614174000' },
      time: { type: 'timestamp', value: new Date(1_700_000_000_000) },
      ':message-type': { type: 'string', value: 'event' },
    },
    body: Buffer.from('{"a":1}'),
  })
  const { messages, fault } = read(encoded)
  t.equal(fault, null)
  t.same(messages[0]?.headers, { ':event-type': 'x', ':message-type': 'event' })
  t.equal(messages[0]?.payload.toString(), '{"a":1}')
  t.end()
})

void t.test('chunk boundaries have no effect', (t) => {
  const whole = read(BOTH)
  t.equal(whole.messages.length, 2)
  for (let at = 0; at <= BOTH.length; at += 1) {
    t.same(read(BOTH.subarray(0, at), BOTH.subarray(at)), whole, `split at ${at}`)
  }
  const bytes = [...BOTH].map((byte) => Buffer.of(byte))
  t.same(read(...bytes), whole, 'byte by byte')
  t.end()
})

void t.test('nothing of a damaged message is read', (t) => {
  for (let at = 0; at < SECOND.length; at += 1) {
    const damaged = Buffer.from(BOTH)
    damaged.writeUInt8(damaged.readUInt8(FIRST.length + at) ^ 0x10, FIRST.length + at)
    const { messages, fault } = read(damaged)
    t.equal(messages.length, 1, `byte ${at}`)
    t.not(fault, null, `byte ${at}`)
    const after = read(damaged, FIRST)
    t.equal(after.messages.length, 1, 'later input is ignored')
  }
  t.end()
})

void t.test('a cut is within a message everywhere but at its end', (t) => {
  for (let at = 0; at <= BOTH.length; at += 1) {
    const { isWithinMessage } = read(BOTH.subarray(0, at))
    t.equal(isWithinMessage, at !== 0 && at !== FIRST.length && at !== BOTH.length, `cut at ${at}`)
  }
  t.end()
})

/** The 12 bytes that begin a message, with the right checksum. */
function prelude(length: number, headersLength: number): Buffer {
  // The codec of AWS computes the checksum of the lengths in the same way for all of them.
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(length, 0)
  bytes.writeUInt32BE(headersLength, 4)
  bytes.writeUInt32BE(crc(bytes.subarray(0, 8)), 8)
  return bytes
}

/** CRC-32 bit by bit, as RFC 1952 describes it. */
function crc(bytes: Uint8Array): number {
  let value = 0xffffffff
  for (const byte of bytes) {
    value ^= byte
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0)
  }
  return (value ^ 0xffffffff) >>> 0
}

void t.test('a message is refused by its lengths, before it arrives', (t) => {
  const MIB = 1024 * 1024
  t.equal(read(prelude(24 * MIB, 0)).fault, null, 'the largest length')
  t.match(read(prelude(24 * MIB + 1, 0)).fault, /too large/)
  t.match(read(prelude(0xffffffff, 0)).fault, /too large/)
  t.equal(read(prelude(MIB, 128 * 1024)).fault, null, 'the largest headers')
  t.match(read(prelude(MIB, 128 * 1024 + 1)).fault, /too large/)
  t.match(read(prelude(15, 0)).fault, /contradict/)
  t.match(read(prelude(100, 85)).fault, /contradict/)
  t.end()
})

void t.test('a header that exceeds its block is a fault', (t) => {
  // The header claims a value of 255 bytes; both checksums are right.
  const headers = Buffer.from([1, 0x61, 7, 0, 255, 0x62])
  const head = Buffer.concat([prelude(16 + headers.length, headers.length), headers])
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc(head))
  t.match(read(Buffer.concat([head, sum])).fault, /headers/)
  t.end()
})

void t.test('events become frames under their names', (t) => {
  const { frames, overflow } = framed('aws-events', BOTH)
  t.notOk(overflow)
  t.same(frames, [
    ['messageStart', '{"role":"assistant","p":"ab"}'],
    ['contentBlockDelta', '{"contentBlockIndex":0,"delta":{"text":"Grüße 👋"}}'],
  ])
  const pretty = awsMessage({ ':event-type': 'metadata', ':message-type': 'event' }, '{\r\n "a": 1\n}')
  t.same(JSON.parse(framed('aws-events', pretty).frames[0]?.[1] ?? ''), { a: 1 })
  t.end()
})

void t.test('exceptions and errors become frames of the error', (t) => {
  const exception = awsException('throttlingException', { message: 'Too many.' })
  t.same(framed('aws-events', exception).frames, [
    ['exception', '{"message":"Too many.","__type":"throttlingException"}'],
  ])
  const headers = {
    ':message-type': 'error',
    ':error-code': 'InternalFailure',
    ':error-message': 'Oh.',
  }
  t.same(framed('aws-events', awsMessage(headers, '')).frames, [
    ['exception', '{"__type":"InternalFailure","message":"Oh."}'],
  ])
  t.end()
})

const STOP = awsChunk({
  type: 'message_stop',
  'amazon-bedrock-invocationMetrics': { inputTokenCount: 1, outputTokenCount: 2 },
})
const PING = awsChunk({ type: 'ping' })

void t.test('chunks are the Messages events in them, without the counts of Amazon', (t) => {
  const unknown = awsEvent('somethingNew', { a: 1 })
  const untyped = awsChunk({ outputText: 'Titan' })
  const { frames, overflow } = framed('aws-chunks', PING, unknown, untyped, STOP)
  t.notOk(overflow)
  t.same(frames, [
    ['ping', '{"type":"ping"}'],
    ['message_stop', '{"type":"message_stop"}'],
  ])
  t.end()
})

void t.test('a stream of chunks without its end is truncated', (t) => {
  t.equal(framed('aws-chunks', PING).kind, 'upstream_truncated')
  t.equal(framed('aws-chunks', PING, STOP, PING.subarray(0, 20)).kind, 'upstream_truncated')
  t.equal(framed('aws-chunks', PING, STOP).kind, undefined)
  t.end()
})

void t.test('an exception among chunks is an error of Anthropic', (t) => {
  const types: Record<string, string> = {
    throttlingException: 'rate_limit_error',
    serviceUnavailableException: 'overloaded_error',
    modelTimeoutException: 'timeout_error',
    validationException: 'invalid_request_error',
    internalServerException: 'api_error',
    modelStreamErrorException: 'api_error',
  }
  for (const [name, type] of Object.entries(types)) {
    const { frames, overflow } = framed('aws-chunks', PING, awsException(name, { message: 'Oh.' }))
    t.notOk(overflow, 'the error is the end')
    const error = { type, message: 'Oh.', details: { error_code: name } }
    t.same(frames[1], ['error', JSON.stringify({ type: 'error', error })], name)
  }
  t.end()
})

void t.test('a damaged stream is malformed, and its good messages arrive', (t) => {
  const damaged = Buffer.from(SECOND)
  damaged.writeUInt8(0, damaged.length - 1)
  const { frames, kind } = framed('aws-events', Buffer.concat([FIRST, damaged, FIRST]))
  t.equal(kind, 'upstream_malformed')
  t.equal(frames.length, 1)
  t.end()
})

void t.test('large events arrive whole', (t) => {
  const text = 'ü"\n'.repeat(100_000)
  const large = awsEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text } })
  const { frames } = framed('aws-events', FIRST, large, SECOND)
  t.equal(frames.length, 3)
  t.equal(frames[1]?.[1], JSON.stringify({ contentBlockIndex: 0, delta: { text } }))
  const event = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
  const inner = framed('aws-chunks', PING, awsChunk(event), STOP)
  t.equal(inner.frames[1]?.[1], JSON.stringify(event))
  const huge = awsEvent('contentBlockDelta', { delta: { text: 'x'.repeat(17 * 1024 * 1024) } })
  t.ok(framed('aws-events', huge).overflow, 'an event has the limit of other framings')
  t.end()
})

/** The processor time in ms of the slowest call of a framer, for a stream in chunks of 64 KiB. */
function slowestStep(framing: Framing, bytes: Buffer): { ms: number; frames: number } {
  let ms = 0
  let frames = 0
  const framer = newFramer(framing, { frame: () => (frames += 1) })
  const step = (run: () => void): void => {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    ms = Math.max(ms, (user + system) / 1000)
  }
  for (let at = 0; at < bytes.length; at += 65_536) {
    step(() => framer.write(bytes.subarray(at, at + 65_536)))
    while (framer.isPending) step(() => framer.more())
  }
  return { ms, frames }
}

void t.test('a large event is read in short turns of the event loop', (t) => {
  const text = 'word '.repeat(2_400_000)
  const event = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
  const streams = {
    'aws-events': Buffer.concat([FIRST, awsEvent('contentBlockDelta', { delta: { text } }), FIRST]),
    'aws-chunks': Buffer.concat([PING, awsChunk(event), STOP]),
  } as const
  for (const framing of ['aws-events', 'aws-chunks'] as const) {
    const runs = [1, 2, 3].map(() => slowestStep(framing, streams[framing]))
    t.same(new Set(runs.map(({ frames }) => frames)), new Set([3]))
    const ms = Math.min(...runs.map((run) => run.ms))
    t.ok(ms <= 50, `${framing}: ${ms.toFixed(1)} ms`)
  }
  t.end()
})

void t.test('a large chunk is read in any form', (t) => {
  const text = 'a?>ü/~'.repeat(50_000)
  const event = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
  const untyped = { index: 0, delta: { type: 'text_delta', text }, type: 'content_block_delta' }
  const base64 = Buffer.from(JSON.stringify(event)).toString('base64')
  const escaped = `{"bytes":"${base64.replaceAll('/', '\\/')}","p":"ab"}`
  const headers = { ':event-type': 'chunk', ':message-type': 'event' }
  const forms = [
    awsMessage(headers, escaped),
    awsMessage(headers, JSON.stringify({ p: 'ab', bytes: base64 })),
  ]
  for (const large of forms) {
    for (const size of [large.length, 65_536, 999]) {
      const chunks: Buffer[] = []
      const bytes = Buffer.concat([PING, large, STOP])
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
      const { frames } = framed('aws-chunks', ...chunks)
      t.equal(frames.length, 3)
      t.equal(frames[1]?.[1], JSON.stringify(event))
    }
  }
  t.equal(framed('aws-chunks', awsChunk(untyped), STOP).frames[0]?.[1], JSON.stringify(untyped))
  const damaged = Buffer.from(forms[0] ?? '')
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1)
  const { frames, kind } = framed('aws-chunks', PING, damaged.subarray(0, 9), damaged.subarray(9))
  t.same([frames.length, kind], [1, 'upstream_malformed'])
  t.end()
})

void t.test('bytes that are no messages are malformed', (t) => {
  const text = Buffer.from('event: message_start\ndata: {"type":"message_start"}\n\n')
  t.equal(framed('aws-events', text).kind, 'upstream_malformed')
  t.equal(framed('aws-events', Buffer.from('<html>')).kind, 'upstream_truncated')
  t.end()
})
