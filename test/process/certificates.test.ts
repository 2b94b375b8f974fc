/**
 * Goal: the metrics have the expiry of the certificate in use, also after it was renewed, and of client certificates.
 * Method: a real listener over TLS with certificates that openssl makes.
 */
import { copyFileSync, readFileSync } from 'node:fs'
import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { openServer } from '../../src/http/server.js'
import { Metrics } from '../../src/observe/metrics/hops.js'
import { Certificates } from '../../src/process/certificates.js'
import { newAuthority, newPair } from '../helpers/certificates.js'

function expiryOf(file: string): number {
  return Date.parse(new X509Certificate(readFileSync(file)).validTo) / 1000
}

async function shown(metrics: Metrics, upstream: string): Promise<string | undefined> {
  const line = `^sluice_certificate_expiry_timestamp_seconds\\{upstream="${upstream}"\\} (.+)$`
  return new RegExp(line, 'm').exec(await metrics.text())?.[1]
}

void t.test('the certificate of the listener, before and after a renewal', async (t) => {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const { cert, key } = newPair(folder, 'server', authority)
  const longer = newPair(folder, 'longer', authority, 'IP:127.0.0.1', 90)
  const metrics = new Metrics({ processMetrics: false })
  const certificates = new Certificates(metrics.levels)
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (_, res) => res.end(),
    tls: { cert, key, clientCa: null },
    onCertificate: (pem) => certificates.listens(pem),
  })
  t.teardown(() => server.drain(0))
  t.equal(await shown(metrics, 'none'), String(expiryOf(cert)))
  const renewed = String(expiryOf(longer.cert))
  t.not(renewed, String(expiryOf(cert)))
  copyFileSync(longer.key, key)
  copyFileSync(longer.cert, cert)
  const giveUpAt = Date.now() + 30_000
  while ((await shown(metrics, 'none')) !== renewed && Date.now() < giveUpAt) {
    await new Promise((next) => setTimeout(next, 50))
  }
  t.equal(await shown(metrics, 'none'), renewed)
})

void t.test('client certificates for upstreams come and go with the configuration', async (t) => {
  const folder = t.testdir()
  const { cert } = newAuthority(folder, 'client')
  const metrics = new Metrics({ processMetrics: false })
  const certificates = new Certificates(metrics.levels)
  const tls = { ca: null, cert: readFileSync(cert, 'utf8'), key: null, serverName: null }
  certificates.adopt([
    { name: 'corp', tls },
    { name: 'open', tls: null },
  ])
  t.equal(await shown(metrics, 'corp'), String(expiryOf(cert)))
  t.equal(await shown(metrics, 'open'), undefined)
  certificates.adopt([{ name: 'open', tls: null }])
  t.equal(await shown(metrics, 'corp'), 'Nan', 'no number, so that no alert is raised')
})
