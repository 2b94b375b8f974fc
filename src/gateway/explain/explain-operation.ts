/** Which upstreams of a route serve an operation, in which form, or why none does. Sends no request. */
import { factsFor } from '../../config/catalogue.js'
import type { Catalogue, UpstreamConfig } from '../../config/config.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { isTaskName, type Operation } from '../../formats/chat/operations.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import { isSentAsChat, taskFormat, upstreamCodecOf } from '../../formats/index.js'
import { ENDPOINTS, type EndpointRow } from '../../formats/match-endpoint.js'
import type { WireFormat } from '../../formats/dialect.js'
import { formatFor } from '../generation.js'
import { notServed } from '../phases/choose-route.js'
import { modelAt, type ModelRoute, type RouteTarget } from '../routing/router.js'
import { requestPathAt, upstreamAddressOf } from '../upstreams/upstream-address.js'

/** One upstream of the route. */
interface ServingUpstream {
  readonly upstream: string
  readonly model: string
  readonly fallback: boolean
  /** The form in which it serves the operation; null if it does not. */
  readonly form: string | null
  /** Method and URL of the request; null if it does not serve the operation. */
  readonly sends: string | null
}

/** How the route serves an operation. */
export interface OperationExplanation {
  readonly name: Operation
  /** Paths of clients. */
  readonly paths: readonly string[]
  /** The first upstream that serves it; null if none does. */
  readonly served_by: string | null
  /** The message of the refusal if none does; else null. */
  readonly refusal: string | null
  /** In file order: the targets, then the fallback. */
  readonly upstreams: readonly ServingUpstream[]
}

/** Explains the operation for a model id that the route matches. */
export function explainOperation(
  operation: Operation,
  { targets, fallback }: ModelRoute,
  { model, catalogue }: { readonly model: string; readonly catalogue: Catalogue },
): OperationExplanation {
  const rows = ENDPOINTS.filter(({ endpoint }) => endpoint.operation === operation)
  const [row] = rows
  if (row === undefined) throw new Error(`no endpoint of ${operation}`)
  const upstreams = [...targets, ...fallback].map((target) =>
    servingUpstream(row, target, { model, catalogue }),
  )
  const served = upstreams.find(({ form }) => form !== null)
  const names = [...new Set(upstreams.map(({ upstream }) => upstream))]
  return {
    name: operation,
    paths: [...new Set(rows.map(({ method, path }) => `${method} ${path}`))],
    served_by: served?.upstream ?? null,
    refusal: served === undefined ? notServed(operation, model, names).message : null,
    upstreams,
  }
}

function servingUpstream(
  row: EndpointRow,
  target: RouteTarget,
  { model, catalogue }: { readonly model: string; readonly catalogue: Catalogue },
): ServingUpstream {
  const { upstream, isFallback } = target
  const requested = modelAt(target, model)
  const wire = formatAt(row, target, { model, facts: factsFor(catalogue, requested) })
  const { operation } = row.endpoint
  const form = isTaskName(operation) ? upstream.operations[operation] : wire
  return {
    upstream: upstream.name,
    model: requested,
    fallback: isFallback,
    form: wire === null ? null : form,
    sends: wire === null ? null : sendsOf(wire, upstream, requested),
  }
}

/** The format in which the target gets the operation; null if it does not serve it. */
function formatAt(
  { endpoint, dialect, wire }: EndpointRow,
  target: RouteTarget,
  { model, facts }: { readonly model: string; readonly facts: ModelFacts },
): WireFormat | null {
  const { operation } = endpoint
  if (isTaskName(operation)) return taskFormat(operation, target.upstream.operations)
  const request: ChatRequest = {
    model,
    messages: [],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
  }
  return formatFor(target, { request, client: { dialect, wire }, facts })?.wire ?? null
}

function sendsOf(wire: WireFormat, upstream: UpstreamConfig, model: string): string | null {
  const dialect = upstream.dialect === 'openai' ? 'openai-chat' : upstream.dialect
  const codec = upstreamCodecOf(wire, upstream, dialect)
  if (codec === null) return null
  const place = upstreamAddressOf(upstream)
  const { path } = codec.target(model, false)
  const isChat = isSentAsChat({ wire, dialect }) || wire === 'openai-responses'
  return `POST ${place.origin}${requestPathAt(place, { path, basePath: codec.basePath, model, isChat })}`
}

/** The same as rows of text: a title, which may be empty, and a value. */
export function operationRows(explained: OperationExplanation): [title: string, text: string][] {
  const { name, paths, refusal, upstreams } = explained
  return [
    ['operation', `${name} (${paths.join(', ')})${refusal === null ? '' : `: clients get 400: ${refusal}`}`],
    ...upstreams.map((each): [string, string] => ['', `  ${textOf(each)}`]),
  ]
}

function textOf({ upstream, model, fallback, form, sends }: ServingUpstream): string {
  const place = `${upstream}, model ${model}${fallback ? ', fallback' : ''}`
  if (form === null) return `${place}: does not serve it and is skipped`
  return `${place}: form ${form}, sends ${sends ?? ''}`
}
