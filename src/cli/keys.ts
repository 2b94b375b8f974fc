/**
 * `sluice keys`: creates, lists, edits, rotates and revokes the keys of an account, beside a running gateway.
 * `accounts/` has the rules.
 */
import type { Command } from '@commander-js/extra-typings'
import type { ApiKey } from '../accounts/account.js'
import { changeKey, createKey, revokeKey } from '../accounts/changes/change-keys.js'
import { rotateKey } from '../accounts/changes/rotate-key.js'
import { raiseKeyLimit } from '../accounts/changes/raise-limit.js'
import { newSecret } from '../accounts/key-secret.js'
import { labelsText, NO_LABELS, readLabel } from '../accounts/labels.js'
import type { Client } from '../config/client-settings.js'
import { shownAmounts } from '../config/schema/limits-schema.js'
import { GatewayError } from '../errors.js'
import type { JsonObject, JsonValue } from '../base/json.js'
import { PLAIN_LIMITS, UNIT_LIMITS, UNIT_MEMBERS } from '../base/limit-members.js'
import { keyPages } from '../store/list-all.js'
import { changingBy } from './accounts.js'
import { configOption, declare, repeated, UsageError } from './command.js'
import { printList } from './print-table-or-json.js'
import { amountOf } from './option-names.js'
import { raiseOf, raiseText, withRaise, type RaiseOptions } from './raise.js'
import { timeIn } from './time-range.js'
import { unknownModelWarnings } from './unknown-models.js'
import { namedAccount, processTerminal, withStore, type OpenStore, type StoreSession } from './with-store.js'
import { timeText } from '../base/time-units.js'

/** The options that set what a key may do, beside those of `LIMIT_OPTIONS`. */
interface KeyOptions {
  readonly expires?: string | undefined
  readonly models?: string | undefined
  readonly allowTools?: string | undefined
  readonly label?: readonly string[] | undefined
  readonly unitsPerMinute?: readonly string[] | undefined
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
/** The value that removes a limit or the expiry of a key. */
const NONE = 'none'

/** The options that set a limit, as commander names their values, and the field of each. */
const LIMIT_OPTIONS = PLAIN_LIMITS.map(({ option, name }) => {
  return [option.replace(/-./g, (letter) => letter.slice(1).toUpperCase()), name] as const
})

/**
 * The options as settings of a key, which `accounts/changes` checks; `isEdit` allows the values that remove a
 * setting.
 */
function settingsOf(
  options: KeyOptions & { readonly name?: string | undefined },
  isEdit: boolean,
): JsonObject {
  const { name, expires, models, allowTools: tools, label, unitsPerMinute } = options
  const given: Readonly<Record<string, unknown>> = { ...options }
  const limits: [string, JsonValue][] = LIMIT_OPTIONS.flatMap(([option, field]) => {
    const text = given[option]
    return typeof text !== 'string' ? [] : [[field, isEdit && text === NONE ? null : amountOf(text)]]
  })
  if (unitsPerMinute !== undefined) limits.push([UNIT_LIMITS.name, unitsOf(unitsPerMinute, isEdit)])
  return {
    ...(name === undefined ? {} : { name }),
    ...(limits.length === 0 ? {} : { limits: Object.fromEntries(limits) }),
    ...(expires === undefined
      ? {}
      : { expires_at: isEdit && expires === NONE ? null : timeIn(expires, Date.now()) }),
    ...(models === undefined ? {} : { models: listIn(models) }),
    ...(tools === undefined
      ? {}
      : { allow_tools: isEdit && tools === 'default' ? null : tools === '' ? [] : listIn(tools) }),
    ...(label === undefined ? {} : { labels: labelsOf(label, isEdit) }),
  }
}

function listIn(text: string): string[] {
  return text.split(',').map((item) => item.trim())
}

const UNIT_NAMES: readonly string[] = UNIT_MEMBERS.map(({ unit }) => unit)

/** The limits of units; null removes all of them, or that of one unit. */
function unitsOf(pairs: readonly string[], isEdit: boolean): JsonObject | null {
  if (isEdit && pairs.length === 1 && pairs[0] === NONE) return null
  const units = new Map<string, JsonValue>()
  for (const pair of pairs) {
    const [, unit = '', text = ''] = /^([^=]+)=(.+)$/.exec(pair) ?? []
    if (unit === '') {
      const forms = `UNIT=N, as in image=10, with one of ${UNIT_NAMES.join(', ')}`
      throw new UsageError(`--${UNIT_LIMITS.option} must be ${forms}`)
    }
    if (units.has(unit)) throw new UsageError(`--${UNIT_LIMITS.option} ${unit} is given twice`)
    units.set(unit, isEdit && text === NONE ? null : amountOf(text))
  }
  return Object.fromEntries(units)
}

function labelsOf(pairs: readonly string[], isEdit: boolean): JsonObject {
  const labels = new Map<string, string | null>()
  for (const pair of pairs) {
    const { name, value } = readLabel(pair)
    if (labels.has(name)) throw new UsageError(`--label ${name} is given twice`)
    labels.set(name, isEdit && value === '' ? null : value)
  }
  return Object.fromEntries(labels)
}

/** Seconds of `30m`, `24h`, `7d` or a number of them; another text unchanged. */
function overlapOf(text: string): number | string {
  const [, digits = '', unit = 's'] = /^(\d{1,9})([smhd]?)$/.exec(text) ?? []
  if (digits === '') return text
  const named = unit === 'm' || unit === 'h' || unit === 'd' ? unit : 's'
  return Number(digits) * UNIT_SECONDS[named]
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
which works for the time of --overlap. 'edit' changes what its options name and keeps the secret. 'raise'
makes a budget of the key higher until a time, from which on the former one holds again. A running
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
      'how long the old key works beside the new one: 0 (not at all), 30m, 24h, 7d, or seconds; at most 30d',
      '24h',
    )
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => rotate(session, options))
    })
  withRaise(
    keys.command('raise').requiredOption('--account <ACCOUNT>', ACCOUNT).requiredOption('--key <ID>', KEY),
  )
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => raise(session, options))
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
  const limited = action.requiredOption('--account <ACCOUNT>', ACCOUNT)
  for (const { option, counts, means } of PLAIN_LIMITS) {
    limited.option(`--${option} <${counts === 'usd' ? 'USD' : 'N'}>`, means)
  }
  return limited
    .option(
      `--${UNIT_LIMITS.option} <UNIT=N>`,
      `units other than tokens per minute: ${UNIT_NAMES.join(', ')}; may be repeated`,
      repeated,
    )
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

const ACCOUNT = "the account's name, id or e-mail address"
const NAME = 'a name for the key, 1 to 100 characters'
const KEY = "the key's id, as printed by 'list'"

/** The options with which `edit` changes a key, beside `--name`. */
const EDITS: readonly string[] = [
  ...LIMIT_OPTIONS.map(([option]) => option),
  'unitsPerMinute',
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

/** Loaded on demand, with the parsers of settings files. Throws `UsageError`. */
async function clientFor(name: string): Promise<Client> {
  return (await import('./connect/connect.js')).clientNamed(name)
}

interface KeyEditOptions extends KeyOptions {
  readonly account: string
  readonly key: string
  readonly name?: string | undefined
}

async function create(session: StoreSession, values: NewKeyOptions): Promise<number> {
  const { terminal } = session
  const account = await namedAccount(session, values.account)
  if (account === null) return 1
  const settings = settingsOf(values, false)
  warnOfModels(session, settings)
  try {
    const { key, secret } = await createKey(changingBy(session), account, settings)
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

function warnOfModels(session: StoreSession, { models }: JsonObject): void {
  for (const warning of unknownModelWarnings(Array.isArray(models) ? models.map(String) : [], session)) {
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
  const given: Readonly<Record<string, unknown>> = { ...values }
  if (values.name === undefined && EDITS.every((option) => given[option] === undefined)) {
    throw new UsageError("'sluice keys edit' needs an option that changes the key, such as --rpm")
  }
  const account = await namedAccount(session, values.account)
  if (account === null) return 1
  const settings = settingsOf(values, true)
  warnOfModels(session, settings)
  const key = { accountId: account.id, id: values.key }
  await changeKey(changingBy(session), account, { key, settings, replacesMaps: false })
  session.terminal.out(`${key.id}: changed`)
  return 0
}

async function rotate(
  session: StoreSession,
  { account: name, key: id, overlap }: Record<'account' | 'key' | 'overlap', string>,
): Promise<number> {
  const { terminal } = session
  const account = await namedAccount(session, name)
  if (account === null) return 1
  const changing = changingBy(session)
  try {
    const rotation = { key: { accountId: account.id, id }, overlap: overlapOf(overlap) }
    const { key, secret, oldEndsAtMs } = await rotateKey(changing, account, rotation)
    terminal.out(secret)
    const until =
      rotation.overlap === 0 ? 'is revoked' : `works until ${timeText(oldEndsAtMs ?? changing.nowMs)}`
    terminal.err(
      `Created key ${key.id} "${key.name}" of ${account.email ?? account.name}. Its secret is shown only now. The old key ${id} ${until}.`,
    )
    return 0
  } catch (error) {
    return planRefused(session, account.id, error)
  }
}

async function list(session: StoreSession, name: string, isJson: boolean): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await printList(terminal, keyPages(store, account.id), {
    json: isJson ? shownKey : null,
    head: ['KEY', 'SECRET', 'NAME', 'CREATED', 'LABELS', 'STATE'],
    cells: (key) => {
      const { id, name, prefix, lastFour, createdAtMs } = key
      const labels = labelsText(key.labels ?? NO_LABELS) ?? '-'
      return [id, `${prefix}…${lastFour}`, name, timeText(createdAtMs), labels, stateOf(key)]
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
    created_at: timeText(createdAtMs),
    revoked_at: timeText(revokedAtMs),
    expires_at: timeText(expiresAtMs),
    models: models === undefined ? null : [...models],
    allow_tools: allowTools === undefined ? null : [...allowTools],
    limits: shownAmounts(limits ?? {}),
    labels: { ...key.labels },
  }
}

function stateOf({ revokedAtMs, expiresAtMs }: ApiKey): string {
  if (revokedAtMs !== undefined) return `revoked ${timeText(revokedAtMs)}`
  if (expiresAtMs === undefined) return ''
  return `${expiresAtMs > Date.now() ? 'expires' : 'expired'} ${timeText(expiresAtMs)}`
}

async function raise(
  session: StoreSession,
  { account: name, key: id, ...values }: RaiseOptions & Record<'account' | 'key', string>,
): Promise<number> {
  const changing = changingBy(session)
  const wish = raiseOf(values, changing.nowMs)
  const account = await namedAccount(session, name)
  if (account === null) return 1
  const raised = await raiseKeyLimit(changing, account, { key: { accountId: account.id, id }, wish })
  session.terminal.out(`${id}: ${raiseText(raised)}`)
  return 0
}

async function revoke(
  session: StoreSession,
  { account: name, key: id }: Record<'account' | 'key', string>,
): Promise<number> {
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await revokeKey(changingBy(session), account, { accountId: account.id, id })
  session.terminal.out(`${id}: revoked`)
  return 0
}
