/**
 * Keys, teams, organizations and users of LiteLLM's database as documents for `sluice apply`. Every
 * account has the plan `max`, so that LiteLLM's own limits are the only ones.
 */
import { createHash } from 'node:crypto'
import { emailFault } from '../../../accounts/changes/fields.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import { budgetLimit } from './budgets.js'
import { isTrue, mapAt, numberIn, textAt, textsIn } from './context.js'
import type { KeyRow, KeyRows } from './key-rows.js'
import { accountNames, KeyNames, labelsOf, shownName } from './key-names.js'

/** The outcome of an object, for the report. It never has a secret. */
interface KeyNote {
  readonly line: number
  readonly path: string
  readonly outcome: 'carried' | 'changed' | 'not_carried' | 'ignored'
  readonly to: string | null
  readonly note: string | null
}

/** The documents, and the outcome of each row. */
export interface KeyDocuments {
  readonly documents: readonly JsonObject[]
  readonly notes: readonly KeyNote[]
  readonly counts: { readonly read: number; readonly carried: number; readonly not_carried: number }
}

/** What the documents depend on beside the rows. */
interface KeyContext {
  readonly nowMs: number
  /** The models of each access group. */
  readonly groups: ReadonlyMap<string, readonly string[]>
  /** The master key, if its value is known. */
  readonly masterKey: string | null
  /** The limits of the account above all others; null: there is none. */
  readonly top: JsonObject | null
}

const TOP = 'litellm'

/** Makes the documents. */
export function keyDocuments(rows: KeyRows, context: KeyContext): KeyDocuments {
  return new DocumentMaker(rows, context).make()
}

class DocumentMaker {
  private readonly notes: KeyNote[] = []
  private readonly accounts: JsonObject[] = []
  private readonly members: JsonObject[] = []
  private readonly keys: JsonObject[] = []
  private readonly names: ReturnType<typeof accountNames>
  private readonly teams: ReadonlyMap<string, JsonObject>
  private readonly made = new Set<string>()
  /** The limits of each account, and the one above it. */
  private readonly above = new Map<string, { limits: JsonObject; parent: string | null }>()
  private readonly keyNames = new KeyNames()
  private readonly rows: KeyRows
  private readonly context: KeyContext

  constructor(rows: KeyRows, context: KeyContext) {
    this.rows = rows
    this.context = context
    this.names = accountNames(rows)
    this.teams = new Map(rows.teams.map(({ value }) => [textAt(value, 'team_id'), value]))
  }

  make(): KeyDocuments {
    const { rows, context } = this
    if (context.top !== null || context.masterKey !== null) this.makeTop()
    for (const row of rows.organizations) this.addAccount(row, 'organization')
    for (const row of rows.teams) this.addAccount(row, 'team')
    for (const row of rows.users) this.addUser(row)
    const keys = rows.keys.map((row) => this.addKey(row))
    this.addMaster()
    const carried = keys.filter(Boolean).length
    return {
      documents: [...this.accounts, ...this.members, ...this.keys],
      notes: this.notes,
      counts: { read: rows.keys.length, carried, not_carried: rows.keys.length - carried },
    }
  }

  private makeTop(): void {
    if (this.made.has(TOP)) return
    this.made.add(TOP)
    const limits = this.context.top ?? {}
    this.above.set(TOP, { limits, parent: null })
    const spec = { plan: 'max', ...(Object.keys(limits).length === 0 ? {} : { limits }) }
    this.accounts.unshift({ kind: 'Account', metadata: { name: TOP }, spec })
  }

  /** Each account is below the top one, if the whole proxy has a budget. */
  private parentOf(organization: JsonValue | undefined): string | null {
    const own = typeof organization === 'string' ? (this.names.organizations.get(organization) ?? null) : null
    if (own !== null) return own
    return this.context.top === null ? null : TOP
  }

  private addAccount({ line, value }: KeyRow, kind: 'team' | 'organization'): void {
    const id = textAt(value, `${kind}_id`)
    const name = (kind === 'team' ? this.names.teams : this.names.organizations).get(id) ?? TOP
    const alias = value[`${kind}_alias`]
    const parent = this.parentOf(kind === 'team' ? value['organization_id'] : undefined)
    const { limits, notes, isClosed } = this.limitsBelow(parent, value)
    this.above.set(name, { limits, parent })
    const shown = typeof alias === 'string' && alias.trim() !== '' ? shownName(alias) : name
    this.made.add(name)
    this.accounts.push({
      kind: 'Account',
      metadata: { name },
      spec: {
        ...(shown === name ? {} : { display_name: shown }),
        plan: 'max',
        ...(parent === null ? {} : { parent }),
        ...(Object.keys(limits).length === 0 ? {} : { limits }),
        ...(isTrue(value['blocked']) || isClosed ? { disabled: true } : {}),
      },
    })
    if (kind === 'team') this.addMembers(value, name)
    this.note(line, `${kind}s.${name}`, `account ${name}`, notes)
  }

  private addMembers(team: JsonObject, account: string): void {
    const list = Array.isArray(team['members_with_roles']) ? team['members_with_roles'] : []
    const users = new Map(this.rows.users.map(({ value }) => [textAt(value, 'user_id'), value['user_email']]))
    const seen = new Set<string>()
    for (const member of list.filter(isObject)) {
      const email = member['user_email'] ?? users.get(textAt(member, 'user_id')) ?? member['user_id']
      if (typeof email !== 'string' || emailFault(email) !== null || seen.has(email.toLowerCase())) continue
      seen.add(email.toLowerCase())
      const role = member['role'] === 'admin' ? 'owner' : 'member'
      this.members.push({ kind: 'Member', metadata: { name: email, account }, spec: { role } })
    }
  }

  /** A user has an account of its own only for keys without a team. */
  private addUser({ line, value }: KeyRow): void {
    const id = textAt(value, 'user_id')
    const name = this.names.users.get(id)
    if (value['user_role'] === 'proxy_admin') {
      const note = 'an administrator: sign in with dashboard.oidc, and give the role there'
      this.notes.push({ line, path: `users[${line}]`, outcome: 'not_carried', to: null, note })
    }
    if (name === undefined) return
    this.made.add(name)
    const parent = this.parentOf(value['organization_id'])
    const { limits, notes, isClosed } = this.limitsBelow(parent, value)
    this.above.set(name, { limits, parent })
    const spec = {
      plan: 'max',
      ...(parent === null ? {} : { parent }),
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
      ...(isClosed ? { disabled: true } : {}),
    }
    this.accounts.push({ kind: 'Account', metadata: { name }, spec })
    const email = value['user_email']
    if (typeof email === 'string' && emailFault(email) === null) {
      this.members.push({ kind: 'Member', metadata: { name: email, account: name }, spec: { role: 'owner' } })
    }
    this.note(line, `users.${name}`, `account ${name}`, notes)
  }

  private accountOf(key: JsonObject): string {
    const { team_id: team, organization_id: organization, user_id: user } = key
    const { names } = this
    const found =
      (typeof team === 'string' ? names.teams.get(team) : undefined) ??
      (typeof organization === 'string' ? names.organizations.get(organization) : undefined) ??
      (typeof user === 'string' ? names.users.get(user) : undefined) ??
      TOP
    if (!this.made.has(found)) {
      if (found === TOP) this.makeTop()
      else {
        this.made.add(found)
        const parent = this.parentOf(undefined)
        this.above.set(found, { limits: {}, parent })
        const spec = { plan: 'max', ...(parent === null ? {} : { parent }) }
        this.accounts.push({ kind: 'Account', metadata: { name: found }, spec })
      }
    }
    return found
  }

  /** Returns whether the key was carried. */
  private addKey({ line, value }: KeyRow): boolean {
    const token = textAt(value, 'token').toLowerCase()
    const account = this.accountOf(value)
    const name = this.keyNames.free(account, keyName(value, token))
    const path = `keys.${name}`
    const why = this.lostKey(value)
    if (why !== null) {
      this.notes.push({ line, path, outcome: 'not_carried', to: null, note: why })
      return false
    }
    const { limits, notes } = this.limitsBelow(account, value)
    const models = this.modelsOf(value)
    const { labels, dropped } = labelsOf(value)
    const { expires } = value
    const spec: JsonObject = {
      secret_sha256: token,
      imported: true,
      ...(models === null ? {} : { models: [...models] }),
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
      ...(typeof expires === 'string' && expires !== ''
        ? { expires_at: new Date(timeOf(expires)).toISOString() }
        : {}),
    }
    const metadata = { name, account, ...(Object.keys(labels).length === 0 ? {} : { labels }) }
    this.keys.push({ kind: 'Key', metadata, spec })
    const lost = lostMembers(value)
    const more = [
      ...(lost.length === 0 ? [] : [`not carried: ${lost.join(', ')}`]),
      ...(dropped === 0 ? [] : [`${dropped} members of metadata are no labels`]),
    ]
    this.note(line, path, `key ${name} of ${account}`, [...notes, ...more])
    return true
  }

  private lostKey(value: JsonObject): string | null {
    if (isTrue(value['blocked'])) return 'it is blocked'
    const { expires } = value
    if (typeof expires === 'string' && expires !== '') {
      const endMs = timeOf(expires)
      if (Number.isNaN(endMs)) return 'its end is no time'
      if (endMs <= this.context.nowMs) return 'it has expired'
    }
    if (limitsOf(value).isClosed) return 'it may make no request: a limit of it is 0'
    const models = this.modelsOf(value)
    if (models?.length === 0) return 'it may use no model'
    return (models?.length ?? 0) > 100 ? 'it names more than 100 models' : null
  }

  /** The limits of an object of an account, which has no more than the accounts above: LiteLLM checks all. */
  private limitsBelow(account: string | null, value: JsonObject): ReturnType<typeof limitsOf> {
    const { limits, notes, isClosed } = limitsOf(value)
    const least: JsonObject = { ...limits }
    for (let name = account; name !== null; name = this.above.get(name)?.parent ?? null) {
      for (const [member, bound] of Object.entries(this.above.get(name)?.limits ?? {})) {
        const own = least[member]
        if (typeof own === 'number' && typeof bound === 'number' && bound < own) least[member] = bound
      }
    }
    const lower = Object.keys(limits).filter((member) => least[member] !== limits[member])
    const more = lower.map((member) => `${member} is that of the account above, which is lower`)
    return { limits: least, notes: [...notes, ...more], isClosed }
  }

  /** Null: all models. */
  private modelsOf(value: JsonObject): readonly string[] | null {
    const team = this.teams.get(textAt(value, 'team_id'))
    const own = textsIn(value['models'])
    const all = own.length === 0 || own.includes('all-proxy-models')
    if (own.includes('no-default-models')) return []
    const ofTeam = team === undefined ? null : this.expanded(textsIn(team['models']))
    if (all || own.includes('all-team-models')) return ofTeam
    const expanded = this.expanded(own)
    if (expanded === null || ofTeam === null) return expanded ?? ofTeam
    return expanded.filter((model) => ofTeam.some((each) => each === model || covers(each, model)))
  }

  /** The models of a list, with those of its access groups. */
  private expanded(names: readonly string[]): readonly string[] | null {
    if (names.length === 0 || names.includes('all-proxy-models') || names.includes('*')) return null
    return [...new Set(names.flatMap((name) => this.context.groups.get(name) ?? [name]))]
  }

  private addMaster(): void {
    const { masterKey } = this.context
    if (masterKey === null) return
    const digest = createHash('sha256').update(masterKey).digest('hex')
    const isKnown = this.rows.keys.some(({ value }) => textAt(value, 'token').toLowerCase() === digest)
    if (isKnown) return
    const name = this.keyNames.free(TOP, 'litellm-master')
    const spec = { secret_sha256: digest, imported: true }
    this.keys.push({ kind: 'Key', metadata: { name, account: TOP }, spec })
  }

  private note(line: number, path: string, to: string, notes: readonly string[]): void {
    const outcome = notes.length === 0 ? 'carried' : 'changed'
    this.notes.push({ line, path, outcome, to, note: notes.length === 0 ? null : notes.join('; ') })
  }
}

function covers(pattern: string, model: string): boolean {
  return pattern.endsWith('*') && model.startsWith(pattern.slice(0, -1))
}

/** `key_alias`, else the end of the secret, else the start of the digest. */
function keyName(value: JsonObject, token: string): string {
  const { key_alias: alias, key_name: shown } = value
  if (typeof alias === 'string' && shownName(alias) !== '') return shownName(alias)
  const end = typeof shown === 'string' ? shown.slice(-4) : ''
  return `litellm-${/^[\w-]{4}$/.test(end) ? end : token.slice(0, 8)}`
}

/** The database has times of UTC without an offset. */
function timeOf(text: string): number {
  return Date.parse(/(?:[zZ]|[+-]\d{2}:?\d{2})$/.test(text) ? text : `${text.replace(' ', 'T')}Z`)
}

/** The limits of a key or account, how they differ, and whether one of 0 forbids every request. */
function limitsOf(value: JsonObject): { limits: JsonObject; notes: string[]; isClosed: boolean } {
  const limits: JsonObject = {}
  const notes: string[] = []
  let isClosed = false
  const table = mapAt(value, 'litellm_budget_table')
  const at = (key: string): JsonValue | undefined => value[key] ?? table[key]
  const whole = (key: string, to: string): void => {
    const number = numberIn(at(key))
    if (number === null) return
    if (number >= 1) limits[to] = Math.round(number)
    else {
      isClosed = true
      notes.push(`${key} below 1 forbids every request: the account is disabled`)
    }
  }
  whole('rpm_limit', 'requests_per_minute')
  whole('tpm_limit', 'tokens_per_minute')
  whole('max_parallel_requests', 'concurrent')
  whole('tpd_limit', 'tokens_per_day')
  const spend = numberIn(value['spend']) ?? 0
  const budget = budgetLimit(at('max_budget'), at('budget_duration'), spend)
  Object.assign(limits, budget.limits ?? {})
  if (budget.note !== null) notes.push(`max_budget: ${budget.note}`)
  const isWindow = budget.limits !== null && budget.limits['usd_total'] === undefined
  if (isWindow && spend > 0) notes.push('what was spent in this window is not counted')
  return { limits, notes, isClosed }
}

const LOST = [
  'soft_budget',
  'model_max_budget',
  'model_rpm_limit',
  'model_tpm_limit',
  'aliases',
  'allowed_routes',
  'permissions',
  'router_settings',
]

/** Members with a value and without an equivalent. */
function lostMembers(value: JsonObject): string[] {
  const metadata = mapAt(value, 'metadata')
  const isEmpty = (each: JsonValue | undefined): boolean => {
    if (each === undefined || each === null || each === '') return true
    return typeof each === 'object' && Object.keys(each).length === 0
  }
  const own = LOST.filter((key) => !isEmpty(value[key]))
  const inMetadata = Object.keys(metadata).filter((key) => {
    return typeof metadata[key] !== 'string' && !isEmpty(metadata[key])
  })
  return [...own, ...inMetadata.map((key) => `metadata.${key}`)]
}
