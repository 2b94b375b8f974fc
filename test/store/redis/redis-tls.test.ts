/**
 * Goal: the store works over TLS; the client refuses a server whose certificate the authority did not sign,
 * and reports the reason.
 * Method: a real redis-server with a certificate of an authority that openssl makes for the test, one that
 * also requires a client certificate, and one whose certificate is for another address.
 */
import { endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { GatewayError } from '../../../src/errors.js'
import { openStore } from '../../../src/store/open-store.js'
import { newClient } from '../../../src/store/redis/connection/open-client.js'
import { parseRedisUrl } from '../../../src/store/store-address.js'
import { newAuthority, newPair, type Pair } from '../../helpers/certificates.js'
import { freePort } from '../../helpers/free-port.js'
import { redisMissing, startRedis, until } from '../../helpers/redis.js'
import { anAdmission, aRow, requests } from '../ledger/sample-entries.js'
import { aKey, anAccount } from '../contract/sample-records.js'

const missing = redisMissing()
t.setTimeout(180_000)
const options = { timeout: 60_000, ...(missing === false ? {} : { skip: missing }) }

/** The address of the server, without options. */
async function startWithTls(
  t: Test,
  { authority, pair, needsClient }: { authority: Pair; pair: Pair; needsClient: 'yes' | 'no' },
) {
  const port = await freePort()
  const args = ['--tls-port', String(port), '--tls-auth-clients', needsClient]
  args.push('--tls-ca-cert-file', authority.cert)
  args.push('--tls-cert-file', pair.cert, '--tls-key-file', pair.key)
  await startRedis(t, args)
  return `rediss://127.0.0.1:${port}`
}

/** The reason why the store cannot be opened. */
async function refusal(url: string): Promise<string> {
  try {
    await (await openStore(url)).close()
    return 'opened'
  } catch (error) {
    if (!(error instanceof GatewayError)) return `no error of ours: ${String(error)}`
    const why = error.cause instanceof Error ? error.cause.message : ''
    return `${error.kind}: ${why}`
  }
}

void t.test('connects over TLS and refuses unsigned certificates', options, async (t) => {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const otherAuthority = newAuthority(folder, 'other')
  const url = await startWithTls(t, {
    authority,
    pair: newPair(folder, 'server', { authority }),
    needsClient: 'no',
  })
  const trusted = `${url}?tls_ca=${authority.cert}&timeout_ms=2000`

  const store = await openStore(trusted)
  t.teardown(() => store.close())
  const account = anAccount()
  await putAccount(store, account)
  const key = aKey(account.id)
  t.equal(await putKey(store, key, null), 'created')
  t.match(await store.findKey(key.digest), { key: { id: key.id } })
  const admission = anAdmission([requests(3)], { accountId: account.id })
  t.ok((await store.ledger.admit(admission)).admitted)
  const row = aRow({ requestId: admission.requestId, accountId: account.id })
  t.equal(await store.ledger.settle(row), 'settled')
  const received: (string | null)[] = []
  store.subscribe(({ digest }) => received.push(digest))
  const other = await openStore(trusted)
  t.teardown(() => other.close())
  await endKey(other, key, 1)
  await until(() => Promise.resolve(received.includes(key.digest)), 'the notifications')

  t.match(
    await refusal(`${url}?tls_ca=${otherAuthority.cert}`),
    /^store_unavailable: .*(self-signed certificate|unable to (verify|get local issuer))/,
    'another authority',
  )
  t.match(await refusal(url), /^store_unavailable: .*(self-signed|unable to (verify|get))/, 'none')
  t.match(await refusal(`${url}?tls_ca=${folder}/none.pem`), /^store_unavailable: .*none\.pem/)
  t.match(await refusal(url.replace('rediss', 'redis')), /^store_unavailable: /, 'without TLS')
})

void t.test('sends the client certificate that a server requires', options, async (t) => {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const url = await startWithTls(t, {
    authority,
    pair: newPair(folder, 'server', { authority }),
    needsClient: 'yes',
  })
  const own = newPair(folder, 'gateway', { authority })
  const ours = `tls_ca=${authority.cert}&tls_cert=${own.cert}&tls_key=${own.key}`
  const store = await openStore(`${url}?${ours}&timeout_ms=2000`)
  t.teardown(() => store.close())
  await store.probe()
  t.match(await refusal(`${url}?tls_ca=${authority.cert}`), /^store_unavailable: .*(certificate|ECONNRESET)/)
})

void t.test('refuses a certificate for another address', options, async (t) => {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const elsewhere = newPair(folder, 'server', { authority, subject: 'IP:127.0.0.2' })
  const url = await startWithTls(t, { authority, pair: elsewhere, needsClient: 'no' })
  const address = `${url}?tls_ca=${authority.cert}`
  t.match(await refusal(address), /^store_unavailable: .*127\.0\.0\.1/)
  // Node emits a TLS alert that comes after the first error.
  const parsed = parseRedisUrl(address)
  if (!('hosts' in parsed)) throw new Error('the address is not accepted')
  const client = newClient(parsed, 'test', 2_000)
  t.teardown(() => client.disconnect())
  await t.rejects(client.connect())
  if (!(client instanceof Redis)) throw new Error('it is a cluster')
  t.ok(client.stream.emit('error', new Error('a late alert')), 'it does not end the process')
})
