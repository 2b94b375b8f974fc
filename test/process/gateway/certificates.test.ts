/**
 * Goal: the metrics have the expiry of the certificate in use, also after it was renewed, and of client
 * certificates.
 * Method: a real listener over TLS with certificates that openssl makes.
 */
import { copyFileSync, readFileSync } from 'node:fs'
import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { expiryOf as expiryOfPem } from '../../../src/http/tls/read-tls-files.js'
import { openServer } from '../../../src/http/server.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { newAuthority, newPair } from '../../helpers/certificates.js'

function expiryOf(file: string): number {
  return Date.parse(new X509Certificate(readFileSync(file)).validTo) / 1000
}

async function shown(metrics: Metrics, upstream: string): Promise<string | undefined> {
  const line = `^sluice_certificate_expiry_timestamp_seconds\\{upstream="${upstream}"\\} (.+)$`
  return new RegExp(line, 'm').exec(await metrics.text())?.[1]
}

void t.test(
  'the metrics have the expiry of the listener certificate before and after a renewal',
  async (t) => {
    const folder = t.testdir()
    const authority = newAuthority(folder, 'authority')
    const { cert, key } = newPair(folder, 'server', { authority })
    const longer = newPair(folder, 'longer', { authority, subject: 'IP:127.0.0.1', days: 90 })
    const metrics = new Metrics({ processMetrics: false })
    const server = await openServer({
      host: '127.0.0.1',
      port: 0,
      handler: (_, res) => res.end(),
      tls: { cert, key, clientCa: null },
      onCertificate: (pem) => metrics.gauges.listenerCertificate(expiryOfPem(pem)),
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
  },
)

void t.test('metrics of client certificates follow the configuration', async (t) => {
  const metrics = new Metrics({ processMetrics: false })
  const state = { breaker: 0, breakerChangedAtMs: 0, resting: 0, retriesDenied: 0 }
  const open = { name: 'open', ...state, certificateExpiry: null }
  metrics.gauges.upstreams([{ name: 'corp', ...state, certificateExpiry: 1_900_000_000 }, open])
  t.equal(await shown(metrics, 'corp'), '1900000000')
  t.equal(await shown(metrics, 'open'), undefined)
  metrics.gauges.upstreams([open])
  t.equal(await shown(metrics, 'corp'), 'Nan', 'the metric is absent, so that no alert fires')
})
