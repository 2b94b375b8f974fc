/**
 * Goal: a client cannot forge its address, and the gateway detects it behind trusted proxies.
 * Method: requests with every kind of `X-Forwarded-For`; a running gateway for the log line.
 */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import t from 'tap'
import { TrustedProxies } from '../../src/http/client-address.js'
import { startGateway } from '../helpers/gateway.js'

function request(remote: string, forwarded?: string): IncomingMessage {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remote })
  const req = new IncomingMessage(socket)
  if (forwarded !== undefined) req.headers['x-forwarded-for'] = forwarded
  return req
}

const PROXIES = ['10.0.0.0/8', '192.168.1.1', 'fd00::/8']
const CASES: readonly [remote: string, forwarded: string | undefined, address: string][] = [
  ['203.0.113.9', undefined, '203.0.113.9'],
  ['203.0.113.9', '1.1.1.1', '203.0.113.9'],
  ['::ffff:203.0.113.9', '1.1.1.1', '203.0.113.9'],
  ['10.0.0.1', undefined, '10.0.0.1'],
  ['10.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['::ffff:10.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['10.0.0.1', '1.1.1.1, 198.51.100.7', '198.51.100.7'],
  ['10.0.0.1', '1.1.1.1, 198.51.100.7, 10.2.3.4, 192.168.1.1', '198.51.100.7'],
  ['10.0.0.1', '10.9.9.9, 10.2.3.4', '10.9.9.9'],
  ['10.0.0.1', '198.51.100.7:5555', '198.51.100.7'],
  ['10.0.0.1', '[2001:db8::1]:443', '2001:db8::1'],
  ['fd00::1', '2001:db8::1', '2001:db8::1'],
  ['10.0.0.1', 'unknown', '10.0.0.1'],
  ['10.0.0.1', '198.51.100.7, junk, 10.2.3.4', '10.2.3.4'],
  ['10.0.0.1', '', '10.0.0.1'],
  ['10.0.0.1', `${'1.1.1.1,'.repeat(10_000)}198.51.100.7`, '198.51.100.7'],
  ['192.168.1.2', '1.1.1.1', '192.168.1.2'],
]

void t.test('the client address is the rightmost entry that is no trusted proxy', (t) => {
  const proxies = new TrustedProxies(PROXIES)
  for (const [remote, forwarded, address] of CASES) {
    const name = `${remote} ← ${forwarded?.slice(-60) ?? 'nothing'}`
    t.equal(proxies.addressOf(request(remote, forwarded)), address, name)
  }
  t.equal(new TrustedProxies([]).addressOf(request('10.0.0.1', '1.1.1.1')), '10.0.0.1')
  t.end()
})

void t.test('the log line has the address, and a reload changes the trusted proxies', async (t) => {
  const gateway = await startGateway(t, { server: 'trusted_proxies: [127.0.0.0/8]' })
  const headers = { authorization: `Bearer ${gateway.secret}`, 'x-forwarded-for': '198.51.100.7' }
  await (await fetch(`${gateway.baseUrl}/models`, { headers })).text()
  while (gateway.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(gateway.lines[0]?.['client_address'], '198.51.100.7')
  const plain = await startGateway(t)
  await (await fetch(`${plain.baseUrl}/models`, { headers })).text()
  while (plain.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(plain.lines[0]?.['client_address'], '127.0.0.1')
})
