/** The catalogue, the current route of each model, and the playground. */
import { factsFor } from '../../../config/catalogue.js'
import { isConfigured, type Snapshot } from '../../../config/config.js'
import { arrayOf, objectOf, stringOf } from '../../../base/json.js'
import { TASK_NAMES } from '../../../formats/chat/operations.js'
import { priceAt, type ModelFacts } from '../../../formats/chat/model-facts.js'
import { dialectsByRequest } from '../../../gateway/upstreams/choose-openai-endpoint.js'
import { Prices } from '../../../ledger/find-price.js'
import { priceOf, shownPrice } from '../../../ledger/price.js'
import { PLAIN_REQUEST, whenText } from '../../../gateway/routing/match-route-conditions.js'
import {
  candidatesOf,
  modelAt,
  reasonOf,
  createRouter,
  type ModelRoute,
  type Router,
} from '../../../gateway/routing/router.js'
import { GatewayError } from '../../../errors.js'
import {
  signedRoute,
  SELF_REPLIED,
  type HandlerResult,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type ChatAs, type Services } from '../../services.js'
import { deprecatedModels } from '../deprecated-models.js'

export function modelRoutes(services: Services): Route[] {
  const { snapshot, chat } = services
  return [
    signedRoute('GET', '/models', {
      credential: 'session',
      reply: schema.modelsReply,
      handle: () => {
        const now = snapshot()
        const router = routerOf(now)
        const models = now.catalogue.models.map((facts) => modelView(now, router, facts))
        const upstreams = Object.keys(now.config.upstreams)
        const json = { models, aliases: aliases(now), upstreams, generation: now.generation }
        return { status: 200, json }
      },
    }),
    signedRoute('GET', '/models/deprecated', {
      credential: 'usage',
      query: schema.deprecatedQuery,
      reply: schema.deprecatedReply,
      handle: async ({ session }) => ({
        status: 200,
        json: await deprecatedModels(services, scopeOf(session)),
      }),
    }),
    signedRoute('GET', '/models/explain', {
      credential: 'session',
      query: schema.explainQuery,
      reply: schema.explainReply,
      handle: ({ query }) => ({ status: 200, json: explained(services, query.model) }),
    }),
    ...Object.entries(PLAYGROUND_PATHS).map(([format, path]) =>
      signedRoute('POST', `/playground/${format}`, {
        credential: 'make keys',
        body: 'raw',
        reply: null,
        handle: async (request): Promise<HandlerResult> => {
          chat(request, await chatAs(services, request, path))
          return SELF_REPLIED
        },
      }),
    ),
    signedRoute('POST', '/playground/gemini', {
      credential: 'make keys',
      query: schema.playgroundQuery,
      body: 'raw',
      reply: null,
      handle: async (request): Promise<HandlerResult> => {
        const model = encodeURIComponent(request.query.model)
        const path = `/v1beta/models/${model}:generateContent`
        chat(request, await chatAs(services, request, path))
        return SELF_REPLIED
      },
    }),
  ]
}

/** The account of the session on a path of the data plane. Throws `forbidden` if it is disabled. */
async function chatAs(
  { store }: Services,
  { session: { account } }: SignedInRequest<unknown, unknown>,
  path: string,
): Promise<ChatAs> {
  const ancestors = account.parentId === undefined ? [] : await store.ancestorsOf(account)
  if ([account, ...ancestors].some(({ disabled }) => disabled)) {
    throw new GatewayError('forbidden', 'This account is disabled. Ask an administrator.')
  }
  return { account, ancestors, path }
}

/**
 * The data plane path of each client format in the playground. Gemini's path contains the model, so it is
 * separate.
 */
const PLAYGROUND_PATHS = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const

const routers = new WeakMap<Snapshot, Router>()

export function routerOf(snapshot: Snapshot): Router {
  const known = routers.get(snapshot)
  if (known !== undefined) return known
  const made = createRouter(snapshot.config)
  routers.set(snapshot, made)
  return made
}

function explained(services: Services, model: string): schema.ExplainReply {
  const snapshot = services.snapshot()
  const router = routerOf(snapshot)
  const found = usualRoute(router, model)
  const { why, others } = reasonOf(found, router.all(model))
  const target = found?.targets[0]
  const requested = target === undefined ? model : modelAt(target, model)
  const facts = factsFor(snapshot.catalogue, requested)
  return {
    model,
    route: found === null ? null : routeView(snapshot, found, model),
    why,
    dialectWhy: target === undefined ? null : dialectsByRequest(target.upstream, facts).why,
    others: [...others],
    catalogueId: snapshot.catalogue.find(requested)?.id ?? null,
    ...operationsOf(services, model),
  }
}

/** The first upstream that serves each operation, or why none does. */
function operationsOf(
  { explain }: Services,
  model: string,
): Pick<schema.ExplainReply, 'operations' | 'notServed'> {
  const plain = { labels: {}, hasImages: false, hasTools: false, promptTokens: 0, body: null }
  const explained = TASK_NAMES.map((operation) => {
    const {
      served_by: upstream,
      upstreams,
      refusal,
    } = objectOf(explain({ ...plain, model, operation })['operation'])
    const serving = arrayOf(upstreams)
      .map(objectOf)
      .find((each) => each['upstream'] === upstream)
    const [by, form, reason] = [stringOf(upstream), stringOf(serving?.['form']), stringOf(refusal)]
    return { operation, by, form, reason }
  })
  return {
    operations: explained.flatMap(({ operation, by, form }) =>
      by === undefined || form === undefined ? [] : [{ operation, upstream: by, form }],
    ),
    notServed: explained.flatMap(({ operation, reason }) =>
      reason === undefined ? [] : [{ operation, reason }],
    ),
  }
}

function modelView(snapshot: Snapshot, router: Router, facts: ModelFacts): schema.Model {
  const found = usualRoute(router, facts.id)
  const route = found === null ? null : routeView(snapshot, found, facts.id)
  const price = priceAt(facts.price, Date.now())
  return {
    id: facts.id,
    family: facts.family,
    // A model that only its id is known of has no date.
    releasedAtMs: facts.createdAtSeconds > 0 ? facts.createdAtSeconds * 1000 : null,
    variants: [...(facts.variants ?? [])],
    endsOn: facts.shutdownDate ?? null,
    contextWindow: facts.contextWindow ?? null,
    maxOutputTokens: facts.maxOutputTokens ?? null,
    vision: facts.vision ?? null,
    audioInput: facts.audioInput ?? null,
    tools: facts.tools ?? null,
    reasoning: facts.reasoning ?? null,
    structuredOutput: facts.structuredOutput ?? null,
    price: price === undefined ? (route?.targets[0]?.price ?? null) : shownPrice(priceOf(price)),
    route,
  }
}

/** The route of a plain request, or the first route that serves the model under a condition. */
export function usualRoute(router: Router, model: string): ModelRoute | null {
  return router.find(model, PLAIN_REQUEST) ?? router.all(model)[0] ?? null
}

/** The ids of exact routes that are not in the catalogue. */
function aliases(snapshot: Snapshot): schema.Alias[] {
  const { config, catalogue } = snapshot
  const router = routerOf(snapshot)
  const ids = config.routes.flatMap(({ match }) => ('model' in match ? [match.model] : []))
  const known = new Set(catalogue.models.flatMap(({ id, variants = [] }) => [id, ...variants]))
  return [...new Set(ids)]
    .filter((id) => !known.has(id))
    .flatMap((id) => {
      const found = usualRoute(router, id)
      const route = found === null ? null : routeView(snapshot, found, id)
      return route === null ? [] : [{ id, route }]
    })
}

/** The price of each model at each upstream, as requests are charged, of one generation. */
const pricesOf = new WeakMap<Snapshot, { readonly prices: Prices; readonly untilMs: number }>()
/** Prices may begin or end at an hour. */
const PRICES_HOLD_MS = 60_000

/** The prices in force. */
export function pricesNow(snapshot: Snapshot): Prices {
  const known = pricesOf.get(snapshot)
  if (known !== undefined && known.untilMs > Date.now()) return known.prices
  const { config, catalogue } = snapshot
  const prices = new Prices(catalogue.models, Object.values(config.upstreams), Date.now())
  pricesOf.set(snapshot, { prices, untilMs: Date.now() + PRICES_HOLD_MS })
  return prices
}

function targetViews(snapshot: Snapshot, found: ModelRoute, requested: string): schema.RouteTarget[] {
  const prices = pricesNow(snapshot)
  return candidatesOf(found, requested).map(({ target: { upstream, isFallback }, model, share }) => {
    const price = prices.find(upstream.name, model, null)
    return {
      upstream: upstream.name,
      model,
      share: share ?? 0,
      isFallback,
      configured: isConfigured(upstream),
      price: price === null ? null : shownPrice(price),
    }
  })
}

function routeView(snapshot: Snapshot, found: ModelRoute, requested: string): schema.Route | null {
  const { label, config } = found
  const [first] = found.targets
  const targets = targetViews(snapshot, found, requested)
  const [shown] = targets
  if (first === undefined || shown === undefined) return null
  const { upstream, configured, model } = shown
  const dialects = dialectsByRequest(first.upstream, factsFor(snapshot.catalogue, model))
  return {
    ...{ label, upstream, configured, model },
    dialect: dialects.plain,
    dialectWithTools: dialects.with_tools,
    conditions: config.when === null ? '' : whenText(config.when),
    targets,
  }
}
