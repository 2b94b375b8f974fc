/**
 * Inputs for the property tests of translation: every stream of `test/transcripts`, every pair of dialects,
 * and seeded randomness. Independent of the rules of formats.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import type { DialectName, UpstreamCodec, ClientCodec, Seed } from '../../src/formats/dialect.js'
import { upstreamCodecOf, clientCodecOf } from '../../src/formats/index.js'
import { PassthroughStream } from '../../src/gateway/streams/passthrough-stream.js'
import { TranslatedStream, type Translation } from '../../src/formats/translated-stream.js'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'
import { fixtures } from '../helpers/fixtures.js'

/** One recorded or written stream. */
export interface Transcript {
  readonly dialect: DialectName
  readonly name: string
  readonly bytes: Buffer
}

/** A translation from an upstream's dialect to the chat-completions client. */
export interface Pair {
  readonly name: string
  readonly dialect: DialectName
  readonly passes: boolean
  open(): Translation
}

/** The output to the client, as Latin-1, and the result of the exchange. */
export interface Run {
  readonly out: string
  readonly outcome: Translation['outcome']
  readonly kind: string | null
  readonly usage: string
  readonly reason: string | null
  readonly model: string | null
}

const TRANSCRIPTS = join(process.cwd(), 'test/transcripts')
const DIALECTS: readonly DialectName[] = ['openai-chat', 'openai-responses', 'anthropic', 'gemini']

export const SEED: Seed = {
  id: 'chatcmpl-property',
  createdAtSeconds: 1_700_000_000,
  model: 'client-model',
}

export const client: ClientCodec = clientCodecOf('openai-chat')

/** A request of the client, with the members that the translation of a reply uses. */
export const REQUEST: ChatRequest = client.decodeRequest(
  {
    model: SEED.model,
    messages: [{ role: 'user', content: 'Hello' }],
    stream: true,
    stream_options: { include_usage: true },
  },
  { operation: 'chat' },
)

/** The upstream codec of a dialect. */
export function upstream(dialect: DialectName): UpstreamCodec {
  const upstreamCodec = upstreamCodecOf(dialect)
  if (upstreamCodec === null) throw new Error(`the dialect ${dialect} has no codec for upstreams`)
  return upstreamCodec
}

function passed(includeUsage: boolean): () => Translation {
  const { newWatcher } = upstream('openai-chat')
  if (newWatcher === null) throw new Error('chat completions cannot pass')
  return () => new PassthroughStream(newWatcher({ includeUsage }))
}

/** All pairs. */
export const PAIRS: readonly Pair[] = [
  { name: 'passed', dialect: 'openai-chat', passes: true, open: passed(true) },
  { name: 'passed without usage', dialect: 'openai-chat', passes: true, open: passed(false) },
  ...DIALECTS.map((dialect) => ({
    name: `${dialect} translated`,
    dialect,
    passes: false,
    open: () =>
      new TranslatedStream({
        upstreamCodec: upstream(dialect),
        clientCodec: client,
        request: REQUEST,
        seed: SEED,
      }),
  })),
]

/** The streams under `test/transcripts`. */
export const transcripts: readonly Transcript[] = DIALECTS.flatMap((dialect) =>
  readdirSync(join(TRANSCRIPTS, dialect))
    .filter((file) => file.endsWith('.stream.sse'))
    .map((file) => ({
      dialect,
      name: `${dialect}/${file.slice(0, -'.stream.sse'.length)}`,
      bytes: readFileSync(join(TRANSCRIPTS, dialect, file)),
    })),
)

const PROVIDERS: readonly [provider: string, dialect: DialectName, api: string][] = [
  ['openai', 'openai-chat', 'chat.completions'],
  ['groq', 'openai-chat', 'chat.completions'],
  ['openrouter', 'openai-chat', 'chat.completions'],
  ['openai', 'openai-responses', 'responses'],
  ['deepseek', 'openai-responses', 'responses'],
  ['anthropic', 'anthropic', 'messages'],
  ['gemini', 'gemini', 'generateContent'],
]

/** Up to `count` recorded streams of each provider, spread over the list; none without recordings. */
export function recorded(count: number): Transcript[] {
  return PROVIDERS.flatMap(([provider, dialect, api]) => {
    const all = fixtures({ provider, stream: true, status: 200 }).filter(
      (each) => each.api.startsWith(api) || each.api.startsWith('streamGenerateContent'),
    )
    const step = Math.max(1, Math.floor(all.length / count))
    return all
      .filter((_, index) => index % step === 0)
      .slice(0, count)
      .map((each) => ({ dialect, name: each.name, bytes: Buffer.from(each.response_body) }))
  })
}

/** Translates the chunks and the end of file. */
export function run(pair: Pair, chunks: readonly Buffer[]): Run {
  const translation = pair.open()
  let out = ''
  for (const chunk of chunks) out += latin1(translation.write(chunk))
  out += latin1(translation.end())
  const { outcome, error, usage, reason, model } = translation
  return { out, outcome, kind: error?.kind ?? null, usage: JSON.stringify(usage), reason, model }
}

/** The first difference of two runs; empty if they are equal. */
export function difference(a: Run, b: Run): string {
  if (a.out !== b.out) return `output: ${excerpt(a.out, b.out)}`
  const rest = (it: Run): string =>
    [it.outcome, it.kind, it.usage, it.reason, it.model].map(String).join(' | ')
  return rest(a) === rest(b) ? '' : `${rest(a)} and not ${rest(b)}`
}

function excerpt(a: string, b: string): string {
  let at = 0
  while (a[at] === b[at]) at += 1
  return `${JSON.stringify(a.slice(at, at + 60))} and not ${JSON.stringify(b.slice(at, at + 60))}`
}

function latin1(bytes: string | Buffer): string {
  return (typeof bytes === 'string' ? Buffer.from(bytes) : bytes).toString('latin1')
}

/** The data of the frames of an output. */
export function framesOf(out: string): string[] {
  const frames: string[] = []
  const framer = new SseFramer({ frame: (_name, data) => frames.push(data) })
  framer.write(Buffer.from(out, 'latin1'))
  framer.end()
  return frames
}

/** Whether the output claims that the reply is complete. */
export function claimsCompletion(out: string): boolean {
  return framesOf(out).some((data) => data === '[DONE]' || /"finish_reason":\s*"/.test(data))
}

/** A function that returns whole numbers below `n`, the same for the same seed (mulberry32). */
export function seededRoll(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) % n
  }
}

/** The bytes in chunks, split at the given offsets, which may be in any order. */
export function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index] ?? 0, edge))
}

/** One byte at a time. */
export function singly(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
}
