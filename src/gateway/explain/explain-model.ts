/** What the configuration makes of a request for a model: its route, upstreams and price. Sends nothing. */
import { factsFor } from '../../config/catalogue.js'
import { isConfigured, type Catalogue, type Config, type Snapshot } from '../../config/config.js'
import { snakeKeys } from '../../config/masked-config.js'
import type { JsonObject } from '../../base/json.js'
import { GatewayError } from '../../errors.js'
import { operationNamed, type Operation } from '../../formats/chat/operations.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { checkModelId } from '../../formats/wire/request-fields.js'
import { jsonWithoutSecrets } from '../../hide-secrets.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { traitsOf, type RequestTraits } from '../routing/match-route-conditions.js'
import { modelAt, reasonOf, createRouter, type ModelRoute } from '../routing/router.js'
import { dialectsByRequest, type DialectsByRequest } from '../upstreams/choose-openai-endpoint.js'
import { explainBody, requestOf, type BodyExplanation } from './explain-body.js'
import { Budgets, termsText, type BudgetTerms } from './explain-budgets.js'
import { explainOperation, type OperationExplanation } from './explain-operation.js'
import {
  explainRoute,
  guardrailsFor,
  type GuardrailExplanation,
  type RouteExplanation,
} from './explain-route.js'

/** The request that is explained. */
export interface ExplainedRequest {
  /** The requested model, before aliases. */
  readonly model: string
  /** Of the key, for the conditions of routes. */
  readonly labels: Readonly<Record<string, string>>
  readonly hasImages: boolean
  readonly hasTools: boolean
  readonly promptTokens: number
  /** Null: a chat. */
  readonly operation: Operation | null
  /** The bytes of a chat-completions request; null without one. */
  readonly body: Buffer | null
}

/** The configuration that explains it. */
export type Explaining = Pick<Snapshot, 'config' | 'catalogue'>

/** Why a body cannot be explained: path and rule, never the value, which may be part of a prompt. */
export interface BodyError {
  readonly error: { readonly param: string | null; readonly message: string }
}

/** An error about a body; `param` is a path in it. */
export function bodyError(param: string | null, message: string): BodyError {
  return { error: { param, message } }
}

export interface Explanation {
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

/** The explanation of a request. */
export interface ExplainedModel {
  readonly explanation: Explanation
  /** The gateway refuses the id with 400. */
  readonly isMalformed: boolean
  /** How the route serves the operation; null without one, and without a route. */
  readonly operation: OperationExplanation | null
  /** What becomes of the body; null without one, and without a route. */
  readonly request: BodyExplanation | BodyError | null
}

/** Explains a request. */
export function explainModel(asked: ExplainedRequest, { config, catalogue }: Explaining): ExplainedModel {
  const { model, body, labels, operation } = asked
  const traits = traitsFor(asked, catalogue)
  const router = createRouter(config)
  const refusal = refusalOf(model)
  const found = refusal === null ? router.find(model, traits) : null
  const all = refusal === null ? router.all(model) : []
  const explained = explain(model, found, { all, config, catalogue, labels })
  return {
    explanation: refusal === null ? explained : { ...explained, why: refusal },
    isMalformed: refusal !== null,
    operation:
      operation === null || found === null ? null : explainOperation(operation, found, { model, catalogue }),
    request:
      body === null || found === null ? null : explainRequest(body, model, found, { config, catalogue }),
  }
}

/** The same as JSON, with the catalogue's facts in the same spelling as the other fields. */
export function explainedJson({ explanation, operation, request }: ExplainedModel): object {
  const { catalogue } = explanation
  return {
    ...explanation,
    ...(catalogue !== null && { catalogue: { ...catalogue, facts: snakeKeys(catalogue.facts) } }),
    ...(operation !== null && { operation }),
    ...(request !== null && { request }),
  }
}

/** Explains a request under the configuration in force, as JSON without secrets; `operation` by its name. */
export function explainer(
  snapshot: () => Explaining,
): (asked: Omit<ExplainedRequest, 'operation'> & { readonly operation: string | null }) => JsonObject {
  return ({ operation, ...asked }) => {
    const named = operation === null ? null : operationNamed(operation)
    const explained = explainModel({ ...asked, operation: named }, snapshot())
    return JSON.parse(jsonWithoutSecrets(explainedJson(explained))) as JsonObject
  }
}

/** The traits for the conditions of routes: as given, and those of a valid body. */
function traitsFor(
  { body, model, labels, hasImages, hasTools, promptTokens }: ExplainedRequest,
  catalogue: Catalogue,
): RequestTraits {
  const sent = body === null ? null : traitsOfBody(body, { model, catalogue }, labels)
  return {
    labels,
    hasImages: () => hasImages || sent?.hasImages() === true,
    hasTools: () => hasTools || sent?.hasTools() === true,
    promptTokens: () => Math.max(promptTokens, sent?.promptTokens() ?? 0),
    // Plugins run only for requests.
    plugin: () => false,
  }
}

/** Null for an invalid body: its own explanation states why. */
function traitsOfBody(
  bytes: Buffer,
  { model, catalogue }: { readonly model: string; readonly catalogue: Catalogue },
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

function explainRequest(
  bytes: Buffer,
  model: string,
  { targets: [target] }: ModelRoute,
  { config, catalogue }: Explaining,
): BodyExplanation | BodyError {
  if (target === undefined) return bodyError('model', 'no route matches it')
  try {
    return explainBody(bytes, model, { target, config, catalogue })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return bodyError(error.wire.param ?? null, error.message)
  }
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

function catalogueMatch(requested: string, facts: ModelFacts): string {
  if (facts.id === requested) return 'exact'
  if (facts.variants?.includes(requested) === true) return 'dated variant'
  return `extends ${facts.id}`
}
