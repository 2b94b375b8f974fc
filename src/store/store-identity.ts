/**
 * Opens a store and writes its id to a file of this machine. An emptied store, or another one at the same
 * address, has another id and is refused; otherwise every valid key would get 401.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { messageWithAdvice } from '../base/file-access.js'
import { isObject, stringOf } from '../base/json.js'
import { createFolder } from '../base/private-files.js'
import { openStore } from './open-store.js'
import { isRedisUrl } from './store-address.js'
import type { Store, StoreOptions } from './store.js'

/** The address of a store and the folder with the file of its id. */
interface ExpectedStore extends StoreOptions {
  /** As in the configuration's `store`. */
  readonly url: string
  /** A folder of this machine that outlives the process; created if it does not exist, with mode 0700. */
  readonly folder: string
}

/**
 * Opens the store. Rejects with `GatewayError(store_unavailable)` if it is another one than this machine
 * opened last, and as `openStore` does. Warns if it created a store in an empty Redis.
 */
export async function openExpectedStore({ url, folder, ...options }: ExpectedStore): Promise<Store> {
  const path = join(folder, `store-${nameOf(url)}.json`)
  const expectedId = await readExpectedId(path)
  const known = expectedId === undefined ? {} : { expectedId }
  const store = await openStore(url, { ...options, ...known })
  if (expectedId === undefined) await writeExpectedId(store, { path, url }, options.warn)
  return store
}

/** Opens the store at the address, or creates one, and expects it from then on. */
export async function acceptStore({ url, folder, ...options }: ExpectedStore): Promise<Store> {
  const store = await openStore(url, options)
  await writeExpectedId(store, { path: join(folder, `store-${nameOf(url)}.json`), url }, options.warn)
  return store
}

async function writeExpectedId(
  { id, isNew }: Store,
  { path, url }: { readonly path: string; readonly url: string },
  warn: (message: string) => void = () => undefined,
): Promise<void> {
  // No warning for an embedded store: its folder was removed, too.
  if (isNew && isRedisUrl(url)) warn('the store was empty; created a new one without accounts and keys')
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    createFolder(dirname(path))
    await writeFile(draft, `${JSON.stringify({ id })}\n`, { mode: 0o600 })
    await rename(draft, path)
  } catch (error) {
    const reason = error instanceof Error ? messageWithAdvice(error) : String(error)
    warn(`cannot write the store's id to disk, so an emptied store will not be noticed: ${reason}`)
  }
}

/** Undefined if no store was opened yet, or the file is damaged: it has nothing that could be lost. */
async function readExpectedId(path: string): Promise<string | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isObject(value) ? stringOf(value['id']) : undefined
  } catch {
    return undefined
  }
}

/** A name for an address: credentials and options do not count. */
function nameOf(url: string): string {
  const [address = ''] = url.split('?', 1)
  const place = address.replace(/\/\/[^/@]*@/, '//')
  return createHash('sha256').update(place).digest('hex').slice(0, 16)
}
