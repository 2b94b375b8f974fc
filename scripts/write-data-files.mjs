import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/**
 * Writes what the program reads at run time beside the compiled sources in `outdir`: the SQL and Lua files of
 * the stores, the digests of common passwords, and the shipped catalogue as JSON with the hash of its text
 * (src/config/load-config.ts).
 */
export function writeDataFiles(outdir) {
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
  const value = parse(text, { schema: 'core', version: '1.2' })
  mkdirSync(join(outdir, 'config'), { recursive: true })
  writeFileSync(join(outdir, 'config/shipped-catalogue.json'), JSON.stringify({ hash, value }))
}
