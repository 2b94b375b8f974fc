/** Routers, routes and requests for the tests of this folder. */
import type { ChatRequest, Message } from '../../../src/formats/chat/request.js'
import { PLAIN_REQUEST, type RequestTraits } from '../../../src/gateway/routing/match-route-conditions.js'
import { createRouter, type ModelRoute, type Router } from '../../../src/gateway/routing/router.js'
import { loadText } from '../../config/sample.js'

/** A router over the upstreams a, b, c, d; `routes` is YAML below `routes:`. */
export function routerOf(routes: string): Router {
  const upstreams = ['a', 'b', 'c', 'd'].map(
    (name) => `  ${name}: { dialect: openai, base_url: https://${name}.example/v1 }\n`,
  )
  const loaded = loadText(`upstreams:\n${upstreams.join('')}routes:\n${routes}`)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  return createRouter(loaded.config)
}

/** A router's only route, for `m`, with these additional keys. */
export function routeWith(keys: string): ModelRoute {
  const route = routerOf(`  - { model: m, ${keys} }\n`).all('m')[0]
  if (route === undefined) throw new Error('no route')
  return route
}

/** A plain request with some traits changed. */
export function traits(changed: Partial<RequestTraits>): RequestTraits {
  return { ...PLAIN_REQUEST, ...changed }
}

/** A request of these messages. */
export function requestOf(messages: Message[], more: Partial<ChatRequest> = {}): ChatRequest {
  const plain = { model: 'm', stream: false, includeUsage: false, tools: [], rest: {} }
  return { ...plain, messages, ...more }
}

/** A text message. */
export function message(role: 'system' | 'user', text: string): Message {
  return { role, index: 0, parts: [{ type: 'text', text }] }
}

/** Numbers from 0 to below 1 that are the same in every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
