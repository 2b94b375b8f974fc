/** `server.overload`: when requests are refused because the process cannot serve them in time. Part of `schema.ts`. */
import { z } from 'zod'
import type { OverloadConfig } from '../config.js'

/** Three bounds, one for each level. */
const steps = (bound: z.ZodNumber, first: number, second: number, third: number) =>
  z
    .array(bound)
    .length(3, { error: 'must have three numbers, one for each level' })
    .refine((values) => values.every((value, at) => at === 0 || value >= (values[at - 1] ?? 0)), {
      error: 'must not descend',
    })
    .default([first, second, third])

const ms = z.int().min(1).max(3_600_000)
const share = z.number().min(0.01).max(1)

/** The section. */
export const overloadSchema = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether requests are refused at all.'),
    max_inflight: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe(
        'Requests under way in one worker. From 80 % on level 1 holds, from 100 % on level 2, from 110 % on level 3.',
      ),
    delay_ms: steps(ms, 100, 250, 500).describe(
      'Delay of the event loop (99th percentile of 100 ms, averaged over about half a second) for levels 1, 2 and 3.',
    ),
    heap_share: steps(share, 0.8, 0.88, 0.93).describe(
      'Share of the heap limit that is used, likewise.',
    ),
    open_files_share: steps(share, 0.8, 0.9, 0.95).describe(
      'Share of the open files that the system allows, likewise; Linux only.',
    ),
    rise_ms: z
      .int()
      .min(0)
      .max(60_000)
      .default(1_000)
      .describe('How long every reading must call for a level before it holds.'),
    hold_ms: z
      .int()
      .min(0)
      .max(600_000)
      .default(5_000)
      .describe('How long no reading must call for a level before it ends.'),
  })
  .prefault({})
  .describe(
    'Overload: level 1 closes connections after their reply and answers keys with the label `priority=low` 503, level 2 all keys without `priority=high`, level 3 all. Health and metrics always answer.',
  )

/** What the code reads of the section. */
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
