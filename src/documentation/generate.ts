/**
 * Writes the files that are made from code: `npm run generate`.
 * Knows no content; each entry of the table names the function that makes its file.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dialectsPage } from './dialect-matrix/page.js'
import type { Catalogue } from '../config/config.js'
import { loadConfig } from '../config/load.js'
import { packageVersion } from '../files/package-file.js'
import { cliPage } from './cli-page.js'
import { configurationPage, editorSchema } from './configuration-pages.js'
import { errorsPage } from './errors-page.js'
import { metricsPage } from './metrics-page.js'
import { openapiPage } from './openapi.js'

/** A file that is made, and how. */
export interface GeneratedFile {
  /** From the root of the repository. */
  readonly path: string
  readonly make: () => string | Promise<string>
}

/** Every generated file; a test checks that each is current. */
export const GENERATED: readonly GeneratedFile[] = [
  { path: 'config/schema.json', make: editorSchema },
  { path: 'docs/reference/cli.md', make: cliPage },
  { path: 'docs/reference/configuration.md', make: configurationPage },
  { path: 'docs/reference/dialects.md', make: () => dialectsPage(shippedCatalogue()) },
  { path: 'docs/reference/errors.md', make: errorsPage },
  { path: 'docs/reference/metrics.md', make: metricsPage },
  { path: 'docs/reference/openapi.yaml', make: () => openapiPage(packageVersion()) },
]

function shippedCatalogue(): Catalogue {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('config/gateway.yaml is not good')
  return loaded.catalogue
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { path, make } of GENERATED) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, await make())
    process.stdout.write(`${path}\n`)
  }
}
