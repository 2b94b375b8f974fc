/**
 * `server.overload`: thresholds for refusing requests that the process cannot serve in time. Part of
 * `config-file-schema.ts`.
 */
import { z } from 'zod'
import type { OverloadConfig } from '../config.js'

/** Three thresholds, one per level. */
const steps = (bound: z.ZodNumber, defaults: [number, number, number]) =>
  z
    .array(bound)
    .length(3, { error: 'must have three numbers, one for each level' })
    .refine((values) => values.every((value, at) => at === 0 || value >= (values[at - 1] ?? 0)), {
      error: 'must be in ascending order',
    })
    .default(defaults)

const ms = z.int().min(1).max(3_600_000)
const share = z.number().min(0.01).max(1)

/** `server.overload:` */
export const overloadSchema = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether requests are refused under overload.'),
    max_inflight: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe(
        'Requests in progress in one worker. Level 1 starts at 80 % of this, level 2 at 100 %, level 3 at 110 %.',
      ),
    delay_ms: steps(ms, [100, 250, 500]).describe(
      'Delay of the event loop (99th percentile of 100 ms, averaged over about half a second) for levels 1, 2 and 3.',
    ),
    heap_share: steps(share, [0.8, 0.88, 0.93]).describe(
      'Used share of the heap limit for levels 1, 2 and 3.',
    ),
    open_files_share: steps(share, [0.8, 0.9, 0.95]).describe(
      'Used share of the limit of open files for levels 1, 2 and 3; Linux only.',
    ),
    rise_ms: z
      .int()
      .min(0)
      .max(60_000)
      .default(1_000)
      .describe('How long all readings must exceed a threshold before its level starts.'),
    hold_ms: z
      .int()
      .min(0)
      .max(600_000)
      .default(5_000)
      .describe('How long no reading may exceed a threshold before its level ends.'),
  })
  .prefault({})
  .describe(
    'Overload protection: level 1 closes connections after their reply and refuses keys with the label `priority=low` with 503, level 2 all keys without `priority=high`, level 3 all. Health and metrics are always served.',
  )

/** The resolved section. */
export function overloadOf(values: z.output<typeof overloadSchema>): OverloadConfig {
  return {
    enabled: values.enabled,
    maxInflight: values.max_inflight,
    delayMs: values.delay_ms,
    heapShare: values.heap_share,
    openFilesShare: values.open_files_share,
    riseMs: values.rise_ms,
    holdMs: values.hold_ms,
  }
}
