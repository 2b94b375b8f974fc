/** Names of accounts and keys, and labels of keys, from LiteLLM's free texts. */
import { MAX_LABELS, LABEL_NAME, LABEL_VALUE } from '../../../accounts/labels.js'
import { MAX_KEY_NAME } from '../../../accounts/names.js'
import { isObject, type JsonObject } from '../../../base/json.js'
import { textAt } from './context.js'
import type { KeyRows } from './key-rows.js'

/** The names of accounts by the ids of LiteLLM. */
interface AccountNames {
  readonly teams: ReadonlyMap<string, string>
  readonly organizations: ReadonlyMap<string, string>
  /** Of users with keys that belong to no team and no organization. */
  readonly users: ReadonlyMap<string, string>
}

/** Gives every account a name of its own. `litellm` is the one of keys without an owner. */
export function accountNames(rows: KeyRows): AccountNames {
  const taken = new Set(['litellm'])
  const free = (text: string): string => {
    const start = accountName(text)
    let name = start
    for (let number = 2; taken.has(name); number += 1) name = `${start.slice(0, 58)}-${number}`
    taken.add(name)
    return name
  }
  const organizations = new Map<string, string>()
  for (const { value } of rows.organizations) add(organizations, value, 'organization', free)
  const teams = new Map<string, string>()
  for (const { value } of rows.teams) add(teams, value, 'team', free)
  for (const { value } of rows.keys) {
    if (typeof value['team_id'] === 'string') add(teams, value, 'team', free)
    else if (typeof value['organization_id'] === 'string') add(organizations, value, 'organization', free)
  }
  const emails = new Map(rows.users.map(({ value }) => [value['user_id'], value['user_email']]))
  const users = new Map<string, string>()
  for (const { value } of rows.keys) {
    const { team_id: team, organization_id: organization, user_id: user } = value
    if (typeof team === 'string' || typeof organization === 'string') continue
    if (typeof user !== 'string' || user === '' || user === 'default_user_id' || users.has(user)) continue
    const email = emails.get(user)
    users.set(user, free(typeof email === 'string' && email !== '' ? (email.split('@')[0] ?? user) : user))
  }
  return { teams, organizations, users }
}

function add(
  names: Map<string, string>,
  value: JsonObject,
  kind: 'team' | 'organization',
  free: (text: string) => string,
): void {
  const id = textAt(value, `${kind}_id`)
  if (names.has(id)) return
  const alias = value[`${kind}_alias`]
  names.set(id, free(typeof alias === 'string' && alias.trim() !== '' ? alias : id))
}

/** 1 to 63 of `a-z`, `0-9` and `-`, with single dashes. */
function accountName(text: string): string {
  const plain = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
  const name = plain.slice(0, 60).replace(/^-|-$/g, '')
  return name === '' ? 'account' : name
}

/** A name that people see: without control characters and blanks at the ends. */
export function shownName(text: string): string {
  const plain = text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, ' ')
  return Array.from(plain.trim()).slice(0, MAX_KEY_NAME).join('').trim()
}

/** Gives keys names that no other key of their account has. */
export class KeyNames {
  private readonly taken = new Map<string, Set<string>>()

  /** The name, with a number if another key of the account has it. */
  free(account: string, name: string): string {
    const names = this.taken.get(account) ?? new Set<string>()
    this.taken.set(account, names)
    let free = name
    for (let number = 2; names.has(free); number += 1) free = `${name.slice(0, 90)} (${number})`
    names.add(free)
    return free
  }
}

/** Besides those of the user and the team. */
const MAX_IMPORTED = MAX_LABELS - 2

/** The labels of a key: its user, and the texts of its metadata. */
export function labelsOf(value: JsonObject): { labels: Record<string, string>; dropped: number } {
  const labels: Record<string, string> = {}
  let dropped = 0
  const { user_id: user, metadata } = value
  const add = (name: string, text: string): void => {
    if (LABEL_NAME.test(name) && LABEL_VALUE.test(text)) labels[name] = text
    else dropped += 1
  }
  if (typeof user === 'string' && user !== '') add('litellm_user', fitting(user))
  if (typeof value['team_id'] === 'string') add('litellm_team', fitting(value['team_id']))
  for (const [name, text] of Object.entries(isObject(metadata) ? metadata : {})) {
    if (typeof text !== 'string') continue
    if (Object.keys(labels).length >= MAX_IMPORTED) dropped += 1
    else
      add(
        name
          .toLowerCase()
          .replace(/[^a-z0-9_.-]+/g, '_')
          .slice(0, 32),
        fitting(text),
      )
  }
  return { labels, dropped }
}

/** The text as a value of a label. */
function fitting(text: string): string {
  return text.replace(/[^!-+\--~]+/g, '_').slice(0, 64)
}
