/** The keys of `record`: which requests are recorded, for how long, and where. */
import { DAY_MS } from '../../base/time-units.js'
import { resolve } from 'node:path'
import * as z from 'zod'
import { accountSelector } from '../../accounts/account.js'
import type { Path } from '../config-problem.js'
import { modelText, name, share, text, whole } from './value-types.js'

const MAX_BYTES = 67_108_864

/** `record` */
export const recordSchema = z
  .strictObject({
    when: z
      .strictObject({
        labels: z
          .record(text(64), text(256))
          .optional()
          .describe('Labels that the API key must have, all of them.'),
        accounts: z
          .array(text(400))
          .min(1)
          .max(1_000)
          .optional()
          .describe('Names, ids or e-mail addresses of accounts; one of them must be that of the request.'),
        models: z
          .array(modelText)
          .min(1)
          .max(1_000)
          .optional()
          .describe('Models as clients request them; one of them must be requested.'),
        errors: z.literal(true).optional().describe('Only requests that fail.'),
      })
      .optional()
      .describe('Conditions; all must hold.'),
    sample: share.optional().describe('Share of these requests that is recorded. Default: all.'),
    redact: z
      .array(name)
      .max(64)
      .default([])
      .describe('Guardrails with rules of their own, which mask the texts before they are stored.'),
    keep_days: z
      .number()
      .gt(0)
      .max(3_650)
      .default(7)
      .describe('How long a recording is kept, in days; may be a fraction.'),
    max_bytes: whole(1_024, MAX_BYTES)
      .default(4_194_304)
      .describe('Maximum size of a recording; a larger one is not kept.'),
    to: text(4_096)
      .default('store')
      .describe(
        '`store`; `file:DIR`, an encrypted file for each recording in a folder (relative to this file); or an https URL, which gets each recording as JSON.',
      ),
  })
  .describe(
    'Records requests and replies with their content, encrypted with a key of the account that is derived from `escrow.key`, which must be set. One of `when` and `sample` must be given. Default: nothing is recorded.',
  )

type RecordValues = z.output<typeof recordSchema>

/** The destination of recordings. */
type RecordTarget =
  | { readonly kind: 'store' }
  /** An absolute path. */
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string }

/** Which requests are recorded, for how long, and where. */
export interface RecordConfig {
  readonly labels: Readonly<Record<string, string>>
  /** Names, ids and e-mail addresses in lower case; null: all. */
  readonly accounts: readonly string[] | null
  readonly models: readonly string[] | null
  readonly onlyErrors: boolean
  readonly sample: number
  readonly redact: readonly string[]
  readonly keepMs: number
  readonly maxBytes: number
  readonly to: RecordTarget
}

/** Reports what is wrong with the settings; `guardrails` are those with rules of their own. */
export function checkRecord(
  record: RecordValues | undefined,
  { hasKey, guardrails }: { readonly hasKey: boolean; readonly guardrails: readonly string[] },
  report: (path: Path, message: string) => void,
): void {
  if (record === undefined) return
  const { when, sample, redact, to } = record
  const hasCondition = when !== undefined && Object.keys(when).length > 0
  if (!hasCondition && sample === undefined) {
    report(['record'], 'must have when (labels, accounts, models or errors) or sample')
  }
  if (!hasKey) report(['record'], 'needs escrow.key, with which recordings are encrypted')
  redact.forEach((guardrail, at) => {
    if (guardrails.includes(guardrail)) return
    report(['record', 'redact', at], 'is not a guardrail of this file with patterns or detect')
  })
  if (targetOf(to, '/') === null) {
    report(['record', 'to'], 'must be store, file:DIR or an https URL')
  }
}

function targetOf(to: string, folder: string): RecordTarget | null {
  if (to === 'store') return { kind: 'store' }
  if (to.startsWith('file:') && to.length > 5) {
    return { kind: 'folder', path: resolve(folder, to.slice(5)) }
  }
  return /^https:\/\/[^\s/]+/.test(to) && URL.canParse(to) ? { kind: 'url', url: to } : null
}

/** Null if nothing is recorded. */
export function recordOf(record: RecordValues | undefined, folder: string): RecordConfig | null {
  if (record === undefined) return null
  const { when = {}, sample = 1, redact, keep_days: days, max_bytes: maxBytes, to } = record
  return {
    labels: when.labels ?? {},
    accounts: when.accounts?.map(accountSelector) ?? null,
    models: when.models ?? null,
    onlyErrors: when.errors === true,
    sample,
    redact,
    keepMs: days * DAY_MS,
    maxBytes,
    to: targetOf(to, folder) ?? { kind: 'store' },
  }
}
