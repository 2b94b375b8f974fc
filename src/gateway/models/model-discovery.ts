/**
 * Requests the model lists of upstreams with `discover: true`, for `GET /v1/models`. Runs in the background:
 * a failure is logged once, and the last list stays in use.
 */
import { numberOf, objectOf, type JsonValue } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { factsOfFamily } from '../../config/catalogue.js'
import type { Logger } from '../../observe/log.js'
import { upstreamCodecOf } from '../../formats/index.js'
import { requestPathAt } from '../upstreams/upstream-address.js'
import type { Upstream } from '../upstreams/upstreams.js'
import type { Generation } from '../generation.js'
import { ownHeaders } from '../upstream-headers.js'

const EVERY_MS = 300_000
const TIMEOUT_MS = 10_000
const MAX_BYTES = 1_048_576
const MAX_MODELS = 1_000
const MAX_ERROR_CHARACTERS = 4_096
/** The year 2100, in Unix time; a later release date is ignored. */
const MAX_SECONDS = 4_102_444_800
/** The same characters as in ids of the catalogue. */
const MODEL_ID = /^[!-~]{1,256}$/

/** The models of an upstream, and the base URL that they were requested from. */
interface Listing {
  readonly baseUrl: string
  models: readonly ModelFacts[]
  isFailing: boolean
}

/** The discovery of one process. Holds a timer until `close`. */
export class Discovery {
  private readonly log: Pick<Logger, 'info' | 'warn'>
  private readonly timer: NodeJS.Timeout
  private readonly listings = new Map<string, Listing>()
  private generation: Generation | null = null

  constructor(log: Pick<Logger, 'info' | 'warn'>) {
    this.log = log
    this.timer = setInterval(() => void this.refresh(), EVERY_MS).unref()
  }

  /** Publishes the lists that are cached for the generation's upstreams, and requests new ones. */
  adopt(generation: Generation): void {
    this.generation = generation
    const upstreams = new Map(generation.discovering().map(({ config }) => [config.name, config]))
    for (const [name, { baseUrl }] of this.listings) {
      if (upstreams.get(name)?.baseUrl !== baseUrl) this.listings.delete(name)
    }
    if (upstreams.size === 0) return
    this.publish(generation)
    void this.refresh()
  }

  /** Stops the timer; results of pending requests are ignored. */
  close(): void {
    clearInterval(this.timer)
    this.generation = null
  }

  /** Requests the lists of all upstreams of the current generation. Never rejects. */
  private async refresh(): Promise<void> {
    const { generation } = this
    if (generation === null) return
    const requests = generation.discovering().map((upstream) => this.requestModels(upstream, generation))
    await Promise.all(requests)
    if (this.generation === generation && requests.length > 0) this.publish(generation)
  }

  private async requestModels(upstream: Upstream, generation: Generation): Promise<void> {
    const { name, baseUrl } = upstream.config
    const previous = this.listings.get(name) ?? { baseUrl, models: [], isFailing: false }
    try {
      const key = generation.states.of(name).credentials.next(new Set(), null)?.key ?? null
      const models = await requestModelList(upstream, key)
      this.listings.set(name, { baseUrl, models, isFailing: false })
      if (previous.isFailing) this.log.info('upstream lists its models again', { upstream: name })
    } catch (error) {
      if (this.generation === null) return
      this.listings.set(name, { ...previous, isFailing: true })
      if (previous.isFailing) return
      this.log.warn('upstream does not list its models', {
        upstream: name,
        reason: reasonOf(error),
      })
    }
  }

  private publish(generation: Generation): void {
    const discovered = [...this.listings].map(([name, { models }]) => [name, models] as const)
    generation.addDiscovered(new Map(discovered))
  }
}

/** The maximum page sizes of Anthropic and Google; the other formats have no pages. */
const QUERIES: Readonly<Record<string, string>> = {
  anthropic: '?limit=1000',
  gemini: '?pageSize=1000',
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

/**
 * Requests the model list of an upstream with one of its keys. Rejects with the reason if it has none, with
 * the start of the upstream's own reply.
 */
export async function requestModelList(
  { config, pool, address }: Pick<Upstream, 'config' | 'pool' | 'address'>,
  apiKey: string | null,
): Promise<ModelFacts[]> {
  const dialect = config.dialect === 'openai' ? 'openai-chat' : config.dialect
  const upstreamCodec = upstreamCodecOf(dialect, config)
  if (upstreamCodec === null) return []
  const path = requestPathAt(
    { ...address, path: null },
    { path: `/models${QUERIES[dialect] ?? ''}`, model: '' },
  )
  const headers = { ...upstreamCodec.headers({}), ...ownHeaders(config, upstreamCodec, apiKey) }
  const { status, body } = await pool.get(path, {
    headers: { ...headers, 'accept-encoding': 'identity' },
    maxBytes: MAX_BYTES,
    timeoutMs: TIMEOUT_MS,
  })
  const text = body.toString('utf8')
  if (status !== 200) {
    const { message } = upstreamCodec.decodeError(status, {}, text.slice(0, MAX_ERROR_CHARACTERS))
    throw new Error(`GET /models returned status ${status}: ${message}`)
  }
  return modelsIn(parsed(text), config.name)
}

function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    throw new Error('GET /models returned a body that is not JSON')
  }
}

/** The models of a list in the format of OpenAI, Anthropic (`data`) or Google (`models`). */
function modelsIn(reply: JsonValue, upstream: string): ModelFacts[] {
  const { data, models } = objectOf(reply)
  const entries = Array.isArray(data) ? data : models
  if (!Array.isArray(entries)) throw new Error('GET /models returned no list of models')
  const facts: ModelFacts[] = []
  for (const entry of entries.slice(0, MAX_MODELS)) {
    const { id, name, created } = objectOf(entry)
    const listed = typeof id === 'string' ? id : name
    if (typeof listed !== 'string') continue
    const modelId = listed.replace(/^models\//, '')
    if (!MODEL_ID.test(modelId)) continue
    facts.push({ ...factsOfFamily(modelId, upstream), createdAtSeconds: secondsOf(created) })
  }
  return facts
}

function secondsOf(created: JsonValue | undefined): number {
  const seconds = Math.floor(numberOf(created) ?? 0)
  return seconds >= 0 && seconds <= MAX_SECONDS ? seconds : 0
}
