/**
 * What differs between two configurations. Entries of lists are compared by what names them (a route's model or prefix,
 * a target's upstream), so that an entry that moved, or one that was put before it, is no change of the others.
 */
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import { hideSecrets } from '../../secrets/redact-secrets.js'
import type { SettingChange } from '../config.js'

/** More differences than this are not listed: it is another file. */
const MAX_CHANGES = 200

/** The differences by path, at most 200. Both values are as `/config` shows them, with secrets masked. */
export function differencesOf(former: JsonObject, next: JsonObject): SettingChange[] {
  const [before, after] = [new Leaves(former), new Leaves(next)]
  const paths = new Set([...before.values.keys(), ...after.values.keys()])
  const changes = [...paths]
    .map((path) => ({
      path,
      before: before.values.get(path) ?? null,
      after: after.values.get(path) ?? null,
    }))
    .filter((change) => change.before !== change.after)
  return [...changes, ...movesBetween(before.orders, after.orders)].slice(0, MAX_CHANGES)
}

/** Lists that have the same entries in another order: which fallback comes first is a difference. */
function movesBetween(before: Leaves['orders'], after: Leaves['orders']): SettingChange[] {
  const moves: SettingChange[] = []
  for (const [path, now] of after) {
    const was = before.get(path)
    if (was === undefined || was.join('\n') === now.join('\n')) continue
    if ([...was].sort().join('\n') !== [...now].sort().join('\n')) continue
    moves.push({
      path: `${path} (order)`,
      before: JSON.stringify(was),
      after: JSON.stringify(now),
    })
  }
  return moves
}

/** The values of a configuration by path, and the names in each list of named entries. */
class Leaves {
  readonly values = new Map<string, string>()
  readonly orders = new Map<string, readonly string[]>()

  constructor(shown: JsonObject) {
    this.gather(shown, '')
  }

  private gather(value: JsonValue, path: string): void {
    if (Array.isArray(value) && value.some(isObject)) this.gatherList(value, path)
    else if (isObject(value)) {
      for (const [key, part] of Object.entries(value)) {
        if (part !== undefined) this.gather(part, path === '' ? key : `${path}.${key}`)
      }
    } else if (!Array.isArray(value) || value.length > 0)
      this.values.set(path, hideSecrets(JSON.stringify(value), '***'))
  }

  private gatherList(list: readonly JsonValue[], path: string): void {
    const seen = new Map<string, number>()
    const names = list.map((entry, index) => {
      const name = isObject(entry) ? nameOf(entry) : String(index)
      const times = (seen.get(name) ?? 0) + 1
      seen.set(name, times)
      return times === 1 ? name : `${name} (${String(times)})`
    })
    this.orders.set(path, names)
    list.forEach((entry, index) => this.gather(entry, `${path}[${names[index] ?? ''}]`))
  }
}

/** What an entry of a list is called: the values that no other entry of the list shares. */
const NAMES = [
  'prefix',
  'scope',
  'plan',
  'account',
  'key',
  'upstream',
  'model',
  'id',
  'name',
  'when',
]

function nameOf(entry: JsonObject): string {
  const parts = NAMES.flatMap((key) => {
    const value = entry[key]
    if (value === undefined || value === null) return []
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return [key === 'prefix' ? `${text}*` : key === 'when' ? `when ${text}` : text]
  })
  return parts.join(' ')
}
