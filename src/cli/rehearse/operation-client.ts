/** Sends the requests of a rehearsal of an endpoint beside chat through the gateway, as clients do. */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import { parseOrNull } from '../../formats/wire/json/full-scan.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { RehearsalGateway } from './rehearsal-gateway.js'
import { CeilingReached, Mismatch, Untranslatable } from './rehearsal-client.js'

/** What a client receives. */
export interface Answer {
  readonly status: number
  readonly type: string
  readonly bytes: Buffer
  /** The body; empty if it is no JSON object. */
  readonly object: JsonObject
  /** The events of a stream. */
  readonly events: readonly JsonObject[]
  readonly entry: LedgerEntry | null
}

/** A file of a form. */
export interface FormFile {
  readonly name: string
  readonly type: string
  readonly bytes: Buffer
}

/** The fields of a form, in their order. */
export type FormFields = readonly (readonly [name: string, value: string | FormFile])[]

const NANO = 1e9

/** One check of an endpoint: sends requests, and records their lost fields and costs. */
export class OperationClient {
  readonly model: string
  /** Fields that could not be translated, of all requests so far. */
  readonly lost = new Set<string>()
  /** Cost of the requests so far, in nano-dollars. */
  nanoUsd = 0
  /** Whether each reply so far had a known cost. */
  isPriced = true
  private readonly gateway: RehearsalGateway
  private readonly timeoutMs: number

  constructor({
    gateway,
    model,
    timeoutMs,
  }: {
    readonly gateway: RehearsalGateway
    readonly model: string
    readonly timeoutMs: number
  }) {
    this.gateway = gateway
    this.model = model
    this.timeoutMs = timeoutMs
  }

  get hasKey(): boolean {
    return this.gateway.hasKey
  }

  /** The cost of all requests so far in US dollars. */
  get usd(): number {
    return this.nanoUsd / NANO
  }

  /** A successful reply to a JSON body. Throws `Mismatch`, `Untranslatable`, `CeilingReached`. */
  async json(path: string, body: JsonObject): Promise<Answer> {
    return successful(await this.send(path, body))
  }

  /** The same for a form, whose file has no known length before it is sent. */
  async form(path: string, fields: FormFields): Promise<Answer> {
    return successful(await this.send(path, formOf(fields)))
  }

  /** Any reply. Throws `Mismatch` without one in time, and `CeilingReached`. */
  async send(path: string, body: JsonObject | FormData | null, method = 'POST'): Promise<Answer> {
    const isJson = body !== null && !(body instanceof FormData)
    const { origin, secret } = this.gateway
    const reply = await fetch(`${origin}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${secret}`,
        ...(isJson && { 'content-type': 'application/json' }),
      },
      body: isJson ? JSON.stringify(body) : body,
      signal: AbortSignal.timeout(this.timeoutMs),
    }).catch((error: unknown) => {
      const isLate = error instanceof Error && error.name === 'TimeoutError'
      throw isLate ? new Mismatch(`no complete reply within ${this.timeoutMs} ms`) : error
    })
    const bytes = Buffer.from(
      await reply.arrayBuffer().catch(() => {
        throw new Mismatch('the connection closed before the end of the reply')
      }),
    )
    const type = reply.headers.get('content-type') ?? ''
    const isText = /json|event-stream|text/.test(type)
    const text = isText ? bytes.toString('utf8') : ''
    const value = parseOrNull(text)
    const object = isObject(value) ? value : {}
    const kind = stringOf(objectOf(object['error'])['kind'])
    if (reply.status === 402 && kind === 'budget_exceeded') throw new CeilingReached()
    const entry = method === 'POST' ? await this.gateway.entry(reply.headers.get('x-request-id') ?? '') : null
    this.add(entry, reply.status)
    return { status: reply.status, type, bytes, object, events: eventsIn(text), entry }
  }

  private add(entry: LedgerEntry | null, status: number): void {
    if (entry === null) return
    for (const path of entry.losses) this.lost.add(path)
    this.nanoUsd += entry.costNanoUsd ?? 0
    const isOwn = status === 200 && entry.modelAsked === this.model
    this.isPriced &&= entry.costNanoUsd !== null || !isOwn
  }
}

/** The form with these fields. */
function formOf(fields: FormFields): FormData {
  const form = new FormData()
  for (const [name, value] of fields) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, new File([value.bytes], value.name, { type: value.type }))
  }
  return form
}

function successful(answer: Answer): Answer {
  const { status, object } = answer
  if (status === 200) return answer
  const { kind, message } = objectOf(object['error'])
  const text = stringOf(message) ?? stringOf(object['message']) ?? ''
  if (kind === 'untranslatable') throw new Untranslatable(text)
  throw new Mismatch(`${status} ${stringOf(kind) ?? 'without an error of the format'}: ${text}`)
}

function eventsIn(text: string): JsonObject[] {
  return arrayOf(
    text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [parseOrNull(line.slice(6))] : [])),
  ).filter(isObject)
}
