/** Keys of several accounts, and requests with large bodies. */
import { request } from 'node:http'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { loadConfig } from '../../src/config/load-config.js'
import { openStore } from '../../src/store/open-store.js'

/** Keys of separate accounts. */
export async function makeKeys(file: string, count: number): Promise<string[]> {
  const loaded = loadConfig(file, process.env)
  if (!loaded.ok) throw new Error('the file is no good')
  const { store: url, plans } = loaded.config
  const store = await openStore(url)
  try {
    const secrets: string[] = []
    for (let at = 0; at < count; at += 1) {
      const password = 'correct horse battery staple'
      const wanted = { email: `large${at}@example.com`, plan: 'max', password } as const
      const { account } = await createAccount(store, wanted)
      secrets.push((await createKey(store, { plans, account, name: 'large' })).secret)
    }
    return secrets
  } finally {
    await store.close()
  }
}

/** Status and `retry-after` of a chat; status 0 if the connection broke. */
export function post(
  port: number,
  secret: string,
  body: Buffer,
  path = '/v1/chat/completions',
): Promise<[number, string | undefined]> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'content-length': body.length,
      connection: 'close',
    }
    const sent = request({ port, host: '127.0.0.1', method: 'POST', path, headers }, (res) => {
      res.resume()
      res.once('close', () => resolve([res.statusCode ?? 0, res.headers['retry-after']]))
    })
    sent.once('error', () => resolve([0, undefined]))
    sent.end(body)
  })
}
