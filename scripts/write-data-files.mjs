import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { parse } from 'yaml'

/**
 * Writes what the program reads at run time beside the compiled sources in `outdir`: the SQL and Lua files of
 * the stores, the digests of common passwords, and the facts of the shipped catalogue as JSON with the hash of
 * its text (src/config/load-config.ts).
 */
export async function writeDataFiles(outdir) {
  const files = [
    ...[
      'store/sqlite/schema.sql',
      'store/sqlite/entry-views.sql',
      'store/sqlite/migrations',
      'store/redis/scripts',
    ],
    ...[
      'store/archive/clickhouse/schema.sql',
      'store/archive/clickhouse/distributed.sql',
      'store/archive/postgres/schema.sql',
    ],
  ]
  for (const path of [...files, 'accounts/common-passwords.txt']) {
    cpSync(join('src', path), join(outdir, path), { recursive: true })
  }
  const text = readFileSync('config/models.yaml', 'utf8')
  const hash = createHash('sha256').update(text).digest('hex')
  const { catalogueSchema, factsOfCatalogue } = await catalogueModule()
  const value = catalogueSchema.safeParse(parse(text, { schema: 'core', version: '1.2' }))
  // An invalid file is reported by the program, which reads the text.
  const facts = value.success ? factsOfCatalogue(value.data) : null
  mkdirSync(join(outdir, 'config'), { recursive: true })
  writeFileSync(join(outdir, 'config/shipped-catalogue.json'), JSON.stringify({ hash, facts }))
}

/** The schema of the catalogue, as the program has it. */
async function catalogueModule() {
  const { outputFiles } = await build({
    ...{ entryPoints: ['src/config/schema/catalogue-schema.ts'], bundle: true, write: false },
    ...{ format: 'esm', platform: 'node', logLevel: 'warning' },
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}
