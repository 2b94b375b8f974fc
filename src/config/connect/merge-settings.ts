/**
 * Merges settings into the text of a file that a user may have written: other members, comments and their
 * order stay. Pure. Throws `SettingsError` for a text that cannot be merged into.
 */
import {
  applyEdits,
  modify,
  parse,
  type FormattingOptions,
  type JSONPath,
  type ParseError,
} from 'jsonc-parser'
import { isMap, isSeq, parseDocument, type Document } from 'yaml'
import type { ClientFile } from '../client-settings.js'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { mergeToml } from './merge-toml.js'
import { SettingsError } from './settings-error.js'

/** The text with the settings; null as the former text makes a new file. */
export function mergeSettings(
  { format, settings, initial = {}, removed = [] }: Omit<ClientFile, 'path'>,
  former: string | null,
): string {
  switch (format) {
    case 'json':
      return mergeJson(former ?? '{}\n', { settings, initial, removed })
    case 'yaml':
      return mergeYaml(former ?? '', settings, initial)
    case 'toml':
      return mergeToml(former ?? '', settings, removed)
    case 'dotenv':
      return mergeVariables(former ?? '', settings)
    default:
      return format satisfies never
  }
}

/** A list whose entries are known by their `name`. */
function isNamedList(value: JsonValue | undefined): value is JsonObject[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => nameOf(each) !== undefined)
}

function nameOf(value: unknown): string | undefined {
  const name = isObject(value) ? value['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

/** JSON with comments and trailing commas, as editors keep it. */
function mergeJson(
  former: string,
  { settings, initial, removed }: Required<Pick<ClientFile, 'settings' | 'initial' | 'removed'>>,
): string {
  const errors: ParseError[] = []
  const text = former.trim() === '' ? '{}\n' : former
  const before: unknown = parse(text, errors, { allowTrailingComma: true })
  if (errors.length > 0) throw new SettingsError('is not valid JSON')
  if (!isObject(before)) throw new SettingsError('is not a JSON object')
  const missing = Object.entries(initial).filter(([name]) => !Object.hasOwn(before, name))
  const merger = new JsonMerger(text)
  merger.object([], Object.fromEntries(missing), before)
  merger.object([], settings, before)
  for (const path of removed) merger.remove(path)
  return merger.text
}

/** Changes members of a JSON text, and nothing else in it. */
export class JsonMerger {
  text: string
  private readonly formattingOptions: FormattingOptions

  constructor(text: string) {
    this.text = text
    const [, indent = '  '] = /\n([ \t]+)\S/.exec(text) ?? []
    const eol = text.includes('\r\n') ? '\r\n' : '\n'
    this.formattingOptions = { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol }
  }

  object(path: JSONPath, settings: JsonObject, before: JsonObject): void {
    for (const [name, value] of Object.entries(settings)) {
      if (value !== undefined) this.member([...path, name], value, before[name])
    }
  }

  remove(path: readonly (string | number)[]): void {
    const { formattingOptions } = this
    this.text = applyEdits(this.text, modify(this.text, [...path], undefined, { formattingOptions }))
  }

  private member(path: JSONPath, value: JsonValue, before: JsonValue | undefined): void {
    if (isObject(value) && isObject(before)) this.object(path, value, before)
    else if (isNamedList(value) && Array.isArray(before)) this.list(path, value, before)
    else if (JSON.stringify(value) !== JSON.stringify(before)) this.set(path, value)
  }

  private list(path: JSONPath, entries: readonly JsonObject[], before: readonly JsonValue[]): void {
    let length = before.length
    for (const entry of entries) {
      const at = before.findIndex((each) => nameOf(each) === nameOf(entry))
      if (at >= 0) this.object([...path, at], entry, objectOf(before[at]))
      else {
        this.set([...path, length], entry, true)
        length += 1
      }
    }
  }

  private set(path: JSONPath, value: JsonValue, isArrayInsertion = false): void {
    const { formattingOptions } = this
    this.text = applyEdits(this.text, modify(this.text, path, value, { formattingOptions, isArrayInsertion }))
  }
}

function mergeYaml(former: string, settings: JsonObject, initial: JsonObject): string {
  const document: Document = parseDocument(former, { schema: 'core', version: '1.2' })
  if (document.errors.length > 0) throw new SettingsError('is not valid YAML')
  if (document.contents === null) document.contents = document.createNode({})
  if (!isMap(document.contents)) throw new SettingsError('is not a YAML map')
  for (const [name, value] of Object.entries(initial)) {
    if (!document.has(name)) document.set(name, value)
  }
  mergeYamlMap(document, [], settings)
  // Lists of the file keep their indent.
  const indentSeq = !/:[ \t]*\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*-[ \t]/.test(former)
  const text = document.toString({ lineWidth: 0, indentSeq })
  return former.includes('\r\n') ? text.replaceAll(/\r?\n/g, '\r\n') : text
}

type YamlPath = readonly (string | number)[]

function mergeYamlMap(document: Document, path: YamlPath, settings: JsonObject): void {
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) continue
    const inner = [...path, name]
    const node: unknown = document.getIn(inner)
    if (isObject(value) && isMap(node)) mergeYamlMap(document, inner, value)
    else if (isNamedList(value) && isSeq(node)) mergeYamlList(document, inner, value)
    else document.setIn(inner, isObject(value) || Array.isArray(value) ? document.createNode(value) : value)
  }
}

function mergeYamlList(document: Document, path: YamlPath, entries: readonly JsonObject[]): void {
  const list: unknown = document.getIn(path)
  if (!isSeq(list)) return
  for (const entry of entries) {
    const at = list.items.findIndex((item) => isMap(item) && item.get('name') === nameOf(entry))
    if (at >= 0) mergeYamlMap(document, [...path, at], entry)
    else list.add(document.createNode(entry))
  }
}

/** `NAME=value` lines, as `.env` files have them. */
function mergeVariables(former: string, settings: JsonObject): string {
  const lines = former.split('\n')
  for (const [name, value] of Object.entries(settings)) {
    const line = `${name}=${variableText(typeof value === 'string' ? value : JSON.stringify(value))}`
    const at = lines.findIndex((each) => VARIABLE.exec(each)?.[2] === name)
    const own = lines[at]
    if (own !== undefined) {
      const [, start = ''] = VARIABLE.exec(own) ?? []
      lines[at] = start + line + (own.endsWith('\r') ? '\r' : '')
    } else if (lines.at(-1) === '') lines.splice(-1, 0, line)
    else lines.push(line, '')
  }
  return lines.join('\n')
}

/** The name of the variable that a line sets is the second group. */
export const VARIABLE = /^([ \t]*(?:export[ \t]+)?)(\w+)[ \t]*=/

function variableText(value: string): string {
  return /^[\w./:@%+=,-]*$/.test(value) ? value : JSON.stringify(value)
}
