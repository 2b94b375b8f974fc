/**
 * Goal: limits of tokens of a day and in all count what the ledger counts, however a request ends: a stream
 * that is cut, an upstream that fails within or before its reply, a client that leaves.
 * Method: one request of each end on a run of its own over an emulator with faults, on both stores; the used
 * part of the limits is compared with the tokens of the entries.
 */
import t from 'tap'
import { isObject } from '../../src/base/json.js'
import type { Fault } from '../../src/emulator/faults/fault-table.js'
import { onBothStores, startAdmin } from '../control/admin/admin-stage.js'
import { rowsOf } from '../helpers/ledger.js'
import { eventually } from '../faults/scene.js'

const MORE = `dimensions: [{ name: run, from: [header:x-run-id] }]
limits: [{ scope: 'dimension:run', tokens_per_day: 100000, tokens_per_month: 100000, tokens_total: 100000 }]`
const MODELS = ['gpt-5.4-mini', 'gpt-4.1', 'claude-sonnet-4-6', 'gemini-2.5-flash']
const OUTPUT = 400

const ENDS: Readonly<Record<string, { readonly fault: Fault | null; readonly leaves?: true }>> = {
  complete: { fault: null },
  'cut within the stream': { fault: { kind: 'cut', bytes: 700 } },
  'ended within the stream': { fault: { kind: 'cut', event: 4, mode: 'eof' } },
  'no reply': { fault: { kind: 'drop' } },
  'an error within the stream': { fault: { kind: 'error', event: 3 } },
  'a client that leaves': { fault: { kind: 'stall', event: 3 }, leaves: true },
}

onBothStores(t, 'limits of tokens are the tokens of the entries', async (t, settings) => {
  const stage = await startAdmin(t, { ...settings, more: MORE })
  const { gateway, store } = stage
  const page = await store.listAccounts({ order: 'newest_first', after: null, limit: 1 })
  const account = page.items[0]?.name ?? ''
  for (const model of MODELS) {
    for (const [end, { fault, leaves }] of Object.entries(ENDS)) {
      const run = `${model} ${end}`
      const over = fault === null ? null : gateway.emulator.script({ fault })
      const leaving = new AbortController()
      const body = { model, stream: true, max_tokens: OUTPUT, messages: [{ role: 'user', content: 'Hi' }] }
      const init = { headers: { 'x-run-id': run }, signal: leaving.signal }
      const reply = await gateway.chat(body, init)
      if (leaves === true) {
        await reply.body?.getReader().read()
        leaving.abort()
      } else await reply.text().catch(() => '')
      const ofRun = async () => {
        return (await rowsOf(gateway)).filter(
          ({ dimensions }) => dimensions === `run=${encodeURIComponent(run)}`,
        )
      }
      await eventually(async () => (await ofRun()).length > 0, 'its entry')
      over?.()
      const tokens = (await ofRun()).reduce(
        (sum, { usage }) => sum + (usage.input ?? 0) + (usage.output ?? 0),
        0,
      )
      const { json } = await stage.ask('GET', `/runs/${encodeURIComponent(run)}?account=${account}`)
      const limits = Array.isArray(json['limits']) ? json['limits'].filter(isObject) : []
      t.same(
        limits.map(({ used }) => used),
        [tokens, tokens, tokens],
        `${run}: ${(await ofRun()).map(({ source, outcome }) => `${outcome} ${source}`).join(', ')}`,
      )
      t.equal(Number(json['input_tokens']) + Number(json['output_tokens']), tokens, `${run}: the run`)
      const isAssumed = (await ofRun()).some(({ source }) => source === 'assumed')
      if (isAssumed) t.ok(tokens >= OUTPUT, `${run}: at least what it may have used`)
      if (end.startsWith('cut') || leaves === true) t.ok(isAssumed, run)
    }
  }
})
