/**
 * `sluice check`: validates a configuration file, and prints each problem with its position. No side effects.
 */
import { counted } from '../base/counted.js'
import { factsFor } from '../config/catalogue.js'
import {
  isConfigured,
  type Catalogue,
  type Config,
  type UpstreamConfig,
  type RouteConfig,
  type TargetName,
} from '../config/config.js'
import { needsRestart } from '../config/generations/diff-configs.js'
import { loadConfig, type LoadResult } from '../config/load-config.js'
import { excerpt, problemOfFile, type ConfigProblem } from '../config/config-problem.js'
import { baseUrlNote } from '../config/resolve-upstream.js'
import { plainSecretNotes, secretsOf } from '../config/secret-settings.js'
import { GatewayError } from '../errors.js'
import { isHarmless } from '../formats/chat/hosted-tools.js'
import { modelAt, createRouter } from '../gateway/routing/router.js'
import { dialectsByRequest } from '../gateway/upstreams/choose-openai-endpoint.js'
import { hideSecrets, protectSecrets } from '../hide-secrets.js'
import { Prices } from '../ledger/find-price.js'
import { modelRulesWithoutRoute, unmatchedRules, selectsSubjects } from '../limits/unmatched-rules.js'
import { loadPlugins, PluginError } from '../policy/plugins.js'
import { openStore } from '../store/open-store.js'
import { isRedisUrl } from '../store/store-address.js'
import { withArchive } from './check-archive.js'
import { unreachableNotes } from './check-unreachable-routes.js'
import { valueNotes } from './check-values.js'
import { configOption, declare } from './command.js'
import { Budgets, hasBudget, termsText } from '../gateway/explain/explain-budgets.js'
import { notCarried } from '../gateway/explain/not-carried.js'
import { problemLines, relativeName } from './problem-lines.js'
import { findGateway, loadGeneration } from './running-gateway.js'
import { parseExpression } from '../accounts/workload-identity/claim-expressions.js'
import type { WorkloadIdentity } from '../config/schema/identity-schema.js'

/** A configuration, its catalogue, and the text that it was read from. */
export interface Checked extends Loaded {
  readonly sources: { readonly path: string; readonly text: string }
}

/** One line for each note: first about the values as written, then about upstreams, routes and models. */
function notesOf({ config, catalogue, sources }: Checked, withLosses: boolean): string[] {
  return [
    ...plainSecretNotes(sources.path, sources.text),
    ...valueNotes({ config, catalogue, sources }),
    ...Object.values(config.upstreams).flatMap((upstream) => [
      ...keyNotes(upstream),
      ...addressNotes(upstream),
      ...toolNotes(upstream),
    ]),
    ...config.identity.flatMap(identityNotes),
    ...unreachableNotes(config.routes),
    ...modelRulesWithoutRoute(config, catalogue),
    ...config.routes.flatMap((route, index) => routeNotes(route, `routes[${index}]`, { config, catalogue })),
    ...(withLosses
      ? config.routes.flatMap((route, index) => lossNotes(route, `routes[${index}]`, { config, catalogue }))
      : []),
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

/** Several claims in one name: `a-b` and `c` make the same name as `a` and `b-c`. */
function identityNotes({ account }: WorkloadIdentity, index: number): string[] {
  const [field, text] = typeof account === 'string' ? ['account', account] : ['account.from', account.from]
  const parsed = parseExpression(text)
  const claims = 'problem' in parsed ? [] : parsed.filter((part) => typeof part !== 'string')
  if (claims.length < 2) return []
  const advice = 'use one claim, or one whose values cannot have the text between them'
  return [`identity[${index}].${field}: different claims can make the same name of an account: ${advice}`]
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
  return [...notes, ...shadowNotes(route, place, loaded), ...nameNotes(route, place, loaded)]
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
  const prices = new Prices(catalogue.models, Object.values(config.upstreams), Date.now())
  if (prices.find(upstream, requested, null) === null) {
    notes.push(`${place}.shadow: the price of ${requested} is not known; ${unknownPriceText(config)}`)
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
  const named = new Set(
    config.routes.flatMap(({ targets, fallback }) => {
      return [...targets, ...fallback].map(({ upstream, model }) => `${upstream}\0${model ?? ''}`)
    }),
  )
  for (const { name, models } of Object.values(config.upstreams)) {
    for (const { id } of models) {
      const routes = router.all(id).flatMap(({ targets, fallback }) => [...targets, ...fallback])
      if (routes.some(({ upstream }) => upstream.name === name) || named.has(`${name}\0${id}`)) continue
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

/** A target of a route whose dialect is another one than that of the first target. */
interface OtherSide {
  readonly target: TargetName
  /** `routes[0].fallback[1]: openai (openai-chat)` */
  readonly location: string
  readonly side: RequestSide
}

type RequestSide = Parameters<typeof notCarried>[1] & { readonly dialect: Parameters<typeof notCarried>[0] }

/** The first target, and those of other dialects. */
function sidesOf(
  { match, strip, targets, fallback }: RouteConfig,
  place: string,
  { config, catalogue }: Loaded,
): { readonly own: RequestSide; readonly others: readonly OtherSide[] } | null {
  const text = 'model' in match ? match.model : match.prefix
  // The model of a prefix: the first one in the catalogue that starts with it.
  const requested = catalogue.models.find(({ id }) => id.startsWith(text))?.id ?? text
  const sideOf = (target: TargetName) => {
    const upstream = config.upstreams[target.upstream]
    const facts = factsFor(catalogue, modelAt({ model: target.model, strip }, requested))
    return upstream === undefined
      ? null
      : { dialect: dialectsByRequest(upstream, facts).plain, facts, upstream }
  }
  const own = targets[0] === undefined ? null : sideOf(targets[0])
  if (own === null) return null
  const listed = [
    ...targets.map((target, index) => ({ target, path: `${place}.targets[${index}]` })),
    ...fallback.map((target, index) => ({ target, path: `${place}.fallback[${index}]` })),
  ]
  const others = listed.flatMap(({ target, path }) => {
    const side = sideOf(target)
    if (side === null || familyOf(side.dialect) === familyOf(own.dialect)) return []
    return [{ target, side, location: `${path}: ${target.upstream} (${side.dialect})` }]
  })
  return { own, others }
}

/** Targets of another dialect that get a model name that their vendor does not have. */
function nameNotes(route: RouteConfig, place: string, loaded: Loaded): string[] {
  return (sidesOf(route, place, loaded)?.others ?? [])
    .filter(({ target }) => target.model === null)
    .map(({ location }) => `${location} receives the client's model name: set its model`)
}

/** What targets of another dialect than the first lose or refuse of a request. */
function lossNotes(route: RouteConfig, place: string, loaded: Loaded): string[] {
  const sides = sidesOf(route, place, loaded)
  if (sides === null) return []
  const carried = notCarried(sides.own.dialect, sides.own)
  const known = new Set([...carried.loses, ...carried.refuses])
  return sides.others.flatMap(({ location, side }) => {
    const { loses, refuses } = notCarried(side.dialect, side)
    const lost = loses.filter((name) => !known.has(name))
    const refused = refuses.filter((name) => !known.has(name))
    return [
      ...(lost.length === 0 ? [] : [`${location} loses ${lost.join('; ')}`]),
      ...(refused.length === 0 ? [] : [`${location} refuses ${refused.join('; ')}`]),
    ]
  })
}

/** Both of OpenAI's endpoints have the same models. */
function familyOf(dialect: string): string {
  return dialect.startsWith('openai') ? 'openai' : dialect
}

/** `sluice check`. */
export function command() {
  return declare({
    name: 'check',
    summary: 'validate a configuration file, with file, line and column of each problem',
    description: `
Validates the file as the gateway does when it loads it. No side effects.
Notes list settings that are allowed but may be mistakes: API keys that are not set or are in the file in plain
text, variables without braces, suspicious URLs, routes that can never match, settings without effect,
limits for accounts, keys, labels and models that do not exist, models that no budget can bound, values that
are probably in another unit, names of accounts that several claims make, models that are listed nowhere, and
dialects that do not fit their host.
An archive is connected to, and its tables and rights are compared.
If a gateway runs with the file, the changes that need a restart are listed as well.`,
    exitStatus: '0 the file is valid, 1 it is not (with --strict also if there are notes), 2 wrong usage.',
    example: 'sluice check --config config/gateway.yaml',
  })
    .addOption(configOption())
    .option(
      '--no-store',
      'do not open the store to look for the accounts, keys and labels of limits, nor the archive',
    )
    .option('--strict', 'treat notes as errors: exit 1 if there are any')
    .option('--losses', "add notes on what a route's targets of another dialect lose or refuse of a request")
    .option(
      '--json',
      'print one JSON object: { ok, file, errors: [{ file, line, column, path, message, suggestion }] }, and for a valid file file_hash, upstreams, routes, models, unbounded (models whose cost a budget cannot bound), notes, and needs_restart; with --strict, errors contains the notes',
    )
    .action(async ({ config, strict, losses, json, store }) => {
      const valid = await withPlugins(loadConfig(config, process.env))
      const archive = store ? await withArchive(valid) : { loaded: valid, notes: [] }
      const { loaded } = archive
      const notes = loaded.ok
        ? [
            ...notesOf(loaded, losses === true),
            ...(store ? await storeNotes(loaded.config) : []),
            ...archive.notes,
          ]
        : []
      const isAccepted = loaded.ok && !(strict && notes.length > 0)
      const found = { loaded, notes, isAccepted, restart: await restartSettingsOf(loaded) }
      console.log(json ? JSON.stringify(resultOf(found)) : resultText(found))
      process.exitCode = isAccepted ? 0 : 1
    })
}

/** Rules for accounts, keys and labels that the store does not have. */
async function storeNotes(config: Config): Promise<string[]> {
  if (!selectsSubjects(config)) return []
  protectSecrets(secretsOf(config))
  try {
    const store = await openStore(config.store, { mustExist: !isRedisUrl(config.store) })
    try {
      return await unmatchedRules(config, store)
    } finally {
      await store.close()
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { message } = error.cause instanceof Error ? error.cause : error
    const reason = hideSecrets(message, '***').replace(/\.$/, '')
    return [`limits: accounts, keys and labels are not checked: ${reason} (--no-store leaves this out)`]
  }
}

/** The result with the problem of a plugin that does not load, as a running gateway finds it. */
async function withPlugins(loaded: LoadResult): Promise<LoadResult> {
  if (!loaded.ok || loaded.config.plugins.length === 0) return loaded
  try {
    await loadPlugins(loaded.config)
    return loaded
  } catch (error) {
    if (!(error instanceof PluginError)) throw error
    const { sources } = loaded
    return { ok: false, errors: [problemOfFile(sources.path, error.message)], sources }
  }
}

interface Found {
  readonly loaded: LoadResult
  readonly notes: readonly string[]
  /** False if the file is not valid, or if notes count as errors and there are some. */
  readonly isAccepted: boolean
  /**
   * Settings that take effect with a restart of the running gateway; null if no gateway runs with the file.
   */
  readonly restart: readonly string[] | null
}

async function restartSettingsOf(loaded: LoadResult): Promise<readonly string[] | null> {
  if (!loaded.ok) return null
  const gateway = await findGateway(loaded, process.env)
  if (gateway === null) return null
  const started = await loadGeneration(loaded, gateway, gateway.startedGeneration)
  return started === null ? null : needsRestart(started.config, loaded.config)
}

function resultOf({ loaded, notes, isAccepted, restart }: Found): object {
  const file = loaded.sources.path
  if (!loaded.ok) return { ok: false, file, errors: loaded.errors }
  const upstreams = Object.values(loaded.config.upstreams).map((upstream) => {
    return {
      name: upstream.name,
      configured: isConfigured(upstream),
      api_key_source: upstream.apiKeySource,
    }
  })
  return {
    ok: isAccepted,
    file,
    errors: isAccepted ? [] : notes.map((note) => problemOf(file, note)),
    file_hash: loaded.fileHash,
    upstreams,
    routes: loaded.config.routes.length,
    models: loaded.catalogue.models.length,
    unbounded: new Budgets(loaded.config, loaded.catalogue).unbounded(),
    notes,
    needs_restart: restart,
  }
}

/** A note as an error about the file. */
function problemOf(file: string, message: string): ConfigProblem {
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

function resultText({ loaded, notes, isAccepted, restart }: Found): string {
  if (!loaded.ok) return errorsText(loaded)
  const { config, catalogue } = loaded
  const upstreams = Object.values(config.upstreams)
  const result = isAccepted ? 'valid' : 'refused: --strict treats notes as errors'
  const kind = isAccepted ? 'note' : 'error'
  return [
    `${relativeName(loaded.sources.path)}: ${result} (${counted(upstreams.length, 'upstream')}, ${counted(config.routes.length, 'route')}, ${counted(catalogue.models.length, 'model')})`,
    ...notes.map((note) => `${kind}: ${note}`),
    ...(restart ?? []).map((name) => `restart: ${name} takes effect with "sluice restart"`),
  ].join('\n')
}

/** Each problem with its line of the file and a caret under the column. */
function errorsText({ errors, sources }: Extract<LoadResult, { ok: false }>): string {
  const blocks = errors.map((problem) => {
    const { file, line, column } = problem
    const text = file === sources.path ? sources.text : sources.files[file]
    const source = excerpt(text ?? '', line, column)
    return source === null ? problemLines([problem]) : `${problemLines([problem])}\n${source}`
  })
  return blocks.join('\n')
}
