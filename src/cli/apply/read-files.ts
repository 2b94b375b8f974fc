/** Reads the documents of `sluice apply` from files, folders and standard input, with the place of each. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseYamlDocuments, type YamlDocument } from '../../config/yaml.js'
import type { JsonValue } from '../../base/json.js'
import type { DocumentFault } from '../../control/admin/documents.js'
import { codeWithAdvice } from '../../base/file-access.js'
import type { Terminal } from '../with-store.js'

/** Larger input is refused: 16 MiB are about 100,000 keys. */
const MAX_CHARS = 16 * 1024 * 1024

/** A document, and where it is. */
export interface FileDocument {
  readonly file: string
  /** The folder of the file, from which `secret_file` starts. */
  readonly folder: string
  /** The folder of the documents: the one that the command was given, or that of the file. */
  readonly root: string
  readonly value: JsonValue
  readonly at: YamlDocument['at']
}

/** An error with its place. */
export interface PlacedError {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}

/** The documents of all paths, or what cannot be read. */
export async function readFiles(
  paths: readonly string[],
  terminal: Terminal,
): Promise<{ documents: FileDocument[]; errors: PlacedError[] }> {
  const documents: FileDocument[] = []
  const errors: PlacedError[] = []
  for (const path of paths) {
    for (const file of path === '-' ? ['-'] : filesAt(path, errors)) {
      const text = file === '-' ? await terminal.input(MAX_CHARS) : textOf(file, errors)
      if (text === null) continue
      const parsed = parseYamlDocuments(file, text)
      errors.push(...parsed.errors.map(({ line, column, message }) => ({ file, line, column, message })))
      const folder = file === '-' ? '.' : dirname(file)
      const root = file === path ? folder : path
      for (const { value, at } of parsed.documents) {
        // The parser makes only values of JSON from YAML's core schema.
        documents.push({ file, folder, root, value: value as JsonValue, at })
      }
    }
  }
  return { documents, errors }
}

/**
 * The file, or the YAML files of a folder and those below it, by name. Without hidden ones: a volume of
 * Kubernetes has each file a second time below `..data`.
 */
function filesAt(path: string, errors: PlacedError[]): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    const names = readdirSync(path, { recursive: true, withFileTypes: true })
    const files = names.filter((entry) => !entry.isDirectory() && /\.ya?ml$/.test(entry.name))
    const paths = files.map((entry) => join(entry.parentPath, entry.name))
    return paths.filter((file) => !/(?:^|\/)\./.test(relative(path, file))).sort()
  } catch (error) {
    errors.push(unreadable(path, error))
    return []
  }
}

function textOf(file: string, errors: PlacedError[]): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    errors.push(unreadable(file, error))
    return null
  }
}

function unreadable(file: string, error: unknown): PlacedError {
  return { file, line: 1, column: 1, message: `cannot be read (${codeWithAdvice(error)})` }
}

/** The place of a wrong part. */
export function placed(
  documents: readonly FileDocument[],
  { index, path, atKey, message }: DocumentFault,
): PlacedError {
  const document = documents[index]
  if (document === undefined) return { file: '-', line: 1, column: 1, message }
  return { file: document.file, ...document.at(path, atKey), message }
}

/** `file:line:column: message` */
export function errorLine({ file, line, column, message }: PlacedError): string {
  return `${file}:${line}:${column}: ${message}`
}
