/**
 * Looks at an LMDB data file before the engine maps it into memory.
 * Knows the two meta pages and nothing of what the store keeps.
 *
 * The engine trusts its file: given junk, or one cut short by a full disk or a bad copy, the process
 * dies of a segmentation or bus fault with no message (tried with lmdb 3.5.6). An operator deserves
 * the path and the reason. Damage deeper in the tree is not looked for.
 */
import { open } from 'node:fs/promises'

/** Offsets in a meta page, after the 24 bytes of every page's header (dependencies/lmdb mdb.c). */
const MAGIC_AT = 24
const VERSION_AT = 28
/** Where a meta page names the size of the file's pages. */
export const PAGE_SIZE_AT = 48
const ROOTS_AT = [88, 136]
/** What of a meta page is read. */
export const META_BYTES = 160
const MAGIC = 0xbeefc0de
const VERSION = 2
const NO_PAGE = 0xffff_ffff_ffff_ffffn

/**
 * Resolves where the file is absent, empty, or begins like one of the engine's; rejects with an
 * Error that says what is wrong.
 */
export async function assertLmdbFile(path: string): Promise<void> {
  const file = await openIfThere(path)
  if (file === null) return
  try {
    const first = Buffer.alloc(META_BYTES)
    const { bytesRead } = await file.read(first, 0, META_BYTES, 0)
    if (bytesRead === 0) return
    const second = Buffer.alloc(META_BYTES)
    await file.read(second, 0, META_BYTES, first.readUInt32LE(PAGE_SIZE_AT))
    // After the pages: another process may be writing, and whatever they name was there before them.
    const { size } = await file.stat()
    assertMeta(first, size)
    assertMeta(second, size)
  } finally {
    await file.close()
  }
}

function assertMeta(page: Buffer, fileBytes: number): void {
  if (page.readUInt32LE(MAGIC_AT) !== MAGIC) {
    throw new Error('data.mdb is not an LMDB file, or its beginning is damaged')
  }
  const version = page.readUInt32LE(VERSION_AT)
  if (version !== VERSION) {
    throw new Error(`data.mdb has LMDB's file format ${version}; this program reads ${VERSION}`)
  }
  const pageBytes = page.readUInt32LE(PAGE_SIZE_AT)
  if (pageBytes < 512 || pageBytes > 65_536) {
    throw new Error(`data.mdb names a page size of ${pageBytes} bytes; its beginning is damaged`)
  }
  for (const at of ROOTS_AT) {
    const root = page.readBigUInt64LE(at)
    const end = root === NO_PAGE ? 2n : root + 1n
    if (end * BigInt(pageBytes) > BigInt(fileBytes)) {
      throw new Error(`data.mdb is cut short at ${fileBytes} bytes; restore it from a copy`)
    }
  }
}

async function openIfThere(path: string) {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
