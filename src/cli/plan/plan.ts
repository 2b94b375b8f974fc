/** `sluice plan`: compares two configurations on recent requests. No side effects. */
import * as z from 'zod'
import { type Config, isConfigured, type ServerConfig } from '../../config/config.js'
import {
  loadConfig,
  loadConfigAs,
  readText,
  type Loaded as LoadedConfig,
  type LoadResult,
} from '../../config/load-config.js'
import { secretsOf } from '../../config/secret-settings.js'
import { hideSecrets, jsonWithoutSecrets, protectSecrets } from '../../hide-secrets.js'
import type { ConfigProblem } from '../../config/config-problem.js'
import { needsRestart } from '../../config/generations/diff-configs.js'
import { problemLines } from '../problem-lines.js'
import { configOption, declare, requiredConfig, UsageError } from '../command.js'
import { processTerminal } from '../with-store.js'
import { capabilitiesOf, withNames, planText, type Plan } from './print-plan.js'
import { compare, type Comparison } from './compare-configs.js'
import { sampleHeads } from './sample-request.js'
import { ComparedConfig } from './targets-and-cost.js'
import type { JsonObject } from '../../base/json.js'
import { originOf } from '../running-gateway.js'
import { TASK_NAMES } from '../../formats/chat/operations.js'
import { mergedHeads, type RequestHead } from '../../gateway/report/recent-requests.js'
import type { SnapshotParts } from '../../config/create-snapshot.js'

/** `sluice plan`. */
export function command() {
  return declare({
    name: 'plan',
    summary: 'compare two configurations on recent requests',
    description: `
Compares the configuration file NEW with the current one on the last 1,000 requests of the running gateway
(of more than 100 a second, a sample): requests that move to another upstream or model, keys that lose a
model that they used, features that the new upstream does not support, and the difference in cost at
catalogue prices. For each request the gateway keeps the model, key id, client format, sizes and kinds of
content, but no contents. No side effects.

'sluice plan NEW' compares with the file of --config, 'sluice plan OLD NEW' compares two files. NEW may be
'-': the text comes from standard input, and its relative paths start at the current file.

With --untrusted, NEW may have an author who may not read secrets, as in a pull request: a
placeholder that the current file has at the same path is replaced, any other becomes the text
'placeholder', and NEW may name no files but those of the current one.

If no gateway runs, or with --offline or two files, the comparison uses one sample request for each routed
model, and lists the features that the new upstreams' dialects lack.`,
    exitStatus: `
0 NEW breaks no client; 1 NEW is not valid, or would break clients (a model in use loses its route,
a key loses a model that it used, or a recent request could not be translated for its new target);
2 wrong usage.`,
    example: `
sluice plan new.yaml --config config/gateway.yaml
sluice plan config/gateway.yaml new.yaml --json`,
  })
    .argument('<FILE>', 'the new configuration, or the old one of two')
    .argument('[NEW]', 'the new one')
    .addOption(
      configOption(
        'the current configuration; the gateway is found at its server.ops_host and server.ops_port',
      ).makeOptionMandatory(false),
    )
    .option('--untrusted', 'replace only placeholders, and read only files, that the current file also has')
    .option('--offline', 'do not use a running gateway')
    .option('--live', 'fail if no gateway runs')
    .option(
      '--json',
      'print one JSON object: { source, requests, unmoved, moves, keys, refused, lost, cost, capabilities, notes, breaks }',
    )
    .action(async (first, second, options, self) => {
      const isGiven = self.getOptionValueSource('config') === 'cli'
      if (second !== undefined && isGiven) {
        throw new UsageError('--config is for one file: remove it or OLD')
      }
      const isOffline = options.offline === true || second !== undefined
      if (isOffline && options.live) {
        throw new UsageError('--live needs the running gateway: remove --offline and OLD')
      }
      const files =
        second === undefined
          ? { before: requiredConfig('sluice plan', options.config), after: first }
          : { before: first, after: second }
      process.exitCode = await runPlan(files, { ...options, isOffline })
    })
}

interface PlanOptions {
  readonly untrusted?: true | undefined
  readonly isOffline: boolean
  readonly live?: true | undefined
  readonly json?: true | undefined
}

async function runPlan(
  files: { readonly before: string; readonly after: string },
  { isOffline, live, json, untrusted }: PlanOptions,
): Promise<number> {
  const before = loadConfig(files.before, process.env)
  if (before.ok) protectSecrets(secretsOf(before.config))
  else if (untrusted) return printErrors(before.errors, json === true)
  const bounds = untrusted && before.ok ? before : null
  const after = await loadNew(files, bounds)
  const errors = [before, after].flatMap((loaded) => (loaded.ok ? [] : loaded.errors))
  if (!before.ok || !after.ok) return printErrors(errors, json === true)
  protectSecrets(secretsOf(after.config))
  const paths = { from_file: files.before, to_file: files.after }
  const result = await planOf(before, after, { isOffline, isLive: live === true })
  if (typeof result === 'string') throw new Error(result)
  const plan = { ...paths, ...result }
  console.log(json ? jsonWithoutSecrets(plan) : hideSecrets(planText(plan), '***'))
  return plan.breaks.length === 0 ? 0 : 1
}

async function loadNew(
  { before, after }: { readonly before: string; readonly after: string },
  bounds: LoadedConfig | null,
): Promise<LoadResult> {
  if (after === '-') {
    return loadConfigAs(before, await processTerminal.input(MAX_BYTES), process.env, bounds)
  }
  if (bounds === null) return loadConfig(after, process.env)
  return loadConfigAs(after, readText(after) ?? '', process.env, bounds)
}

/** As large as a file may be. */
const MAX_BYTES = 4 * 1024 * 1024

function printErrors(errors: readonly ConfigProblem[], isJson: boolean): number {
  console.log(isJson ? jsonWithoutSecrets({ errors }) : problemLines(errors))
  return 1
}

type PlanResult = Omit<Plan, 'from_file' | 'to_file'>

/** The plan, or a text with the reason why there is none. */
async function planOf(
  before: SnapshotParts,
  after: SnapshotParts,
  { isOffline, isLive }: { readonly isOffline: boolean; readonly isLive: boolean },
): Promise<PlanResult | string> {
  const [from, to] = [new ComparedConfig(before), new ComparedConfig(after)]
  const notes = notesOf(before.config, after.config)
  if (isOffline) return filesPlan(from, to, notes)
  const recent = await fetchRecentHeads(before.config.server)
  if (recent.kind === 'failed') return `${recent.message}. Add --offline to compare the files alone`
  if (recent.kind === 'absent') {
    const advice = 'start it, or check server.ops_host and server.ops_port'
    if (isLive) return `${recent.message}: ${advice}. Without --live the files alone are compared`
    console.error(`sluice: ${recent.message}: the files alone are compared`)
    return filesPlan(from, to, [`${recent.message}: ${advice}`, ...notes])
  }
  const { heads, fileHash } = recent
  if (fileHash !== before.fileHash) {
    notes.unshift('The file of --config is not in force on the gateway')
  }
  const compared = compare(heads, from, to)
  return {
    source: 'gateway',
    since: dayAndTime(heads[0]?.atMs),
    until: dayAndTime(heads.at(-1)?.atMs),
    ...compared,
    keys: await withNames(before.config, compared.keys),
    capabilities: [],
    notes,
    breaks: breaksOf(compared),
  }
}

function filesPlan(from: ComparedConfig, to: ComparedConfig, notes: readonly string[]): PlanResult {
  const compared = { ...compare(sampleHeads(from, to), from, to), keys: [] }
  return {
    source: 'files',
    since: null,
    until: null,
    ...compared,
    capabilities: capabilitiesOf(compared.moves, from, to),
    notes,
    breaks: breaksOf(compared),
  }
}

function dayAndTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString()
}

/** Changes that clients would notice as errors. */
function breaksOf({ moves, keys, refused }: Comparison): string[] {
  const unrouted = new Set(moves.filter(({ to }) => to === null).map(({ model }) => model))
  return [
    ...[...unrouted].map((model) => `the model ${model} loses its route`),
    ...keys.map(({ key_id, model }) => `the key ${key_id} loses the model ${model}`),
    ...refused.map(({ model, to, field }) => {
      return `requests for ${model} cannot be sent to ${to.upstream} ${to.model}: ${field}`
    }),
  ]
}

function notesOf(before: Config, after: Config): string[] {
  const unconfigured = Object.values(after.upstreams).filter(
    (upstream) => !isConfigured(upstream) && isUsed(upstream.name, after),
  )
  return [
    ...unconfigured.map(({ name, apiKeySource }) => {
      return `The upstream ${name} has no key in this shell: ${apiKeySource ?? 'api_key'} is not set`
    }),
    ...needsRestart(before, after).map((name) => `${name} takes effect at the next start`),
  ]
}

function isUsed(name: string, { routes }: Config): boolean {
  return routes.some(({ targets, fallback }) =>
    [...targets, ...fallback].some(({ upstream }) => upstream === name),
  )
}

// Fetches the heads of the last requests from the running gateway, and validates the reply.

/** The outcome. `absent`: nothing listens on the ops port. */
type RecentHeads =
  | { readonly kind: 'heads'; readonly heads: readonly RequestHead[]; readonly fileHash: string }
  | { readonly kind: 'absent'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

const text = z.string().max(256)
const count = z.number()
const json = z.custom<JsonObject>((value) => typeof value === 'object' && value !== null)
const dialect = z.enum(['openai-chat', 'openai-responses', 'anthropic', 'gemini'])

const settings = z.object({
  includeUsage: z.boolean().exactOptional(),
  parallelToolCalls: z.boolean().exactOptional(),
  legacyFunctions: z.boolean().exactOptional(),
  maxOutputTokens: count.exactOptional(),
  temperature: count.exactOptional(),
  topP: count.exactOptional(),
  topK: count.exactOptional(),
  frequencyPenalty: count.exactOptional(),
  presencePenalty: count.exactOptional(),
  candidates: count.exactOptional(),
  logprobs: z.boolean().exactOptional(),
  topLogprobs: count.exactOptional(),
  reasoningEffort: text.exactOptional(),
  verbosity: text.exactOptional(),
  serviceTier: text.exactOptional(),
  hidesThoughts: z.boolean().exactOptional(),
  includeReasoningState: z.boolean().exactOptional(),
  stops: z.int().min(0).max(1_000).exactOptional(),
  hasSeed: z.boolean().exactOptional(),
  hasUserId: z.boolean().exactOptional(),
  toolChoice: text.exactOptional(),
  format: text.exactOptional(),
})

const sketch = z.object({
  turns: z.array(z.array(text)),
  ends: z.array(text),
  tools: z.array(text),
  settings,
  rest: json,
  native: z.array(z.object({ path: text, isRefused: z.boolean() })),
})

const head = z.object({
  atMs: count,
  keyId: text,
  accountId: text,
  labels: z.record(text, text),
  format: z.enum(['chat', 'completions', 'messages', 'responses', 'gemini', 'embeddings', ...TASK_NAMES]),
  dialect,
  wire: z.union([
    dialect,
    z.enum([
      ...([
        'responses-compact',
        'openai-completions',
        'openai-embeddings',
        'gemini-embeddings',
        'gemini-embedding',
      ] as const),
      ...(['rerank', 'cohere-rerank', 'openai-moderations', 'openai-images', 'openai-speech'] as const),
      ...(['openai-image-edits', 'openai-transcriptions', 'openai-translations'] as const),
    ]),
  ]),
  model: text,
  stream: z.boolean(),
  bodyBytes: count,
  promptTokens: count,
  usage: z.object({
    input: count.exactOptional(),
    output: count.exactOptional(),
    cacheRead: count.exactOptional(),
    cacheWrite: count.exactOptional(),
    cacheWrite1h: count.exactOptional(),
    reasoning: count.exactOptional(),
  }),
  tier: text.nullable(),
  outcome: text,
  sketch,
})

const page = z.object({ requests: z.array(head) })
const configPage = z.object({ file_hash: z.string() })

const TIMEOUT_MS = 10_000

/** Fetches from the ops port of the configuration. Never rejects. */
async function fetchRecentHeads(server: ServerConfig): Promise<RecentHeads> {
  const origin = originOf(server.opsHost, server.opsPort)
  const { adminToken } = server
  const headers = adminToken === null ? {} : { authorization: `Bearer ${adminToken}` }
  try {
    const config = configPage.parse(await get(`${origin}/config`, {}))
    const { requests } = page.parse(await get(`${origin}/recent-requests`, headers))
    return { kind: 'heads', heads: mergedHeads([requests]), fileHash: config.file_hash }
  } catch (error) {
    return failureOf(error, origin)
  }
}

async function get(url: string, headers: Record<string, string>): Promise<unknown> {
  const reply = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!reply.ok) throw new Error(`it replied ${reply.status} to ${new URL(url).pathname}`)
  return reply.json()
}

function failureOf(error: unknown, origin: string): RecentHeads {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ECONNREFUSED') {
    return { kind: 'absent', message: `No gateway listens on ${origin}` }
  }
  const reason = error instanceof z.ZodError ? 'its reply has the format of another version' : code
  const why = reason === '' && error instanceof Error ? error.message : reason
  return { kind: 'failed', message: `The gateway's ops port ${origin} cannot be used: ${why}` }
}
