/** Finds files of the package, wherever it is installed or compiled to. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The absolute path of a file, given relative to the package's root. Throws if it does not exist. */
export function packageFile(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder)
      throw new Error(`the file "${name}" of the package does not exist: install the package again`)
    folder = parent
  }
  return join(folder, name)
}

/**
 * A file of the compiled program that is not part of its bundle: a thread's script, SQL, Lua. `path` is
 * relative to the folder of `main.js`.
 */
export function programFile(path: string): URL {
  return new URL(path, (root ??= programRoot()))
}

let root: URL | null = null

function programRoot(): URL {
  let folder = new URL('./', import.meta.url)
  while (!existsSync(new URL('main.js', folder))) {
    const parent = new URL('../', folder)
    if (parent.href === folder.href) throw new Error('the program has no main.js: install the package again')
    folder = parent
  }
  return folder
}

/** The version of the package. */
export function packageVersion(): string {
  const { version } = manifest()
  return typeof version === 'string' ? version : ''
}

/** The folder `docs` of this version in the repository that the manifest names; null if it names none. */
export function repositoryDocs(): string | null {
  const { repository } = manifest()
  const isMap = typeof repository === 'object' && repository !== null && 'url' in repository
  const url: unknown = isMap ? repository.url : repository
  const [, page] =
    /^(?:git\+)?(https:\/\/[^\s?#]+?)(?:\.git)?$/.exec(typeof url === 'string' ? url : '') ?? []
  return page === undefined ? null : `${page}/blob/v${packageVersion()}/docs`
}

function manifest(): { readonly version?: unknown; readonly repository?: unknown } {
  const value: unknown = JSON.parse(readFileSync(packageFile('package.json'), 'utf8'))
  return typeof value === 'object' && value !== null ? value : {}
}
