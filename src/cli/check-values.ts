/**
 * Notes of `sluice check` about values that are allowed but probably in another unit, in another format than
 * that of the host, or names of models that are listed nowhere.
 */
import type { Catalogue, Config, RouteConfig, UpstreamConfig } from '../config/config.js'
import { didYouMean, nearest, pathText, type Path } from '../config/config-problem.js'
import { dialectNote } from '../config/resolve-upstream.js'
import { parseYaml } from '../config/yaml.js'

interface Checked {
  readonly config: Config
  readonly catalogue: Catalogue
  readonly sources: { readonly path: string; readonly text: string }
}

/** One line for each finding: units and prices in file order, then upstreams, then routes. */
export function valueNotes({ config, catalogue, sources }: Checked): string[] {
  const yaml = parseYaml(sources.path, sources.text)
  const notes: string[] = []
  visitNumbers(yaml.value, [], (value, path) => {
    const text = unitText(value, String(path.at(-1))) ?? priceText(value, path)
    if (text === null) return
    const { line } = yaml.locate({ path, message: '' })
    notes.push(`${pathText(path)} (line ${line}) ${text}`)
  })
  return [
    ...notes,
    ...cataloguePriceNotes(catalogue),
    ...Object.values(config.upstreams).flatMap((upstream) => {
      const note = dialectNote(upstream)
      return note === null ? [] : [`upstream ${upstream.name}: ${note}`]
    }),
    ...config.routes.flatMap((route, index) => modelNotes(route, index, { config, catalogue })),
  ]
}

function visitNumbers(value: unknown, path: Path, found: (value: number, path: Path) => void): void {
  if (typeof value === 'number') found(value, path)
  if (typeof value !== 'object' || value === null) return
  const entries: [PropertyKey, unknown][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : Object.entries(value)
  // Parameters for the provider, in its own units.
  for (const [key, item] of entries) if (key !== 'quirks') visitNumbers(item, [...path, key], found)
}

/** Below this many milliseconds a value was probably meant in seconds. 0 turns a setting off. */
const LEAST_MS: Readonly<Record<string, number>> = {
  connect_ms: 50,
  first_byte_ms: 1_000,
  first_byte_whole_ms: 1_000,
  idle_ms: 1_000,
  total_ms: 1_000,
  max_wait_ms: 61,
  after_ms: 31,
  interval_ms: 301,
  drain_ms: 1_000,
  headers_timeout_ms: 1_000,
  keep_alive_ms: 1_000,
  client_stall_ms: 1_000,
  timeout_ms: 31,
  slow_ms: 61,
  rise_ms: 31,
  hold_ms: 61,
  max_ms: 601,
}
/**
 * From this many seconds on, a multiple of 1,000 was probably meant in milliseconds. The bounds of the schema
 * refuse it for other settings.
 */
const MOST_SECONDS: Readonly<Record<string, number>> = {
  open_seconds: 1_000,
  window_seconds: 1_000,
  fresh_seconds: 1_000,
  cooldown_seconds: 1_000,
  stale_seconds: 10_000,
  max_age_seconds: 10_000,
  token_seconds: 10_000,
  ttl_seconds: 600_000,
  refresh_seconds: 600_000,
  keep_seconds: 600_000,
  store_seconds: 600_000,
}
const DAY_SECONDS = 86_400

function unitText(value: number, name: string): string | null {
  const least = Object.hasOwn(LEAST_MS, name) ? LEAST_MS[name] : undefined
  if (least !== undefined && value > 0 && value < least) {
    return `is ${value} milliseconds: for ${value} seconds write ${value * 1_000}`
  }
  const most = Object.hasOwn(MOST_SECONDS, name) ? MOST_SECONDS[name] : undefined
  if (most === undefined || value < most || value % 1_000 !== 0 || value % DAY_SECONDS === 0) return null
  return `is ${value} seconds: for ${value} milliseconds write ${value / 1_000}`
}

/** Cheaper than any model for a million tokens, and in the range of prices per token. */
const LEAST_USD = 0.001

function priceText(value: number, path: Path): string | null {
  const [section, , kind, model, price] = path
  const isPrice =
    (section === 'upstreams' && kind === 'prices' && path.length === 5) ||
    (section === 'upstreams' && kind === 'models' && typeof model === 'number' && price === 'price') ||
    (section === 'limiting' && path[1] === 'assumed_price' && path[2] !== 'call')
  return isPrice && isOfTokens(path.at(-1)) && isPerToken(value) ? perTokenText(value) : null
}

/** Prices of characters, seconds, pages and pictures are those of one. */
function isOfTokens(kind: Path[number] | undefined): boolean {
  return typeof kind !== 'string' || !/^(?:per|min)(?:_|[A-Z])/.test(kind)
}

function isPerToken(value: number): boolean {
  return value > 0 && value < LEAST_USD
}

function perTokenText(value: number): string {
  const perMillion = Number((value * 1e6).toPrecision(6))
  return `is ${value} dollars for a million tokens: if it is the price of one token, write ${perMillion}`
}

/** The catalogue's own prices: the first of each model. */
function cataloguePriceNotes({ models }: Catalogue): string[] {
  return models.flatMap(({ id, price = {} }) => {
    const [name, value] =
      Object.entries(price).find(([kind, each]) => isOfTokens(kind) && isPerToken(Number(each))) ?? []
    return typeof value !== 'number' || name === undefined
      ? []
      : [`the price of ${id} in the catalogue: ${name} ${perTokenText(value)}`]
  })
}

interface Loaded {
  readonly config: Config
  readonly catalogue: Catalogue
}

/** A note for each model of a route that its upstream and the catalogue do not list. */
function modelNotes(route: RouteConfig, index: number, { config, catalogue }: Loaded): string[] {
  const { match, targets, fallback, shadow } = route
  const exact = 'model' in match ? match.model : null
  const listed = [
    ...targets.map((target, at) => ({ target, place: `targets[${at}]` })),
    ...fallback.map((target, at) => ({ target, place: `fallback[${at}]` })),
    ...(shadow === null ? [] : [{ target: shadow, place: 'shadow' }]),
  ]
  return listed.flatMap(({ target, place }) => {
    const upstream = config.upstreams[target.upstream]
    const model = target.model ?? exact
    if (upstream === undefined || model === null || isKnown(model, upstream, catalogue)) return []
    // A route for its dated variants, as `o1-` beside `o1`, confirms the name.
    if (config.routes.some((other) => 'prefix' in other.match && other.match.prefix === `${model}-`))
      return []
    const names = namesFor(upstream, catalogue)
    const isClosed = upstream.dialect !== 'openai-chat' || upstream.models.length > 0
    if (!isClosed && nearest(model, names) === null) return []
    const at = `routes[${index}].${target.model === null ? 'model' : `${place}.model`}`
    return [
      `${at}: neither the catalogue nor upstream ${upstream.name} lists ${model}${didYouMean(model, names)}: check the name, or list it in upstreams.${upstream.name}.models`,
    ]
  })
}

/** Deployments and the ids of clouds have names of their own. */
function isKnown(model: string, upstream: UpstreamConfig, catalogue: Catalogue): boolean {
  if (upstream.discover || upstream.platform !== null || upstream.preset === 'azure') return true
  if ([model, '*'].some((name) => Object.hasOwn(upstream.prices, name))) return true
  if (Object.hasOwn(upstream.vendorPrices, model)) return true
  const found = catalogue.find(model)
  return found !== null && !hasOtherWords(model, [found.id, ...(found.variants ?? [])])
}

/** What follows the id of a model in the id of its version, as in `-2025-08-07` and `-preview`. */
const VERSION = /^-(?:\d|v\d|latest|preview|exp)/

/** Whether the model extends a listed id with words that name no version of it: `gpt-5.4-minni`. */
function hasOtherWords(model: string, ids: readonly string[]): boolean {
  if (ids.includes(model)) return false
  const lengths = ids.filter((id) => model.startsWith(`${id}-`)).map(({ length }) => length)
  return lengths.length > 0 && !VERSION.test(model.slice(Math.max(...lengths)))
}

function namesFor({ models }: UpstreamConfig, catalogue: Catalogue): string[] {
  return [...models, ...catalogue.models].map(({ id }) => id)
}
