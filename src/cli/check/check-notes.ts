/** The notes of `sluice check`: surprising effects of a valid configuration file. */
import { isHarmless } from '../../chat/hosted-tools.js'
import { baseUrlNote } from '../../config/upstreams/base-url.js'
import { factsFor } from '../../config/catalogue.js'
import {
  isConfigured,
  type Catalogue,
  type Config,
  type UpstreamConfig,
} from '../../config/config.js'
import { plainSecretNotes } from '../../config/plain-secret-notes.js'
import { Prices } from '../../ledger/find-price.js'
import type { RouteConfig, TargetName } from '../../config/routes/route.js'
import { createRouter } from '../../routing/router.js'
import { dialectsByRequest } from '../../upstreams/explain-dialect.js'
import { Budgets, hasBudget, termsText } from '../explain/explain-budgets.js'
import { unreachableNotes } from './check-routes.js'
import { notCarried } from '../explain/explain-route.js'

/** A configuration, its catalogue, and the text that it was read from. */
export interface Checked extends Loaded {
  readonly sources: { readonly path: string; readonly text: string }
}

/** One line for each note: first about the values as written, then about upstreams, routes and models. */
export function notesOf({ config, catalogue, sources }: Checked): string[] {
  return [
    ...plainSecretNotes(sources.path, sources.text),
    ...Object.values(config.upstreams).flatMap((upstream) => [
      ...keyNotes(upstream),
      ...addressNotes(upstream),
      ...toolNotes(upstream),
    ]),
    ...unreachableNotes(config.routes),
    ...config.routes.flatMap((route, index) =>
      routeNotes(route, `routes[${index}]`, { config, catalogue }),
    ),
    ...modelNotes(config, catalogue),
  ]
}

function keyNotes(upstream: UpstreamConfig): string[] {
  const { name, apiKeySource, unsetKeyVariables } = upstream
  if (!isConfigured(upstream)) {
    const source = apiKeySource ?? ''
    return [`upstream ${name} has no key: ${source} is not set: requests for it get 503`]
  }
  if (unsetKeyVariables.length === 0) return []
  return [`upstream ${name} has fewer keys than listed: ${unsetKeyVariables.join(', ')} is not set`]
}

function addressNotes(upstream: UpstreamConfig): string[] {
  const note = baseUrlNote(upstream)
  return note === null ? [] : [`upstream ${upstream.name}: ${note}`]
}

/** Entries of `allow_tools` that need no permission. */
function toolNotes({ name, allowTools }: UpstreamConfig): string[] {
  return (allowTools ?? [])
    .filter(isHarmless)
    .map((tool) => `upstream ${name}: allow_tools has ${tool}, which every key may use`)
}

interface Loaded {
  readonly config: Config
  readonly catalogue: Catalogue
}

function routeNotes(route: RouteConfig, place: string, loaded: Loaded): string[] {
  const { targets, sticky, balance, hedge } = route
  const notes: string[] = []
  if (sticky !== 'none' && balance === 'least_latency') {
    notes.push(`${place}: balance has no effect, since sticky decides`)
  }
  if (hedge !== null && targets.length === 1) {
    notes.push(`${place}: hedge has no second target and sends both requests to the same upstream`)
  }
  return [...notes, ...shadowNotes(route, place, loaded), ...translationNotes(route, place, loaded)]
}

/** A shadow that has costs but no use, or whose spending limit cannot count them. */
function shadowNotes(
  { match, targets, shadow }: RouteConfig,
  place: string,
  { config, catalogue }: Loaded,
): string[] {
  if (shadow === null) return []
  const { upstream, model } = shadow
  const notes: string[] = []
  const same = targets.find((target) => target.upstream === upstream && target.model === model)
  if (same !== undefined) {
    notes.push(`${place}.shadow: is the same upstream and model as a target: use another one`)
  }
  const requested = model ?? ('model' in match ? match.model : null)
  if (requested === null) return notes
  const prices = new Prices(catalogue.models, Object.values(config.upstreams))
  if (prices.find(upstream, requested, null) === null) {
    notes.push(
      `${place}.shadow: the price of ${requested} is not known; ${unknownPriceText(config)}`,
    )
  }
  return notes
}

/** How a shadow's spending limit counts a model of unknown price. */
function unknownPriceText({ limiting: { unknownPrice, assumedPrice } }: Config): string {
  switch (unknownPrice) {
    case 'assume': {
      const { input, output } = assumedPrice
      return `usd_per_day counts $${input} and $${output} for a million tokens (limiting.assumed_price)`
    }
    case 'allow':
      return 'usd_per_day counts nothing (limiting.unknown_price)'
    case 'refuse':
      return 'no copy is sent (limiting.unknown_price)'
    default:
      return unknownPrice satisfies never
  }
}

/** More models than this are counted, not named. */
const MAX_NAMED = 20

/** Models without a route, and models whose cost a budget cannot bound. */
function modelNotes(config: Config, catalogue: Catalogue): string[] {
  const router = createRouter(config)
  const notes: string[] = []
  for (const { name, models } of Object.values(config.upstreams)) {
    for (const { id } of models) {
      const routes = router.all(id).flatMap(({ targets, fallback }) => [...targets, ...fallback])
      if (routes.some(({ upstream }) => upstream.name === name)) continue
      notes.push(`no route leads to upstream ${name} for its model ${id}: clients do not see it`)
    }
  }
  if (!hasBudget(config)) return notes
  const unbounded = new Budgets(config, catalogue).unbounded()
  for (const { model, upstream, terms } of unbounded.slice(0, MAX_NAMED)) {
    const what = termsText(terms, config)
    notes.push(`a budget cannot bound ${model} of upstream ${upstream}: ${what}`)
  }
  const more = unbounded.length - MAX_NAMED
  if (more > 0) notes.push(`a budget cannot bound ${more} more models: see --json`)
  return notes
}

/**
 * For targets of another dialect than the first: requests they do not support, and models they may not have.
 */
function translationNotes(
  { match, targets, fallback }: RouteConfig,
  place: string,
  { config, catalogue }: Loaded,
): string[] {
  const text = 'model' in match ? match.model : match.prefix
  // The model of a prefix: the first one in the catalogue that starts with it.
  const requested = catalogue.models.find(({ id }) => id.startsWith(text))?.id ?? text
  const sideOf = (target: TargetName) => {
    const upstream = config.upstreams[target.upstream]
    const facts = factsFor(catalogue, target.model ?? requested)
    return upstream === undefined
      ? null
      : { dialect: dialectsByRequest(upstream, facts).plain, facts }
  }
  const own = targets[0] === undefined ? null : sideOf(targets[0])
  if (own === null) return []
  const carried = notCarried(own.dialect, own.facts, catalogue)
  const known = new Set([...carried.loses, ...carried.refuses])
  const listed = [
    ...targets.map((target, index) => ({ target, path: `${place}.targets[${index}]` })),
    ...fallback.map((target, index) => ({ target, path: `${place}.fallback[${index}]` })),
  ]
  return listed.flatMap(({ target, path }) => {
    const side = sideOf(target)
    if (side === null || familyOf(side.dialect) === familyOf(own.dialect)) return []
    const location = `${path}: ${target.upstream} (${side.dialect})`
    const { loses, refuses } = notCarried(side.dialect, side.facts, catalogue)
    const lost = loses.filter((name) => !known.has(name))
    const refused = refuses.filter((name) => !known.has(name))
    return [
      ...(target.model === null
        ? [`${location} receives the client's model name: set its model`]
        : []),
      ...(lost.length === 0 ? [] : [`${location} loses ${lost.join('; ')}`]),
      ...(refused.length === 0 ? [] : [`${location} refuses ${refused.join('; ')}`]),
    ]
  })
}

/** Both of OpenAI's endpoints have the same models. */
function familyOf(dialect: string): string {
  return dialect.startsWith('openai') ? 'openai' : dialect
}
