/** The embedded engine's ledger opened as what it is below: an LMDB environment. */
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { noTransaction } from '../../src/store/lmdb-transaction.js'

/** Opens the ledger of the store at `path`, for as long as `work` takes. */
export async function withBare<T>(
  path: string,
  work: (root: RootDatabase<string, string>) => T,
): Promise<Awaited<T>> {
  await noTransaction()
  const root = open<string, string>({
    path: join(path, 'ledger'),
    noSubdir: false,
    noSync: true,
    overlappingSync: false,
    maxDbs: 16,
    encoding: 'string',
  })
  try {
    return await work(root)
  } finally {
    await root.close()
  }
}
