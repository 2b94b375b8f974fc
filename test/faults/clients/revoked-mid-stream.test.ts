/**
 * B-33: a key that is revoked, or expires, during a stream ends it within 5 s, with an error event and no
 * terminator. Goal: a leaked key causes no further cost once it is revoked.
 * Method: a slow emulated stream, a change by another handle on the same store, and the bytes that the client
 * saw.
 */
import { editKey } from '../../helpers/store-changes.js'
import t from 'tap'
import { revokeKey } from '../../helpers/keys.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { startGateway } from '../../helpers/gateway.js'
import { allKeys } from '../../helpers/lists.js'
import { series } from '../scene.js'
import { stopwatch } from '../../helpers/stopwatch.js'

type Change = (store: Store, accountId: string, keyId: string) => Promise<unknown>

const CHANGES: readonly [what: string, change: Change][] = [
  ['is revoked', (store, accountId, keyId) => revokeKey(store, { accountId, id: keyId })],
  [
    'expires',
    (store, accountId, keyId) => editKey(store, { accountId, id: keyId }, { expiresAtMs: Date.now() + 300 }),
  ],
]

for (const [what, change] of CHANGES) {
  for (const model of ['gpt-5.4-mini', 'claude-sonnet-4-5', 'gemini-2.5-flash']) {
    void t.test(`a key that ${what} ends a running ${model} stream`, async (t) => {
      const gateway = await startGateway(t)
      const reply = await gateway.chat({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'Count. [[words: 400]] [[pace: 50]]' }],
      })
      t.equal(reply.status, 200)
      const reader = reply.body?.getReader()
      if (reader === undefined) throw new Error('no body')
      const first = await reader.read()
      let text = Buffer.from((first.value ?? new Uint8Array()) as Uint8Array).toString()
      // Reads continuously: fetch drops unread data when the connection is closed.
      const reading = (async () => {
        try {
          for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
            text += Buffer.from(chunk.value as Uint8Array).toString()
          }
        } catch {
          // The gateway resets the connection so that the body cannot look complete.
        }
      })()
      const store = await openStore(`sqlite:${gateway.folder}/data/sluice.db`)
      const account = await store.accountByEmail('test@example.com')
      const [key] = await allKeys(store, account?.id ?? '')
      await change(store, account?.id ?? '', key?.id ?? '')
      const watch = stopwatch()
      await reading
      t.ok(watch() < 5000)
      await store.close()
      t.match(text, /"kind":"unauthenticated"/)
      t.notMatch(text, /\[DONE\]/)
      t.equal((await gateway.chat({ model, messages: [] })).status, 401)
      t.equal(gateway.emulator.open(), 0)
      const upstream = model.startsWith('gpt')
        ? 'openai'
        : model.startsWith('claude')
          ? 'anthropic'
          : 'google'
      const name = `sluice_stream_ends_total{upstream="${upstream}",end="key_ended"}`
      t.equal(await series(gateway, name), 1, 'no upstream is blamed')
    })
  }
}
