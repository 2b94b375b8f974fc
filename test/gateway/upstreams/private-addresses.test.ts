/**
 * Goal: the name of an upstream never gives access to the network behind the gateway.
 * Method: addresses at the edges of every range; the resolver itself with names that need no network.
 */
import t from 'tap'
import type { LookupAddress } from 'node:dns'
import { isPrivateAddress, PrivateAddressError, publicLookup } from '../../../src/http/private-addresses.js'

void t.test('private addresses, at the edges of their ranges', (t) => {
  for (const address of [
    '0.0.0.0',
    '0.255.255.255',
    '10.0.0.0',
    '10.255.255.255',
    '100.64.0.0',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.255',
    '169.254.169.254',
    '172.16.0.0',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.0',
    '192.0.2.255',
    '198.51.100.1',
    '203.0.113.255',
    '192.168.0.0',
    '192.168.255.255',
    '198.18.0.0',
    '198.19.255.255',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fc00::1',
    'fdff:ffff::1',
    'fe80::1',
    'febf::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::FFFF:10.1.2.3',
    '::ffff:7f00:1',
    '::ffff:a9fe:a9fe',
    '0:0:0:0:0:ffff:7f00:1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '::ffff:0:7f00:1',
    '::ffff:0:808:808',
    '2001:db8::1',
    '2001:db8:ffff::1',
    '3fff::1',
    '3fff:fff:ffff::1',
    '5f00::1',
    '5f00:ffff::1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2002:7f00:1::',
    'fec0::1',
    'feff::1',
  ]) {
    t.equal(isPrivateAddress(address), true, address)
  }
  t.end()
})

void t.test('public addresses, just outside', (t) => {
  for (const address of [
    '1.0.0.0',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.255',
    '192.0.3.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2001:4860:4860::8888',
    'fbff::1',
    '2003::1',
    '2001:200::1',
    '2001:db7:ffff::1',
    '3ffe::1',
    '5eff::1',
    '::ffff:8.8.8.8',
    '::ffff:808:808',
    '64:ff9b::808:808',
  ]) {
    t.equal(isPrivateAddress(address), false, address)
  }
  t.end()
})

void t.test('text that is not an address is not private', (t) => {
  for (const text of ['', 'localhost', '127.1', '0x7f.1', '2130706433', '10.0.0', '::g', '[::1]']) {
    t.equal(isPrivateAddress(text), false, text)
  }
  t.end()
})

function looked(hostname: string, all: boolean): Promise<string | LookupAddress[]> {
  return new Promise((resolve, reject) => {
    publicLookup(hostname, { all }, (error, address) => {
      if (error !== null) reject(error)
      else resolve(address)
    })
  })
}

void t.test('E-79: a name that resolves to this machine only is refused', async (t) => {
  for (const all of [true, false]) {
    await t.rejects(
      looked('localhost', all),
      new PrivateAddressError('the name resolves only to private addresses'),
    )
    await t.rejects(looked('127.0.0.1', all), { code: 'EPRIVATE' })
    await t.rejects(looked('169.254.169.254', all), { code: 'EPRIVATE' })
  }
})

void t.test('a public address passes, in the requested form', async (t) => {
  t.equal(await looked('8.8.8.8', false), '8.8.8.8')
  t.same(await looked('8.8.8.8', true), [{ address: '8.8.8.8', family: 4 }])
})

void t.test('a name that does not resolve fails with the error of the resolver', async (t) => {
  const refused = await looked('no-such-name.invalid', false).catch((error: unknown) => error)
  t.match(refused, { syscall: 'getaddrinfo' })
})
