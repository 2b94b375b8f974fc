/**
 * Finds members of parts and tools that no decoder reads, such as `video_url.fps`: upstreams of the same
 * format get them in the client's bytes, a translation leaves them out and reports them.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'

/** What is read of a value, or of each item of a list: everything, or some members of objects. */
type Read = true | ReadMembers | ReadTypes

export interface ReadMembers {
  readonly members: Readonly<Record<string, Read>>
  /** Other members are decoded, or reported, elsewhere. */
  readonly isOpen?: true
  /** Names may also be in snake case. */
  readonly inBothCases?: true
}

/** The same by the `type` of the object; other types are decoded, or reported, elsewhere. */
interface ReadTypes {
  readonly types: Readonly<Record<string, ReadMembers>>
  /** An object without a type. */
  readonly untyped?: ReadMembers
}

/** More than any reason to read the rest of a list of them. */
const MAX_PATHS = 32

/** All members of objects with these names, and the given ones of others. */
export function read(names: string, inner: Readonly<Record<string, Read>> = {}): ReadMembers {
  const all = names.split(' ').filter((name) => name !== '')
  return { members: { ...Object.fromEntries(all.map((name) => [name, true as const])), ...inner } }
}

/** The paths of the members that are not read, without indexes; members without influence do not count. */
export function unreadMembers(body: JsonObject, known: ReadMembers): readonly string[] {
  const paths = new Set<string>()
  collect(body, known, { path: '', paths })
  return [...paths]
}

interface Search {
  readonly path: string
  readonly paths: Set<string>
}

function collect(value: JsonValue | undefined, known: Read, search: Search): void {
  if (known === true || search.paths.size >= MAX_PATHS) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, known, search)
    return
  }
  if (!isObject(value)) return
  const shape = 'types' in known ? shapeOf(value, known) : known
  if (shape === undefined) return
  const { members, isOpen = false, inBothCases = false } = shape
  for (const key in value) {
    const name = inBothCases && key.includes('_') ? camelCase(key) : key
    const inner = Object.hasOwn(members, name) ? members[name] : undefined
    if (inner === true || (inner === undefined && isOpen)) continue
    const member = value[key]
    const path = search.path === '' ? name : `${search.path}.${name}`
    if (inner === undefined) {
      if (!isEmpty(member)) search.paths.add(path)
    } else
      collect(member, inner, { ...search, path: name === 'content' || name === 'parts' ? search.path : path })
  }
}

function shapeOf({ type = null }: JsonObject, { types, untyped }: ReadTypes): ReadMembers | undefined {
  if (type === null) return untyped
  return typeof type === 'string' && Object.hasOwn(types, type) ? types[type] : undefined
}

function camelCase(name: string): string {
  return name.replace(/(?!^)_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** Whether a member has no influence: clients send empty ones, and the defaults of vendors. */
function isEmpty(value: JsonValue | undefined): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === undefined || value === null || value === '' || value === false || value === 'auto'
}
