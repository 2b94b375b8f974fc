/**
 * Opens a store and remembers, in a file of this machine, which one it was: a store that comes back empty, or
 * another one in its place, is then refused and not taken for a new one.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject, stringOf } from '../chat/json.js'
import { openStore } from './open-store.js'
import { isRedisUrl } from './redis/connection/address.js'
import type { Store, StoreOptions } from './store.js'

/** Where a store is, and where its id is remembered. */
export interface ExpectedStore extends StoreOptions {
  /** As in the configuration's `store`. */
  readonly url: string
  /** A folder of this machine that outlives the process; made where it is missing, with mode 0700. */
  readonly folder: string
}

/**
 * Opens the store; a store that another one stood in for, or that was emptied, since this machine opened it
 * last is refused with `GatewayError(store_unavailable)`. Warns of an empty Redis in which it began a store.
 * Rejects as `openStore` does.
 */
export async function openExpectedStore({
  url,
  folder,
  ...options
}: ExpectedStore): Promise<Store> {
  const path = join(folder, `store-${nameOf(url)}.json`)
  const expectedId = await remembered(path)
  const known = expectedId === undefined ? {} : { expectedId }
  const store = await openStore(url, { ...options, ...known })
  if (expectedId === undefined) await keep(store, { path, url }, options.warn)
  return store
}

/** Opens whatever store is there, one that it makes included, and remembers it as the one to expect. */
export async function acceptStore({ url, folder, ...options }: ExpectedStore): Promise<Store> {
  const store = await openStore(url, options)
  await keep(store, { path: join(folder, `store-${nameOf(url)}.json`), url }, options.warn)
  return store
}

async function keep(
  { id, isNew }: Store,
  { path, url }: { readonly path: string; readonly url: string },
  warn: (message: string) => void = () => undefined,
): Promise<void> {
  // An embedded store begins with its folder, which whoever removed it has noticed.
  if (isNew && isRedisUrl(url))
    warn('the store was empty; a new one was begun, without accounts and keys')
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await mkdir(join(path, '..'), { recursive: true, mode: 0o700 })
    await writeFile(draft, `${JSON.stringify({ id })}\n`, { mode: 0o600 })
    await rename(draft, path)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    warn(`the store's id cannot be remembered, so an emptied store would not be noticed: ${reason}`)
  }
}

/** Undefined where no store was opened yet. A damaged file is as good as none: it guards, and holds nothing. */
async function remembered(path: string): Promise<string | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isObject(value) ? stringOf(value['id']) : undefined
  } catch {
    return undefined
  }
}

/** One name for one place: neither who signs in there nor how long to wait makes it another one. */
function nameOf(url: string): string {
  const [address = ''] = url.split('?', 1)
  const place = address.replace(/\/\/[^/@]*@/, '//')
  return createHash('sha256').update(place).digest('hex').slice(0, 16)
}
