/**
 * What the text of a configuration may use if its author may not read secrets, as for a comparison: the
 * placeholders and files of the configuration in force, each at its own place.
 */
import { dirname, join, resolve } from 'node:path'
import { valueAt, type Path } from './config-problem.js'
import { placeholdersIn } from './fill-placeholders.js'
import { packageFile } from './package-file.js'
import { parseYaml } from './yaml.js'

/** The limits of a text. */
export interface TextBounds {
  /** Whether the configuration in force has the placeholder (`NAME` or `file:PATH`) at this path. */
  readonly mayFill: (path: Path, placeholder: string) => boolean
  /** Whether the configuration in force reads the file (absolute) for a setting other than a placeholder. */
  readonly mayRead: (file: string) => boolean
  /** Whether the file (absolute) is the catalogue in force, or the shipped one. */
  readonly isCatalogue: (file: string) => boolean
}

/** The texts that the configuration in force was built from, as `ConfigSources`. */
interface TextsInForce {
  readonly path: string
  readonly text: string
  readonly files: Readonly<Record<string, string | null>>
  readonly catalogue: { readonly path: string }
}

/** The bounds that the configuration in force sets. */
export function boundsOf({ path: file, text, files, catalogue }: TextsInForce): TextBounds {
  const folder = dirname(file)
  const { value } = parseYaml(file, text)
  const secret = new Set([join(folder, '.env'), catalogue.path])
  for (const name of placeholdersIn(value)) {
    if (name.startsWith('file:')) secret.add(resolve(folder, name.slice('file:'.length)))
  }
  return {
    mayFill: (path, placeholder) => placeholdersIn(valueAt(value, path)).has(placeholder),
    mayRead: (each) => Object.hasOwn(files, each) && !secret.has(each),
    isCatalogue: (each) => each === catalogue.path || each === packageFile('config/models.yaml'),
  }
}
