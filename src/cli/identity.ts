/**
 * `sluice identity`: denies workload identities by `sub` or `jti`, and removes and lists denials, beside a
 * running gateway.
 */
import { decideDenial } from '../accounts/changes/decide-denial.js'
import { denialFields, denialPages, denialsOf, denyIdentity } from '../accounts/denials.js'
import type { JsonObject } from '../base/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Denial, DenialSubject } from '../store/denials.js'
import { commandEntry } from './accounts.js'
import { configOption, declare, UsageError } from './command.js'
import { timeIn } from './time-range.js'
import { printList } from './print-table-or-json.js'
import { withStore, type OpenStore, type StoreSession } from './with-store.js'
import { timeText } from '../base/time-units.js'

/** `sluice identity`. */
export function command(open: OpenStore = withStore) {
  const identity = declare({
    name: 'identity',
    summary: 'deny tokens of workloads by sub or jti, allow them again, and list denials',
    description: `
Works on the store of the configuration, with or without a running gateway. Within a second, every
gateway refuses the tokens of a denied identity with 401, and ends their running requests.`,
    exitStatus: "0 success, 1 failure (for 'allow' also: nothing was denied), 2 wrong usage.",
    example: `
sluice identity deny --config config/gateway.yaml --identity kubernetes \\
  --sub system:serviceaccount:research:batch --reason 'leaked token'`,
  })
  identity
    .command('deny')
    .requiredOption('--identity <NAME>', IDENTITY)
    .option('--sub <SUB>', SUB)
    .option('--jti <JTI>', JTI)
    .option('--reason <TEXT>', 'why, for lists and the audit trail', '')
    .option('--expires <TIME>', 'when the denial ends: 12h, 30d, a date or a time (default: never)')
    .addOption(configOption())
    .action(async (options) => {
      const { config, identity, sub, jti, reason, expires } = options
      const end = expires === undefined ? {} : { expires_at: timeIn(expires, Date.now()) }
      const subject = { ...(sub === undefined ? {} : { sub }), ...(jti === undefined ? {} : { jti }) }
      const denied = { identity, ...subject, reason, ...end }
      const opening = { mustExist: false }
      process.exitCode = await open(config, (session) => deny(session, denied), opening)
    })
  identity
    .command('allow')
    .requiredOption('--identity <NAME>', IDENTITY)
    .option('--sub <SUB>', SUB)
    .option('--jti <JTI>', JTI)
    .addOption(configOption())
    .action(async (options) => {
      const subject = subjectOf(options)
      process.exitCode = await open(options.config, (session) => allow(session, subject))
    })
  identity
    .command('list')
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ config, json }) => {
      process.exitCode = await open(config, (session) => list(session, json === true))
    })
  return identity
}

const IDENTITY = "the name of an entry of 'identity' in the configuration"
const SUB = 'the claim "sub": all tokens of one workload'
const JTI = 'the claim "jti": one token'

async function deny({ store, terminal, identities }: StoreSession, wish: JsonObject): Promise<number> {
  const decided = decideDenial(wish, { identities, nowMs: Date.now() })
  const denial = await denyIdentity(store, decided, (made) => [
    denialEntry(made, 'denial.create', { before: null, after: denialFields(made) }),
  ])
  terminal.out(`${denial.id}: ${shownSubject(denial)} of ${denial.identity} is denied`)
  return 0
}

async function allow({ store, terminal }: StoreSession, subject: DenialSubject): Promise<number> {
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

async function list({ store, terminal }: StoreSession, isJson: boolean): Promise<number> {
  await printList(terminal, denialPages(store), {
    json: isJson ? shownDenial : null,
    head: ['DENIAL', 'IDENTITY', 'SUBJECT', 'CREATED', 'EXPIRES', 'REASON'],
    cells: (denial) => {
      const { id, identity, createdAtMs, expiresAtMs, reason } = denial
      const expires = expiresAtMs === null ? 'never' : timeText(expiresAtMs)
      return [id, identity, shownSubject(denial), timeText(createdAtMs), expires, reason]
    },
    none: 'No identity is denied.',
  })
  return 0
}

function shownDenial(denial: Denial): Record<string, unknown> {
  return { id: denial.id, ...denialFields(denial), created_at: timeText(denial.createdAtMs) }
}

function subjectOf({ identity, sub, jti }: { identity: string; sub?: string; jti?: string }): DenialSubject {
  if ((sub === undefined) === (jti === undefined)) {
    throw new UsageError(`'sluice identity allow' needs --sub SUB or --jti JTI, not both`)
  }
  return { identity, sub: sub ?? null, jti: jti ?? null }
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
