/**
 * Replies of the dashboard's API as a busy gateway gives them, for what is hard to bring about with a real one:
 * failures, long waits, large numbers. Each is held against the schema of its call.
 */
import * as schema from '../../src/dashboard/server/schema/schema.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW_MS = Date.now()

const MODELS = ['claude-sonnet-4-5', 'gemini-3-pro', 'gpt-5-mini', 'gpt-5.4']

const session = schema.sessionReply.parse({
  account: {
    id: 'acc_1',
    email: 'ada@example.com',
    role: 'admin',
    plan: { name: 'starter', priceUsd: 20, maxKeys: 5, limits: {} },
    liveKeys: 3,
    hasPassword: true,
    createdAtMs: NOW_MS - 90 * DAY_MS,
  },
  csrf: 'token-of-the-session',
  endsAtMs: NOW_MS + HOUR_MS,
  needsSetUp: false,
  signUp: true,
  oidc: 'Example SSO',
  publicUrl: null,
  grafanaUrl: 'http://127.0.0.1:3000',
  version: '0.1.0',
})

/** Nobody is signed in. */
export const SIGNED_OUT = schema.sessionReply.parse({
  ...session,
  account: null,
  csrf: null,
  endsAtMs: null,
})

const keys = schema.keysReply.parse({
  keys: ['ci-runner', 'laptop', 'staging'].map((name, index) => ({
    id: `key_${index}`,
    accountId: 'acc_1',
    name,
    prefix: 'sk_9fQ2x',
    lastFour: 'a7Lm',
    createdAtMs: NOW_MS - index * 9 * DAY_MS,
    expiresAtMs: index === 2 ? NOW_MS + 9 * DAY_MS : null,
    revokedAtMs: null,
    state: 'live',
    models: index === 2 ? ['gpt-5-mini', 'claude-*'] : null,
    limits: {},
    labels: index === 0 ? { team: 'search' } : {},
    replaces: null,
    replacedBy: index === 1 ? 'key_2' : null,
    lastUsedAtMs: index === 1 ? null : NOW_MS - 120_000,
    requests: 8_114 * index,
    spendNanoUsd: 11_200_000_000 * index,
    unpricedRequests: index,
  })),
  next: null,
})

function figures(requests: number) {
  const byCause = {
    client: Math.floor(requests / 60),
    limits: Math.floor(requests / 45),
    gateway: Math.floor(requests / 140),
    provider: Math.floor(requests / 30),
  }
  return {
    requests,
    errors: byCause.client + byCause.limits + byCause.gateway + byCause.provider,
    byCause,
    inputTokens: requests * 620,
    outputTokens: requests * 210,
    cachedTokens: requests * 240,
    reasoningTokens: requests * 60,
    spendNanoUsd: requests * 1_600_000,
    unpricedRequests: 0,
    estimatedRequests: 0,
    firstTokenP50Ms: requests === 0 ? null : 340,
    firstTokenP95Ms: requests === 0 ? null : 900 + requests,
  }
}

/** Usage by hour or day, as asked; none at all where it is empty. */
export function usage(query: URLSearchParams, isEmpty = false): schema.UsageReply {
  const by = query.get('by') === 'day' ? 'day' : 'hour'
  const stepMs = by === 'day' ? DAY_MS : HOUR_MS
  const [fromMs, toMs] = [Number(query.get('fromMs')), Number(query.get('toMs'))]
  const points: schema.UsagePoint[] = []
  for (let startMs = fromMs; startMs < Math.min(toMs, NOW_MS) && !isEmpty; startMs += stepMs) {
    const at = Math.round((startMs - fromMs) / stepMs)
    // A few hours without a request, as nights have them.
    if (at % 7 !== 3) points.push({ ...figures(100 + (at % 5) * 40), startMs })
  }
  const total = figures(points.reduce((sum, { requests }) => sum + requests, 0))
  const names = isEmpty || !query.has('group') ? [] : MODELS
  const groups = names.map((id) => ({ id, label: id, total, points }))
  return schema.usageReply.parse({ by, fromMs, toMs, nowMs: NOW_MS, total, points, groups })
}

function row(index: number): schema.RequestRow {
  const failed = index % 6 === 4
  const model = MODELS[index % MODELS.length] ?? ''
  return schema.requestRow.parse({
    requestId: `req_${index}`,
    atMs: NOW_MS - index * 40_000,
    durationMs: 1_912 + index,
    accountId: 'acc_1',
    keyId: 'key_0',
    keyName: 'ci-runner',
    modelAsked: model,
    modelAnswered: `${model}-2026-08-01`,
    model,
    upstream: 'openai',
    dialect: 'openai-responses',
    attempts: failed ? 2 : 1,
    stream: index % 2 === 0,
    status: failed ? 502 : 200,
    outcome: failed ? 'upstream_failed' : 'ok',
    finish: failed ? null : 'stop',
    usage: failed ? {} : { input: 1_200, output: 340, cacheRead: 600, reasoning: 64 },
    source: failed ? 'none' : 'reported',
    costNanoUsd: failed ? null : 3_100_000,
    tokensAfterDisconnect: 0,
    losses: index % 3 === 0 ? ['logit_bias'] : [],
    generation: 3,
    hops: {
      authenticate: 0.05,
      receive: 0.2,
      route: 0.02,
      admit: 0.1,
      connect: 12,
      firstByte: 640,
    },
    ingress: 'chat',
    errorMessage: failed ? 'The upstream "openai" answered 503.' : null,
    limit: null,
    upstreamStatus: failed ? 503 : 200,
    upstreamRequestId: `chatcmpl-${index}`,
    attempted: failed ? 'openai:upstream_busy, openai:upstream_failed' : 'openai:ok',
    shadowOf: null,
    labels: index % 2 === 0 ? 'team=research' : null,
    clientRequestId: null,
    cause: failed ? 'provider' : null,
    attemptMs: failed ? [120, 1_790] : [652],
    retryAfterSeconds: null,
    priceVersion: failed ? null : '3f9c1b7a2d04',
  })
}

const rows = Array.from({ length: 60 }, (_, index) => row(index))

const models = schema.modelsReply.parse({
  models: MODELS.map((id, index) => ({
    id,
    family: id.split('-')[0],
    releasedAtMs: NOW_MS - 200 * DAY_MS,
    variants: [],
    endsOn: index === 0 ? '2027-04-01' : null,
    contextWindow: 400_000,
    maxOutputTokens: 128_000,
    vision: true,
    audioInput: null,
    tools: true,
    reasoning: index > 1,
    structuredOutput: true,
    price: { input: 1.25, output: 10, cacheRead: 0.125 },
    route: {
      label: 'gpt-',
      upstream: 'openai',
      configured: index !== 1,
      model: id,
      dialect: 'openai-chat',
      dialectWithTools: 'openai-responses',
      conditions: '',
      targets: [target('openai', id, 1), target('anthropic', 'claude-sonnet-4-5', 0)],
    },
  })),
  aliases: ['fast', 'cheap'].map((id, index) => ({
    id,
    route: {
      label: id,
      upstream: 'google',
      configured: true,
      model: 'gemini-3-pro',
      dialect: 'gemini',
      dialectWithTools: 'gemini',
      conditions: index === 0 ? 'label team=research' : '',
      targets: [target('google', 'gemini-3-pro', 0.75), target('openai', 'gpt-5-mini', 0.25)],
    },
  })),
  upstreams: ['openai', 'anthropic', 'google'],
  generation: 3,
})

/** A target of a route; one without a share is a fallback. */
function target(upstream: string, model: string, share: number) {
  const price = { input: 1.25, output: 10 }
  return { upstream, model, share, isFallback: share === 0, configured: true, price }
}

const explain = schema.explainReply.parse({
  model: 'gpt-5-mini',
  route: models.models[2]?.route,
  why: 'The route gpt- is the longest prefix that fits.',
  dialectWhy: 'It has no tools.',
  others: [],
  catalogueId: 'gpt-5-mini',
})

const operations = schema.operationsReply.parse({
  nowMs: NOW_MS,
  upstreams: ['openai', 'anthropic', 'google'].map((name, index) => ({
    name,
    dialect: name,
    preset: null,
    origin: 'https://api.example.com',
    configured: index < 2,
    apiKeySource: 'GEMINI_API_KEY',
    inFlight: index === 2 ? null : 12,
    attemptsPerMinute: 84.2,
    failures: { provider: index * 22, gateway: index === 2 ? 3 : 0, limits: 4, client: 9 },
    failureShare: index * 0.05,
    errors: index === 1 ? [{ kind: 'upstream_timeout', count: 22, lastAtMs: NOW_MS }] : [],
    retries: index === 1 ? { count: 14, lastAtMs: NOW_MS - 20_000 } : { count: 0, lastAtMs: null },
    fallbacks: index === 1 ? { count: 8, lastAtMs: NOW_MS - 9_000 } : { count: 0, lastAtMs: null },
    firstTokenP50Ms: 340,
    firstTokenP95Ms: 900,
    breaker: index === 1 ? 'open' : 'closed',
    breakerChangedAtMs: index === 1 ? NOW_MS - 95_000 : null,
  })),
  config: {
    generation: 3,
    loadedAtMs: NOW_MS - HOUR_MS,
    fileHash: '9f2ab3c4d5e6f7a8b9c0',
    changes: [{ path: 'upstreams.openai.timeouts.idle_ms', before: '60000', after: '30000' }],
    refused: { atMs: NOW_MS - 60_000, problems: ['gateway.yaml:14:3 base_ur: unknown key'] },
  },
  failed: rows.filter(({ outcome }) => outcome !== 'ok'),
})

const limits = schema.limitsReply.parse({
  nowMs: NOW_MS,
  limits: [
    limit('plan', null, 'usd_per_month', 200_000_000_000, 0.83),
    limit('account', null, 'requests_per_minute', 600, 0.21),
    limit('key', 'ci-runner', 'usd_per_day', 5_000_000_000, 1),
    limit('key', 'laptop', 'concurrent', 4, 0.25),
  ],
})

function limit(
  scope: schema.LimitLevel['scope'],
  keyName: string | null,
  kind: schema.LimitLevel['kind'],
  most: number,
  share: number,
): schema.LimitLevel {
  const used = Math.round(most * share)
  const keyId = keyName === null ? null : keyName === 'laptop' ? 'key_1' : 'key_0'
  const resetsAtMs = kind === 'concurrent' ? null : NOW_MS + 5 * HOUR_MS
  return { scope, keyId, keyName, kind, limit: most, used, left: most - used, resetsAtMs }
}

const side = {
  ...{ upstream: 'openai', requests: 4_120, shadowRequests: 0, errors: 12, errorRate: 0.003 },
  ...{ rejected: 3, firstTokenP50Ms: 412, firstTokenP95Ms: 1_204 },
  ...{ inputTokens: 8_120_441, outputTokens: 1_204_113, unpricedRequests: 0 },
  ...{ spendNanoUsd: 42_419_301_000, requestNanoUsd: 10_296_000 },
}

const copied = { ...side, requests: 41, errors: 0, errorRate: 0 }

const providers = schema.providersReply.parse({
  nowMs: NOW_MS,
  fromMs: NOW_MS - HOUR_MS,
  canaries: [NOW_MS - 60_000, null].map((abortedAtMs, index) => ({
    ...{
      id: `0.${index}`,
      route: 'gpt-',
      upstream: `openai-${index}`,
      model: index === 0 ? null : 'gpt-5.5',
    },
    ...{ weight: 5, percent: 5, attempts: 50, failures: 3, abortedAtMs },
    ...{ errorRate: 0.05, minRequests: 50, windowSeconds: 3_600 },
  })),
  upstreams: ['openai', 'anthropic', 'google'].map((upstream, index) =>
    index === 2
      ? {
          ...{ ...side, upstream, requests: 0, errors: 0, errorRate: null, rejected: 0 },
          ...{ firstTokenP50Ms: null, firstTokenP95Ms: null, requestNanoUsd: null },
          ...{ inputTokens: 0, outputTokens: 0, spendNanoUsd: 0 },
        }
      : { ...side, upstream },
  ),
  shadows: [
    {
      primary: copied,
      shadow: { ...copied, upstream: 'anthropic', shadowRequests: 41, firstTokenP50Ms: 388 },
    },
  ],
})

const accounts = schema.accountsReply.parse({
  accounts: ['ada', 'grace', 'joan'].map((name, index) => ({
    id: `acc_${index + 1}`,
    email: `${name}@example.com`,
    role: index === 0 ? 'admin' : 'owner',
    plan: 'starter',
    disabled: index === 2,
    createdAtMs: NOW_MS - index * DAY_MS,
    liveKeys: index,
    requests: 12_408,
    spendNanoUsd: 18_420_000_000,
    unpricedRequests: 0,
  })),
  next: null,
})

const audit = schema.auditReply.parse({
  entries: [
    {
      id: '1',
      atMs: NOW_MS,
      accountId: 'acc_1',
      actor: 'ada@example.com',
      action: 'key.rename',
      target: 'key_1',
      detail: 'name: laptop → ci',
      address: '127.0.0.1',
    },
  ],
  next: null,
})

const generations = [3, 2, 1].map((generation) => ({
  generation,
  hash: String(generation).repeat(64),
  filesHash: String(generation).repeat(64),
  atMs: NOW_MS - (3 - generation) * HOUR_MS,
  author: generation === 3 ? 'root@example.com' : 'deploy',
  reason: generation === 3 ? 'errors doubled' : 'gateway.yaml changed',
  origin: generation === 3 ? 'rollback' : 'change',
  contentOf: generation === 3 ? 1 : null,
}))

const configuration = schema.configurationReply.parse({
  inForce: 3,
  hash: '3'.repeat(64),
  held: 'rollback',
  problems: ['gateway.yaml:7:31: routes[0].upstream: names no upstream of this file'],
  waitingForRestart: ['server.port', 'store'],
  generations,
  fleet: [
    { id: 'a', host: 'gateway-0', generation: 3, hash: '3'.repeat(64) },
    { id: 'b', host: 'gateway-1', generation: 9, hash: '2'.repeat(64) },
  ],
  values: JSON.stringify({ server: { port: 8080 }, store: 'sqlite:data/sluice.db' }, null, 2),
})

const generation = schema.generationReply.parse({
  record: generations[1],
  comparedWith: 1,
  changes: [
    { path: 'routes[claude-*].targets[anthropic].weight', before: '1', after: '9' },
    { path: 'upstreams.other', before: '{"dialect":"openai"}', after: null },
  ],
})

const live = schema.liveReply.parse({
  rows: rows.slice(0, 25),
  hour: { ...figures(60), startMs: NOW_MS - (NOW_MS % HOUR_MS) },
  models: [],
  generation: 3,
})

/** What is read, by the path below `/dashboard/api`; null where there is no such call. */
export function replyTo(path: string, query: URLSearchParams): unknown {
  const fixed: Readonly<Record<string, unknown>> = {
    '/session': session,
    '/keys': keys,
    '/limits': limits,
    '/models': models,
    '/models/explain': explain,
    '/operations': operations,
    '/providers': providers,
    '/configuration': configuration,
    '/configuration/2': generation,
    '/accounts': accounts,
    '/audit': audit,
    '/live': live,
    '/plans': { plans: [session.account?.plan] },
    '/requests': { rows: rows.slice(0, 50), next: null },
  }
  if (path === '/usage') return usage(query)
  if (path === '/requests.csv') return ''
  if (path.startsWith('/requests/')) {
    return { row: rows.find(({ requestId }) => path.endsWith(`/${requestId}`)) ?? rows[0] }
  }
  return fixed[path] ?? null
}

/** The same of a gateway that nobody has used yet. */
export function emptyReplyTo(path: string, query: URLSearchParams): unknown {
  if (path === '/usage') return usage(query, true)
  if (path === '/live') return { ...live, rows: [], hour: { ...live.hour, ...figures(0) } }
  if (path === '/requests') return { rows: [], next: null }
  if (path === '/providers') return { ...providers, canaries: [], shadows: [] }
  if (path === '/keys') return { keys: [], next: null }
  return replyTo(path, query)
}
