/**
 * Helpers of the fault tests: requests over a raw socket with parsed replies, and the
 * checks after every case. Each test adds its own faults.
 */
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { ERRORS } from '../../src/errors.js'
import { chunksOf, eventsOf, rawPost } from '../helpers/collect.js'
import type { TestGateway } from '../helpers/gateway.js'
import { stopwatch } from '../helpers/stopwatch.js'

/** One model per upstream of the test gateway. */
export const UPSTREAMS = [
  { name: 'openai', model: 'gpt-4o' },
  { name: 'anthropic', model: 'claude-sonnet-4-5' },
  { name: 'google', model: 'gemini-2.5-flash' },
] as const

/** Members of a chat request. */
export interface QuestionMembers {
  /** The user's message; default: `Hello`. */
  readonly text?: string
  readonly [member: string]: unknown
}

/** A chat request's body. */
export function question(
  model: string,
  stream: boolean,
  { text = 'Hello', ...more }: QuestionMembers = {},
): string {
  return JSON.stringify({ model, stream, messages: [{ role: 'user', content: text }], ...more })
}

/** A reply as received by a client. */
export interface Seen {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly ended: 'fin' | 'reset' | 'timeout'
  /** The HTTP body is complete: by its length, or with its last chunk. */
  readonly whole: boolean
  readonly body: string
  /** Parsed data of a stream without `[DONE]`; the one JSON body of anything else. */
  readonly data: readonly JsonObject[]
  readonly done: boolean
  readonly text: string
  readonly finish: string | undefined
  readonly error: JsonObject | undefined
  readonly tookMs: number
  /** The part of the time in which this process could run, for upper limits. */
  readonly ownMs: number
}

/** Sends a request on a new socket and parses the reply until the connection ends. */
export async function ask(gateway: TestGateway, body: string, timeoutMs = 5000): Promise<Seen> {
  const began = performance.now()
  const watch = stopwatch()
  const authorization = `Bearer ${gateway.secret}`
  const path = '/v1/chat/completions'
  const reply = await rawPost(gateway.port, {
    path,
    headers: { authorization },
    body,
    limitMs: timeoutMs,
  })
  const [line = '', ...lines] = reply.head.split('\r\n')
  const headers: Record<string, string> = {}
  for (const each of lines) {
    const colon = each.indexOf(':')
    if (colon > 0) headers[each.slice(0, colon).toLowerCase()] = each.slice(colon + 1).trim()
  }
  const isChunked = headers['transfer-encoding'] === 'chunked'
  const { chunks, complete } = chunksOf(reply.body)
  const bytes = isChunked ? Buffer.concat(chunks) : reply.body
  const isStream = headers['content-type']?.startsWith('text/event-stream') ?? false
  return {
    status: Number(line.split(' ')[1] ?? 0),
    headers,
    ended: reply.ended,
    whole: isChunked ? complete : bytes.length === Number(headers['content-length'] ?? NaN),
    body: bytes.toString(),
    ...readings(bytes.toString(), isStream),
    tookMs: performance.now() - began,
    ownMs: watch(),
  }
}

function readings(
  body: string,
  isStream: boolean,
): Pick<Seen, 'data' | 'done' | 'text' | 'finish' | 'error'> {
  const frames = isStream ? eventsOf(body).map(({ data }) => data) : [body]
  const data = frames.filter((each) => each !== '[DONE]' && each !== '').map(parsed)
  const choices = data.flatMap(({ choices: each }) => arrayOf(each)).map(objectOf)
  const contents = choices.map(({ delta, message }) => objectOf(delta ?? message).content)
  return {
    data,
    done: frames.includes('[DONE]'),
    text: contents.map((each) => stringOf(each) ?? '').join(''),
    finish: choices.map((each) => stringOf(each['finish_reason'])).find((each) => each !== undefined),
    error: data.map(({ error }) => error).find(isObject),
  }
}

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (!isObject(value)) throw new Error(`not a JSON object: ${text.slice(0, 100)}`)
  return value
}

/**
 * Whether a reply is complete: with a proper end of the stream and of the connection, and without an error.
 */
export function isComplete(seen: Seen): boolean {
  const isStream = seen.headers['content-type']?.startsWith('text/event-stream') ?? false
  return (
    seen.status === 200 &&
    seen.whole &&
    seen.finish !== undefined &&
    seen.error === undefined &&
    seen.done === isStream
  )
}

/** The failure that a test expects. */
export interface ExpectedFailure {
  /** The name of the check. */
  readonly name: string
  /** The accepted kinds of errors. */
  readonly kinds: readonly string[]
}

/**
 * Checks that a failed reply is recognisable (G7): it has an error status and a JSON error, or, if the stream
 * had begun, an error event, no finish, no `[DONE]` and a connection that is closed before the last chunk.
 */
export function checkFailed(t: Test, seen: Seen, { name, kinds }: ExpectedFailure): void {
  const error = seen.error ?? {}
  const problems: string[] = []
  if (seen.finish !== undefined) problems.push(`finish ${seen.finish}`)
  if (seen.done) problems.push('[DONE]')
  const kind = stringOf(error.kind) ?? 'none'
  if (!kinds.includes(kind)) problems.push(`kind ${kind}`)
  if (typeof error.message !== 'string' || error.message === '') problems.push('no message')
  if (seen.status === 200 && seen.whole) problems.push('the last chunk came')
  const isOfKind = Object.entries(ERRORS).some(
    ([name, { status }]) => name === kind && status === seen.status,
  )
  if (seen.status !== 200 && (!seen.whole || !isOfKind)) problems.push('status')
  if (seen.ended === 'timeout') problems.push('never ended')
  const found = `${seen.status} ${seen.ended} ${seen.body.slice(-300)}`
  t.same(problems, [], problems.length === 0 ? name : `${name}: ${found}`)
}

/** Fails the test on every rejection or unhandled exception while it runs (P5). */
export function watchProcess(t: Test): void {
  const note = (error: unknown): void => {
    t.fail(`unhandled: ${error instanceof Error ? (error.stack ?? '') : String(error)}`)
  }
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  t.teardown(() => {
    process.removeListener('unhandledRejection', note)
    process.removeListener('uncaughtException', note)
  })
}

/** The value of one series; 0 if it does not exist yet. */
export async function series(gateway: TestGateway, name: string): Promise<number> {
  const text = await gateway.metrics.text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

/** Calls `isSo` until it returns true, and resolves with the elapsed time; rejects after `ms`. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  ms = 60_000,
): Promise<number> {
  const began = performance.now()
  const watch = stopwatch()
  while (!(await isSo())) {
    const waitedMs = performance.now() - began
    if (waitedMs > ms) throw new Error(`still not so after ${ms} ms: ${what}`)
    // Many conditions ask the gateway: few questions while they wait for long.
    await new Promise((resolve) => setTimeout(resolve, Math.max(5, Math.min(waitedMs / 20, 100))))
  }
  return watch()
}

/**
 * Checks after every case that no request is in flight here or upstream, and that good requests to all three
 * upstreams succeed. Resets the emulator's script.
 */
export async function checkAfter(t: Test, gateway: TestGateway): Promise<void> {
  const { emulator } = gateway
  emulator.reset()
  for (const { name } of UPSTREAMS) {
    const gauge = `sluice_inflight{upstream="${name}"}`
    await eventually(async () => (await series(gateway, gauge)) === 0, `${gauge} is 0`)
  }
  await eventually(() => emulator.open() === 0, 'no request open upstream')
  for (const { model } of UPSTREAMS) {
    const good = await ask(gateway, question(model, true))
    t.ok(isComplete(good), `a good request for ${model} succeeds after`)
  }
}

/** The emulator's reply to the last request through the gateway: status, headers, bytes. */
export async function recordingOf(
  gateway: TestGateway,
  body: string,
): Promise<{ status: number; headers: Record<string, string>; body: string }> {
  await ask(gateway, body)
  const entry = gateway.emulator.ledger.at(-1)
  if (entry === undefined) throw new Error('the emulator was not asked')
  const base = {
    openai: 'openai/v1',
    anthropic: 'anthropic/v1',
    gemini: 'gemini/v1beta',
    bedrock: 'bedrock',
  }
  const alt = entry.path.includes(':stream') ? '?alt=sse' : ''
  const response = await fetch(`${gateway.emulator.origin}/${base[entry.provider]}${entry.path}${alt}`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer emulated',
      'x-api-key': 'emulated',
      'x-goog-api-key': 'emulated',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify(entry.body),
  })
  const headers = { 'content-type': response.headers.get('content-type') ?? '' }
  return { status: response.status, headers, body: await response.text() }
}

/**
 * Returns a function that moves the gateway's clock forward by ms. Every timeout of the data plane reads
 * this clock, ten times a second.
 */
export function fastClock(t: Test): (ms: number) => void {
  const real = performance.now.bind(performance)
  let ahead = 0
  performance.now = () => real() + ahead
  t.teardown(() => {
    performance.now = real
  })
  return (ms) => {
    ahead += ms
  }
}

/** The request that a client writes. */
export interface ClientRequest {
  readonly body: string
  /** Default: chat completions. */
  readonly path?: string
}

/** A client that writes one chat request and then acts as the test requires. */
export function openClient(
  t: Test,
  gateway: TestGateway,
  { body, path = '/v1/chat/completions' }: ClientRequest,
): { socket: Socket; text: () => string } {
  const socket = connect(gateway.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.on('error', () => undefined)
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${gateway.secret}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return { socket, text: () => text }
}

/** The last exchange line in the log. */
export function lastLine(gateway: TestGateway): Record<string, unknown> {
  return gateway.lines.filter(({ msg }) => msg === 'exchange').at(-1) ?? {}
}
