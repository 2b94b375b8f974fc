/**
 * Finds and removes what `sluice connect --write` puts into a settings file, for any gateway, key and
 * models. Other members, comments and their order stay. Pure.
 */
import { parse, visit } from 'jsonc-parser'
import { isMap, isSeq, parseDocument } from 'yaml'
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { CLIENTS, type Client, type ClientFile, type ConnectionTarget } from '../client-settings.js'
import { JsonMerger, VARIABLE } from './merge-settings.js'
import { tomlLines, withoutToml } from './merge-toml.js'

/** A member that is Sluice's, or with `entry` the entries of a list that have its form. */
interface Place {
  readonly path: readonly string[]
  readonly entry: JsonObject | null
  /** Whether its value has the address of the gateway. */
  readonly hasAddress: boolean
}

/** What Sluice writes into one file. */
export interface OwnFile extends Pick<ClientFile, 'path' | 'format'> {
  readonly places: readonly Place[]
  /** Members that a new file gets, which are the user's from then on. */
  readonly initial: JsonObject
}

const ADDRESS = 'https://gateway.invalid'
const KEY = 'NAME_OF_KEY'
const MODEL = 'name-of-model'
const PLACES = /(https:\/\/gateway\.invalid|NAME_OF_KEY|name-of-model)/
const ANY_ADDRESS = /^https?:\/\/[^\s/]+/
const ANY_KEY = /^\w+/
const TARGET: ConnectionTarget = { url: ADDRESS, keyEnv: KEY, models: [{ id: MODEL }], hasBudget: null }

/** The files of a client, with the settings of both kinds of credentials. */
export function ownFiles({ settings, hasHelper }: Client): OwnFile[] {
  const kinds = hasHelper ? [false, true] : [false]
  const files = kinds.flatMap((byLogin) => settings({ ...TARGET, byLogin }).files)
  return [...new Set(files.map(({ path }) => path))].flatMap((path) => {
    const same = files.filter((file) => file.path === path)
    const [first] = same
    if (first === undefined) return []
    const places = new Map(
      same.flatMap((file) => placesIn(file.settings, [])).map((place) => [JSON.stringify(place.path), place]),
    )
    return [{ path, format: first.format, initial: first.initial ?? {}, places: [...places.values()] }]
  })
}

/** What all clients have in the file of this path, such as a `.env` of several SDKs. */
export function ownPlaces(path: string): Place[] {
  return CLIENTS.flatMap(ownFiles).flatMap((file) => (file.path === path ? file.places : []))
}

/** A member named Sluice is Sluice's with all that it has. */
const SLUICE = /^sluice$/i

function placesIn(settings: JsonObject, above: readonly string[]): Place[] {
  return Object.entries(settings).flatMap(([name, value]): Place[] => {
    const path = [...above, name]
    if (isObject(value) && !SLUICE.test(name)) return placesIn(value, path)
    const hasAddress = JSON.stringify(value ?? null).includes(ADDRESS)
    const [entry] = Array.isArray(value) ? value : []
    return [{ path, entry: isObject(entry) ? entry : null, hasAddress }]
  })
}

/** The origins of the gateways that these places name. */
export function gatewaysIn({ format, places }: Pick<OwnFile, 'format' | 'places'>, text: string): string[] {
  const texts = places.filter(({ hasAddress }) => hasAddress).map((place) => textAt(format, text, place))
  return [...new Set(texts.join(' ').match(/https?:\/\/[^\s/"'\\]+/g) ?? [])]
}

/** Whether a file only has settings for this gateway, or for another one in a member named Sluice. */
export function isOnlyOf(file: OwnFile, text: string, url: string): boolean {
  const gateways = gatewaysIn(file, text)
  const isNamed = file.places.some(
    ({ path, entry }) => SLUICE.test(path.at(-1) ?? '') || isNamedSluice(entry),
  )
  const isOwn = gateways.length > 0 && (isNamed || gateways.every((each) => each === url))
  return isOwn && isBare(file, withoutPlaces(file, text))
}

function isNamedSluice(entry: JsonObject | null): boolean {
  return SLUICE.test(stringOf(entry?.['name']) ?? '')
}

/** Whether a JSON or YAML text has a member. */
export function hasPlace(format: OwnFile['format'], text: string, path: readonly string[]): boolean {
  return !['', 'null'].includes(textAt(format, text, { path, entry: null, hasAddress: false }))
}

/** The values at a place as text. */
function textAt(format: OwnFile['format'], text: string, { path, entry }: Place): string {
  switch (format) {
    case 'dotenv':
      return text
        .split('\n')
        .filter((line) => VARIABLE.exec(line)?.[2] === path[0])
        .join(' ')
    case 'toml':
      return tomlLines(text, path)
    case 'json':
    case 'yaml': {
      const value = path.reduce<JsonValue | undefined>(
        (at, name) => objectOf(at)[name],
        valueOf(format, text),
      )
      if (entry === null) return JSON.stringify(value ?? null)
      return JSON.stringify(Array.isArray(value) ? value.filter((each) => hasForm(each, entry)) : null)
    }
    default:
      return format satisfies never
  }
}

function valueOf(format: 'json' | 'yaml', text: string): JsonObject {
  if (format === 'json') return objectOf(parse(text, [], { allowTrailingComma: true }) as JsonValue)
  const value: unknown = parseDocument(text, { schema: 'core', version: '1.2' }).toJS()
  return isObject(value) ? value : {}
}

/** Whether the entry of a list is one that Sluice writes, for any gateway, key and model. */
function hasForm(value: unknown, form: JsonObject): value is JsonObject {
  if (!isObject(value)) return false
  const { name } = value
  const isNamed = isNamedSluice(form)
  if (typeof name !== 'string' || SLUICE.test(name) !== isNamed) return false
  if (isNamed) return true
  const names = Object.keys(form)
  return (
    names.length === Object.keys(value).length &&
    names.every((each) => {
      const [own, formed] = [value[each], form[each]]
      return typeof own === 'string' && typeof formed === 'string' && isLike(own, formed, name)
    })
  )
}

/** Whether a text is a form with any gateway and key, and the name of this model. */
function isLike(own: string, formed: string, model: string): boolean {
  let rest = own
  for (const part of formed.split(PLACES)) {
    const any = part === ADDRESS ? ANY_ADDRESS : part === KEY ? ANY_KEY : null
    const here = any === null ? (part === MODEL ? model : part) : (any.exec(rest)?.[0] ?? null)
    if (here === null || !rest.startsWith(here)) return false
    rest = rest.slice(here.length)
  }
  return rest === ''
}

/** The text without these places, and without the maps and lists that are empty then. */
export function withoutPlaces({ format, places }: Pick<OwnFile, 'format' | 'places'>, text: string): string {
  switch (format) {
    case 'dotenv': {
      const names = places.map(({ path }) => path[0])
      const lines = text.split('\n').filter((line) => !names.includes(VARIABLE.exec(line)?.[2]))
      return lines.join('\n')
    }
    case 'toml':
      return places.reduce((left, { path }) => withoutToml(left, path), text)
    case 'json':
      return places.reduce(withoutJson, text)
    case 'yaml':
      return places.reduce(withoutYaml, text)
    default:
      return format satisfies never
  }
}

function withoutJson(text: string, { path, entry }: Place): string {
  const before = path.reduce<JsonValue | undefined>((at, name) => objectOf(at)[name], valueOf('json', text))
  const merger = new JsonMerger(text)
  const listed = Array.isArray(before) && entry !== null ? before : null
  const own = listed?.flatMap((each, at) => (entry !== null && hasForm(each, entry) ? [at] : [])) ?? []
  if (before !== undefined && (listed === null || own.length === listed.length)) merger.remove(path)
  else for (const at of own.reverse()) merger.remove([...path, at])
  for (let above = path.slice(0, -1); above.length > 0; above = above.slice(0, -1)) {
    const left = above.reduce<JsonValue | undefined>(
      (at, name) => objectOf(at)[name],
      valueOf('json', merger.text),
    )
    if (!isObject(left) || Object.keys(left).length > 0) break
    merger.remove(above)
  }
  return merger.text
}

function withoutYaml(text: string, { path, entry }: Place): string {
  const document = parseDocument(text, { schema: 'core', version: '1.2' })
  if (!isMap(document.contents)) return text
  const node: unknown = document.getIn(path)
  if (isSeq(node) && entry !== null) {
    node.items = node.items.filter((item) => !(isMap(item) && hasForm(item.toJS(document), entry)))
  }
  const isWhole = !isSeq(node) || entry === null || node.items.length === 0
  if (isWhole && document.hasIn(path)) document.deleteIn(path)
  for (let above = path.slice(0, -1); above.length > 0; above = above.slice(0, -1)) {
    const left: unknown = document.getIn(above)
    if (!isMap(left) || left.items.length > 0) break
    document.deleteIn(above)
  }
  return yamlText(document)
}

function yamlText(document: ReturnType<typeof parseDocument>): string {
  const text = document.toString({ lineWidth: 0 })
  const isEmpty = isMap(document.contents) && document.contents.items.length === 0
  return isEmpty ? text.replace(/\{\}\n$/, '') : text
}

/** Whether two texts differ at most in white space between members, and in JSON in commas. */
export function isSameText(format: OwnFile['format'], one: string, other: string): boolean {
  return partsOf(format, one).join('\n') === partsOf(format, other).join('\n')
}

/** Whether a file with this text only has the members of a new file. */
export function isBare({ format, initial }: Pick<OwnFile, 'format' | 'initial'>, text: string): boolean {
  if (format === 'dotenv' || format === 'toml') return text.trim() === ''
  if (partsOf(format, text).some((part) => /^\s*(?:\/\/|\/\*|#)/.test(part))) return false
  const left = Object.entries(valueOf(format, text))
  return left.every(([name, value]) => JSON.stringify(initial[name]) === JSON.stringify(value))
}

function partsOf(format: OwnFile['format'], text: string): string[] {
  if (format === 'json') return jsonParts(text)
  const isYaml = format === 'yaml'
  const plain = isYaml ? yamlText(parseDocument(text, { schema: 'core', version: '1.2' })) : text
  const lines = plain.split('\n').map((line) => line.trimEnd())
  return lines.filter((line) => line !== '')
}

/** Brackets, names, values and comments in their order. */
function jsonParts(text: string): string[] {
  if (text.trim() === '') return jsonParts('{}')
  const parts: string[] = []
  const add = (offset: number, length: number): void => {
    parts.push(text.slice(offset, offset + length))
  }
  visit(
    text,
    {
      onObjectBegin: add,
      onObjectProperty: (_name, offset, length) => add(offset, length),
      onObjectEnd: add,
      onArrayBegin: add,
      onArrayEnd: add,
      onLiteralValue: (_value, offset, length) => add(offset, length),
      onComment: add,
    },
    { allowTrailingComma: true },
  )
  return parts
}
