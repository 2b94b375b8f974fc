/**
 * `sluice models update`: compares a catalogue with a kept list of models and prices, shows what changes and
 * what it costs, and writes the file. Entries without `source`, or with `source: own`, never change.
 */
import { renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { whyUnreadable } from '../config/bounded-file.js'
import { factsOfFamily } from '../config/catalogue.js'
import type { Catalogue, Config } from '../config/config.js'
import { editCatalogue, type CatalogueEdit } from '../config/edit-catalogue.js'
import { loadConfig, readCatalogue, readText, type Loaded, isFile } from '../config/load-config.js'
import { packageFile } from '../config/package-file.js'
import { isOfItsMaker, sourceIn, type PriceSource, type SourceModel } from '../config/price-sources.js'
import { parseYaml } from '../config/yaml.js'
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import { Prices } from '../ledger/find-price.js'
import type { LedgerEntry } from '../ledger/entry.js'
import { costNanoUsd } from '../ledger/price.js'
import { problemLines } from './problem-lines.js'
import { UsageError } from './command.js'
import { processTerminal, withStore, type OpenStore, type StoreSession, type Terminal } from './with-store.js'

/** The lists that the package has. */
const SHIPPED = ['genai-prices', 'litellm'] as const
const MAX_SOURCE_BYTES = 32 * 1024 * 1024
const DOWNLOAD_MS = 60_000
const OWN = 'own'
const WEEK_MS = 7 * 86_400_000
const GO_BACK =
  "A running gateway with it loads it as a new generation: 'sluice generations rollback' goes back."

/** The options of the command. */
interface UpdateOptions {
  readonly from: string
  readonly catalogue?: string | undefined
  readonly config?: string | undefined
  readonly dryRun?: true | undefined
  readonly json?: true | undefined
}

/** A fact that changes. */
interface FactChange {
  readonly model: string
  readonly fact: string
  readonly before: JsonValue
  readonly after: JsonValue
  /** The day from which a price holds; null: always. */
  readonly from: string | null
}

interface Plan {
  readonly edits: readonly CatalogueEdit[]
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly FactChange[]
  /** Entries of the file's owner, with the facts in which the list differs. */
  readonly own: readonly FactChange[]
}

/** The cost of the tokens of a key's requests of the last seven days, in US dollars. */
interface KeyCost {
  readonly key_id: string
  /** The day from which the prices hold that it is computed with; null: the prices of now. */
  readonly from: string | null
  readonly before_usd: number
  readonly after_usd: number
  /** Requests without a price on each side, which cost nothing in these sums. */
  readonly before_unpriced: number
  readonly after_unpriced: number
}

/** A failure with a message for the user. */
class UpdateFailed extends Error {}

/** Runs the command. Resolves to its exit status: 2 if a dry run finds differences. */
export async function updateModels(
  options: UpdateOptions,
  { open = withStore, terminal = processTerminal }: { open?: OpenStore; terminal?: Terminal } = {},
): Promise<number> {
  try {
    return await update(options, open, terminal)
  } catch (error) {
    if (!(error instanceof UpdateFailed)) throw error
    terminal.err(`sluice: ${error.message}`)
    return 1
  }
}

async function update(options: UpdateOptions, open: OpenStore, terminal: Terminal): Promise<number> {
  const loaded = options.config === undefined || options.config === '' ? null : configOf(options.config)
  const file = fileOf(options, loaded)
  const source = await readSource(options.from)
  const text = readText(file.read)
  if (text === null)
    throw new UpdateFailed(`the catalogue ${file.read} ${whyUnreadable(file.read, MAX_SOURCE_BYTES)}`)
  const plan = planOf(entriesOf(file.read, text), source)
  const asOf = new Date().toISOString().slice(0, 10)
  const updated = plan.edits.length === 0 ? text : editCatalogue(text, plan.edits, asOf)
  const before = catalogueOf(file.read, text)
  const after = catalogueOf(file.write, updated)
  const { config } = loaded ?? {}
  const keys =
    config === undefined || plan.edits.length === 0
      ? null
      : await keyCosts(options.config ?? '', { open, terminal }, { config, plan, before, after })
  const isDry = options.dryRun === true
  const isApplied = !isDry && plan.edits.length > 0
  if (isApplied) replaceFile(file.write, updated)
  const result = { source: source.name, catalogue: file.write, isApplied }
  terminal.out(
    options.json === true ? JSON.stringify(planJson(plan, keys, result)) : planText(plan, keys, result),
  )
  return isDry && plan.edits.length > 0 ? 2 : 0
}

function configOf(path: string): Loaded {
  const loaded = loadConfig(path, process.env)
  if (!loaded.ok) throw new UpdateFailed(problemLines(loaded.errors))
  return loaded
}

/** The catalogue to read and to write: the package's own one is never changed. */
function fileOf({ catalogue }: UpdateOptions, loaded: Loaded | null): { read: string; write: string } {
  const shipped = packageFile('config/models.yaml')
  if (catalogue !== undefined) {
    const path = resolve(catalogue)
    return { read: isFile(path) ? path : shipped, write: path }
  }
  if (loaded === null) {
    throw new UsageError(
      "'sluice models update' needs --catalogue FILE, or --config FILE, whose catalogue it updates",
    )
  }
  const { path } = loaded.sources.catalogue
  const write = path === shipped ? join(dirname(loaded.sources.path), 'models.yaml') : path
  return { read: path, write }
}

async function readSource(from: string): Promise<PriceSource> {
  const isShipped = SHIPPED.some((name) => name === from)
  const text = isShipped ? readText(packageFile(`config/prices-${from}.json`)) : await sourceText(from)
  if (text === null)
    throw new UpdateFailed(`the list ${from} ${whyUnreadable(resolve(from), MAX_SOURCE_BYTES)}`)
  const { value, errors } = parsed(from, text)
  if (errors !== null) throw new UpdateFailed(errors)
  const source = sourceIn(value)
  if (source === null || source.models.length === 0) {
    throw new UpdateFailed(
      `${from} is no list of models: it has none of the forms of models.yaml, LiteLLM and genai-prices`,
    )
  }
  // A list of many vendors has models at the prices of hosts, which are not those of other vendors.
  const isOfVendors = SHIPPED.some((name) => name === source.name)
  return isOfVendors ? { ...source, models: source.models.filter(isOfItsMaker) } : source
}

function parsed(from: string, text: string): { value: unknown; errors: string | null } {
  try {
    return { value: JSON.parse(text), errors: null }
  } catch {
    const { value, errors } = parseYaml(from, text)
    return { value, errors: errors.length === 0 ? null : problemLines(errors) }
  }
}

async function sourceText(from: string): Promise<string | null> {
  if (!/^[a-z]+:\/\//i.test(from)) return readText(resolve(from), MAX_SOURCE_BYTES)
  if (!/^https:\/\//i.test(from))
    throw new UsageError('--from must be a file, an https URL, genai-prices or litellm')
  try {
    const reply = await fetch(from, { signal: AbortSignal.timeout(DOWNLOAD_MS) })
    if (!reply.ok) throw new UpdateFailed(`${from} answers ${String(reply.status)}`)
    const body = await reply.text()
    return body.length > MAX_SOURCE_BYTES ? null : body
  } catch (error) {
    if (error instanceof UpdateFailed) throw error
    throw new UpdateFailed(`${from} does not answer`)
  }
}

/** The entries of a catalogue in the file's spelling. */
function entriesOf(file: string, text: string): readonly JsonObject[] {
  const { value, errors } = parseYaml(file, text)
  if (errors.length > 0) throw new UpdateFailed(problemLines(errors))
  const { models } = isObject(value) ? value : {}
  return Array.isArray(models) ? models.filter(isObject) : []
}

function catalogueOf(file: string, text: string): Catalogue {
  const { catalogue, errors } = readCatalogue(file, text)
  if (catalogue === null) throw new UpdateFailed(problemLines(errors))
  return catalogue
}

/** What a list changes in a catalogue with these entries. Own entries stay unchanged. */
export function planOf(entries: readonly JsonObject[], source: PriceSource): Plan {
  const names = new Map<string, JsonObject>()
  for (const entry of entries) {
    const variants = Array.isArray(entry['variants']) ? entry['variants'] : []
    for (const name of [entry['id'], ...variants]) if (typeof name === 'string') names.set(name, entry)
  }
  const edits: CatalogueEdit[] = []
  const added: string[] = []
  const changed: FactChange[] = []
  const own: FactChange[] = []
  const listed = new Set<string>()
  for (const model of source.models) {
    listed.add(model.id)
    const entry = names.get(model.id)
    if (entry === undefined) {
      added.push(model.id)
      const inherited = model['operations'] === undefined ? inheritedFacts(model.id, names) : {}
      edits.push({ id: model.id, entry: { ...inherited, ...sourced(model, source.name) } })
      continue
    }
    if (entry['id'] !== model.id) continue
    const differences = differencesOf(entry, model)
    if (differences.length === 0) continue
    if (isOwn(entry)) own.push(...differences)
    else {
      changed.push(...differences)
      edits.push({ id: model.id, entry: { ...entry, ...sourced(model, source.name) } })
    }
  }
  const removed = entries.flatMap((entry) => {
    const id = stringOf(entry['id']) ?? ''
    return entry['source'] === source.name && !listed.has(id) ? [id] : []
  })
  edits.push(...removed.map((id) => ({ id, entry: null })))
  return { edits, added, removed, changed, own }
}

/** Facts that are true of one id only. */
const OF_ONE_ID = ['id', 'family', 'variants', 'created', 'shutdown', 'price', 'source', 'as_of']

/**
 * How the model of the longest id that this one extends with `-` is used, as `Catalogue.find` finds unknown
 * ids: lists have prices and limits, and nothing of what a model refuses.
 */
function inheritedFacts(id: string, names: ReadonlyMap<string, JsonObject>): JsonObject {
  for (let end = id.lastIndexOf('-'); end > 0; end = id.lastIndexOf('-', end - 1)) {
    const entry = names.get(id.slice(0, end))
    if (entry === undefined) continue
    return Object.fromEntries(Object.entries(entry).filter(([fact]) => !OF_ONE_ID.includes(fact)))
  }
  const { callSignatures, systemInstruction } = factsOfFamily(id, '')
  return {
    ...(callSignatures === undefined ? {} : { call_signatures: callSignatures }),
    ...(systemInstruction === undefined ? {} : { system_instruction: systemInstruction }),
  }
}

function isOwn({ source }: JsonObject): boolean {
  return source === undefined || source === OWN
}

function sourced(model: SourceModel, name: string): JsonObject {
  return { ...model, source: stringOf(model['source']) ?? name, as_of: new Date().toISOString().slice(0, 10) }
}

/** The facts of the list that the entry has otherwise; what the list lacks stays. */
function differencesOf(entry: JsonObject, model: SourceModel): FactChange[] {
  return Object.entries(model).flatMap(([fact, after]): FactChange[] => {
    const before = entry[fact] ?? null
    if (after === undefined || ['id', 'source', 'as_of', 'variants'].includes(fact)) return []
    if (sortedText(before) === sortedText(after)) return []
    const from = fact === 'price' ? (datesOf(after).sort().at(-1) ?? null) : null
    return [{ model: model.id, fact, before, after, from }]
  })
}

/** Equal for maps that differ only in the order of their members. */
function sortedText(value: JsonValue): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (!isObject(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}

/** What a key used at the prices of one side. */
interface SideSum {
  nanoUsd: number
  unpriced: number
}

/** The prices before and after the update that hold from a day; null: those of now. */
interface Moment {
  readonly from: string | null
  readonly sides: readonly [Prices, Prices]
  readonly sums: Map<string, readonly [SideSum, SideSum]>
}

function addCosts({ sides, sums }: Moment, entry: LedgerEntry): void {
  const { upstream, modelAnswered, keyId, usage } = entry
  if (upstream === null || modelAnswered === null) return
  let sum = sums.get(keyId)
  if (sum === undefined) {
    sum = [
      { nanoUsd: 0, unpriced: 0 },
      { nanoUsd: 0, unpriced: 0 },
    ]
    sums.set(keyId, sum)
  }
  for (const [at, side] of sum.entries()) {
    const price = sides[at]?.find(upstream, modelAnswered, null) ?? null
    const cost = price === null ? null : costNanoUsd(price, usage)
    side.nanoUsd += cost ?? 0
    side.unpriced += cost === null ? 1 : 0
  }
}

/** The days to come from which prices of the plan hold, in order. */
function comingDays({ edits }: Plan, nowMs: number): string[] {
  const days = edits.flatMap(({ entry }) => datesOf(entry?.['price'] ?? null))
  return [...new Set(days)].filter((day) => Date.parse(day) > nowMs).sort()
}

function datesOf(price: JsonValue): string[] {
  return Array.isArray(price) ? price.flatMap((each) => stringOf(objectOf(each)['from']) ?? []) : []
}

interface Compared {
  readonly config: Config
  readonly plan: Plan
  readonly before: Catalogue
  readonly after: Catalogue
}

interface Opening {
  readonly open: OpenStore
  readonly terminal: Terminal
}

/**
 * Each key's last seven days at the former and the new prices; keys whose cost stays are left out. Null, with
 * a note, if the store cannot be read: the catalogue may be updated before a gateway has a store.
 */
async function keyCosts(
  path: string,
  { open, terminal }: Opening,
  compared: Compared,
): Promise<readonly KeyCost[] | null> {
  let costs: readonly KeyCost[] | null = null
  const problems: string[] = []
  const quiet: Terminal = { ...terminal, err: (line) => problems.push(line.replace(/^sluice: /, '')) }
  const work = async (session: StoreSession): Promise<number> => {
    costs = await costsIn(session, compared)
    return 0
  }
  await open(path, work, { terminal: quiet })
  if (problems.length > 0) terminal.err(`note: the cost of keys is not compared: ${problems.join(' ')}`)
  return costs
}

async function costsIn({ store }: StoreSession, compared: Compared): Promise<KeyCost[]> {
  const { config, plan, before, after } = compared
  const upstreams = Object.values(config.upstreams)
  const now = Date.now()
  const moments = [null, ...comingDays(plan, now)].map((from): Moment => {
    const atMs = from === null ? now : Date.parse(from)
    const sides = [
      new Prices(before.models, upstreams, atMs),
      new Prices(after.models, upstreams, atMs),
    ] as const
    return { from, sides, sums: new Map() }
  })
  for await (const batch of store.ledger.export(now - WEEK_MS)) {
    for (const entry of batch) for (const moment of moments) addCosts(moment, entry)
  }
  return moments.flatMap(({ from, sums }) => {
    return [...sums].flatMap(([key, [one, other]]): KeyCost[] => {
      if (one.nanoUsd === other.nanoUsd && one.unpriced === other.unpriced) return []
      const usd = { before_usd: one.nanoUsd / 1e9, after_usd: other.nanoUsd / 1e9 }
      const unpriced = { before_unpriced: one.unpriced, after_unpriced: other.unpriced }
      return [{ key_id: key, from, ...usd, ...unpriced }]
    })
  })
}

/** Replaces the file in one step; a gateway that runs with it loads it as a new generation. */
function replaceFile(path: string, text: string): void {
  const draft = `${path}.draft`
  const mode = isFile(path) ? statSync(path).mode & 0o777 : 0o644
  writeFileSync(draft, text, { mode })
  renameSync(draft, path)
}

interface Outcome {
  readonly source: string
  readonly catalogue: string
  readonly isApplied: boolean
}

function planJson(plan: Plan, keys: readonly KeyCost[] | null, outcome: Outcome): object {
  const { added, removed, changed, own } = plan
  const { source, catalogue, isApplied } = outcome
  const ownModels = byModel(own).map(([model, facts]) => ({ model, differs: facts.map(({ fact }) => fact) }))
  return { source, catalogue, added, removed, changed, own: ownModels, keys: keys ?? [], applied: isApplied }
}

function planText(plan: Plan, keys: readonly KeyCost[] | null, outcome: Outcome): string {
  const { added, removed, changed, own, edits } = plan
  const { source, catalogue, isApplied } = outcome
  const shown = (value: JsonValue): string => (value === null ? 'unknown' : JSON.stringify(value))
  const lines = [
    `${catalogue}, compared with ${source}`,
    ...section('Added', added),
    ...section('Removed', removed),
    ...section(
      'Changed',
      changed.map(({ model, fact, before, after, from }) => {
        const when = from === null ? '' : ` (the last price holds from ${from})`
        return `${model} ${fact}: ${shown(before)} → ${shown(after)}${when}`
      }),
    ),
    ...section(
      'Entries of your own, which stay',
      byModel(own).map(([model, facts]) => {
        const texts = facts.map(
          ({ fact, before, after }) => `${fact} ${shown(before)}, listed ${shown(after)}`,
        )
        return `${model}: ${texts.join('; ')}`
      }),
    ),
    ...[...new Set((keys ?? []).map(({ from }) => from))].flatMap((from) => {
      const title = `These keys' cost changes by${from === null ? '' : `, from ${from}`}`
      return section(title, (keys ?? []).filter((key) => key.from === from).map(costText))
    }),
    '',
    edits.length === 0
      ? 'Nothing to change.'
      : isApplied
        ? `Wrote ${catalogue}. ${GO_BACK}`
        : 'Nothing was written.',
  ]
  return lines.join('\n')
}

function byModel(changes: readonly FactChange[]): [string, FactChange[]][] {
  const models = new Map<string, FactChange[]>()
  for (const change of changes) models.set(change.model, [...(models.get(change.model) ?? []), change])
  return [...models]
}

function costText(cost: KeyCost): string {
  const { key_id: key, before_usd: before, after_usd: after } = cost
  const { before_unpriced: unpricedBefore, after_unpriced: unpricedAfter } = cost
  const unpriced =
    unpricedBefore === unpricedAfter
      ? ''
      : `; requests without a price: ${String(unpricedBefore)} → ${String(unpricedAfter)}`
  return `${key} ${dollars(after - before)} (${dollars(before)} → ${dollars(after)} in the last 7 days${unpriced})`
}

function dollars(usd: number): string {
  return `${usd < 0 ? '-' : ''}$${Math.abs(usd).toFixed(4)}`
}

/** Lines below a title, after an empty line; nothing without lines. */
export function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)]
}
