/** The keys of `files` and `batches`: the place of files of clients, and how batches run. */
import { DAY_MS } from '../../base/time-units.js'
import { resolve } from 'node:path'
import * as z from 'zod'
import type { Path } from '../config-problem.js'
import type { DialectChoice } from '../platform-settings.js'
import { PRESETS, type PresetName } from '../presets.js'
import { name, text, whole } from './value-types.js'

const GIB = 1_073_741_824

/** `files` */
export const filesSchema = z
  .strictObject({
    to: text(4_096).describe(
      '`store`, or a folder (relative to this file), which all gateways of a store must share. Files in the store have at most 16 MiB.',
    ),
    max_bytes: whole(1_024, 2 * GIB)
      .default(209_715_200)
      .describe('Maximum size of a file.'),
    max_bytes_per_account: whole(1_024, 1_024 * GIB)
      .default(2 * GIB)
      .describe(
        'Maximum size of all files of an account, with those of its results and the lines of its batches that run. It has at most 10,000 files.',
      ),
    max_bytes_total: whole(1_024, 65_536 * GIB)
      .default(20 * GIB)
      .describe('The same of all accounts.'),
    max_line_bytes: whole(1_024, 67_108_864)
      .default(1_048_576)
      .describe('Maximum size of one line, which is one request of a batch.'),
    keep_days: z
      .number()
      .gt(0)
      .max(3_650)
      .default(30)
      .describe('How long a file and a batch are kept, in days; may be a fraction.'),
    upstream: name
      .optional()
      .describe(
        "The upstream that keeps files of `POST /v1/files` with other purposes than `batch`: one with OpenAI's API (`dialect: openai`), of no cloud. Default: they are refused.",
      ),
    upstream_anthropic: name
      .optional()
      .describe(
        'The upstream for `/v1/files` of clients with `anthropic-version`: one with `dialect: anthropic`, of no cloud. Default: the only one of this file.',
      ),
    upstream_gemini: name
      .optional()
      .describe(
        'The upstream for `/v1beta/files` and `/upload/v1beta/files`: one with `dialect: gemini`, of no cloud. Default: the only one of this file.',
      ),
  })
  .describe(
    'The place of the files of `POST /v1/files` and of the results of batches, which are encrypted with a key of the account that is derived from `escrow.key`, which must be set. Default: files and batches are refused.',
  )

/** `batches` */
export const batchesSchema = z
  .strictObject({
    poll_seconds: z
      .number()
      .min(0.1)
      .max(3_600)
      .default(15)
      .describe('Time between two questions to a provider about a batch; it doubles up to 300.'),
    max_open_per_account: whole(1, 100_000)
      .default(50)
      .describe('Maximum number of batches of an account that have not ended.'),
    queue: z
      .strictObject({
        concurrency: whole(1, 10_000)
          .default(4)
          .describe('Requests of queued batches that run at the same time at an upstream.'),
        upstreams: z
          .record(name, whole(1, 10_000))
          .default({})
          .describe('The same for single upstreams, by their names.'),
      })
      .prefault({})
      .describe('Upstreams with `operations: { batch: queue }`, which get the lines one by one.'),
  })
  .prefault({})
  .describe('How batches of `POST /v1/batches` run.')

type FilesValues = z.output<typeof filesSchema>
type BatchesValues = z.output<typeof batchesSchema>

/** The place and the sizes of files. */
export interface FilesConfig {
  /** The absolute path of a folder; null: the store. */
  readonly folder: string | null
  readonly maxBytes: number
  readonly maxBytesPerAccount: number
  readonly maxBytesTotal: number
  readonly maxLineBytes: number
  readonly keepMs: number
  /** The upstreams that have the files of these vendors' clients; null: none, or it is not clear which. */
  readonly upstreams: {
    /** Files of other purposes than `batch`. */
    readonly openai: string | null
    readonly anthropic: string | null
    readonly gemini: string | null
  }
}

/** How batches run. */
export interface BatchesConfig {
  readonly pollMs: number
  readonly maxOpenPerAccount: number
  readonly queue: {
    readonly concurrency: number
    readonly upstreams: Readonly<Record<string, number>>
  }
}

/** What decides whether an upstream has the files of a vendor's clients. */
interface FileUpstream {
  readonly dialect?: DialectChoice | undefined
  readonly preset?: PresetName | undefined
  readonly platform?: unknown
}

type FileUpstreams = Readonly<Record<string, FileUpstream>>

/** The settings that name an upstream, by its dialect. */
const NAMED = {
  openai: 'upstream',
  anthropic: 'upstream_anthropic',
  gemini: 'upstream_gemini',
} as const

/** Claude and Gemini on clouds have no files. */
function hasFilesOf(dialect: keyof typeof NAMED, upstream: FileUpstream | undefined): boolean {
  const { preset, platform } = upstream ?? {}
  const own = upstream?.dialect ?? (preset === undefined ? undefined : PRESETS[preset].dialect)
  const isOwn = dialect === 'openai' ? own?.startsWith('openai') === true : own === dialect
  return isOwn && (platform ?? null) === null
}

/** Reports what is wrong with the settings. */
export function checkFiles(
  { files, batches }: { readonly files?: FilesValues | undefined; readonly batches: BatchesValues },
  { hasKey, upstreams }: { readonly hasKey: boolean; readonly upstreams: FileUpstreams },
  report: (path: Path, message: string) => void,
): void {
  if (files !== undefined && !hasKey) report(['files'], 'needs escrow.key, with which files are encrypted')
  for (const upstream of Object.keys(batches.queue.upstreams)) {
    if (Object.hasOwn(upstreams, upstream)) continue
    report(['batches', 'queue', 'upstreams', upstream], 'is not an upstream of this file')
  }
  for (const dialect of ['openai', 'anthropic', 'gemini'] as const) {
    const named = files?.[NAMED[dialect]]
    if (named === undefined || hasFilesOf(dialect, upstreams[named])) continue
    const message = `must be an upstream of this file with "dialect: ${dialect}" and of no cloud`
    report(['files', NAMED[dialect]], message)
  }
}

/** Files in the store are kept in memory by some engines. */
const MAX_STORED_BYTES = 16_777_216

/** Null if files are refused. */
export function filesOf(
  files: FilesValues | undefined,
  { folder, upstreams }: { readonly folder: string; readonly upstreams: FileUpstreams },
): FilesConfig | null {
  if (files === undefined) return null
  const isStored = files.to === 'store'
  return {
    folder: isStored ? null : resolve(folder, files.to),
    maxBytes: isStored ? Math.min(files.max_bytes, MAX_STORED_BYTES) : files.max_bytes,
    maxBytesPerAccount: files.max_bytes_per_account,
    maxBytesTotal: files.max_bytes_total,
    maxLineBytes: files.max_line_bytes,
    keepMs: files.keep_days * DAY_MS,
    upstreams: {
      openai: files.upstream ?? null,
      ...{ anthropic: upstreamOf('anthropic'), gemini: upstreamOf('gemini') },
    },
  }

  function upstreamOf(dialect: keyof typeof NAMED): string | null {
    const having = Object.keys(upstreams).filter((each) => hasFilesOf(dialect, upstreams[each]))
    return files?.[NAMED[dialect]] ?? (having.length === 1 ? (having[0] ?? null) : null)
  }
}

/** The settings of batches in the form that the code reads. */
export function batchesOf({ poll_seconds, max_open_per_account, queue }: BatchesValues): BatchesConfig {
  return { pollMs: poll_seconds * 1000, maxOpenPerAccount: max_open_per_account, queue }
}
