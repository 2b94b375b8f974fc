/**
 * `sluice keys`: creates, lists and revokes the keys of an account, beside a running gateway. `accounts/` has
 * the rules.
 */
import type { ApiKey, KeyLimits } from '../accounts/account.js'
import { createKey, revokeKey, type NewKeySettings } from '../accounts/keys.js'
import {
  labelsText,
  NO_LABELS,
  LABEL_NAME,
  LABEL_VALUE,
  MAX_LABELS,
  type Labels,
} from '../accounts/labels.js'
import { shownAmounts } from '../config/resolve-limits.js'
import { GatewayError } from '../errors.js'
import { ALLOWED_TOOL, allowedTools, MAX_ALLOWED_TOOLS } from '../formats/chat/hosted-tools.js'
import type { JsonObject } from '../formats/chat/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { keyPages } from '../store/list-all.js'
import { commandEntry } from './accounts.js'
import { parseAction, type Command, type OptionValues } from './command.js'
import { printList } from './print-table-or-json.js'
import { unknownModelWarnings } from './unknown-models.js'
import { UsageError } from './usage-error.js'
import { namedAccount, openingFor, required, withStore, type StoreSession } from './with-store.js'

/** The options for `parseArgs`. */
const KEY_OPTIONS = {
  rpm: { type: 'string' },
  tpm: { type: 'string' },
  concurrent: { type: 'string' },
  'usd-per-day': { type: 'string' },
  'usd-per-week': { type: 'string' },
  'usd-per-month': { type: 'string' },
  expires: { type: 'string' },
  models: { type: 'string' },
  'allow-tools': { type: 'string' },
  label: { type: 'string', multiple: true },
} as const

/** The values of these options. */
export type KeyOptions = OptionValues<typeof KEY_OPTIONS>

/** The same maximums as in the configuration's `limits`. */
const MAX = { rpm: 1e9, tpm: 1e12, concurrent: 1e6 } as const
const MAX_USD = 1_000_000
/** A century. */
const MAX_DAYS = 36_500
const UNITS_MS = { h: 3_600_000, d: 86_400_000 } as const
const MODEL = /^[!-~]{1,256}$/
const MAX_MODELS = 100

/** The options of a new key. Throws `UsageError` naming the option. */
function readKeyOptions(options: KeyOptions, nowMs: number): NewKeySettings {
  const limits: KeyLimits = {}
  const { rpm, tpm, concurrent, expires, models } = options
  if (rpm !== undefined) limits.requestsPerMinute = count('rpm', rpm)
  if (tpm !== undefined) limits.tokensPerMinute = count('tpm', tpm)
  if (concurrent !== undefined) limits.concurrent = count('concurrent', concurrent)
  const [day, week] = [options['usd-per-day'], options['usd-per-week']]
  const month = options['usd-per-month']
  const tools = options['allow-tools']
  if (day !== undefined) limits.nanoUsdPerDay = nanoUsd('usd-per-day', day)
  if (week !== undefined) limits.nanoUsdPerWeek = nanoUsd('usd-per-week', week)
  if (month !== undefined) limits.nanoUsdPerMonth = nanoUsd('usd-per-month', month)
  return {
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(expires === undefined ? {} : { expiresAtMs: expiryOf(expires, nowMs) }),
    ...(models === undefined ? {} : { models: modelsOf(models) }),
    ...(tools === undefined ? {} : { allowTools: toolsOf(tools) }),
    ...(options.label === undefined ? {} : { labels: labelsOf(options.label) }),
  }
}

function labelsOf(pairs: readonly string[]): Labels {
  const labels = new Map<string, string>()
  for (const pair of pairs) {
    const separator = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, separator))
    if (!LABEL_NAME.test(name) || !LABEL_VALUE.test(pair.slice(separator + 1))) {
      throw new UsageError(
        '--label must be NAME=VALUE: a name of 1 to 32 characters (a-z, 0-9, _ . -), a value of 1 to 64 printable ASCII characters without spaces and commas',
      )
    }
    if (labels.has(name)) throw new UsageError(`--label ${name} is given twice`)
    labels.set(name, pair.slice(separator + 1))
  }
  if (labels.size > MAX_LABELS) throw new UsageError(`a key has at most ${MAX_LABELS} labels`)
  return Object.fromEntries(labels)
}

function count(name: keyof typeof MAX, text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= 1 && value <= MAX[name]) return value
  throw new UsageError(`--${name} must be a whole number from 1 to ${MAX[name]}`)
}

function nanoUsd(name: string, text: string): number {
  const value = Number(text)
  if (/^\d+(\.\d{1,9})?$/.test(text) && value <= MAX_USD) return Math.round(value * 1e9)
  throw new UsageError(`--${name} must be US dollars, such as 2.50, at most ${MAX_USD}`)
}

/** `12h`, `30d`, a date (its start, UTC) or a time. */
function expiryOf(text: string, nowMs: number): number {
  const [, digits, unit] = /^(\d{1,6})([hd])$/.exec(text) ?? []
  const lastsMs = unit === 'h' || unit === 'd' ? Number(digits) * UNITS_MS[unit] : null
  const isDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  const atMs = lastsMs === null ? (isDate ? Date.parse(text) : Number.NaN) : nowMs + lastsMs
  if (atMs > nowMs && atMs < nowMs + MAX_DAYS * UNITS_MS.d) return atMs
  throw new UsageError(
    '--expires must be in the future: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z',
  )
}

function modelsOf(text: string): string[] {
  const models = text.split(',').map((model) => model.trim())
  const isValid = models.every((model) => MODEL.test(model) && !model.slice(0, -1).includes('*'))
  if (isValid && models.length <= MAX_MODELS) return models
  throw new UsageError(
    `--models must be at most ${MAX_MODELS} comma-separated model ids, each optionally ending in *`,
  )
}

/** An empty text allows none. */
function toolsOf(text: string): string[] {
  const tools = text === '' ? [] : text.split(',').map((tool) => tool.trim())
  if (tools.every((tool) => ALLOWED_TOOL.test(tool)) && tools.length <= MAX_ALLOWED_TOOLS) {
    return allowedTools(tools)
  }
  throw new UsageError(
    `--allow-tools must be '*', or at most ${MAX_ALLOWED_TOOLS} comma-separated names of tools, such as web_search,mcp`,
  )
}

/** `sluice keys`. */
export const command: Command = {
  name: 'keys',
  summary: "create, list and revoke an account's keys",
  help: `
Usage: sluice keys create --account ACCOUNT --name NAME [limits] [--config FILE]
       sluice keys list   --account ACCOUNT [--json] [--config FILE]
       sluice keys revoke --account ACCOUNT --key ID [--config FILE]

'create' prints only the secret on standard output, and only once; messages go to standard error. A
running gateway uses the change within a second.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --account ACCOUNT  the account's id or e-mail address
  --name NAME        a name for the key, 1 to 100 characters
  --key ID           the key's id, as printed by 'list'
  --json             print JSON

Limits of a new key, in addition to those of the configuration and the plan:
  --rpm N            requests per minute
  --tpm N            tokens per minute, of prompts and replies together
  --concurrent N     concurrent requests
  --usd-per-day USD, --usd-per-week USD, --usd-per-month USD
                     a budget per calendar day, week (from Monday) or month (UTC)
  --expires WHEN     when it expires: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z
  --models LIST      the models that it may use: 'gpt-5.5,claude-*' (default: all)
  --allow-tools LIST tools and options of providers that it may use, instead of the lists of the
                     upstreams: 'web_search,mcp', '*' for all, '' for none
  --label NAME=VALUE a label for routes, limits, priorities and sums; may be repeated, at most 16

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  SLUICE_KEY=$(sluice keys create --config config/gateway.yaml --account team@example.com --name ci)
`,
  run(argv) {
    const { action, values } = parseKeys(argv)
    return withStore(openingFor('sluice keys', values.config), (session) =>
      runKeys(session, action, values),
    )
  },
}

/** The action of `sluice keys`. */
export type KeysAction = 'create' | 'list' | 'revoke'

const ALLOWED: Record<KeysAction, readonly string[]> = {
  create: ['config', 'account', 'name', ...Object.keys(KEY_OPTIONS)],
  list: ['config', 'account', 'json'],
  revoke: ['config', 'account', 'key'],
}

const NEEDED: Record<KeysAction, readonly string[]> = {
  create: ['--account ACCOUNT', '--name NAME'],
  list: ['--account ACCOUNT'],
  revoke: ['--account ACCOUNT', '--key ID'],
}

const OPTIONS = {
  config: { type: 'string' },
  account: { type: 'string' },
  name: { type: 'string' },
  key: { type: 'string' },
  json: { type: 'boolean' },
  ...KEY_OPTIONS,
} as const

/** The options of all actions. */
export type KeysValues = ReturnType<typeof parseKeys>['values']

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseKeys(argv: readonly string[]) {
  return parseAction('keys', argv, { options: OPTIONS, allowed: ALLOWED, needed: NEEDED })
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runKeys(
  session: StoreSession,
  action: KeysAction,
  values: KeysValues,
): Promise<number> {
  return { create, list, revoke }[action](session, values)
}

async function create(session: StoreSession, values: KeysValues): Promise<number> {
  const { store, plans, terminal } = session
  const name = required(values.name, 'sluice keys create', '--name NAME')
  const options = readKeyOptions(values, Date.now())
  const account = await namedAccount(session, accountOf(values, 'create'))
  if (account === null) return 1
  for (const warning of unknownModelWarnings(options.models ?? [], session)) {
    terminal.err(`sluice: warning: --models: ${warning}`)
  }
  try {
    const { key, secret } = await createKey(store, {
      plans,
      account,
      name,
      ...options,
      audit: (made) => [keyEntry(made, 'key.create')],
    })
    terminal.out(secret)
    terminal.err(
      `Created key ${key.id} "${key.name}" of ${account.email}. Its secret is shown only now.`,
    )
    return 0
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'plan_limit') throw error
    terminal.err(`sluice: ${error.message}`)
    terminal.err(
      `'sluice keys list --account ${account.id}' lists the keys; ` +
        "'sluice accounts set-plan' changes the plan",
    )
    return 1
  }
}

async function list(session: StoreSession, values: KeysValues): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, accountOf(values, 'list'))
  if (account === null) return 1
  await printList(terminal, keyPages(store, account.id), {
    json: values.json === true ? shownKey : null,
    head: ['KEY', 'SECRET', 'NAME', 'CREATED', 'LABELS', ''],
    cells: (key) => {
      const { id, name, prefix, lastFour, createdAtMs } = key
      const labels = labelsText(key.labels ?? NO_LABELS) ?? '-'
      return [id, `${prefix}…${lastFour}`, name, time(createdAtMs) ?? '', labels, stateOf(key)]
    },
    none: `${account.email} has no keys yet.`,
  })
  return 0
}

function shownKey(key: ApiKey): JsonObject {
  const { id, name, prefix, lastFour, createdAtMs, revokedAtMs, expiresAtMs, models } = key
  const { allowTools, limits } = key
  return {
    id,
    name,
    prefix,
    last_four: lastFour,
    created_at: time(createdAtMs),
    revoked_at: time(revokedAtMs),
    expires_at: time(expiresAtMs),
    models: models === undefined ? null : [...models],
    allow_tools: allowTools === undefined ? null : [...allowTools],
    limits: shownAmounts(limits ?? {}),
    labels: { ...key.labels },
  }
}

function stateOf({ revokedAtMs, expiresAtMs }: ApiKey): string {
  if (revokedAtMs !== undefined) return `revoked ${time(revokedAtMs) ?? ''}`
  if (expiresAtMs === undefined) return ''
  return `${expiresAtMs > Date.now() ? 'expires' : 'expired'} ${time(expiresAtMs) ?? ''}`
}

async function revoke(session: StoreSession, values: KeysValues): Promise<number> {
  const { store, terminal } = session
  const keyId = required(values.key, 'sluice keys revoke', '--key ID')
  const account = await namedAccount(session, accountOf(values, 'revoke'))
  if (account === null) return 1
  const key = await store.keyById(account.id, keyId)
  const entries = key === null ? [] : [keyEntry(key, 'key.revoke')]
  await revokeKey(store, { accountId: account.id, id: keyId }, { audit: entries })
  terminal.out(`${keyId}: revoked`)
  return 0
}

function keyEntry({ id, accountId, name, prefix, lastFour }: ApiKey, action: string): AuditEntry {
  return commandEntry({ accountId, action, target: id, detail: `${name} (${prefix}…${lastFour})` })
}

function accountOf(values: KeysValues, action: KeysAction): string {
  return required(values.account, `sluice keys ${action}`, '--account ACCOUNT')
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
