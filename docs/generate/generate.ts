/**
 * Writes the generated files of the documentation: `npm run generate`.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Catalogue } from '../../src/config/config.js'
import { loadConfig } from '../../src/config/load-config.js'
import { packageVersion } from '../../src/config/package-file.js'
import { cliPage } from './cli-page.js'
import { configurationPage, editorSchema } from './configuration-pages.js'
import { dialectsPage } from './dialect-matrix/page.js'
import { errorsPage } from './errors-page.js'
import { metricsPage } from './metrics-page.js'
import { openapiPage } from './openapi.js'
import { withReactionTable } from './reaction-table.js'

/** A generated file and the function that generates its text. */
export interface GeneratedFile {
  /** Path from the root of the repository. */
  readonly path: string
  readonly make: () => string | Promise<string>
}

/** All generated files; a test checks that each is current. */
export const GENERATED: readonly GeneratedFile[] = [
  { path: 'config/schema.json', make: editorSchema },
  { path: 'docs/reference/cli.md', make: cliPage },
  { path: 'docs/reference/configuration.md', make: configurationPage },
  { path: 'docs/reference/dialects.md', make: () => dialectsPage(shippedCatalogue()) },
  { path: 'docs/reference/errors.md', make: errorsPage },
  { path: 'docs/reference/metrics.md', make: metricsPage },
  { path: 'docs/reference/openapi.yaml', make: () => openapiPage(packageVersion()) },
]

/** A page with a generated table, and the function that replaces the table. */
interface GeneratedTable {
  /** Path from the root of the repository. */
  readonly path: string
  readonly update: (page: string) => Promise<string>
}

/** All pages with a generated table; the same test checks them. */
export const GENERATED_TABLES: readonly GeneratedTable[] = [
  { path: 'docs/how-to/fallback-and-retries.md', update: withReactionTable },
]

function shippedCatalogue(): Catalogue {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('config/gateway.yaml is invalid')
  return loaded.catalogue
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { path, make } of GENERATED) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, await make())
    process.stdout.write(`${path}\n`)
  }
  for (const { path, update } of GENERATED_TABLES) {
    await writeFile(path, await update(await readFile(path, 'utf8')))
    process.stdout.write(`${path}\n`)
  }
}
