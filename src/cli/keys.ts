/**
 * `sluice keys`: creates, lists, edits, rotates and revokes the keys of an account, beside a running gateway.
 * `accounts/` has the rules.
 */
import { MODEL_NAME } from '../formats/chat/model-facts.js'
import type { Command } from '@commander-js/extra-typings'
import type { Account, ApiKey, KeyLimits } from '../accounts/account.js'
import { keyChange, keyRotation, type AuditChange } from '../accounts/audit-changes.js'
import { newSecret } from '../accounts/key-secret.js'
import { checkedName, createKey, replacedKeyEndMs, revokeKey, rotateKey } from '../accounts/keys.js'
import {
  checkedLabels,
  labelsText,
  NO_LABELS,
  LABEL_NAME,
  LABEL_VALUE,
  MAX_LABELS,
  type Labels,
} from '../accounts/labels.js'
import type { Client } from '../config/client-settings.js'
import { shownAmounts } from '../config/schema/limits-schema.js'
import { GatewayError } from '../errors.js'
import { ALLOWED_TOOL, allowedTools, MAX_ALLOWED_TOOLS } from '../formats/chat/hosted-tools.js'
import type { JsonObject } from '../formats/chat/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { keyPages } from '../store/list-all.js'
import type { KeyEdit } from '../store/store.js'
import { commandEntry } from './accounts.js'
import { configOption, declare, repeated, UsageError } from './command.js'
import { printList } from './print-table-or-json.js'
import { unknownModelWarnings } from './unknown-models.js'
import { namedAccount, processTerminal, withStore, type OpenStore, type StoreSession } from './with-store.js'

/** The options that set what a key may do. */
interface KeyOptions {
  readonly rpm?: string | undefined
  readonly tpm?: string | undefined
  readonly concurrent?: string | undefined
  readonly usdPerDay?: string | undefined
  readonly usdPerWeek?: string | undefined
  readonly usdPerMonth?: string | undefined
  readonly expires?: string | undefined
  readonly models?: string | undefined
  readonly allowTools?: string | undefined
  readonly label?: readonly string[] | undefined
}

/** The same maximums as in the configuration's `limits`. */
const MAX = { rpm: 1e9, tpm: 1e12, concurrent: 1e6 } as const
const MAX_USD = 1_000_000
/** A century. */
const MAX_DAYS = 36_500
const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
/** The value that removes a limit or the expiry of a key. */
const NONE = 'none'
const MAX_OVERLAP_DAYS = 30
const MAX_MODELS = 100

/** The settings of the options; null removes a setting, absent ones are not given. */
interface GivenSettings extends Pick<KeyEdit, 'expiresAtMs' | 'models' | 'allowTools'> {
  readonly limits: { readonly [Name in keyof KeyLimits]: number | null }
  /** An empty value removes the label. */
  readonly labels: Labels
}

/** The options that set a limit, and the limit of each. */
const LIMIT_OPTIONS: readonly (readonly [
  option: keyof Omit<KeyOptions, 'label'>,
  limit: keyof KeyLimits,
  read: (text: string) => number,
])[] = [
  ['rpm', 'requestsPerMinute', (text) => count('rpm', text)],
  ['tpm', 'tokensPerMinute', (text) => count('tpm', text)],
  ['concurrent', 'concurrent', (text) => count('concurrent', text)],
  ['usdPerDay', 'nanoUsdPerDay', (text) => nanoUsd('usd-per-day', text)],
  ['usdPerWeek', 'nanoUsdPerWeek', (text) => nanoUsd('usd-per-week', text)],
  ['usdPerMonth', 'nanoUsdPerMonth', (text) => nanoUsd('usd-per-month', text)],
]

/**
 * The options of a key; `isEdit` allows the values that remove a setting. Throws `UsageError` naming the
 * option.
 */
function readKeyOptions(options: KeyOptions, nowMs: number, isEdit: boolean): GivenSettings {
  const limits: { [Name in keyof KeyLimits]: number | null } = {}
  for (const [option, limit, read] of LIMIT_OPTIONS) {
    const text = options[option]
    if (text !== undefined) limits[limit] = isEdit && text === NONE ? null : read(text)
  }
  const { expires, models, allowTools: tools, label = [] } = options
  return {
    limits,
    ...(expires === undefined
      ? {}
      : { expiresAtMs: isEdit && expires === NONE ? null : expiryOf(expires, nowMs) }),
    ...(models === undefined ? {} : { models: modelsOf(models) }),
    ...(tools === undefined ? {} : { allowTools: isEdit && tools === 'default' ? null : toolsOf(tools) }),
    labels: labelsOf(label, isEdit),
  }
}

function labelsOf(pairs: readonly string[], mayBeEmpty: boolean): Labels {
  const labels = new Map<string, string>()
  for (const pair of pairs) {
    const separator = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, separator))
    const value = pair.slice(separator + 1)
    const isValue = LABEL_VALUE.test(value) || (mayBeEmpty && value === '')
    if (!LABEL_NAME.test(name) || !isValue) {
      throw new UsageError(
        '--label must be NAME=VALUE: a name of 1 to 32 characters (a-z, 0-9, _ . -), a value of 1 to 64 printable ASCII characters without spaces and commas',
      )
    }
    if (labels.has(name)) throw new UsageError(`--label ${name} is given twice`)
    labels.set(name, value)
  }
  if (labels.size > MAX_LABELS) throw new UsageError(`a key has at most ${MAX_LABELS} labels`)
  return Object.fromEntries(labels)
}

/** The given values without those that remove one; null if none is left. */
function setOnly<T>(values: Readonly<Record<string, T | null>>): Record<string, T> | null {
  const set = Object.entries(values).filter((pair): pair is [string, T] => {
    return pair[1] !== null && pair[1] !== ''
  })
  set.sort(([a], [b]) => (a < b ? -1 : 1))
  return set.length === 0 ? null : Object.fromEntries(set)
}

function count(name: keyof typeof MAX, text: string): number {
  const value = Number(text)
  const max = MAX[name]
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value
  throw new UsageError(`--${name} must be a whole number from 1 to ${max}`)
}

function nanoUsd(name: string, text: string): number {
  const value = Number(text)
  if (/^\d+(\.\d{1,9})?$/.test(text) && value <= MAX_USD) return Math.round(value * 1e9)
  throw new UsageError(`--${name} must be US dollars, such as 2.50, at most ${MAX_USD}`)
}

/** `0`, `30m`, `24h`, `7d`: ms. */
function overlapOf(text: string): number {
  const [, digits = '', unit] = /^(\d{1,6})([smhd]?)$/.exec(text) ?? []
  const unitMs = unit === 's' || unit === 'm' || unit === 'h' || unit === 'd' ? UNITS_MS[unit] : 0
  const ms = Number(digits) * unitMs
  const isValid = digits !== '' && (unitMs > 0 || Number(digits) === 0)
  if (isValid && ms <= MAX_OVERLAP_DAYS * UNITS_MS.d) return ms
  throw new UsageError(`--overlap must be 0, or a duration of at most ${MAX_OVERLAP_DAYS}d: 30m, 24h, 7d`)
}

/** Ms since 1970 of `12h`, `30d`, a date (its start, UTC) or a time. Throws `UsageError`. */
export function expiryOf(text: string, nowMs: number): number {
  const [, digits, unit] = /^(\d{1,6})([hd])$/.exec(text) ?? []
  const lastsMs = unit === 'h' || unit === 'd' ? Number(digits) * UNITS_MS[unit] : null
  const isDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  const atMs = lastsMs === null ? (isDate ? Date.parse(text) : Number.NaN) : nowMs + lastsMs
  if (atMs > nowMs && atMs < nowMs + MAX_DAYS * UNITS_MS.d) return atMs
  throw new UsageError('--expires must be in the future: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z')
}

function modelsOf(text: string): string[] {
  const models = text.split(',').map((model) => model.trim())
  const isValid = models.every((model) => MODEL_NAME.test(model) && !model.slice(0, -1).includes('*'))
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
export function command(open: OpenStore = withStore) {
  const keys = declare({
    name: 'keys',
    summary: "create, list, edit, rotate and revoke an account's keys",
    description: `
'generate' prints a secret of the right form, for a vault that owns it: the admin API and 'sluice apply' take
its SHA-256 as secret_sha256. It makes no key and needs no store.

'create' and 'rotate' print only the secret on standard output, and only once; messages go to standard
error. 'rotate' makes a new key with the name, limits, models, tools, labels and expiry of the old one,
which works for the time of --overlap. 'edit' changes what its options name and keeps the secret. A running
gateway uses a change within a second. The limits of a key count in addition to those of the configuration
and the plan.

With 'edit', 'none' removes a limit or the expiry, --models '*' allows all models, --allow-tools default
uses the lists of the upstreams again, and --label NAME= removes a label; other labels stay.`,
    example:
      'SLUICE_KEY=$(sluice keys create --config config/gateway.yaml --account team@example.com --name ci)',
  })
  keys.command('generate').action(() => processTerminal.out(newSecret()))
  withLimits(keys.command('create'))
    .requiredOption('--name <NAME>', NAME)
    .option(
      '--connect <CLIENT>',
      "also print the settings of a client for this key, on standard error, as 'sluice connect' does",
    )
    .addOption(configOption())
    .action(async (options) => {
      const client = options.connect === undefined ? null : await clientFor(options.connect)
      process.exitCode = await open(options.config, (session) => create(session, { ...options, client }))
    })
  keys
    .command('list')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ config, account, json }) => {
      process.exitCode = await open(config, (session) => list(session, account, json === true))
    })
  withLimits(keys.command('edit'))
    .requiredOption('--key <ID>', KEY)
    .option('--name <NAME>', NAME)
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => edit(session, options))
    })
  keys
    .command('rotate')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .requiredOption('--key <ID>', KEY)
    .option(
      '--overlap <TIME>',
      'how long the old key works beside the new one: 0 (not at all), 30m, 24h, 7d, at most 30d',
      '24h',
    )
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => rotate(session, options))
    })
  keys
    .command('revoke')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .requiredOption('--key <ID>', KEY)
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => revoke(session, options))
    })
  return keys
}

/** Adds the account and the options that set what a key may do. */
function withLimits(action: Command) {
  return action
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .option('--rpm <N>', 'requests per minute')
    .option('--tpm <N>', 'tokens per minute, of prompts and replies together')
    .option('--concurrent <N>', 'concurrent requests')
    .option('--usd-per-day <USD>', 'a budget per calendar day (UTC)')
    .option('--usd-per-week <USD>', 'a budget per week, from Monday (UTC)')
    .option('--usd-per-month <USD>', 'a budget per calendar month (UTC)')
    .option('--expires <WHEN>', 'when it expires: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z')
    .option('--models <LIST>', "the models that it may use: 'gpt-5.5,claude-*' (default: all)")
    .option(
      '--allow-tools <LIST>',
      "tools and options of providers that it may use, instead of the lists of the upstreams: 'web_search,mcp', '*' for all, '' for none",
    )
    .option(
      '--label <NAME=VALUE>',
      'a label for routes, limits, priorities and sums; may be repeated, at most 16',
      repeated,
    )
}

const ACCOUNT = "the account's id or e-mail address"
const NAME = 'a name for the key, 1 to 100 characters'
const KEY = "the key's id, as printed by 'list'"

/** The options with which `edit` changes a key, beside `--name`. */
const EDITS: readonly (keyof KeyOptions)[] = [
  ...LIMIT_OPTIONS.map(([option]) => option),
  'expires',
  'models',
  'allowTools',
  'label',
]

interface NewKeyOptions extends KeyOptions {
  readonly account: string
  readonly name: string
  /** Whose settings are printed, too. */
  readonly client: Client | null
}

interface KeyEditOptions extends KeyOptions {
  readonly account: string
  readonly key: string
  readonly name?: string | undefined
}

/** Loaded on demand, with the parsers of settings files. Throws `UsageError`. */
async function clientFor(name: string): Promise<Client> {
  return (await import('./connect/connect.js')).clientNamed(name)
}

async function create(session: StoreSession, values: NewKeyOptions): Promise<number> {
  const { store, plans, terminal } = session
  const { name } = values
  const given = readKeyOptions(values, Date.now(), false)
  const account = await namedAccount(session, values.account)
  if (account === null) return 1
  warnOfModels(session, given)
  const { expiresAtMs, models, allowTools } = given
  const limits = setOnly<number>(given.limits)
  try {
    const { key, secret } = await createKey(store, {
      plans,
      account,
      name,
      ...(limits === null ? {} : { limits }),
      ...(typeof expiresAtMs === 'number' ? { expiresAtMs } : {}),
      ...(models === undefined || models === null ? {} : { models }),
      ...(allowTools === undefined || allowTools === null ? {} : { allowTools }),
      labels: given.labels,
      audit: (made) => [keyEntry(made, 'key.create', keyChange(null, made))],
    })
    terminal.out(secret)
    terminal.err(
      `Created key ${key.id} "${key.name}" of ${account.email ?? account.name}. Its secret is shown only now.`,
    )
    if (values.client !== null) {
      const { connectText } = await import('./connect/connect-key.js')
      terminal.err(`\n${await connectText(session, values.client, { key, account })}`)
    }
    return 0
  } catch (error) {
    return planRefused(session, account.id, error)
  }
}

function warnOfModels(session: StoreSession, { models }: GivenSettings): void {
  for (const warning of unknownModelWarnings(models ?? [], session)) {
    session.terminal.err(`sluice: warning: --models: ${warning}`)
  }
}

/** The exit status of a refusal by the plan; throws any other error. */
function planRefused({ terminal }: StoreSession, accountId: string, error: unknown): number {
  if (!(error instanceof GatewayError) || error.kind !== 'plan_limit') throw error
  terminal.err(`sluice: ${error.message}`)
  terminal.err(
    `'sluice keys list --account ${accountId}' lists the keys; ` +
      "'sluice accounts set-plan' changes the plan",
  )
  return 1
}

async function edit(session: StoreSession, values: KeyEditOptions): Promise<number> {
  const { store, terminal } = session
  const { key: keyId } = values
  const given = readKeyOptions(values, Date.now(), true)
  if (values.name === undefined && EDITS.every((option) => values[option] === undefined)) {
    throw new UsageError("'sluice keys edit' needs an option that changes the key, such as --rpm")
  }
  const account = await namedAccount(session, values.account)
  if (account === null) return 1
  warnOfModels(session, given)
  const existing = await namedKey(session, account, keyId)
  if (existing === null) return 1
  const named = values.name === undefined ? {} : { name: checkedName(values.name) }
  checkedLabels(editOf(existing, given).labels ?? NO_LABELS)
  const key = await store.changeKey(
    existing,
    (before) => ({ ...named, ...editOf(before, given) }),
    (before, after) => [keyEntry(after, 'key.change', keyChange(before, after))],
  )
  if (key === null) {
    terminal.err(`sluice: key ${keyId} is revoked, which is final: create a new one`)
    return 1
  }
  terminal.out(`${keyId}: changed`)
  return 0
}

/** The key with that id; null, with a line of advice, if the account has none. */
async function namedKey(
  { store, terminal }: StoreSession,
  account: Account,
  keyId: string,
): Promise<ApiKey | null> {
  const key = await store.keyById(account.id, keyId)
  if (key === null) {
    terminal.err(
      `sluice: the account has no key with this id: 'sluice keys list --account ${account.id}' shows all`,
    )
  }
  return key
}

/** The change of the stored key: limits and labels that are not given stay. */
function editOf(key: ApiKey, { limits, labels, ...others }: GivenSettings): KeyEdit {
  const hasLimits = Object.keys(limits).length > 0
  const hasLabels = Object.keys(labels).length > 0
  return {
    ...others,
    ...(hasLimits ? { limits: setOnly<number>({ ...key.limits, ...limits }) } : {}),
    ...(hasLabels ? { labels: setOnly<string>({ ...key.labels, ...labels }) } : {}),
  }
}

async function rotate(
  session: StoreSession,
  { account: name, key: keyId, overlap }: Record<'account' | 'key' | 'overlap', string>,
): Promise<number> {
  const { store, plans, terminal } = session
  const overlapMs = overlapOf(overlap)
  const account = await namedAccount(session, name)
  if (account === null) return 1
  const old = await namedKey(session, account, keyId)
  if (old === null) return 1
  const nowMs = Date.now()
  const audit = (made: ApiKey): AuditEntry[] => {
    const change = keyRotation(old, made, replacedKeyEndMs(old, nowMs, overlapMs))
    const detail = `${old.name}: ${shownSecret(old)} → ${shownSecret(made)}`
    return [
      commandEntry({
        accountId: account.id,
        action: 'key.rotate',
        target: old.id,
        detail,
        ...change,
      }),
    ]
  }
  try {
    const rotation = { store, plans, account, old, overlapMs, now: () => nowMs, audit }
    const { key, secret, oldEndsAtMs } = await rotateKey(rotation)
    terminal.out(secret)
    const until = overlapMs === 0 ? 'is revoked' : `works until ${time(oldEndsAtMs ?? nowMs) ?? ''}`
    terminal.err(
      `Created key ${key.id} "${key.name}" of ${account.email ?? account.name}. Its secret is shown only now. The old key ${old.id} ${until}.`,
    )
    return 0
  } catch (error) {
    return planRefused(session, account.id, error)
  }
}

function shownSecret({ prefix, lastFour }: ApiKey): string {
  return `${prefix}…${lastFour}`
}

async function list(session: StoreSession, name: string, isJson: boolean): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await printList(terminal, keyPages(store, account.id), {
    json: isJson ? shownKey : null,
    head: ['KEY', 'SECRET', 'NAME', 'CREATED', 'LABELS', ''],
    cells: (key) => {
      const { id, name, prefix, lastFour, createdAtMs } = key
      const labels = labelsText(key.labels ?? NO_LABELS) ?? '-'
      return [id, `${prefix}…${lastFour}`, name, time(createdAtMs) ?? '', labels, stateOf(key)]
    },
    none: `${account.email ?? account.name} has no keys yet.`,
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

async function revoke(
  session: StoreSession,
  { account: name, key: keyId }: Record<'account' | 'key', string>,
): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, name)
  if (account === null) return 1
  const key = await store.keyById(account.id, keyId)
  const nowMs = Date.now()
  const entries =
    key === null ? [] : [keyEntry(key, 'key.revoke', keyChange(key, { ...key, revokedAtMs: nowMs }))]
  await revokeKey(store, { accountId: account.id, id: keyId }, { audit: entries })
  terminal.out(`${keyId}: revoked`)
  return 0
}

function keyEntry(key: ApiKey, action: string, change: AuditChange): AuditEntry {
  const { id, accountId, name } = key
  const detail = `${name} (${shownSecret(key)})`
  return commandEntry({ accountId, action, target: id, detail, ...change })
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
