/**
 * Goal: every valid address is parsed; the error of an invalid one does not contain its secrets.
 * Method: a table of addresses with their parsed form or error.
 */
import t from 'tap'
import { isRedisUrl, parseRedisUrl, type RedisAddress } from '../../../src/store/store-address.js'

const GOOD: readonly [string, Partial<RedisAddress>][] = [
  ['redis://h', { kind: 'single', hosts: [{ host: 'h', port: 6379 }], tls: false, db: 0 }],
  ['redis://h:1/', { hosts: [{ host: 'h', port: 1 }], db: 0, username: null, password: null }],
  ['rediss://h:6380/12', { kind: 'single', tls: true, db: 12 }],
  ['redis://:p@h', { username: null, password: 'p' }],
  ['redis://u:p@h', { username: 'u', password: 'p' }],
  ['redis://u:p/w?x#y@z:,@h', { username: 'u', password: 'p/w?x#y@z:,' }],
  ['redis://u%40b:p%25@h', { username: 'u@b', password: 'p%' }],
  ['redis://[::1]:7000', { hosts: [{ host: '::1', port: 7000 }] }],
  ['redis://h?wait_replicas=2', { waitReplicas: 2 }],
  ['redis://h', { waitReplicas: 0, timeoutMs: 100 }],
  ['redis://h?timeout_ms=2000', { timeoutMs: 2_000 }],
  ['rediss://h?tls_ca=/a/b.pem&tls_cert=/c&tls_key=/k', { tlsCa: '/a/b.pem', tlsCert: '/c', tlsKey: '/k' }],
  [
    'redis+sentinel://u:p@a,b:1/main/3?sentinel_user=s&sentinel_password=q%26',
    {
      kind: 'sentinel',
      hosts: [
        { host: 'a', port: 26_379 },
        { host: 'b', port: 1 },
      ],
      master: 'main',
      db: 3,
      sentinelUsername: 's',
      sentinelPassword: 'q&',
      waitReplicas: 1,
    },
  ],
  ['rediss+sentinel://a/main', { kind: 'sentinel', tls: true, db: 0 }],
  ['redis+cluster://a,b', { kind: 'cluster', waitReplicas: 1 }],
  ['rediss+cluster://a:1,b:2?wait_replicas=0', { kind: 'cluster', tls: true, waitReplicas: 0 }],
]

const BAD: readonly [string, RegExp][] = [
  ['redis:', /start with/],
  ['redis:h', /start with/],
  ['redis+other://hunter2@h', /start with/],
  ['redis://', /valid host/],
  ['redis://hunter2@', /valid host/],
  ['redis://h:0', /valid host/],
  ['redis://h:70000', /valid host/],
  ['redis://a b', /valid host/],
  ['redis://a,b', /more than one host/],
  ['redis://h/x', /database/],
  ['redis://h/1/2', /database/],
  ['redis://:hunter2%@h', /%25/],
  ['redis://h?hunter2=1', /unknown option/],
  ['redis://h?wait_replicas=x', /wait_replicas/],
  ['redis://h?timeout_ms=5', /timeout_ms/],
  ['redis://h?tls_ca=', /tls_ca/],
  ['redis://h?timeout_ms=50&tls_ca=/a.pem', /tls_ca without TLS/],
  ['redis+cluster://h?tls_key=/k.pem', /tls_key without TLS/],
  ['rediss://h?sentinel_password=hunter2', /sentinel_password without sentinels/],
  ['redis+sentinel://hunter2@h', /name of the primary/],
  ['redis+sentinel://h/m/x', /database/],
  ['redis+cluster://h/1', /no databases/],
]

void t.test('valid addresses are parsed', (t) => {
  for (const [url, expected] of GOOD) {
    t.ok(isRedisUrl(url))
    t.match(parseRedisUrl(url), expected, url)
  }
  t.end()
})

void t.test('the error of an invalid address names the reason and not the address', (t) => {
  for (const [url, why] of BAD) {
    t.ok(isRedisUrl(url), url)
    const answer = parseRedisUrl(url)
    t.match(answer, { problem: why }, url)
    t.notMatch(JSON.stringify(answer), 'hunter2')
  }
  for (const url of ['sqlite:./redis', 'rediss', 'mysql://h', '']) t.notOk(isRedisUrl(url), url)
  t.end()
})
