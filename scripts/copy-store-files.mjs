import { cpSync } from 'node:fs'
import { join } from 'node:path'

/** Copies the SQL and Lua files, which the stores read at run time, into the compiled sources in `outdir`. */
export function copyStoreFiles(outdir) {
  for (const path of ['sqlite/schema.sql', 'sqlite/migrations', 'redis/scripts']) {
    cpSync(join('src/store', path), join(outdir, 'store', path), { recursive: true })
  }
}
