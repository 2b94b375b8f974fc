/**
 * Goal: addresses of both engines are parsed, and a wrong one is refused with words that name no password.
 */
import t from 'tap'
import { parseArchiveUrl } from '../../../src/store/archive/archive-address.js'

void t.test('addresses', (t) => {
  t.match(parseArchiveUrl('clickhouse://sluice:p%40ss@ch.internal/ledger'), {
    engine: 'clickhouse',
    host: 'ch.internal',
    port: 8123,
    database: 'ledger',
    user: 'sluice',
    password: 'p@ss',
    tls: false,
  })
  t.match(parseArchiveUrl('clickhouses://a:b:c@ch'), {
    port: 8443,
    tls: true,
    database: 'default',
    password: 'b:c',
  })
  t.match(parseArchiveUrl('clickhouse://a:b@c@ch'), { user: 'a', password: 'b@c', host: 'ch' })
  t.match(
    parseArchiveUrl('postgresql://sluice:x@[::1]:5433/sluice?sslmode=verify-full&sslrootcert=/etc/ca.pem'),
    {
      engine: 'postgresql',
      host: '::1',
      port: 5433,
      tls: true,
      checksName: true,
      caFile: '/etc/ca.pem',
    },
  )
  t.match(parseArchiveUrl('postgres://a@pg/b?sslmode=verify-ca'), { tls: true, checksName: false })
  t.match(parseArchiveUrl('postgres://a@pg/b?sslmode=disable'), { tls: false })
  t.end()
})

const WRONG = {
  'mysql://a:secret@host/db': /clickhouse:\/\/.*postgresql:\/\//,
  'clickhouse://': /must be/,
  'clickhouse://a:secret@ch:9000/db': /9000.*native/,
  'clickhouses://a:secret@ch:9440/db': /native/,
  'clickhouse://a:secret@ch:99999/db': /port/,
  'clickhouse://a:secret%@ch/db': /percent/,
  'clickhouse://a:secret@ch/db?secure=1': /archive\.settings/,
  'postgresql://a:secret@pg': /database/,
  'postgresql://a:secret@pg/db?sslmode=prefer': /sslmode/,
  'postgresql://a:secret@pg/db?pool=4': /sslmode and sslrootcert/,
}

void t.test('wrong addresses', (t) => {
  for (const [url, problem] of Object.entries(WRONG)) {
    const parsed = parseArchiveUrl(url)
    const message = 'problem' in parsed ? parsed.problem : ''
    t.match(message, problem, url)
    t.notMatch(message, /secret/)
  }
  t.end()
})
