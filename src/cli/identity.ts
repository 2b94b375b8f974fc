/**
 * `sluice identity`: denies workload identities by `sub` or `jti`, and removes and lists denials, beside a
 * running gateway.
 */
import { denialFields, denialPages, denialsOf, denyIdentity } from '../accounts/denials.js'
import { didYouMean } from '../config/problem.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Denial, DenialSubject } from '../store/denials.js'
import { commandEntry } from './accounts.js'
import { parseAction, type Command, type OptionValues } from './command.js'
import { expiryOf } from './keys.js'
import { printList } from './print-table-or-json.js'
import { UsageError } from './usage-error.js'
import { openingFor, required, withStore, type StoreSession } from './with-store.js'

/** `sluice identity`. */
export const command: Command = {
  name: 'identity',
  summary: 'deny tokens of workloads by sub or jti, allow them again, and list denials',
  help: `
Usage: sluice identity deny  --identity NAME (--sub SUB | --jti JTI) [--reason TEXT]
                             [--expires TIME] [--config FILE]
       sluice identity allow --identity NAME (--sub SUB | --jti JTI) [--config FILE]
       sluice identity list  [--config FILE] [--json]

Works on the store of the configuration, with or without a running gateway. Within a second, every
gateway refuses the tokens of a denied identity with 401, and ends their running requests.

Options:
  --config FILE    the configuration file (default: the variable SLUICE_CONFIG)
  --identity NAME  the name of an entry of 'identity' in the configuration
  --sub SUB        the claim "sub": all tokens of one workload
  --jti JTI        the claim "jti": one token
  --reason TEXT    why, for lists and the audit trail
  --expires TIME   when the denial ends: 12h, 30d, a date or a time (default: never)
  --json           print JSON

Exit status: 0 success, 1 failure (for 'allow' also: nothing was denied), 2 wrong usage.

Example:
  sluice identity deny --config config/gateway.yaml --identity kubernetes \\
    --sub system:serviceaccount:research:batch --reason 'leaked token'
`,
  run(argv) {
    const { action, values } = parseIdentity(argv)
    const opening = openingFor('sluice identity', values.config)
    return withStore(opening, (session) => runIdentity(session, action, values))
  },
}

type IdentityAction = 'deny' | 'allow' | 'list'

const ALLOWED: Record<IdentityAction, readonly string[]> = {
  deny: ['config', 'identity', 'sub', 'jti', 'reason', 'expires'],
  allow: ['config', 'identity', 'sub', 'jti'],
  list: ['config', 'json'],
}

const NEEDED: Record<IdentityAction, readonly string[]> = {
  deny: ['--identity NAME'],
  allow: ['--identity NAME'],
  list: [],
}

const OPTIONS = {
  config: { type: 'string' },
  identity: { type: 'string' },
  sub: { type: 'string' },
  jti: { type: 'string' },
  reason: { type: 'string' },
  expires: { type: 'string' },
  json: { type: 'boolean' },
} as const

type IdentityValues = OptionValues<typeof OPTIONS>

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseIdentity(argv: readonly string[]): {
  action: IdentityAction
  values: IdentityValues
} {
  const parsed = parseAction('identity', argv, {
    options: OPTIONS,
    allowed: ALLOWED,
    needed: NEEDED,
  })
  const { action, values } = parsed
  if (action !== 'list' && (values.sub === undefined) === (values.jti === undefined)) {
    throw new UsageError(`'sluice identity ${action}' needs --sub SUB or --jti JTI, not both`)
  }
  return parsed
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runIdentity(
  session: StoreSession,
  action: IdentityAction,
  values: IdentityValues,
): Promise<number> {
  return { deny, allow, list }[action](session, values)
}

async function deny(session: StoreSession, values: IdentityValues): Promise<number> {
  const { store, terminal, identities } = session
  const subject = subjectOf(values, 'deny')
  const expiresAtMs = values.expires === undefined ? null : expiryOf(values.expires, Date.now())
  if (!identities.includes(subject.identity)) {
    const hint = didYouMean(subject.identity, identities)
    terminal.err(`sluice: the configuration has no identity "${subject.identity}"${hint}`)
    return 1
  }
  const settings = { ...subject, reason: values.reason ?? '', expiresAtMs }
  const denial = await denyIdentity(store, settings, (made) => [
    denialEntry(made, 'denial.create', { before: null, after: denialFields(made) }),
  ])
  terminal.out(`${denial.id}: ${shownSubject(denial)} of ${denial.identity} is denied`)
  return 0
}

async function allow({ store, terminal }: StoreSession, values: IdentityValues): Promise<number> {
  const subject = subjectOf(values, 'allow')
  const denials = await denialsOf(store, subject)
  for (const { id } of denials) {
    await store.denials.remove(id, (removed) => [
      denialEntry(removed, 'denial.remove', { before: denialFields(removed), after: null }),
    ])
    terminal.out(`${id}: removed`)
  }
  if (denials.length > 0) return 0
  terminal.err(`sluice: ${shownSubject(subject)} of ${subject.identity} is not denied`)
  return 1
}

async function list({ store, terminal }: StoreSession, values: IdentityValues): Promise<number> {
  await printList(terminal, denialPages(store), {
    json: values.json === true ? shownDenial : null,
    head: ['DENIAL', 'IDENTITY', 'SUBJECT', 'CREATED', 'EXPIRES', 'REASON'],
    cells: (denial) => {
      const { id, identity, createdAtMs, expiresAtMs, reason } = denial
      const expires = expiresAtMs === null ? 'never' : time(expiresAtMs)
      return [id, identity, shownSubject(denial), time(createdAtMs), expires, reason]
    },
    none: 'No identity is denied.',
  })
  return 0
}

function shownDenial(denial: Denial): Record<string, unknown> {
  return { id: denial.id, ...denialFields(denial), created_at: time(denial.createdAtMs) }
}

function subjectOf({ identity, sub, jti }: IdentityValues, action: IdentityAction): DenialSubject {
  const name = required(identity, `sluice identity ${action}`, '--identity NAME')
  return { identity: name, sub: sub ?? null, jti: jti ?? null }
}

function shownSubject({ sub, jti }: DenialSubject): string {
  return sub === null ? `jti ${jti ?? ''}` : `sub ${sub}`
}

/** Denials belong to no account. */
function denialEntry(
  denial: Denial,
  action: string,
  change: Pick<AuditEntry, 'before' | 'after'>,
): AuditEntry {
  const detail = `${denial.identity}: ${shownSubject(denial)}`.slice(0, 1_000)
  return commandEntry({ accountId: '', action, target: denial.id, detail, ...change })
}

function time(ms: number): string {
  return new Date(ms).toISOString()
}
