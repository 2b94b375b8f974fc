/**
 * Reads files that a user names: only regular files, and at most a given number of bytes. A FIFO without a
 * writer, an endless device and a growing file neither block the process nor fill its memory.
 */
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  statSync,
  type Stats,
} from 'node:fs'
import { accessProblem } from '../base/file-access.js'

/**
 * The file's content. Throws an Error with the reason; `code` is Node's, or `EFBIG` if the file is too large.
 */
export function readBoundedFile(path: string, maxBytes: number): Buffer {
  // Without O_NONBLOCK, opening a FIFO waits for its writer.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stat = fstatSync(fd)
    if (stat.isDirectory()) throw failure('EISDIR', 'it is a folder')
    if (!stat.isFile()) throw failure('EINVAL', 'it is not a regular file')
    if (stat.size > maxBytes) throw tooLarge(maxBytes)
    return readAll(fd, stat.size + 1, maxBytes)
  } finally {
    closeSync(fd)
  }
}

/** Why a text file could not be read, as the rest of a sentence that names it. */
export function whyUnreadable(path: string, maxBytes: number): string {
  let stat: Stats
  try {
    stat = statSync(path)
    if (stat.isDirectory()) return 'is a folder'
    if (!stat.isFile()) return 'is not a regular file'
    accessSync(path, constants.R_OK)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    // ENOTDIR: a parent in the path is a file.
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist'
    if (code === 'ELOOP') return 'is a link to itself: replace it with a file'
    return `is not readable: ${accessProblem(path, 'read') ?? 'change its owner or permissions'}`
  }
  return stat.size > maxBytes ? `is larger than ${sizeText(maxBytes)}` : 'is not UTF-8 text'
}

function sizeText(bytes: number): string {
  return bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes / 1024} KiB`
}

const MIB = 1_048_576

/** Counts the bytes: files in `/proc` have no size, and any file may grow. */
function readAll(fd: number, chunkBytes: number, maxBytes: number): Buffer {
  const chunks: Buffer[] = []
  let total = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunks.length === 0 ? chunkBytes : MORE_BYTES)
    const bytesRead = readSync(fd, chunk)
    if (bytesRead === 0) return Buffer.concat(chunks, total)
    total += bytesRead
    if (total > maxBytes) throw tooLarge(maxBytes)
    chunks.push(chunk.subarray(0, bytesRead))
  }
}

const MORE_BYTES = 65_536

function tooLarge(maxBytes: number): Error {
  return failure('EFBIG', `it is larger than ${String(maxBytes)} bytes`)
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
