/** Prints a plan as text. */
import { counted } from '../../base/counted.js'
import type { Config } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { dialectsByRequest } from '../../gateway/upstreams/choose-openai-endpoint.js'
import { openStore } from '../../store/open-store.js'
import { isRedisUrl } from '../../store/store-address.js'
import { notCarried } from '../../gateway/explain/not-carried.js'
import type { Comparison, Move, CostDifference, FlowTarget, LosingKey } from './compare-configs.js'
import type { ComparedConfig } from './targets-and-cost.js'
import { SAMPLE_TOKENS } from './sample-request.js'

/** The output of `sluice plan`; names are those of its JSON. */
export interface Plan extends Omit<Comparison, 'keys'> {
  readonly keys: readonly NamedKey[]
  /** `gateway`: recent requests; `files`: one sample request per model. */
  readonly source: 'gateway' | 'files'
  readonly from_file: string
  readonly to_file: string
  /** When the first and last of the requests ended; null without requests. */
  readonly since: string | null
  readonly until: string | null
  /** Features that moves remove for chat clients, used or not; only for `files`. */
  readonly capabilities: readonly Capability[]
  readonly notes: readonly string[]
  /** Changes that break clients; empty if there are none. */
  readonly breaks: readonly string[]
}

/** Further rows of one kind are counted and not printed; `--json` has all. */
const MAX_ROWS = 40
const MAX_BREAKS = 10

/** The plan in lines, the most important last. */
export function planText(plan: Plan): string {
  const { source, moves, keys, refused, lost, cost, capabilities, notes, breaks } = plan
  const isFiles = source === 'files'
  const countText = (requests: number): string => {
    if (!isFiles) return `, ${counted(requests, 'request')}`
    return requests < 1 ? `, ${Math.round(requests * 100)} % of its requests` : ''
  }
  const lostRoutes = moves.filter(({ to }) => to === null)
  const moved = moves.filter(({ to }) => to !== null)
  return [
    headline(plan),
    ...section('Moves', moved, (move) => `${moveText(move)}${countText(move.requests)}`),
    ...section('Routes that are lost', lostRoutes, (move) => `${moveText(move)}${countText(move.requests)}`),
    ...section('Keys that lose a model', isFiles ? [] : keys, ({ key_id, name, model, requests }) => {
      return `${key_id}${name === null ? '' : ` (${name})`}  ${model}${countText(requests)}`
    }),
    ...section('Cannot be sent', refused, ({ model, format, to, field, message, requests }) => {
      return `${model} (${format}) to ${placeText(to)}: ${field}: ${message}${countText(requests)}`
    }),
    ...section('Lost in translation', lost, ({ model, format, to, dialect, field, requests }) => {
      return `${model} (${format}) to ${placeText(to)} in ${dialect ?? ''}: ${field}${countText(requests)}`
    }),
    ...section('Features that chat clients lose', capabilities, capabilityText),
    ...costLines(cost, isFiles),
    ...section('Notes', notes, (note) => note),
    '',
    ...(breaks.length === 0 ? ['Nothing breaks.'] : breakLines(breaks)),
  ].join('\n')
}

function breakLines(breaks: readonly string[]): string[] {
  const more = breaks.length - MAX_BREAKS
  return [
    ...breaks.slice(0, MAX_BREAKS).map((what) => `Breaks: ${what}`),
    ...(more > 0 ? [`Breaks: ${more} more of the above`] : []),
  ]
}

function headline({ source, requests, since, until, from_file, to_file, unmoved }: Plan): string {
  const files = `${from_file} -> ${to_file}`
  if (source === 'files') return `${files}, for ${counted(requests, 'model')}; ${unmoved} do not move`
  if (requests === 0) return `${files}: the gateway has served no requests since it started`
  return `${files}, on the last ${counted(requests, 'request')} (${since ?? ''} to ${until ?? ''}); ${unmoved} do not move`
}

function section<T>(title: string, rows: readonly T[], line: (row: T) => string): string[] {
  if (rows.length === 0) return []
  const more = rows.length - MAX_ROWS
  return [
    '',
    title,
    ...rows.slice(0, MAX_ROWS).map((row) => `  ${line(row)}`),
    ...(more > 0 ? [`  and ${more} more; --json lists all`] : []),
  ]
}

function moveText({ model, from, to }: Move): string {
  return `${model}: ${placeText(from)} -> ${placeText(to)}`
}

function placeText(place: FlowTarget | null): string {
  return place === null ? 'no route' : `${place.upstream} ${place.model}`
}

function capabilityText({ models, to_upstream, dialect, loses, refuses }: Capability): string {
  const [first = '', ...others] = models
  const named = others.length === 0 ? first : `${first} and ${others.length} more models`
  const parts = [
    ...(loses.length === 0 ? [] : [`loses ${loses.join('; ')}`]),
    ...(refuses.length === 0 ? [] : [`refuses ${refuses.join('; ')}`]),
  ]
  return `${named} at ${to_upstream} (${dialect}): ${parts.join('. ')}`
}

function costLines(cost: CostDifference, isFiles: boolean): string[] {
  const { before_usd, after_usd, difference_usd, models, requests } = cost
  if (requests === 0) return []
  const per = isFiles
    ? ` (one request of ${SAMPLE_TOKENS} prompt and ${SAMPLE_TOKENS} reply tokens per model)`
    : ''
  const sign = difference_usd > 0 ? '+' : ''
  const share = before_usd === 0 ? '' : ` (${sign}${percent(difference_usd / before_usd)})`
  const unknown = [
    ...(cost.without_price > 0 ? [`${cost.without_price} requests have no known price`] : []),
    ...(cost.without_usage > 0 ? [`${cost.without_usage} requests have no reported tokens`] : []),
  ]
  return [
    '',
    `Cost at catalogue prices${per}`,
    `  ${usd(before_usd)} -> ${usd(after_usd)}, ${sign}${usd(difference_usd)}${share}`,
    ...models.slice(0, MAX_ROWS).map((each) => {
      return `  ${each.model}: ${usd(each.before_usd)} -> ${usd(each.after_usd)}`
    }),
    ...unknown.map((line) => `  ${line}`),
  ]
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function usd(amount: number): string {
  return `${amount.toFixed(6)} USD`
}

/** Features that a move removes for chat clients, for all models with the same move. */
interface Capability {
  readonly models: readonly string[]
  readonly to_upstream: string
  readonly dialect: string
  /** Dropped and reported by the new upstream, and not by the current one. */
  readonly loses: readonly string[]
  /** Refused with 400 by the new upstream, and not by the current one. */
  readonly refuses: readonly string[]
}

/**
 * The features that clients lose when a model moves to an upstream of another dialect, for a plan without
 * recorded requests. Moves that lose none are omitted.
 */
export function capabilitiesOf(
  moves: readonly Move[],
  before: ComparedConfig,
  after: ComparedConfig,
): Capability[] {
  const found = new Map<string, { models: string[]; row: Omit<Capability, 'models'> }>()
  for (const { model, from, to } of moves) {
    if (from === null || to === null) continue
    const [old, now] = [carriedBy(from, before), carriedBy(to, after)]
    const loses = now.loses.filter((name) => ![...old.loses, ...old.refuses].includes(name))
    const refuses = now.refuses.filter((name) => !old.refuses.includes(name))
    if (loses.length === 0 && refuses.length === 0) continue
    const row = { to_upstream: to.upstream, dialect: now.dialect, loses, refuses }
    const name = JSON.stringify(row)
    const known = found.get(name)
    if (known === undefined) found.set(name, { models: [model], row })
    else if (!known.models.includes(model)) known.models.push(model)
  }
  return [...found.values()].map(({ models, row }) => ({ models, ...row }))
}

function carriedBy(
  { upstream, model }: FlowTarget,
  side: ComparedConfig,
): { dialect: string; loses: string[]; refuses: string[] } {
  const config = side.config.upstreams[upstream]
  if (config === undefined) throw new Error(`no upstream ${upstream}`)
  const facts = side.facts(model)
  const { plain: dialect } = dialectsByRequest(config, facts)
  return { dialect, ...notCarried(dialect, { facts, upstream: config }) }
}

/** A key with its name; null if it has none, was removed, or the store cannot be opened. */
interface NamedKey extends LosingKey {
  readonly name: string | null
}

/** The keys with their names from the configured store. An unreachable store is not an error. */
export async function withNames({ store: url }: Config, keys: readonly LosingKey[]): Promise<NamedKey[]> {
  const unnamed = keys.map((key) => ({ ...key, name: null }))
  if (keys.length === 0) return unnamed
  try {
    const store = await openStore(url, { mustExist: !isRedisUrl(url) })
    try {
      const named = keys.map(async (key) => {
        const found = await store.keyById(key.account_id, key.key_id)
        return { ...key, name: found?.name ?? null }
      })
      return await Promise.all(named)
    } finally {
      await store.close()
    }
  } catch (error) {
    if (error instanceof GatewayError) return unnamed
    throw error
  }
}
