/**
 * Processes a request from its bytes to the request for an upstream in the same steps as the gateway, each in
 * one turn of the event loop, and measures the longest step.
 */
import type { ModelFacts } from '../../src/formats/chat/model-facts.js'
import { UPSTREAM_CODECS, clientCodecOf, type ResolvedEndpoint } from '../../src/formats/index.js'
import type { DialectName } from '../../src/formats/dialect.js'
import type { QuirksConfig } from '../../src/config/config.js'
import { GatewayError } from '../../src/errors.js'
import { estimateCost } from '../../src/gateway/charges/estimate-max-cost.js'
import { LossList } from '../../src/formats/losses.js'
import { render, renderSteps, type Rendered } from '../../src/gateway/attempts/render-for-upstream.js'
import { joinedSteps, LARGE_BYTES } from '../../src/gateway/streams/join-chunks.js'
import { callFrom } from '../../src/gateway/phases/receive.js'
import type { Call } from '../../src/gateway/phases/call.js'
import { TurnNames } from '../../src/gateway/reasoning/name-turns.js'
import type { Steps } from '../../src/base/steps.js'
import { MAX_TEXT_BYTES, parseSteps } from '../../src/formats/wire/json/parse-body.js'
import { TextLimit } from '../../src/formats/wire/json/text-limit.js'

const BUDGET_PRICE = {
  price: null,
  isPriced: false,
  unknownLength: null,
  unknownSeconds: 14_400,
  unknownCall: null,
}

/** Facts that cause the maximum work in each encoder: every rule of its newest models. */
const FACTS: Readonly<Record<DialectName, ModelFacts>> = {
  'openai-chat': {
    id: 'm',
    family: 'openai',
    createdAtSeconds: 0,
    endpoints: ['chat'],
    promptCacheBreakpoints: false,
  },
  'openai-responses': { id: 'm', family: 'openai', createdAtSeconds: 0 },
  anthropic: {
    id: 'm',
    family: 'anthropic',
    createdAtSeconds: 0,
    forcedToolChoice: true,
    assistantPrefill: true,
  },
  gemini: { id: 'm', family: 'google', createdAtSeconds: 0 },
  converse: { id: 'm', family: 'anthropic', createdAtSeconds: 0, assistantPrefill: true },
}
const NO_QUIRKS: QuirksConfig = {
  drop: [],
  rename: {},
  set: {},
  messages: { drop: [], rename: {}, roles: {} },
  replies: 'pass',
}
const CHUNK_BYTES = 64 * 1024

/** The encoders; the first is that of the client's own dialect, which edits the client's bytes. */
export const ENCODERS: readonly string[] = ['edits', ...UPSTREAM_CODECS.map(({ dialect }): string => dialect)]

/** The result of one request. */
export interface RequestResult {
  /** The message of the refusal; null if the request would have been sent. */
  readonly refusal: string | null
  readonly slowest: { readonly step: string; readonly ms: number }
  /** The objects that the gateway keeps while it waits for the upstream. */
  readonly held: readonly unknown[]
}

/** The format and the endpoint of a client. */
export type Client = Pick<ResolvedEndpoint, 'dialect' | 'format' | 'endpoint'>

const CHAT: Client = { dialect: 'openai-chat', format: 'chat', endpoint: { operation: 'chat' } }

/** A request that has been received: what the encoders begin with. */
export interface ReceivedRequest extends Pick<RequestResult, 'refusal' | 'slowest'> {
  /** Processes it for an upstream; for a refused request, nothing is done. */
  encode(encoder: string): RequestResult
}

/** Processes the body completely. Throws errors that are not refusals of the gateway. */
export function processBody(body: Buffer, encoder: string, client = CHAT): RequestResult {
  const received = receiveBody(body, client)
  const encoded = received.encode(encoder)
  const isReceiptSlower = received.slowest.ms > encoded.slowest.ms
  return { ...encoded, slowest: isReceiptSlower ? received.slowest : encoded.slowest }
}

/** The steps that are the same for all upstreams. Throws errors that are not refusals of the gateway. */
export function receiveBody(body: Buffer, client = CHAT): ReceivedRequest {
  const { value: call, ...received } = measured((watch) => receive(body, client, watch))
  return {
    ...received,
    encode(encoder) {
      if (call === null) return { ...received, slowest: { step: '', ms: 0 }, held: [] }
      const { value: held, ...encoded } = measured((watch) => encode(call, encoder, watch))
      return { ...encoded, held: held ?? [] }
    },
  }
}

/** The maximum processor time of a step on the reference machine. */
const MOST_MS = 50
/** What `referenceMs` is on the reference machine. */
const REFERENCE_MS = 35
/** A slow step is repeated, because other work on the machine may have slowed it down. */
const TRIES = 30

/** The run whose longest step is the shortest; repeated while that is too long. */
export function fastest<T extends Pick<RequestResult, 'slowest'>>(run: () => T): T {
  let best = run()
  for (let tries = 1; tries < TRIES && best.slowest.ms > MOST_MS; tries += 1) {
    const again = run()
    if (again.slowest.ms < best.slowest.ms) best = again
  }
  return best
}

/** The maximum for a step that took `ms`: more while this machine is slower than the reference machine. */
export function mostMs(ms: number): number {
  return ms <= MOST_MS ? MOST_MS : MOST_MS * Math.max(1, referenceMs() / REFERENCE_MS)
}

/** The processor time of JSON.parse for 7.5 MB of long numbers, the minimum of three runs. */
function referenceMs(): number {
  const text = `[${`1.${'1'.repeat(150)},`.repeat(50_000)}1]`
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage()
    JSON.parse(text)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  return Math.min(...times)
}

function measured<T>(
  work: (watch: StepTimer) => T,
): Pick<RequestResult, 'refusal' | 'slowest'> & { readonly value: T | null } {
  const watch = new StepTimer()
  try {
    const value = work(watch)
    return { refusal: null, value, slowest: watch.slowest }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { refusal: error.message, value: null, slowest: watch.slowest }
  }
}

function receive(body: Buffer, client: Client, watch: StepTimer): Call {
  const chunks: Buffer[] = []
  for (let index = 0; index < body.length; index += CHUNK_BYTES) {
    chunks.push(body.subarray(index, index + CHUNK_BYTES))
  }
  const arrived = new TextLimit(MAX_TEXT_BYTES)
  for (const chunk of chunks) watch.time('arrive', () => arrived.add(chunk))
  const raw = watch.steps('join', joinedSteps(chunks))
  const parsed = watch.steps('parse', parseSteps(raw))
  const { dialect: wire } = client
  const at = { ...client, wire, clientCodec: clientCodecOf(wire) }
  const call = watch.time('decode', () => callFrom(raw, parsed, { resolved: at }))
  watch.steps('turns', new TurnNames().addMessages(call.request.messages))
  return call
}

function encode(call: Call, encoder: string, watch: StepTimer): unknown[] {
  const dialect = UPSTREAM_CODECS.find((each) => each.dialect === encoder)?.dialect ?? call.dialect
  const facts = FACTS[dialect]
  const bounds = watch.time('estimateCost', () => estimateCost(call.request, facts, BUDGET_PRICE))
  const sent = rendered(call, encoder, { dialect, watch })
  return [call, bounds, sent]
}

function rendered(
  call: Call,
  encoder: string,
  { dialect, watch }: { dialect: DialectName; watch: StepTimer },
): Pick<Rendered, 'body'> {
  const upstreamCodec = UPSTREAM_CODECS.find((each) => each.dialect === dialect)?.upstreamCodec
  if (upstreamCodec === undefined) throw new Error(`no encoder ${dialect}`)
  // As for a client of another format.
  const wire = encoder === call.dialect ? 'openai-embeddings' : dialect
  const destination = { wire, upstreamCodec, model: 'm', facts: FACTS[dialect] } as const
  const options = { quirks: NO_QUIRKS, allowSyntheticUser: true }
  const losses = new LossList()
  if (call.raw.length > LARGE_BYTES) {
    return watch.steps('render', renderSteps(call, { ...destination, ...options }, losses))
  }
  return watch.time('render', () => render(call, { ...destination, ...options }, losses))
}

/**
 * Measures the processor time of a step on the main thread, without other work on the machine and other
 * threads of this process.
 */
class StepTimer {
  slowest = { step: '', ms: 0 }

  /** Each step runs in a turn of its own if it takes long. */
  steps<T>(name: string, steps: Steps<T>): T {
    for (let at = 1; ; at += 1) {
      const { done, value } = this.time(`${name} ${at}`, () => steps.next())
      if (done === true) return value
    }
  }

  time<T>(step: string, work: () => T): T {
    const cpu = process.cpuUsage()
    const began = performance.now()
    try {
      return work()
    } finally {
      const { user, system } = process.cpuUsage(cpu)
      const ms = Math.min(performance.now() - began, (user + system) / 1000)
      if (ms > this.slowest.ms) this.slowest = { step, ms }
    }
  }
}
