/**
 * Goal: no file of a client stops the gateway or takes more room than its account has.
 * Method: files of many, empty and long lines against a gateway, with both stores and both places of files.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { TurnWatch } from '../../hostile/turn-watch.js'
import { openBatchStage, uploaded } from './batch-stage.js'

t.setTimeout(240_000)

const PLACES = [
  { store: 'sqlite', to: './files' },
  { store: 'sqlite', to: 'store' },
  { store: 'redis', to: './files' },
  { store: 'redis', to: 'store' },
] as const
const BYTES = 3_000_000

/** Text of a file, and the refusal of its batch. */
const FILES: Readonly<Record<string, { readonly text: string; readonly message: RegExp }>> = {
  'empty lines': { text: '\n'.repeat(BYTES), message: /Line 100001: a file has at most 100000 lines/ },
  'blank lines': { text: ' \r\n'.repeat(90_000), message: /no lines/ },
  'long blank lines': { text: `${' '.repeat(1_000_000)}\n`.repeat(8), message: /no lines/ },
  'deep lines': { text: `{"a":${'['.repeat(1_000_000)}\n`, message: /Line 1: / },
}

for (const place of PLACES) {
  void t.test(`${place.store}, ${place.to}: no file holds the event loop`, async (t) => {
    const { client } = await openBatchStage(t, place)
    for (const [name, { text, message }] of Object.entries(FILES)) {
      const input_file_id = await uploaded(client, text)
      await pause(50)
      const watch = new TurnWatch()
      const made = client.batches.create({
        input_file_id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      })
      await t.rejects(made, { status: 400, message }, name)
      const slowestMs = watch.end()
      t.ok(slowestMs < 50, `${name}: ${Math.round(slowestMs)} ms`)
    }
  })
}
