/**
 * `sluice doctor`: one low-cost request per feature to a live upstream, and the `quirks` that fix what it
 * refuses. Each request passes through a gateway in this process, as an app's request would.
 */
import { hideSecrets } from '../../hide-secrets.js'
import { factsFor } from '../../config/catalogue.js'
import { type Catalogue, type Config, type UpstreamConfig } from '../../config/config.js'
import { loadConfig } from '../../config/load-config.js'
import { yamlText } from '../../config/yaml.js'
import type { JsonObject } from '../../base/json.js'
import { converses } from '../../formats/chat/model-facts.js'
import { requestModelList } from '../../gateway/models/model-discovery.js'
import { createRouter } from '../../gateway/routing/router.js'
import { Upstreams } from '../../gateway/upstreams/upstreams.js'
import { Prices } from '../../ledger/find-price.js'
import { costNanoUsd } from '../../ledger/price.js'
import { configOption, declare, repeated, UsageError } from '../command.js'
import { table } from '../print-table-or-json.js'
import { problemLines } from '../problem-lines.js'
import { Format } from '../rehearse/client-format.js'
import { CeilingReached, CostCeiling } from '../rehearse/rehearsal-client.js'
import { openRehearsalGateway, type RehearsalGateway } from '../rehearse/rehearsal-gateway.js'
import { amount, upstreamOf } from '../rehearse/rehearse.js'
import {
  FEATURES,
  joinFixes,
  fixesByMessage,
  USUAL,
  WITHOUT_LIMIT,
  type Feature,
  type Fix,
} from './features.js'
import { probeChat, probeEmbeddings, type Probed } from './probe.js'

/** The outcome of one feature; names are those of the command's JSON. */
interface FeatureResult {
  readonly feature: string
  /** `differs`: the upstream replies, but not as requested. `skipped`: nothing was sent. */
  readonly outcome: 'ok' | 'differs' | 'refused' | 'skipped'
  /** The status of the upstream; null if it sent none. */
  readonly status: number | null
  /** The upstream's own words, or how its reply differs; null for `ok`. */
  readonly message: string | null
  /** The quirks with which the upstream takes the request; null if there are none. */
  readonly quirks: Fix | null
}

/** The upstream under test. */
interface Patient {
  readonly config: Config
  readonly catalogue: Catalogue
  readonly upstream: UpstreamConfig
  /** Null: the cheapest that the configuration contains, else the first of the upstream's own list. */
  readonly model: string | null
}

interface Choice {
  /** The features to try; empty: all. */
  readonly features: readonly string[]
  readonly maxUsd: number
  readonly timeoutMs: number
}

/** The JSON output of the command. */
interface Report {
  readonly upstream: string
  readonly model: string
  /** What the requests cost, in US dollars. */
  readonly usd: number
  readonly features: readonly FeatureResult[]
  /** The quirks of all features, for the section `quirks` of the upstream; null if there are none. */
  readonly quirks: Fix | null
}

const NAMES = ['models', ...FEATURES.map(({ name }) => name), 'embeddings']

/** `sluice doctor`. */
export function command() {
  return declare({
    name: 'doctor',
    summary: 'try the features of a live upstream, and print the quirks that avoid refusals',
    description: `
Sends one low-cost request per feature to an upstream of the configuration: ${NAMES.join(', ')}.
The requests pass through a separate gateway in this process; a running gateway, its store and its ledger
are not changed.

ok: it works. differs: the upstream replies, but not as requested. refused: the upstream's own words
follow. skipped: nothing was sent. Then the lines of quirks that fix refusals, each tried before it is
printed.`,
    exitStatus: '0 nothing is refused, 1 a feature is refused, 2 wrong usage.',
    example: 'sluice doctor groq --config config/gateway.yaml',
  })
    .argument('<UPSTREAM>', 'the upstream, by its name in the configuration')
    .option(
      '--model <ID>',
      'the model to request (default: the cheapest that the configuration contains for the upstream, else the first of its own list)',
    )
    .option('--feature <NAME>', 'a feature to try; repeatable (default: all)', repeated)
    .option(
      '--max-usd <USD>',
      'maximum cost of the run: a request that might exceed it is not sent. A model without a price counts with limiting.assumed_price',
      amount('--max-usd', 10_000),
      0.05,
    )
    .option('--timeout-ms <MS>', 'maximum time for one reply', amount('--timeout-ms', 3_600_000), 60_000)
    .addOption(configOption())
    .option('--json', 'print one JSON object: { upstream, model, usd, features, quirks }')
    .action(async (name, options) => {
      const { json, feature: features = [] } = options
      const unknown = features.find((feature) => !NAMES.includes(feature))
      if (unknown !== undefined) {
        throw new UsageError(`--feature must be one of ${NAMES.join(', ')}, not "${unknown}"`)
      }
      const loaded = loadConfig(options.config, process.env)
      if (!loaded.ok) {
        console.log(json ? JSON.stringify({ errors: loaded.errors }) : problemLines(loaded.errors))
        process.exitCode = 1
        return
      }
      const { config, catalogue } = loaded
      const upstream = upstreamOf(name, config)
      const report = await examine(
        { config, catalogue, upstream, model: options.model ?? null },
        { features, maxUsd: options.maxUsd, timeoutMs: options.timeoutMs },
      )
      console.log(json ? JSON.stringify(report) : reportText(report))
      process.exitCode = report.features.some(({ outcome }) => outcome === 'refused') ? 1 : 0
    })
}

/** Tries the features in order. A quirk that fixed one holds for all later ones. */
async function examine(patient: Patient, choice: Choice): Promise<Report> {
  const list = await modelList(patient.upstream)
  const model = patient.model ?? cheapestModel(patient) ?? (list.ok ? list.ids[0] : undefined)
  if (model === undefined) {
    throw new Error(`no model of the upstream "${patient.upstream.name}" is known: name one with --model`)
  }
  const examination = new Examination({ ...patient, model }, choice)
  const wanted = (name: string): boolean => choice.features.length === 0 || choice.features.includes(name)
  try {
    if (wanted('models')) examination.add(listResult(list, model))
    for (const feature of FEATURES) if (wanted(feature.name)) await examination.try(feature)
    if (wanted('embeddings')) await examination.tryEmbeddings(list.ok ? list.ids : [])
    return examination.report()
  } finally {
    await examination.close()
  }
}

type ModelList =
  { readonly ok: true; readonly ids: readonly string[] } | { readonly ok: false; readonly why: string }

async function modelList(upstream: UpstreamConfig): Promise<ModelList> {
  const upstreams = new Upstreams({ [upstream.name]: upstream }, null)
  try {
    const opened = upstreams.get(upstream.name)
    if (opened === undefined) return { ok: false, why: 'the upstream cannot be opened' }
    const models = await requestModelList(opened, upstream.apiKeys[0] ?? null)
    return { ok: true, ids: models.map(({ id }) => id) }
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : String(error) }
  } finally {
    await upstreams.destroy()
  }
}

/** The list is no feature of the requests of apps: a vendor without one only differs. */
function listResult(list: ModelList, model: string): FeatureResult {
  const differs = (message: string): FeatureResult => ({
    feature: 'models',
    outcome: 'differs',
    status: null,
    message: hideSecrets(message),
    quirks: null,
  })
  if (!list.ok) return differs(list.why)
  if (list.ids.length === 0) return differs('the list of models is empty')
  if (!list.ids.includes(model)) return differs(`the list of ${list.ids.length} models lacks ${model}`)
  return { feature: 'models', outcome: 'ok', status: 200, message: null, quirks: null }
}

/** The chat model with the lowest price that a route sends to the upstream; null if none is known. */
function cheapestModel({ config, catalogue, upstream }: Patient): string | null {
  const router = createRouter(config)
  const exact = config.routes.flatMap(({ match }) => ('model' in match ? [match.model] : []))
  const listed = catalogue.models.filter(converses).map(({ id }) => id)
  const ids = [...exact, ...listed].flatMap((id) =>
    router
      .all(id)
      .flatMap(({ targets }) => targets)
      .filter((target) => target.upstream.name === upstream.name)
      .map(({ model, strip }) => model ?? id.slice(strip.length)),
  )
  const prices = new Prices(catalogue.models, [upstream], Date.now())
  const costOf = (id: string): number => {
    const price = prices.find(upstream.name, id, null)
    const cost = price === null ? null : costNanoUsd(price, { input: 1_000, output: 1_000 })
    return cost ?? Infinity
  }
  const today = new Date().toISOString().slice(0, 10)
  const chats = [...new Set(ids)].filter((id) => {
    const facts = factsFor(catalogue, id)
    return converses(facts) && (facts.shutdownDate ?? today) >= today
  })
  const priced = chats.map((id) => ({ id, cost: costOf(id) }))
  return priced.toSorted((a, b) => a.cost - b.cost)[0]?.id ?? null
}

/** One run of the command, with the gateway for the quirks found so far. */
class Examination {
  private readonly patient: Patient & { readonly model: string }
  private readonly choice: Choice
  private readonly ceiling: CostCeiling
  private readonly results: FeatureResult[] = []
  private quirks: Fix = {}
  private gateway: RehearsalGateway | null = null

  constructor(patient: Patient & { readonly model: string }, choice: Choice) {
    this.patient = patient
    this.choice = choice
    const { config, catalogue, upstream, model } = patient
    const price = new Prices(catalogue.models, [upstream], Date.now()).find(upstream.name, model, null)
    const facts = factsFor(catalogue, model)
    this.ceiling = new CostCeiling(choice.maxUsd, { price, facts, limiting: config.limiting })
  }

  add(result: FeatureResult): void {
    this.results.push(result)
    console.error(line(result))
  }

  async try(feature: Feature): Promise<void> {
    const unfit = feature.unfit?.(this.facts()) ?? null
    this.add(
      unfit === null
        ? await this.withinCeiling(feature.name, () => this.resultOf(feature))
        : skipped(feature.name, unfit),
    )
  }

  /** An upstream that lists no model for embeddings, and has none in the file, gets no request. */
  async tryEmbeddings(ids: readonly string[]): Promise<void> {
    const { model, catalogue } = this.patient
    const isEmbedding = (id: string): boolean =>
      catalogue.find(id)?.embedding === true || /embed|bge|e5|gte/i.test(id)
    const chosen = [model, ...ids].find(isEmbedding)
    if (chosen === undefined) {
      this.add(skipped('embeddings', 'no model for embeddings is known: name one with --model'))
      return
    }
    const result = await this.withinCeiling('embeddings', async () => {
      const gateway = await this.open(this.quirks, chosen)
      try {
        const probed = await probeEmbeddings({ model: chosen, input: 'hello' }, this.probing(gateway))
        return resultOf('embeddings', probed, () => null)
      } finally {
        await gateway.close()
      }
    })
    this.add(result)
  }

  report(): Report {
    const { upstream, model } = this.patient
    const hasQuirks = Object.keys(this.quirks).length > 0
    return {
      upstream: upstream.name,
      model,
      usd: this.ceiling.spentUsd,
      features: this.results,
      quirks: hasQuirks ? this.quirks : null,
    }
  }

  async close(): Promise<void> {
    await this.gateway?.close()
  }

  private async resultOf(feature: Feature): Promise<FeatureResult> {
    this.gateway ??= await this.open(this.quirks, this.patient.model)
    const body = this.bodyOf(feature)
    const probed = await probeChat(body, this.probing(this.gateway))
    const result = resultOf(feature.name, probed, feature.differs)
    if (result.outcome !== 'refused') return result
    const fixes = this.isChatFormat() ? feature.fixes : []
    for (const fix of [...fixes, ...fixesByMessage(result.message ?? '', body)]) {
      const other = await this.brokenBy(fix, feature)
      if (other !== null) {
        const message = `${result.message ?? ''} (without ${(fix.drop ?? []).join(', ')}, ${other} would not work either)`
        return { ...result, message }
      }
      if (await this.fixes(fix, feature, body)) return { ...result, quirks: fix }
    }
    return result
  }

  /** A feature that works, and that needs what the quirks drop; null: there is none. */
  private async brokenBy({ drop = [] }: Fix, feature: Feature): Promise<string | null> {
    const gateway = this.gateway
    if (gateway === null) return null
    for (const other of FEATURES) {
      if (other === feature || !drop.some((key) => key in other.body)) continue
      const known = this.results.find(({ feature: tried }) => tried === other.name)
      const { outcome } =
        known ??
        resultOf(other.name, await probeChat(this.bodyOf(other), this.probing(gateway)), other.differs)
      if (outcome === 'ok') return other.name
    }
    return null
  }

  /** Whether the upstream takes the request with the quirks, which then hold for the rest of the run. */
  private async fixes(fix: Fix, feature: Feature, body: JsonObject): Promise<boolean> {
    const quirks = joinFixes(this.quirks, fix)
    const gateway = await this.open(quirks, this.patient.model)
    const probed = await probeChat(body, this.probing(gateway)).catch(async (error: unknown) => {
      await gateway.close()
      throw error
    })
    if (resultOf(feature.name, probed, feature.differs).outcome === 'refused') {
      await gateway.close()
      return false
    }
    await this.gateway?.close()
    this.gateway = gateway
    this.quirks = quirks
    return true
  }

  private async withinCeiling(name: string, run: () => Promise<FeatureResult>): Promise<FeatureResult> {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof CeilingReached)) throw error
      return skipped(name, 'the cost ceiling is reached: raise --max-usd')
    }
  }

  private bodyOf({ body }: Feature): JsonObject {
    const usual = 'max_completion_tokens' in body ? WITHOUT_LIMIT : USUAL
    return { ...usual, ...body, model: this.patient.model }
  }

  private probing(gateway: RehearsalGateway) {
    const format = new Format('chat', this.facts())
    return { gateway, format, ceiling: this.ceiling, timeoutMs: this.choice.timeoutMs }
  }

  private facts() {
    const { catalogue, model } = this.patient
    return { ...factsFor(catalogue, model), id: model }
  }

  private isChatFormat(): boolean {
    const { dialect } = this.patient.upstream
    return dialect === 'openai-chat' || dialect === 'openai'
  }

  private async open(fix: Fix, model: string): Promise<RehearsalGateway> {
    const { config, catalogue, upstream } = this.patient
    const { quirks } = upstream
    const fixed: UpstreamConfig = {
      ...upstream,
      quirks: {
        ...quirks,
        drop: [...quirks.drop, ...(fix.drop ?? [])],
        rename: { ...quirks.rename, ...fix.rename },
        messages: { ...quirks.messages, roles: { ...quirks.messages.roles, ...fix.messages?.roles } },
      },
    }
    return openRehearsalGateway({ config, catalogue, upstream: fixed, model })
  }
}

function skipped(feature: string, message: string): FeatureResult {
  return { feature, outcome: 'skipped', status: null, message, quirks: null }
}

function resultOf(feature: string, probed: Probed, differs: Feature['differs']): FeatureResult {
  const { reply } = probed
  if (reply === null) {
    const message = hideSecrets(probed.message)
    if (probed.isUntranslatable) return skipped(feature, message)
    return { feature, outcome: 'refused', status: probed.status, message, quirks: null }
  }
  const lost = reply.entry?.losses.filter((path) => !path.startsWith('reply.')) ?? []
  const difference = differs(reply) ?? (lost.length > 0 ? `not carried: ${lost.join(', ')}` : null)
  return {
    feature,
    outcome: difference === null ? 'ok' : 'differs',
    status: reply.entry?.upstreamStatus ?? 200,
    message: difference === null ? null : hideSecrets(difference),
    quirks: null,
  }
}

function line({ feature, outcome, status, message }: FeatureResult): string {
  const code = status === null || outcome !== 'refused' ? '' : ` (${status})`
  return `${feature}: ${outcome}${code}${message === null ? '' : `: ${message}`}`
}

function reportText({ upstream, model, usd, features, quirks }: Report): string {
  const rows = features.map(({ feature, outcome, status, message, quirks: fix }) => [
    feature,
    outcome,
    status === null ? '' : String(status),
    fix === null ? (message ?? '') : `${message ?? ''} (fixed by the quirks below)`,
  ])
  const lines =
    quirks === null ? [] : ['', `Add these lines to the configuration:`, '', quirksText(upstream, quirks)]
  return [
    `${upstream} ${model}`,
    '',
    table([['feature', 'outcome', 'status', 'message'], ...rows]),
    ...lines,
    '',
    `Cost ${usd.toFixed(6)} USD`,
  ].join('\n')
}

/** YAML that can be pasted into the file. */
function quirksText(upstream: string, quirks: Fix): string {
  return yamlText([{ upstreams: { [upstream]: { quirks } } }]).trimEnd()
}
