/** `sluice explain`: the route and upstreams of a model id under a configuration. Sends no request. */
import { factsFor } from '../../config/catalogue.js'
import { isConfigured, type Catalogue, type Config } from '../../config/config.js'
import { loadConfig } from '../../config/load-config.js'
import { snakeKeys } from '../../config/masked-config.js'
import { secretsOf } from '../../config/secret-settings.js'
import { GatewayError } from '../../errors.js'
import { readBoundedFile } from '../../config/bounded-file.js'
import { priceAt, type ModelFacts } from '../../formats/chat/model-facts.js'
import { checkModelId, escapeControls } from '../../formats/wire/request-fields.js'
import { traitsOf, type RequestTraits } from '../../gateway/routing/match-route-conditions.js'
import { modelAt, reasonOf, createRouter, type ModelRoute } from '../../gateway/routing/router.js'
import { dialectsByRequest, type DialectsByRequest } from '../../gateway/upstreams/choose-openai-endpoint.js'
import { hideSecrets, jsonWithoutSecrets, protectSecrets } from '../../hide-secrets.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { Option } from '@commander-js/extra-typings'
import { problemLines } from '../problem-lines.js'
import { OPERATION_NAMES, operationNamed } from '../../formats/chat/operations.js'
import { configOption, declare, repeated, UsageError } from '../command.js'
import { explainBody, requestOf, type BodyExplanation } from './explain-body.js'
import { Budgets, termsText, type BudgetTerms } from './explain-budgets.js'
import { explainOperation, operationRows, type OperationExplanation } from './explain-operation.js'
import {
  explainRoute,
  guardrailsFor,
  guardrailsText,
  routeRows,
  type GuardrailExplanation,
  type RouteExplanation,
} from './explain-route.js'

/** The options about the conditions of routes. */
export interface TraitValues {
  readonly label?: readonly string[] | undefined
  readonly images?: true | undefined
  readonly tools?: true | undefined
  readonly promptTokens?: string | undefined
}

/** The request that `sluice explain` explains. */
export interface TraitSources {
  /** The bytes of `--body`; null without one. */
  readonly body: Buffer | null
  /** The requested model, before aliases. */
  readonly model: string
  /** The models of the configuration. */
  readonly catalogue: Catalogue
}

/** The traits for the conditions of routes: from the options, and from a valid body. */
function traitsFor(values: TraitValues, { body, model, catalogue }: TraitSources): RequestTraits {
  const { label = [], images, tools, promptTokens = '0' } = values
  const labels = Object.fromEntries(label.map(labelOf))
  const tokens = Number(promptTokens)
  if (!Number.isInteger(tokens) || tokens < 0) {
    throw new UsageError(`--prompt-tokens must be a whole number, not "${promptTokens}"`)
  }
  const sent = body === null ? null : traitsOfBody(body, { model, catalogue }, labels)
  return {
    labels,
    hasImages: () => images === true || sent?.hasImages() === true,
    hasTools: () => tools === true || sent?.hasTools() === true,
    promptTokens: () => Math.max(tokens, sent?.promptTokens() ?? 0),
    // Plugins run only in a gateway.
    plugin: () => false,
  }
}

function labelOf(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--label must be NAME=VALUE, not "${text}"`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Null for an invalid body: its own explanation states why. */
function traitsOfBody(
  bytes: Buffer,
  { model, catalogue }: Omit<TraitSources, 'body'>,
  labels: Readonly<Record<string, string>>,
): RequestTraits | null {
  try {
    const request = requestOf(bytes, model)
    const { family } = factsFor(catalogue, model)
    return traitsOf(request, labels, () => inputTokens(promptSizeOf(request), family))
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

/** Why a body cannot be explained: path and rule, never the value, which may be part of a prompt. */
interface BodyError {
  readonly error: { readonly param: string | null; readonly message: string }
}

/** The largest `server.max_body_bytes`. */
const MAX_BODY_BYTES = 268_435_456

/** The bytes of the file, or of standard input for `-`. */
async function readBody(file: string): Promise<{ bytes: Buffer } | BodyError> {
  try {
    const bytes = file === '-' ? await standardInput() : readBoundedFile(file, MAX_BODY_BYTES)
    if (bytes !== null) return { bytes }
    return bodyError(null, `standard input is larger than ${MAX_BODY_BYTES} bytes`)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    const why = error instanceof Error ? error.message : code
    return bodyError(null, `cannot read "${file}": ${code === 'ENOENT' ? 'it does not exist' : why}`)
  }
}

/** All of standard input; null once it is larger than a body may be. */
async function standardInput(): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk as Uint8Array)
    total += bytes.length
    if (total > MAX_BODY_BYTES) return null
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** An error about a body; `param` is a path in it. */
function bodyError(param: string | null, message: string): BodyError {
  return { error: { param, message } }
}

/** `sluice explain`. */
export function command() {
  return declare({
    name: 'explain',
    summary: 'show the route and the upstreams of a model id, and why',
    description: `
Prints the route of a model id, the reason, and the upstreams that may serve it: their share of the requests,
model, dialect, circuit breaker, and the features that translation loses or refuses; then retries and
hedging, whether the key is set, the catalogue's entry of the model and how budgets count it. With a
request body it also prints for each field whether it reaches the first upstream or is lost; only names of
fields are printed, no contents. With an operation it prints which of the upstreams serve it, in which form
and at which address, or why none does.`,
    exitStatus: `
0 a route matches, 1 no route matches, the request would be refused or a file is not valid,
2 wrong usage.`,
    example: `
sluice explain gpt-5.5 --config config/gateway.yaml
sluice explain claude-opus-5-5 --config config/gateway.yaml --body request.json
sluice explain gemini-3.1-flash-image --config config/gateway.yaml --operation image_generation`,
  })
    .argument('<MODEL>')
    .addOption(configOption())
    .option('--body <FILE>', 'a chat-completions request; - reads it from standard input')
    .option(
      '--label <NAME=VALUE>',
      'a label of the API key, for the conditions of routes; may be repeated',
      repeated,
    )
    .option('--images', 'the request has images')
    .option('--tools', 'the request has tools')
    .option('--prompt-tokens <N>', 'the size of its prompt in tokens')
    .addOption(
      new Option('--operation <NAME>', 'the operation that is requested, by its name here or in traces')
        .choices(OPERATION_NAMES)
        .conflicts('body'),
    )
    .option('--json', 'print one JSON object')
    .action(async (model, options) => {
      process.exitCode = await runExplain(model, options)
    })
}

interface ExplainOptions extends TraitValues {
  readonly config: string
  readonly body?: string | undefined
  readonly operation?: string | undefined
  readonly json?: true | undefined
}

async function runExplain(model: string, values: ExplainOptions): Promise<number> {
  const loaded = loadConfig(values.config, process.env)
  if (!loaded.ok) {
    if (values.json) printJson({ model, errors: loaded.errors })
    else console.log(problemLines(loaded.errors).split('\n').map(escapeControls).join('\n'))
    return 1
  }
  protectSecrets(secretsOf(loaded.config))
  const { body } = values
  const read = body === undefined ? null : await readBody(body)
  const bytes = read === null || 'error' in read ? null : read.bytes
  const traits = traitsFor(values, { body: bytes, model, catalogue: loaded.catalogue })
  const router = createRouter(loaded.config)
  const refusal = refusalOf(model)
  const found = refusal === null ? router.find(model, traits) : null
  const all = refusal === null ? router.all(model) : []
  const { labels } = traits
  const explained = explain(model, found, { all, ...loaded, labels })
  const explanation = refusal === null ? explained : { ...explained, why: refusal }
  if (read === null || found === null) {
    const operation = operationOf(values, found, { model, catalogue: loaded.catalogue })
    const shown = operation === null ? {} : { operation }
    if (values.json) printJson({ ...explanationJson(explanation), ...shown })
    else {
      const rows =
        operation === null ? [] : ['', ...operationRows(operation).map(([title, text]) => row(title, text))]
      const text = [explanationText(explanation, refusal === null ? 404 : 400), ...rows].join('\n')
      console.log(hideSecrets(text, '***'))
    }
    return found === null || (operation !== null && operation.served_by === null) ? 1 : 0
  }
  const request = 'error' in read ? read : explainRequest({ bytes: read.bytes, model }, found, loaded)
  if (values.json) printJson({ ...explanationJson(explanation), request })
  else {
    const text = `${explanationText(explanation)}\n\n${bodyText(request, !('error' in read))}`
    console.log(hideSecrets(text, '***'))
  }
  return 'error' in request || request.result === 'refused' ? 1 : 0
}

/** How the route serves the operation of `--operation`; null without one, and without a route. */
function operationOf(
  { operation: name }: ExplainOptions,
  found: ModelRoute | null,
  of: { readonly model: string; readonly catalogue: Catalogue },
): OperationExplanation | null {
  const operation = name === undefined ? null : operationNamed(name)
  return operation === null || found === null ? null : explainOperation(operation, found, of)
}

/** Why the gateway refuses the id with 400; null if it is well-formed. */
function refusalOf(model: string): string | null {
  try {
    checkModelId(model)
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error.message
    throw error
  }
}

/** Ids and names of fields may have any character: a terminal must not interpret them. */
function printJson(value: object): void {
  console.log(escapeControls(jsonWithoutSecrets(value)))
}

function explainRequest(
  { bytes, model }: { readonly bytes: Buffer; readonly model: string },
  { targets: [target] }: ModelRoute,
  { config, catalogue }: { config: Config; catalogue: Catalogue },
): BodyExplanation | BodyError {
  if (target === undefined) return bodyError('model', 'no route matches it')
  const { upstream } = target
  const requested = modelAt(target, model)
  const facts = factsFor(catalogue, requested)
  const { onLoss, allowSyntheticUser } = config
  try {
    return explainBody(bytes, model, {
      upstream,
      model: requested,
      facts,
      onLoss,
      allowSyntheticUser,
    })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return bodyError(error.wire.param ?? null, error.message)
  }
}

function bodyText(request: BodyExplanation | BodyError, isRead: boolean): string {
  if ('error' in request) {
    const { message } = request.error
    return row('request', isRead ? `refused with 400: ${message}` : message)
  }
  const wide = Math.max(...request.fields.map(({ path }) => path.length))
  const fields = request.fields.map(({ path, outcome, note }) =>
    row('', `${path.padEnd(wide)}  ${outcome}${note === null ? '' : `: ${note}`}`),
  )
  const lost = request.lost === null ? [] : [row('reported', `x-sluice-lost: ${request.lost}`)]
  return [
    row('sends', request.endpoint),
    row('request', request.result === 'refused' ? 'refused with 400' : request.result),
    ...fields,
    ...lost,
  ].join('\n')
}

function row(title: string, text: string): string {
  return `${title.padEnd(10)} ${escapeControls(text)}`
}

interface Explanation {
  readonly model: string
  /** Null if no route matches the id: the client gets 404. */
  readonly route: string | null
  readonly why: string
  /** Routes that match too, but with lower priority. */
  readonly others: readonly string[]
  readonly upstream: string | null
  /** The cloud that serves it; null for the own API of a vendor. */
  readonly platform: string | null
  /** The cloud whose identity authenticates requests; null: an API key, or nothing. */
  readonly identity: string | null
  /** The preset of its quirks; null if it has none. */
  readonly preset: string | null
  /** The dialect in the configuration. */
  readonly dialect: string | null
  /** The dialect of upstream requests; null if no route matches the id. */
  readonly wire_format: DialectsByRequest | null
  readonly base_url: string | null
  readonly configured: boolean | null
  readonly api_key_source: string | null
  readonly upstream_model: string | null
  /** How the route handles its requests; null if no route matches the id. */
  readonly routing: RouteExplanation | null
  /** In the order in which they judge; those with `apply_to` for accounts are left out. */
  readonly guardrails: readonly GuardrailExplanation[]
  readonly catalogue: { readonly match: string; readonly facts: ModelFacts } | null
  /** How budgets count it; null if no route matches the id. */
  readonly budget: BudgetTerms | null
  readonly budget_text: string
}

interface Loaded {
  readonly config: Config
  readonly catalogue: Catalogue
  /** All routes that match the model under any condition. */
  readonly all: readonly ModelRoute[]
  /** The labels of the key. */
  readonly labels: Readonly<Record<string, string>>
}

function explain(
  model: string,
  found: ModelRoute | null,
  { all, config, catalogue, labels }: Loaded,
): Explanation {
  const target = found?.targets[0]
  const requested = target === undefined ? model : modelAt(target, model)
  const facts = catalogue.find(requested)
  const upstream = target?.upstream
  const { place, why, others } = reasonOf(found, all)
  const budgets = new Budgets(config, catalogue)
  const budget = target === undefined ? null : budgets.terms(target.upstream, requested)
  return {
    model,
    route: place,
    why,
    others,
    upstream: upstream?.name ?? null,
    preset: upstream?.preset ?? null,
    platform: upstream?.platform?.name ?? null,
    identity: upstream?.auth?.cloud ?? null,
    dialect: upstream?.dialect ?? null,
    wire_format: upstream === undefined ? null : dialectsByRequest(upstream, factsFor(catalogue, requested)),
    base_url: upstream?.baseUrl ?? null,
    configured: upstream === undefined ? null : isConfigured(upstream),
    api_key_source: upstream?.apiKeySource ?? null,
    upstream_model: target === undefined ? null : requested,
    routing: found === null ? null : explainRoute(found, model, catalogue),
    guardrails: found === null ? [] : guardrailsFor(found.config.guardrails, config.guardrails, labels),
    catalogue: facts === null ? null : { match: catalogueMatch(requested, facts), facts },
    budget,
    budget_text: budget === null ? '' : termsText(budget, config),
  }
}

/** With the catalogue's facts in the same spelling as the other fields. */
function explanationJson(explanation: Explanation): object {
  const { catalogue } = explanation
  if (catalogue === null) return explanation
  return { ...explanation, catalogue: { ...catalogue, facts: snakeKeys(catalogue.facts) } }
}

function catalogueMatch(requested: string, facts: ModelFacts): string {
  if (facts.id === requested) return 'exact'
  if (facts.variants?.includes(requested) === true) return 'dated variant'
  return `extends ${facts.id}`
}

/** `unrouted`: the status of a request that has no route. */
function explanationText(explanation: Explanation, unrouted = 404): string {
  const { route, why } = explanation
  const rows: [string, string][] = [['model', explanation.model]]
  if (route === null) rows.push(['route', `none: ${why}: clients get ${unrouted}`])
  else {
    rows.push(['route', `${route}: ${why}`])
    for (const other of explanation.others) rows.push(['', `not used: ${other}`])
    rows.push(['upstream', upstreamText(explanation)])
    rows.push(['dialect', wireFormatText(explanation.wire_format)])
    rows.push(['key', keyText(explanation)])
    rows.push(['sent as', explanation.upstream_model ?? ''])
    if (explanation.routing !== null) rows.push(...routeRows(explanation.routing))
    const { guardrails } = explanation
    if (guardrails.length > 0) rows.push(['guardrails', guardrailsText(guardrails)])
  }
  rows.push(['catalogue', catalogueText(explanation)])
  if (explanation.budget !== null) rows.push(['budgets', explanation.budget_text])
  return rows.map(([title, text]) => row(title, text)).join('\n')
}

function wireFormatText(wire_format: DialectsByRequest | null): string {
  if (wire_format === null) return ''
  const { plain, with_tools: withTools, why } = wire_format
  const others = withTools === plain ? '' : `, with tools ${withTools}`
  return `${plain}${others}: ${why}`
}

function upstreamText({ upstream, platform, preset, base_url: baseUrl }: Explanation): string {
  const cloud = platform === null ? '' : `, platform ${platform}`
  const known = preset === null ? cloud : `${cloud}, preset ${preset}`
  return `${upstream ?? ''} (${baseUrl ?? ''}${known})`
}

function keyText(explanation: Explanation): string {
  const { api_key_source: source, identity } = explanation
  if (identity !== null) return `none: the identity of the gateway at ${identity}`
  if (explanation.configured === false) return `not set: ${source ?? ''}: clients get 503`
  return source === null ? 'set in the file, or not needed' : `from ${source}`
}

function catalogueText(explanation: Explanation): string {
  if (explanation.catalogue === null) return 'not listed: only its family is known'
  const { match, facts } = explanation.catalogue
  const parts = [`${facts.id} (${match})`, `family ${facts.family}`]
  if (facts.contextWindow !== undefined) parts.push(`context ${facts.contextWindow} tokens`)
  if (facts.maxOutputTokens !== undefined) parts.push(`output ${facts.maxOutputTokens} tokens`)
  const { input, output } = priceAt(facts.price, Date.now()) ?? {}
  if (input !== undefined && output !== undefined) {
    parts.push(`USD ${input} in, ${output} out per million tokens`)
  }
  if (facts.shutdownDate !== undefined) parts.push(`ends ${facts.shutdownDate}`)
  return parts.join(', ')
}
