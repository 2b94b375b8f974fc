/**
 * Native access under guardrails: judges the body of a known format, and its reply. Such a reply is decoded
 * and encoded in its own format; all others pass as bytes.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { GatewayError, gatewayError, type WireError } from '../../errors.js'
import { objectOf, type JsonObject } from '../../base/json.js'
import { resolveEndpoint, upstreamCodecOf } from '../../formats/index.js'
import {
  TranslatedStream,
  type ReplyResult,
  type TranslationOptions,
} from '../../formats/translated-stream.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import { parseReply } from '../../formats/wire/json/parse-body.js'
import { beginReply, truncateReply } from '../../http/respond.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { callIn } from '../phases/receive.js'
import type { Exchange } from '../client-exchange.js'
import { judgedCall } from '../phases/judge.js'
import type { Call } from '../phases/call.js'
import { ReplyTransform } from '../streams/reply-transform.js'
import { ArrayForm, EVENT_STREAM } from '../streams/sse-or-json-array.js'
import { SingleWholeReply, WholeChoices } from '../streams/whole-reply.js'
import type { NativeCall } from './admit-native.js'

/** A native request whose upstream has guardrails. */
interface NativeJudging {
  readonly call: NativeCall
  readonly body: Readable
  readonly metrics: Metrics
  readonly log: Pick<Logger, 'info'>
}

/** The request that is sent, and how its reply is judged. */
interface JudgedNative {
  readonly call: NativeCall
  readonly body: Readable
  /** Null if the reply passes as bytes. */
  readonly reply: Call | null
}

/** Ends of native paths, and the gateway's own paths of the same format. */
const OWN_PATHS: readonly (readonly [RegExp, string])[] = [
  [/\/chat\/completions$/, '/v1/chat/completions'],
  [/\/completions$/, '/v1/completions'],
  [/\/responses$/, '/v1/responses'],
  [/\/embeddings$/, '/v1/embeddings'],
  [/\/messages$/, '/v1/messages'],
  [/\/messages\/count_tokens$/, '/v1/messages/count_tokens'],
  [/:\w+$/, '/v1beta/models/MODEL'],
]

/**
 * Judges a request to an upstream with guardrails; null if it has none. Rejects with `guardrail_blocked`,
 * `guardrail_unavailable`, and `malformed_request` if the body is not of its format.
 */
export function judgeNative(x: Exchange, judging: NativeJudging): Promise<JudgedNative> | null {
  const { target } = judging.call
  const { guardrails } = target.upstream.config.native
  const own = x.generation.policy?.named(guardrails ?? []) ?? []
  return own.length === 0 ? null : judged(x, own, judging)
}

async function judged(
  x: Exchange,
  guardrails: Parameters<typeof judgedCall>[2],
  { call, body, ...services }: NativeJudging,
): Promise<JudgedNative> {
  if (call.headers['content-encoding'] !== undefined) {
    throw new GatewayError(
      'unsupported_media_type',
      'This upstream has guardrails, which read only bodies without a content-encoding.',
      { param: 'content-encoding' },
    )
  }
  const { held } = x
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<Buffer>) {
    held.take(chunk.length)
    chunks.push(chunk)
  }
  const raw = Buffer.concat(chunks)
  const known = await callIn(raw, endpointOf(call), x.req.headers)
  const after = await judgedCall(x, known, guardrails, services)
  if (after.isRewritten === true) {
    throw new GatewayError(
      'guardrail_blocked',
      'A guardrail masks a part of the request that native access cannot replace: send it without /native/.',
      { retryable: false },
    )
  }
  const isSame = after.raw === known.raw
  const headers = { ...call.headers, 'accept-encoding': 'identity' }
  const sent = isSame
    ? { ...call, headers }
    : { ...call, headers: { ...headers, 'content-length': String(after.raw.length) } }
  const reply = after.guard === undefined ? null : after
  return { call: sent, body: Readable.from([after.raw]), reply }
}

/** The endpoint of the gateway with the format of the path. */
function endpointOf({ url, target }: NativeCall): Parameters<typeof callIn>[1] {
  const { pathname } = url
  const own = OWN_PATHS.find(([end]) => end.test(pathname))?.[1] ?? ''
  const isModel = own.endsWith('MODEL')
  const path = isModel ? `${own.slice(0, -'MODEL'.length)}${modelIn(pathname)}` : own
  const resolved = resolveEndpoint('POST', path)
  if (resolved === null) {
    throw new GatewayError(
      'unknown_endpoint',
      `The guardrails of the upstream "${target.upstream.config.name}" cannot read requests to this path.`,
    )
  }
  return resolved
}

function modelIn(pathname: string): string {
  return pathname.slice(pathname.lastIndexOf('/') + 1)
}

/** What a judged reply needs of its attempt. */
interface NativeReplyOwner {
  /** Writes the ledger entry before the client gets the end of the reply. */
  ending(): Promise<void> | null
  /** Name, value, …: the head of the reply to the client. */
  head(): string[]
  received(): void
  /** The result so far; before `ending`. */
  result(result: ReplyResult): void
  sent(bytes: number): void
  finished(): void
  failed(error: unknown): void
  /** Whether the rest of a stream that a guardrail has refused is read for its usage. */
  drains(): boolean
  /** The client gets the error of a stream whose rest is read. */
  refused(error: GatewayError): void
  /** The rest of a refused stream was read. */
  drained(): void
}

/** Judges the reply, whole or as a stream, and sends it. `call` is the judged request. */
export function sendJudged(
  x: Exchange,
  reply: IncomingMessage,
  { call, owner }: { readonly call: Call; readonly owner: NativeReplyOwner },
): void {
  const type = reply.headers['content-type'] ?? ''
  const options = translationOf(x, call)
  if (type.includes('event-stream')) sendStream(x, reply, { call, owner, options })
  else void sendWhole(x, reply, { call, owner, options })
}

function translationOf(x: Exchange, call: Call): TranslationOptions {
  const { clientCodec, request, wire } = call
  const upstreamCodec = upstreamCodecOf(wire)
  if (upstreamCodec === null) throw new GatewayError('bug', `no codec for ${wire}`)
  const seed = {
    id: clientCodec.envelope.idPrefix + x.id,
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: request.model,
    origin: call.dialect,
  }
  return { upstreamCodec, clientCodec, request, seed, guard: call.guard?.open(false) ?? null }
}

interface Sending {
  readonly call: Call
  readonly owner: NativeReplyOwner
  readonly options: TranslationOptions
}

function sendStream(x: Exchange, reply: IncomingMessage, { call, owner, options }: Sending): void {
  const { res } = x
  const translation = new TranslatedStream(options)
  owner.result(translation)
  const form = call.endpoint.array === true ? new ArrayForm() : EVENT_STREAM
  const stream = new ReplyTransform(
    translation,
    {
      ending: () => owner.ending(),
      threw: (cause) => owner.failed(cause),
      translated: () => undefined,
    },
    form,
  )
  let hasBegun = false
  const begin = (): void => {
    if (hasBegun) return
    hasBegun = true
    beginReply(res, 200, withType(owner.head(), form.type))
    stream.on('data', (chunk: Buffer) => owner.sent(chunk.length))
    stream.pipe(res, { end: false })
    stream.once('end', () => {
      res.once('finish', () => owner.finished())
      res.end()
    })
  }
  /** Ends the upstream's reply, of which more chunks may have arrived. */
  const leave = (): void => {
    reply.unpipe(stream)
    reply.destroy()
  }
  const failed = (error: WireError): void => {
    if (owner.drains()) {
      stream.drain()
      stream.meter()
      owner.refused(gatewayError(error))
      return
    }
    leave()
    if (!hasBegun) owner.failed(gatewayError(error))
    else {
      x.endedWithError = true
      stream.unpipe(res)
      const shown = withoutSecrets(error)
      const frame = translation.errorFrame(shown) ?? call.clientCodec.encodeStreamError(shown, x.id)
      truncateReply(res, form.events(frame))
      owner.failed(gatewayError(error))
    }
  }
  stream.onOutput = () => {
    if (translation.content) begin()
  }
  stream.onStep = () => {
    if (stream.isMetered) {
      if (translation.blocked === 'complete') owner.drained()
      return
    }
    if (translation.content) begin()
    if (translation.outcome === 'failed') {
      failed(translation.error ?? { kind: 'bug', message: 'The reply ended unfinished.' })
    } else if (translation.outcome === 'complete') {
      begin()
      if (owner.drains()) {
        stream.meter()
        return
      }
      leave()
      stream.end()
    }
  }
  stream.once('finish', () => {
    if (stream.isMetered) owner.drained()
  })
  res.once('close', () => stream.leave())
  reply.on('data', () => owner.received())
  reply.pipe(stream)
}

function withType(head: readonly string[], type: string): string[] {
  const kept: string[] = []
  for (let at = 0; at < head.length; at += 2) {
    const name = head[at]?.toLowerCase() ?? ''
    if (name === 'content-type' || name === 'content-length') continue
    kept.push(head[at] ?? '', head[at + 1] ?? '')
  }
  return [...kept, 'content-type', type]
}

const MAX_BYTES = 64 * 1024 * 1024

async function sendWhole(
  x: Exchange,
  reply: IncomingMessage,
  { call, owner, options }: Sending,
): Promise<void> {
  try {
    const body = await objectIn(reply, owner)
    const guard = call.guard?.open(true) ?? null
    const { candidates = 1 } = call.request
    const choices = candidates > 1 ? WholeChoices.open(options, call.guard) : null
    const whole = choices ?? new SingleWholeReply({ ...options, guard }, false)
    whole.read(body)
    await whole.judge()
    const encoded = whole.encode()
    owner.result(encoded)
    if (encoded.error !== null) throw gatewayError(encoded.error)
    await owner.ending()
    const bytes = Buffer.from(encoded.body)
    const head = [...withType(owner.head(), 'application/json'), 'content-length', String(bytes.length)]
    beginReply(x.res, 200, head)
    owner.sent(bytes.length)
    x.res.once('finish', () => owner.finished())
    x.res.end(bytes)
  } catch (error) {
    owner.failed(error)
  }
}

async function objectIn(reply: IncomingMessage, owner: NativeReplyOwner): Promise<JsonObject> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    owner.received()
    size += chunk.length
    if (size > MAX_BYTES) break
    chunks.push(chunk)
  }
  const body = size > MAX_BYTES ? null : parseReply(Buffer.concat(chunks).toString('utf8'))
  if (body !== null) return objectOf(body)
  throw new GatewayError('upstream_malformed', "The upstream's reply is not JSON.")
}
