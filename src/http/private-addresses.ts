/**
 * Recognises private network addresses. A name that resolves to loopback or to a private range (DNS
 * rebinding, a typo in a base URL) must not give clients access to the network behind the gateway.
 */
import { lookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'

/** The ranges of RFC 6890 that are not part of the public internet. */
const PRIVATE = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  // Documentation (RFC 5737).
  ['192.0.2.0', 24],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv4')
  // The same network behind a NAT64 gateway (RFC 6052).
  PRIVATE.addSubnet(`64:ff9b::${network}`, 96 + prefix, 'ipv6')
}
for (const [network, prefix] of [
  // Unspecified, loopback, and the old notation of IPv4 addresses (RFC 4291, 2.5.5.1).
  ['::', 96],
  // A local NAT64 (RFC 8215), discard (RFC 6666), Teredo and other protocols (RFC 2928), and 6to4,
  // which carries any IPv4 address (RFC 3056).
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2002::', 16],
  // IPv4-translated addresses (SIIT, RFC 2765), which carry any IPv4 address.
  ['::ffff:0:0:0', 96],
  // Documentation (RFC 3849, RFC 9637), and SRv6 segments (RFC 9602).
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['5f00::', 16],
  ['fc00::', 7],
  // Link-local, and the site-local that went before fc00::/7 (RFC 3879).
  ['fe80::', 9],
  ['ff00::', 8],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv6')
}

/** True for a loopback, private, link-local, multicast or otherwise non-public IP literal. */
export function isPrivateAddress(address: string): boolean {
  if (isIPv4(address)) return PRIVATE.check(address, 'ipv4')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return PRIVATE.check(mapped, 'ipv4')
  return isIP(address) === 6 && PRIVATE.check(address, 'ipv6')
}

/** The error of a connection or lookup that leads only to private addresses. */
export class PrivateAddressError extends Error {
  readonly code = 'EPRIVATE'
}

/** A `lookup` for sockets that drops private addresses and fails if no other address is left. */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  const all: LookupOptions = { ...options, all: true }
  lookup(hostname, all, (error, found) => {
    if (error !== null) {
      callback(error, '')
      return
    }
    const addresses: LookupAddress[] = Array.isArray(found) ? found : []
    const usable = addresses.filter((address) => !isPrivateAddress(address.address))
    const [first] = usable
    if (first === undefined) {
      callback(new PrivateAddressError('the name resolves only to private addresses'), '')
      return
    }
    if (options.all === true) callback(null, usable)
    else callback(null, first.address, first.family)
  })
}

/** True for the names and addresses of this machine; browsers send secure cookies to them over http too. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || host.endsWith('.localhost') || host === '::1') return true
  return /^127(?:\.\d{1,3}){3}$/.test(host)
}

/** Whether an address is a URL with https, or with http on this machine, without a user and a fragment. */
export function isSecureAddress(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname, username, password, hash } = new URL(address)
  if (username !== '' || password !== '' || hash !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}
