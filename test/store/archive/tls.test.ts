/**
 * Goal: connections to PostgreSQL use TLS as configured: the server's certificate is verified, and the
 * gateway shows its own to a server that requires one.
 * Method: a real server with certificates of an authority of the test; it takes only TLS with a client's
 * certificate for one database, and TLS without one for another.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ArchiveFailure } from '../../../src/store/archive/archive-engine.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { engineMissing, startArchive } from '../../helpers/archive-engines.js'
import { newAuthority, newPair } from '../../helpers/certificates.js'
import { archiveConfig } from './archive-config.js'

const skip = engineMissing('postgresql')

void t.test('TLS and client certificates of PostgreSQL', { skip, timeout: 60_000 }, async (t) => {
  const own = t.testdir()
  // The server reads its files as another user.
  const shared = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
  t.teardown(() => rmSync(shared, { recursive: true, force: true }))
  const authority = newAuthority(own, 'authority')
  const other = newAuthority(own, 'other')
  const server = newPair(own, 'server', { authority, subject: 'DNS:pg.internal' })
  const client = newPair(own, 'postgres', { authority })
  const foreign = newPair(own, 'foreign', { authority: other })
  for (const [from, name] of [
    [server.cert, 'server.pem'],
    [server.key, 'server.key'],
    [authority.cert, 'ca.pem'],
  ] as const) {
    copyFileSync(from, join(shared, name))
  }
  const rules = [
    'hostnossl postgres all 127.0.0.1/32 trust',
    'hostssl postgres all 127.0.0.1/32 trust',
    'hostssl template1 all 127.0.0.1/32 cert',
  ]
  writeFileSync(join(shared, 'hba.conf'), `${rules.join('\n')}\n`)
  chmodSync(join(shared, 'server.key'), 0o600)
  if (process.getuid?.() === 0) spawnSync('chown', ['-R', 'postgres', shared])
  const { port } = await startArchive(t, 'postgresql', [
    ...[
      '-c',
      'ssl=on',
      '-c',
      `ssl_cert_file=${shared}/server.pem`,
      '-c',
      `ssl_key_file=${shared}/server.key`,
    ],
    ...['-c', `ssl_ca_file=${shared}/ca.pem`, '-c', `hba_file=${shared}/hba.conf`],
  ])
  /** Whether the connection is encrypted, or the kind of the failure. */
  const tried = async (
    path: string,
    tls: Partial<ReturnType<typeof archiveConfig>['tls']>,
  ): Promise<unknown> => {
    const none = archiveConfig({ url: '' }).tls
    const url = `postgresql://postgres@127.0.0.1:${port}/${path}`
    const engine = await openArchiveEngine(archiveConfig({ url, tls: { ...none, ...tls } }))
    try {
      const [row] = await engine.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
      return row?.['ssl']
    } catch (error) {
      return error instanceof ArchiveFailure ? error.kind : error
    } finally {
      await engine.close()
    }
  }
  const ca = authority.cert
  const named = { ca, serverName: 'pg.internal' }
  t.equal(await tried('postgres', {}), false)
  t.equal(await tried('postgres?sslmode=verify-full', named), true)
  t.equal(await tried('postgres?sslmode=require', named), true)
  t.equal(await tried(`postgres?sslmode=verify-ca&sslrootcert=${ca}`, {}), true, 'the name is not verified')
  t.equal(await tried('postgres?sslmode=verify-full', { ca }), 'away', 'the name is another one')
  t.equal(await tried('postgres?sslmode=verify-full', { serverName: 'pg.internal' }), 'away', 'no authority')
  const another = { ...named, ca: other.cert }
  t.equal(await tried('postgres?sslmode=verify-full', another), 'away', 'another authority')

  const own509 = { ...named, cert: client.cert, key: client.key }
  t.equal(await tried('template1?sslmode=verify-full', own509), true, 'a certificate of the gateway')
  t.not(await tried('template1?sslmode=verify-full', named), true, 'none')
  const others = { ...named, cert: foreign.cert, key: foreign.key }
  t.not(await tried('template1?sslmode=verify-full', others), true, 'one of another authority')
  t.not(await tried('template1', {}), false, 'and no connection without TLS')
})
