/**
 * Makes a batch: reads all lines of its file, checks them, and reserves what they may use. Nothing is sent to
 * an upstream before the client has the answer.
 */
import type { Identity } from '../../accounts/account.js'
import { GatewayError, gatewayError } from '../../errors.js'
import type { BatchForm } from '../../formats/chat/operations.js'
import type { DialectName } from '../../formats/dialect.js'
import { errorCodecOf } from '../../formats/index.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import { headerOf } from '../../http/message.js'
import type { LedgerWriter } from '../../ledger/ledger-writer.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Exchange } from '../client-exchange.js'
import { dimensionsText } from '../dimensions/dimensions-text.js'
import type { RequestValues } from '../dimensions/request-values.js'
import { choose } from '../phases/choose-route.js'
import type { Candidate } from '../phases/route.js'
import { callIn } from '../phases/receive.js'
import {
  linesOf,
  noLines,
  plannedText,
  refusedLine,
  type BatchLine,
  type PlannedLine,
} from './batch-lines.js'
import type { AskedBatch, ClientForm, LineForm } from './clients/client-form.js'
import { MAX_OPENAI_LINES } from './clients/openai-form.js'
import type { Batch, BatchInfo, BatchPart, BatchRecords } from '../../policy/batch-records.js'
import {
  demandsOf,
  entryOfPart,
  LONGEST_MS,
  releaseBatch,
  reservePart,
  type NewPart,
} from './charge-batch.js'
import { newId, type FileStore, type StoredFile } from '../../policy/file-store.js'
import { lineRequestId } from './line-exchange.js'
import { LineRun, lineScope, type LineScope, type LineServices } from './line-run.js'

/** What creating a batch uses. */
export interface CreateServices {
  readonly lines: LineServices
  readonly files: FileStore
  readonly records: BatchRecords
  readonly limiter: Limiter
  readonly ledgerWriter: LedgerWriter
  readonly values: RequestValues
}

/** Each has a reservation and a ledger entry of its own. */
const MAX_PARTS = 100

/**
 * Makes a batch of the account; `model`: that of the path, null if there is none. Rejects with
 * `GatewayError`; then nothing is left of it.
 */
export async function createBatch(
  x: Exchange,
  { form, model }: { readonly form: ClientForm; readonly model: string | null },
  services: CreateServices,
): Promise<Batch> {
  const { files, records } = services
  const { identity } = x
  const { accountId } = identity
  const { maxOpenPerAccount } = x.generation.snapshot.config.batches
  if ((await records.open(accountId)).length >= maxOpenPerAccount) throw tooManyOpen(maxOpenPerAccount)
  const asked = await form.ask(x, { identity, files, model })
  try {
    return await createAsked(x, { form, asked }, services)
  } finally {
    if (asked.inputFileId === '') await files.remove(asked.input)
  }
}

async function createAsked(
  x: Exchange,
  { form, asked }: { readonly form: ClientForm; readonly asked: AskedBatch },
  services: CreateServices,
): Promise<Batch> {
  const { files, values } = services
  const { body } = asked
  const { dimensions } = x.generation.snapshot.config
  const identity = dimensions.length === 0 ? x.identity : await values.read(x, { body, hasLines: true })
  const id = newId(form.idPrefix)
  const headers = headersOf(x, asked.resolved.dialect)
  const planned = await planLines(x, { id, asked, identity, headers }, services)
  try {
    return await recordBatch(x, { id, asked, identity, headers, planned, ingress: form.ingress }, services)
  } catch (error) {
    await files.remove(planned.plan)
    throw error
  }
}

function tooManyOpen(most: number): GatewayError {
  return new GatewayError(
    'rate_limited',
    `The account has ${most} batches that have not ended, which is its limit (batches.max_open_per_account): wait, or cancel one.`,
    { retryable: false },
  )
}

/** The lines of a batch that is being made. */
interface Planning {
  readonly id: string
  readonly asked: AskedBatch
  readonly identity: Identity
  /** Those that lines have too. */
  readonly headers: Readonly<Record<string, string>>
}

/** The checked lines, and where they may run. */
interface Planned {
  readonly plan: StoredFile
  readonly lines: number
  readonly model: string
  readonly form: Exclude<BatchForm, 'none'>
  /** In order; the first one is tried first. */
  readonly candidates: readonly [Candidate, ...Candidate[]]
  /** At least one. */
  readonly parts: readonly PlannedPart[]
  readonly vendor: BatchInfo['vendor']
}

/** The lines with the same values of dimensions, and what they may use. */
interface PlannedPart {
  readonly dimensions: Identity['dimensions']
  lines: number
  most: NewPart['most']
}

const NOTHING: NewPart['most'] = { input: 0, output: 0, nanoUsd: 0 }

/** Checks the lines and writes them to a file of the gateway. */
async function planLines(
  x: Exchange,
  planning: Planning,
  { files, lines: lineServices }: Pick<CreateServices, 'files' | 'lines'>,
): Promise<Planned> {
  const { id, asked, identity, headers } = planning
  const expiresAtMs = Date.now() + files.settings.keepMs + LONGEST_MS
  // Each batch has its own copy of the lines.
  const of = { name: 'plan', purpose: 'work' as const, expiresAtMs, expectedBytes: asked.input.bytes }
  const writer = await files.begin(identity, of)
  try {
    let lines = 0
    let planner: { route: Pick<Planned, 'form' | 'candidates'>; model: string; vendor: VendorPlan } | null =
      null
    for await (const line of linesOf(files, asked)) {
      x.cancellation.check()
      if (planner === null) {
        const route = await routeOf(x, line, planning)
        planner = {
          route,
          model: line.model,
          vendor: new VendorPlan(x, { id, asked, identity, headers, route }, lineServices),
        }
      }
      lines += 1
      if (planner.route.form === 'openai' && lines > MAX_OPENAI_LINES) {
        const message = `its upstream takes at most ${MAX_OPENAI_LINES} lines in a batch`
        throw refusedLine(asked.lines, line.number, message)
      }
      const { number, id: customId, body, metadata } = line
      const more = metadata === undefined ? {} : { metadata }
      const own = { number, id: customId, body: body.toString('utf8'), ...more }
      const isQueued = planner.route.form === 'queue'
      await writer.write(plannedText(isQueued ? own : { ...own, ...(await planner.vendor.plan(line)) }))
    }
    if (planner === null) throw noLines(asked.lines)
    const plan = await writer.end()
    const { route, model, vendor } = planner
    return { plan, lines, model, ...route, parts: vendor.parts(lines), vendor: vendor.facts() }
  } catch (error) {
    await writer.abort().catch(() => undefined)
    throw error
  }
}

/** Checks and translates the lines of a batch that a vendor runs. */
class VendorPlan {
  readonly id: string
  readonly createdAtMs = Date.now()
  private readonly candidate: Candidate
  private readonly scope: LineScope
  private readonly lineForm: LineForm
  private endpoint: string | null = null
  private headers: Readonly<Record<string, string>> = {}
  private bytes = 0
  /** By the text of their values, with their numbers. */
  private readonly found = new Map<string | null, { readonly number: number; readonly part: PlannedPart }>()
  private lines = 0

  constructor(
    { generation }: Exchange,
    {
      id,
      asked,
      identity,
      headers,
      route,
    }: Pick<Planning, 'id' | 'asked' | 'identity' | 'headers'> & {
      readonly route: Pick<Planned, 'form' | 'candidates'>
    },
    services: LineServices,
  ) {
    const [candidate] = route.candidates
    this.id = id
    this.candidate = candidate
    this.lineForm = asked.lines
    const upstream = candidate.target.upstream.config.name
    this.scope = lineScope({ generation, identity, headers, resolved: asked.resolved, upstream, services })
  }

  /** The request for the vendor, or why the line is not sent. Rejects with what refuses the batch. */
  async plan({ number, body }: BatchLine): Promise<Partial<PlannedLine>> {
    const id = lineRequestId(this, number)
    const run = new LineRun(this.scope, { id, body })
    try {
      const { request, path, headers, most, dimensions } = await run.prepare()
      const endpoint = this.endpointOf(path)
      this.endpoint ??= endpoint
      if (endpoint !== this.endpoint) {
        const message = `The upstream takes this request at ${endpoint}, and the lines before at ${this.endpoint}`
        throw new GatewayError('untranslatable', message)
      }
      this.headers = protocolOf(this.headers, headers)
      this.bytes += Buffer.byteLength(request)
      this.lines += 1
      return { request, most, part: this.add(dimensions, most) }
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind === 'bug') throw error
      if (run.isUnpriced || error instanceof TooManyParts)
        throw gatewayError(
          { ...error.wire, message: `${this.lineForm.place(number)}: ${error.message}` },
          error,
        )
      const { wire, dialect } = this.scope.resolved
      return { refused: errorCodecOf(wire, dialect).encodeError(withoutSecrets(error.wire), id) }
    }
  }

  /** At least one; the first one also counts the lines that are not sent, or sent one by one. */
  parts(lines: number): PlannedPart[] {
    const { dimensions } = this.scope.identity
    const found = Array.from(this.found.values(), ({ part }) => part)
    const [first = { dimensions, lines: 0, most: NOTHING }, ...others] = found
    const counted = others.reduce((sum, part) => sum + part.lines, 0)
    return [{ ...first, lines: lines - counted }, ...others]
  }

  /** The number of the part of a line with these values. */
  private add(dimensions: Identity['dimensions'], most: NewPart['most']): number {
    const text = dimensionsText(dimensions)
    const known = this.found.get(text) ?? {
      number: this.found.size,
      part: { dimensions, lines: 0, most: NOTHING },
    }
    if (known.number >= MAX_PARTS) throw new TooManyParts(this.lineForm.param)
    this.found.set(text, known)
    known.part.lines += 1
    const { input, output, nanoUsd } = known.part.most
    const sum = nanoUsd === null || most.nanoUsd === null ? null : nanoUsd + most.nanoUsd
    known.part.most = { input: input + most.input, output: output + most.output, nanoUsd: sum }
    return known.number
  }

  /** Null for a queue, and if no line is sent. */
  facts(): BatchInfo['vendor'] {
    const { endpoint, headers, bytes, lines, candidate } = this
    return endpoint === null ? null : { model: candidate.model, endpoint, headers, bytes, lines }
  }

  /** The path below the version, without the query; Gemini's model is that of the batch. */
  private endpointOf(path: string): string {
    const { basePath } = this.candidate.target.upstream.address
    const [own = ''] = path.slice(basePath.length).split('?')
    return `/v1${own}`
  }
}

/**
 * The headers of Anthropic's protocol for a batch with a further line: the older version, which takes what
 * the later one refuses, and all beta features.
 */
function protocolOf(
  all: Readonly<Record<string, string>>,
  line: Readonly<Record<string, string>>,
): Record<string, string> {
  const { 'anthropic-version': version, 'anthropic-beta': beta } = line
  const { 'anthropic-version': versions = version, 'anthropic-beta': betas } = all
  const names = [betas, beta].flatMap((each) => each?.split(',') ?? [])
  return {
    ...(version !== undefined &&
      versions !== undefined && { 'anthropic-version': olderOf(version, versions) }),
    ...(names.length > 0 && { 'anthropic-beta': [...new Set(names)].join(',') }),
  }
}

function olderOf(one: string, other: string): string {
  return one < other ? one : other
}

/** The lines have too many values of dimensions. */
class TooManyParts extends GatewayError {
  constructor(param: string) {
    const message = `the lines of a batch that a vendor runs have at most ${MAX_PARTS} different values of dimensions: send several batches`
    super('invalid_dimension', message, { param })
  }
}

/**
 * The upstreams that may run the batch, by the first line. Rejects as the direct request is refused, and with
 * `untranslatable` if no upstream of the route runs batches.
 */
async function routeOf(
  x: Exchange,
  { number, body }: BatchLine,
  { asked, identity, headers }: Pick<Planning, 'asked' | 'identity' | 'headers'>,
): Promise<Pick<Planned, 'form' | 'candidates'>> {
  const { resolved, lines } = asked
  const call = await callIn(body, resolved, headers).catch((error: unknown) => {
    if (!(error instanceof GatewayError)) throw error
    throw gatewayError({ ...error.wire, message: `${lines.place(number)}: ${error.message}` }, error)
  })
  const { candidates } = choose({ call, identity, generation: x.generation })
  const [served] = candidates.filter((candidate) => formOf(candidate) !== 'none')
  if (served === undefined) throw noBatches(candidates[0], lines)
  const form = formOf(served)
  if (form === 'none') throw noBatches(served, lines)
  const others = candidates.filter((candidate) => candidate !== served && formOf(candidate) === form)
  return { form, candidates: [served, ...others] }
}

function formOf({ target }: Candidate): BatchForm {
  return target.upstream.config.batch
}

/** The error of an upstream that runs no batches. */
function noBatches({ target }: Candidate, { param }: LineForm): GatewayError {
  const { name, platform, dialect } = target.upstream.config
  const queue = `set "operations: { batch: queue }" for the upstream to send the lines one by one`
  const cloud = { bedrock: 'Bedrock', vertex: 'Vertex AI', azure: 'Azure' }[platform?.name ?? 'azure']
  const isBucket = platform?.name === 'vertex' || platform?.name === 'bedrock' || dialect === 'converse'
  const bucket = platform?.name === 'vertex' ? 'a bucket of Cloud Storage' : 'an S3 bucket'
  const message = isBucket
    ? `Batches on ${dialect === 'converse' ? 'Bedrock' : cloud} read and write ${bucket}, which the gateway does not have; ${queue}`
    : `The upstream "${name}" runs no batches; ${queue}`
  return new GatewayError('untranslatable', message, { param })
}

async function recordBatch(
  x: Exchange,
  {
    id,
    asked,
    identity,
    headers,
    planned,
    ingress,
  }: Pick<Planning, 'id' | 'asked' | 'identity' | 'headers'> &
    Pick<ClientForm, 'ingress'> & { readonly planned: Planned },
  services: CreateServices,
): Promise<Batch> {
  const { files, records } = services
  const { candidates, model, form, lines, plan, vendor } = planned
  const nowMs = Date.now()
  const { keepMs } = files.settings
  const parts = planned.parts.map(({ dimensions, most, lines: own }, at) => {
    const values = dimensions === undefined ? identity : { ...identity, dimensions }
    const partId = at === 0 ? id : `${id}-${at + 1}`
    const shared = { x, program: x.program, ingress, model, candidate: candidates[0], batch: id }
    return newPartOf({ ...shared, identity: values, id: partId, lines: own, most })
  })
  const reserved = parts.map(({ demands }) => ({ demands, isHeld: demands.length > 0 }))
  const journal = await files.begin(identity, {
    name: 'journal',
    purpose: 'work',
    expiresAtMs: plan.expiresAtMs,
  })
  const batch: Batch = {
    ...{ id, accountId: identity.accountId, keyId: identity.keyId, createdAtMs: nowMs },
    expiresAtMs: nowMs + keepMs + LONGEST_MS,
    info: {
      ...{ state: 'creating', endpoint: asked.endpoint, model, inputFileId: asked.inputFileId, form },
      ...{ window: asked.window, dueAtMs: nowMs + asked.windowMs },
      upstreams: [...new Set(candidates.map(({ target }) => target.upstream.config.name))],
      ...{ planId: plan.id, journalId: journal.file.id, outputFileId: null, errorFileId: null },
      counts: { total: lines, completed: 0, failed: 0 },
      at: {},
      ...{ vendorId: null, vendor, isCancelled: false, isVendorCancelled: false, failure: null },
      reserved,
    },
    secrets: {
      identity: { ...identity, digest: null },
      ...{ metadata: asked.metadata, headers, parts: parts.map(({ kept }) => kept) },
    },
  }
  // Its record exists before anything is reserved, so that a process that takes over can release it.
  await records.create(batch)
  for (const each of reserved) each.isHeld = false
  try {
    // Others may have been made since the first count.
    const { maxOpenPerAccount } = x.generation.snapshot.config.batches
    if ((await records.open(identity.accountId)).length > maxOpenPerAccount)
      throw tooManyOpen(maxOpenPerAccount)
    for (const [at, { made, kept, limitDemands }] of parts.entries()) {
      const isHeld = await reservePart(made, { unsettled: kept.entry, limitDemands }, services)
      const own = reserved[at]
      if (own !== undefined) own.isHeld = isHeld
    }
    const ready = await records.change(id, () => ({ state: 'validating', reserved }))
    if (ready === null) throw new GatewayError('store_unavailable', 'The store does not have the batch.')
    return ready
  } catch (error) {
    await forget({ ...batch, info: { ...batch.info, reserved } }, services)
    throw error
  }
}

/** A part of a batch, and what it takes of limits. */
interface RecordedPart {
  readonly made: NewPart
  readonly kept: BatchPart
  readonly limitDemands: ReturnType<typeof demandsOf>
  readonly demands: BatchInfo['reserved'][number]['demands']
}

function newPartOf(made: NewPart): RecordedPart {
  const { lines, identity } = made
  const { dimensions } = identity
  const limitDemands = demandsOf(made)
  return {
    made,
    kept: { entry: entryOfPart(made), lines, ...(dimensions !== undefined && { dimensions }) },
    limitDemands,
    demands: limitDemands.map(({ demand }) => demand),
  }
}

/** Those that the requests of Anthropic's clients have. */
const PROTOCOL_HEADERS = ['anthropic-version', 'anthropic-beta']

/** The headers with values of dimensions, the name of the program, and those of the client's protocol. */
function headersOf({ req, generation }: Exchange, dialect: DialectName): Record<string, string> {
  const places = generation.snapshot.config.dimensions.flatMap((dimension) => dimension.places)
  const names = places.flatMap(({ kind, path: [name] }) =>
    kind === 'header' && name !== undefined ? [name] : [],
  )
  const own = dialect === 'anthropic' ? PROTOCOL_HEADERS : []
  const found = ['user-agent', ...own, ...names].flatMap((name): [string, string][] => {
    const value = headerOf(req, name)
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(found)
}

/** Removes a batch that was not made. */
export async function forget(batch: Batch, services: CreateServices): Promise<void> {
  const { files, records } = services
  const { journalId, planId } = batch.info
  await releaseBatch(batch, services)
  await records.remove(batch.id)
  await records.close(batch.id)
  for (const id of [journalId, planId]) await files.remove({ id })
}
