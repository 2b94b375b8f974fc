/**
 * Reads the source tree: files and their imports. A parser is not needed, because prettier formats every
 * import alike.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/** A source file; the path is relative to the folder that was read, with `/`. */
export interface Source {
  readonly path: string
  readonly text: string
}

/** One import, re-export or dynamic import. */
export interface Import {
  /** A path below the same folder with `.ts`, or the name of a package or of a module of Node. */
  readonly target: string
  readonly isPackage: boolean
  /** Only types are imported. */
  readonly isType: boolean
  /** What a static import takes from the file, by the names that it has there. */
  readonly names: readonly string[]
  readonly line: number
}

/** Every file below `folder` whose name ends with `extension`. */
export function filesBelow(folder: string, extension: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension))
    .map((path) => ({
      path: path.replaceAll('\\', '/'),
      text: readFileSync(join(folder, path), 'utf8'),
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

const STATIC = /^(?:import|export)\s+(type\s)?\s*(?:([\w*{][^;'"]*?)\s+from\s+)?'([^']+)'/gm
const DYNAMIC = /\bimport\(\s*(?:'([^']*)')?|\brequire\(\s*'([^']+)'/g

/** Imports of the file, in order; a dynamic import of a computed name has the target `?`. */
export function importsOf({ path, text }: Source): Import[] {
  const found: Import[] = []
  const add = (specifier: string, isType: boolean, at: number, clause?: string): void => {
    const isPackage = !specifier.startsWith('.')
    const target = isPackage ? specifier : posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts')
    const line = text.slice(0, at).split('\n').length
    found.push({ target, isPackage, isType, line, names: namesIn(clause) })
  }
  for (const match of text.matchAll(STATIC)) {
    const [, type, clause, specifier] = match
    add(specifier ?? '?', type !== undefined || namesOnlyTypes(clause), match.index, clause)
  }
  const code = withoutComments(text)
  for (const match of code.matchAll(DYNAMIC)) add(match[1] ?? match[2] ?? '?', false, match.index)
  return found.sort((a, b) => a.line - b.line)
}

function namesOnlyTypes(clause: string | undefined): boolean {
  const parts = partsOf(clause)
  return parts.length > 0 && parts.every((part) => part.startsWith('type '))
}

function namesIn(clause: string | undefined): string[] {
  return partsOf(clause).map((part) => part.replace(/^type /, '').replace(/ as .*$/, ''))
}

/** `a as b` and `type C` of `{ a as b, type C }`. */
function partsOf(clause: string | undefined): string[] {
  if (clause?.startsWith('{') !== true) return []
  return clause
    .slice(1, -1)
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** The text with comments replaced by blanks; lines keep their numbers. */
export function withoutComments(text: string): string {
  return text
    .split('\n')
    .map((line) => (/^\s*(?:\/\*|\*|\/\/)/.test(line) ? '' : line.replace(/\s\/\/ .*$/, '')))
    .join('\n')
}

/** Every import that closes a cycle of files, types included. */
export function cycles(sources: readonly Source[]): string[] {
  const paths = new Set(sources.map(({ path }) => path))
  const graph = new Map(
    sources.map((source) => [
      source.path,
      importsOf(source)
        .filter(({ isPackage }) => !isPackage)
        .map(({ target }) => (paths.has(target) ? target : `${target}x`)),
    ]),
  )
  const found: string[] = []
  const done = new Set<string>()
  const visit = (path: string, above: readonly string[]): void => {
    const start = above.indexOf(path)
    if (start >= 0) found.push(`cycle: ${[...above.slice(start), path].join(' → ')}`)
    if (start >= 0 || done.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...above, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return found
}
