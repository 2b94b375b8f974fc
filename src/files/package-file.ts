/**
 * Files that are shipped with the program, wherever it was installed or compiled to.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The absolute path of a file of the package, named from the package's root. Throws where there is none. */
export function packageFile(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new Error(`the package's file ${name} was not found`)
    folder = parent
  }
  return join(folder, name)
}

/** The version of the package. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(packageFile('package.json'), 'utf8'))
  const isNamed = typeof manifest === 'object' && manifest !== null && 'version' in manifest
  return isNamed && typeof manifest.version === 'string' ? manifest.version : ''
}
