/** The catalogue, where each model is sent now, and a place to try one. */
import { factsFor } from '../../config/catalogue.js'
import { isConfigured, type Snapshot } from '../../config/config.js'
import type { ModelFacts } from '../../chat/model.js'
import { reasonOf, speaksOf } from '../../upstreams/explain.js'
import { createRouter, type RouteMatch, type Router } from '../../upstreams/router.js'
import { signedRoute, TAKEN, type Route } from '../route.js'
import * as schema from '../schema.js'
import type { Services } from '../services.js'

/** The routes. */
export function modelRoutes(services: Services): Route[] {
  const { snapshot, chat } = services
  return [
    signedRoute('session', 'GET', '/models', {
      reply: schema.modelsReply,
      handle: () => {
        const now = snapshot()
        const router = routerOf(now)
        const models = now.catalogue.models.map((facts) => modelView(now, router, facts))
        const json: schema.ModelsReply = { models, generation: now.generation }
        return { status: 200, json }
      },
    }),
    signedRoute('session', 'GET', '/models/explain', {
      query: schema.explainQuery,
      reply: schema.explainReply,
      handle: ({ query }) => ({ status: 200, json: explained(snapshot(), query.model) }),
    }),
    signedRoute('session', 'POST', '/playground/chat', {
      body: 'raw',
      reply: null,
      handle: ({ req, res, session }) => {
        chat(req, res, session.account)
        return TAKEN
      },
    }),
  ]
}

const routers = new WeakMap<Snapshot, Router>()

function routerOf(snapshot: Snapshot): Router {
  const known = routers.get(snapshot)
  if (known !== undefined) return known
  const made = createRouter(snapshot.config)
  routers.set(snapshot, made)
  return made
}

function explained(snapshot: Snapshot, model: string): schema.ExplainReply {
  const match = routerOf(snapshot).route(model)
  const { why, others } = reasonOf(model, match, snapshot.config)
  const facts = match === null ? null : factsFor(snapshot.catalogue, match.model)
  return {
    model,
    route: match === null ? null : routeView(snapshot, match),
    why,
    dialectWhy: match === null || facts === null ? null : speaksOf(match, facts).why,
    others: [...others],
    catalogueId: snapshot.catalogue.find(match?.model ?? model)?.id ?? null,
  }
}

function modelView(snapshot: Snapshot, router: Router, facts: ModelFacts): schema.Model {
  const match = router.route(facts.id)
  return {
    id: facts.id,
    family: facts.family,
    releasedAtMs: facts.createdAtSeconds * 1000,
    variants: facts.variants ?? [],
    endsOn: facts.shutdownDate ?? null,
    contextWindow: facts.contextWindow ?? null,
    maxOutputTokens: facts.maxOutputTokens ?? null,
    vision: facts.vision ?? null,
    audioInput: facts.audioInput ?? null,
    tools: facts.tools ?? null,
    reasoning: facts.reasoning ?? null,
    structuredOutput: facts.structuredOutput ?? null,
    price: facts.price === undefined ? null : priceView(facts.price),
    route: match === null ? null : routeView(snapshot, match),
  }
}

function priceView(price: NonNullable<ModelFacts['price']>): schema.Price {
  const { input, output, cacheRead, cacheWrite, longContext } = price
  return {
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(longContext === undefined ? {} : { longContext }),
  }
}

function routeView({ catalogue }: Snapshot, match: RouteMatch): schema.Route {
  const speaks = speaksOf(match, factsFor(catalogue, match.model))
  return {
    label: match.label,
    upstream: match.upstream.name,
    configured: isConfigured(match.upstream),
    model: match.model,
    dialect: speaks.plain,
    dialectWithTools: speaks.with_tools,
  }
}
