/**
 * Goal: the metrics have the expiry of the certificate in use, also after it was renewed, and of client
 * certificates; the log names a file that is refused, and a certificate that has expired.
 * Method: a real listener and the whole program over TLS with certificates that openssl makes.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { expiryOf as expiryOfPem, whenExpired } from '../../../src/http/read-tls-files.js'
import { openServer } from '../../../src/http/server.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { newAuthority, newExpiredPair, newPair } from '../../helpers/certificates.js'
import { fileText, prepare, run, until } from '../program.js'

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

void t.test('the log names refused files and expired certificates', async (t) => {
  const { emulator, file, folder } = await prepare(t)
  const authority = newAuthority(folder, 'authority')
  const { cert, key } = newPair(folder, 'server', { authority })
  const expired = newExpiredPair(folder)
  const server = `workers: 1, drain_ms: 500, tls: { cert: ${cert}, key: ${key} }`
  writeFileSync(file, fileText(emulator, { server }))
  const program = run(t, ['serve', '--config', file])
  const logged = (event: string) => program.lines().find(({ msg }) => msg === event)
  await until(() => logged('sluice serves') !== undefined)
  await until(() => program.err().includes('/dashboard/setup#'))
  t.match(program.err(), /https:\/\/127\.0\.0\.1:\d+\/dashboard\/setup#/)
  t.equal(logged('the certificate has expired'), undefined)

  writeFileSync(cert, 'not a certificate')
  await until(() => logged('the changed certificate is not used') !== undefined)
  const { error } = logged('the changed certificate is not used') ?? {}
  t.match(error, { message: `the file "${cert}" is not a PEM certificate` })

  copyFileSync(expired.key, key)
  copyFileSync(expired.cert, cert)
  await until(() => logged('the certificate has expired') !== undefined)
  t.match(logged('the certificate has expired'), {
    level: 'warn',
    file: cert,
    reason: /^expired at 20/,
  })
})

void t.test('a certificate that expires while it is in use is reported then', async (t) => {
  const reports: string[] = []
  whenExpired(Date.now() / 1000 - 1, () => reports.push('at once'))
  t.same(reports, ['at once'])
  whenExpired(Date.now() / 1000 + 0.2, () => reports.push('later'))
  const end = whenExpired(Date.now() / 1000 + 0.2, () => reports.push('renewed'))
  end()
  await sleep(100)
  t.same(reports, ['at once'])
  await sleep(400)
  t.same(reports, ['at once', 'later'])
})

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
