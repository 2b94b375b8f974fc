/**
 * Reads each request of a batch as if it were sent directly, by the rules of its format. What decides whether
 * the batch may run is summed up by model, because the file of a batch arrives long before the batch is
 * created.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { UpstreamConfig } from '../../config/config.js'
import { GatewayError, gatewayError, type WireError } from '../../errors.js'
import { addCalls, addUnseen, type HostedTool } from '../../formats/chat/hosted-tools.js'
import { isObject, stringOf, type JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { resolveEndpoint, type ResolvedEndpoint } from '../../formats/index.js'
import { MemberScan } from '../../formats/wire/json/member-scan.js'
import { parseObject, parseSteps } from '../../formats/wire/json/parse-body.js'
import { addUnits } from '../../formats/chat/usage.js'
import { MEDIA_KINDS } from '../../ledger/price.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { refuseUnjudged } from '../../formats/wire/vendor-rules.js'
import { copiesOf, type HeldMemory } from '../body-memory.js'
import { requestedTier } from '../charges/estimate-candidate-cost.js'
import { useOf, type RequestUse } from '../charges/estimate-max-cost.js'
import { hostedAt, unknownUseOf } from '../charges/unknown-use.js'
import type { Generation } from '../generation.js'
import { cloudRulesOf, refusalOfCall } from '../objects/operator-objects.js'
import { requestIn } from '../phases/receive.js'
import { joinChunks, LARGE_BYTES } from '../streams/join-chunks.js'

/** The requests for one model with the same options that change its price. */
export interface BatchUse extends RequestUse {
  /** '' if the path of the batch names it. */
  readonly model: string
  readonly tier: string | null
  /** The place of the first one. */
  readonly at: string
}

/** A tool of the provider, and the place of the first request with it. */
interface BatchTool extends HostedTool {
  readonly at: string
}

/** The requests of a batch. */
export interface BatchSummary {
  readonly uses: readonly BatchUse[]
  readonly tools: readonly BatchTool[]
  /** The place of the first request that the gateway cannot read, such as a picture's; null for none. */
  readonly unread: string | null
  /** Why a direct request would be refused; null if all requests are valid. */
  readonly problem: WireError | null
  /** The paths of the endpoints as which the requests were read; absent in summaries of earlier versions. */
  readonly endpoints?: readonly string[]
}

const EMPTY: BatchSummary = { uses: [], tools: [], unread: null, problem: null, endpoints: [] }

/** Different models, and tools, of one batch; the summary is stored with its file. */
const MAX_USES = 16
const MAX_TOOLS = 32

interface BatchContext {
  readonly generation: Generation
  readonly headers: IncomingHttpHeaders
  readonly held: HeldMemory
  readonly upstream: UpstreamConfig
  /** The model of the batch, in its path or its body; '' if it has none, or for a file. */
  readonly model: string
  /** The endpoint of a job that names it for all its requests; '' if it has none, or for a file. */
  readonly endpoint: string
}

/** Reads the requests of one file, or of the body of one batch. */
export class BatchReader {
  summary = EMPTY
  /** It has at least one request. */
  isBatch = false
  private readonly context: BatchContext
  private readonly isFile: boolean
  private count = 0

  constructor(context: BatchContext, isFile: boolean) {
    this.context = context
    this.isFile = isFile
  }

  /** Reads one line of a file, or one item of a body. Rejects if the memory for bodies is used up. */
  async read(line: Buffer): Promise<void> {
    const place = this.nextPlace()
    const bytes = trimmed(line)
    // The first problem decides; a line without text is no request.
    if (this.summary.problem !== null || bytes.length === 0) return
    const { held } = this.context
    const memory = bytes.length + copiesOf(bytes.length, false)
    held.take(memory)
    try {
      const isLarge = bytes.length > LARGE_BYTES
      const { value } = isLarge ? await bodyTurns.run(parseSteps(bytes)) : parseObject(bytes)
      if (isLarge) await bodyTurns.next()
      this.add(value, bytes.length, place)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      this.refuse(error.wire, place)
    } finally {
      held.release(memory)
    }
  }

  private nextPlace(): Place {
    this.count += 1
    if (this.isFile) return { at: `Line ${this.count}`, prefix: '' }
    const at = `requests[${this.count - 1}]`
    return { at, prefix: `${at}.` }
  }

  private refuse({ kind, message, param }: WireError, { at, prefix }: Place): void {
    const path = param === undefined ? {} : { param: `${prefix}${param}` }
    this.summary = { ...this.summary, problem: { kind, message: `${at}: ${message}`, ...path } }
  }

  private add(item: JsonObject, bytes: number, place: Place): void {
    const request = requestOf(item, this.context)
    if (request === null) {
      // Lines of other files, such as examples for fine-tuning.
      this.summary = { ...this.summary, unread: this.summary.unread ?? place.at }
      return
    }
    const { member, resolved, body, model, family } = request
    this.isBatch = true
    const { endpoints = [] } = this.summary
    if (!endpoints.includes(request.url)) {
      if (endpoints.length === MAX_USES) throw tooMany(`${MAX_USES} endpoints`)
      this.summary = { ...this.summary, endpoints: [...endpoints, request.url] }
    }
    if (resolved === null) {
      this.addUnread(request, place)
      return
    }
    const { generation, headers } = this.context
    try {
      const decoded = requestIn(body, bytes, { resolved, headers })
      if (typeof body['previous_response_id'] === 'string') addUnseen(decoded, 'previous_response_id')
      const { wire, dialect } = resolved
      refuseUnjudged(decoded, wire, [{ wire, dialect: this.context.upstream.dialect }])
      const target = { wire, dialect, quirks: { drop: [] } }
      const call = { wire, request: decoded, body }
      const refusal = refusalOfCall(call, target, cloudRulesOf(this.context.upstream, generation))
      if (refusal !== null) throw refusal
      const facts = model === '' ? factsOfFamily(family) : generation.facts(model)
      const toolTokens = generation.snapshot.config.limiting.unseenInputTokens
      const use = useOf(decoded, facts, unknownUseOf(call, target, { facts, toolTokens }))
      this.put({ ...use, model, tier: requestedTier(call, target), at: place.at })
      for (const tool of hostedAt(call, target)) this.putTool(tool, `${member}.${tool.path}`, place)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const { param } = error.wire
      throw gatewayError({ ...error.wire, param: param === undefined ? member : `${member}.${param}` })
    }
  }

  private addUnread({ model, url }: FoundRequest, { at }: Place): void {
    this.summary = { ...this.summary, unread: this.summary.unread ?? `${at} (${url.slice(0, 100)})` }
    // Its model must be allowed.
    this.put({ ...NOTHING_READ, model, tier: null, at })
  }

  private put(use: BatchUse): void {
    const uses = [...this.summary.uses]
    const index = uses.findIndex((each) => isAlike(each, use))
    const known = uses[index]
    if (known !== undefined)
      uses[index] = { ...sumOf(known, use), model: known.model, tier: known.tier, at: known.at }
    else if (uses.length < MAX_USES) uses.push(use)
    else throw tooMany(`${MAX_USES} models or kinds of requests`)
    this.summary = { ...this.summary, uses }
  }

  private putTool(tool: HostedTool, path: string, { at, prefix }: Place): void {
    const { tools } = this.summary
    if (tools.some(({ name, model }) => name === tool.name && model === tool.model)) return
    if (tools.length === MAX_TOOLS) throw tooMany(`${MAX_TOOLS} tools of the provider`)
    const { name, model } = tool
    const added = { name, path: `${prefix}${path}`, at, ...(model === undefined ? {} : { model }) }
    this.summary = { ...this.summary, tools: [...tools, added] }
  }
}

/** The place of a request in messages, and the path before its own. */
interface Place {
  readonly at: string
  readonly prefix: string
}

/** The bytes without white space around them. */
function trimmed(bytes: Buffer): Buffer {
  let [from, to] = [0, bytes.length]
  while (from < to && isSpace(bytes[from])) from += 1
  while (to > from && isSpace(bytes[to - 1])) to -= 1
  return bytes.subarray(from, to)
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a
}

function tooMany(what: string): GatewayError {
  return new GatewayError('malformed_request', `a batch must not have more than ${what}: split it.`)
}

/** The request in an item of a batch. */
interface FoundRequest {
  /** The member of the item that has it. */
  readonly member: string
  /** Null: the gateway has no such endpoint. */
  readonly resolved: ResolvedEndpoint | null
  readonly url: string
  readonly body: JsonObject
  readonly model: string
  /** The family of the model that the form of the batch implies. */
  readonly family: string
}

/** What is known of a model before the batch names it: its prompt may have any length. */
function factsOfFamily(family: string): ModelFacts {
  return { id: '', family, createdAtSeconds: 0 }
}

/**
 * The request in a line of OpenAI's (`{custom_id, url, body}`), Mistral's (`{custom_id, body}`) or Google's
 * (`{key, request}`), or in an item of Anthropic's (`{custom_id, params}`); null if there is none. Throws
 * `malformed_request` for several.
 */
function requestOf(
  item: JsonObject,
  { model: pathModel, endpoint }: Pick<BatchContext, 'model' | 'endpoint'>,
): FoundRequest | null {
  const { params, request, body, url } = item
  const members = [params, request, body].filter(isObject)
  if (members.length > 1) {
    throw new GatewayError('malformed_request', 'only one of body, params and request may be an object')
  }
  if (isObject(params)) {
    return found('params', params, { url: '/v1/messages', model: stringOf(params['model']) ?? '' })
  }
  if (isObject(request)) {
    const own = (stringOf(request['model']) ?? '').replace(/^models\//, '')
    if (own !== '' && pathModel !== '' && own !== pathModel) {
      throw new GatewayError('malformed_request', `must be the model of the batch, '${pathModel}'`, {
        param: 'request.model',
      })
    }
    const model = pathModel === '' ? own : pathModel
    const action = isObject(request['content']) ? 'embedContent' : 'generateContent'
    const shown = model === '' ? 'gemini' : model
    return found('request', request, { url: `/v1beta/models/${encodeURIComponent(shown)}:${action}`, model })
  }
  if (!isObject(body)) return null
  const path = endpoint || (stringOf(url) ?? endpointFor(body))
  if (path === null) return null
  // The job has the model, and of a file it is not known yet.
  const isNamed = body['model'] !== undefined || typeof url === 'string'
  const whole = isNamed ? body : { ...body, model: pathModel || FAMILY_OF_JOBS }
  return found('body', whole, { url: ownPath(path), model: stringOf(body['model']) ?? pathModel })
}

/** The family of models in jobs whose requests name none. */
const FAMILY_OF_JOBS = 'mistral'

/** The endpoint of a request in a file of Mistral's, which the job names later; null if it is not known. */
function endpointFor(body: JsonObject): string | null {
  if (body['messages'] !== undefined) return '/v1/chat/completions'
  const { input } = body
  const isText = [input].flat().every((text) => typeof text === 'string')
  return isText ? '/v1/embeddings' : null
}

function found(
  member: string,
  body: JsonObject,
  { url, model }: { readonly url: string; readonly model: string },
): FoundRequest {
  const resolved = resolveEndpoint('POST', url)
  const isServed = resolved !== null && SERVED.has(resolved.endpoint.operation)
  const family = member === 'request' ? 'google' : FAMILY_OF_JOBS
  return { member, resolved: isServed ? resolved : null, url, body, model, family }
}

const SERVED: ReadonlySet<string> = new Set(['chat', 'completions', 'embeddings'])

/** The gateway's own path for that of a line: Azure's may have no version. */
export function ownPath(url: string): string {
  const [path = ''] = url.split(/[?#]/)
  let own = path.replace(/^\/openai(?=\/)/, '')
  while (own.endsWith('/')) own = own.slice(0, -1)
  return own.startsWith('/v1/') ? own : `/v1${own}`
}

const NOTHING_READ: RequestUse = {
  ...{ requests: 1, seen: 0, added: 0, longest: 0, likely: 0, unseen: 0, unseenAt: null, partlySeen: 0 },
  ...{ source: null, choices: 0, output: 0, open: 0, calls: {}, kinds: { certain: [], possible: [] } },
}

function isAlike(one: BatchUse, other: BatchUse): boolean {
  const { certain, possible } = one.kinds
  return (
    one.model === other.model &&
    one.tier === other.tier &&
    hasSameModels(one, other) &&
    MEDIA_KINDS.every(
      (kind) =>
        certain.includes(kind) === other.kinds.certain.includes(kind) &&
        possible.includes(kind) === other.kinds.possible.includes(kind),
    )
  )
}

/** Whether the tools of each request call the same models, as often. */
function hasSameModels(one: RequestUse, other: RequestUse): boolean {
  if (one.models === undefined || other.models === undefined) return one.models === other.models
  if (one.choices * other.requests !== other.choices * one.requests) return false
  return JSON.stringify(one.models) === JSON.stringify(other.models)
}

function sumOf(one: RequestUse, other: RequestUse): RequestUse {
  return {
    requests: one.requests + other.requests,
    seen: one.seen + other.seen,
    added: one.added + other.added,
    longest: Math.max(one.longest, other.longest),
    likely: one.likely + other.likely,
    unseen: one.unseen + other.unseen,
    unseenAt: one.unseenAt ?? other.unseenAt,
    partlySeen: one.partlySeen + other.partlySeen,
    source: one.source ?? other.source,
    choices: one.choices + other.choices,
    output: one.output + other.output,
    open: one.open + other.open,
    calls: addCalls(one.calls, other.calls),
    kinds: one.kinds,
    ...(one.models !== undefined && { models: one.models }),
    ...unitsOfBoth(one, other),
  }
}

type UseOfUnits = Pick<RequestUse, 'units' | 'pictures' | 'unmeasuredSounds'>

/** Pictures of different qualities or sizes count as the dearest ones. */
function unitsOfBoth(one: UseOfUnits, other: UseOfUnits): UseOfUnits {
  if (one.units === undefined || other.units === undefined) {
    const { units, pictures, unmeasuredSounds } = one.units === undefined ? other : one
    return {
      ...(units !== undefined && { units }),
      ...(pictures !== undefined && { pictures }),
      ...(unmeasuredSounds !== undefined && { unmeasuredSounds }),
    }
  }
  const { pictures } = one
  return {
    units: addUnits(one.units, other.units),
    ...(pictures !== undefined && { pictures: pictures === other.pictures ? pictures : '' }),
    unmeasuredSounds: (one.unmeasuredSounds ?? 0) + (other.unmeasuredSounds ?? 0),
  }
}

/** The lists with the requests of a batch in its body. */
const LISTS = [
  ['requests'],
  ...['inputConfig', 'input_config'].map((config) => ['batch', config, 'requests', 'requests']),
]
/** Bytes that are scanned in one turn. */
const SLICE_BYTES = 256 * 1024

/** Reads the requests in the complete body of a batch, which is valid JSON. */
export async function readItems(chunks: readonly Buffer[], reader: BatchReader): Promise<void> {
  const body = joinChunks(chunks)
  const ranges: (readonly [from: number, to: number])[] = []
  const scan = new MemberScan({
    isLines: false,
    selects: () => false,
    found: () => undefined,
    item: (from, to) => void ranges.push([from, to]),
    itemsIn: LISTS,
  })
  for (let at = 0; at < body.length; at += SLICE_BYTES) {
    if (at > 0) await bodyTurns.next()
    scan.write(body.subarray(at, at + SLICE_BYTES))
  }
  let readBytes = 0
  for (const [from, to] of ranges) {
    await reader.read(body.subarray(from, to))
    readBytes += to - from
    if (readBytes < SLICE_BYTES) continue
    readBytes = 0
    await bodyTurns.next()
  }
}
