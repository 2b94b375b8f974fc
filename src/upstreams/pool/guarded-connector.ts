/**
 * Connections that never lead to a private address, for undici: a name that resolves to one (DNS rebinding, a typo)
 * must not turn the gateway into a way into the network behind it.
 */
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { isPrivateAddress, PrivateAddressError, publicLookup } from '../private-addresses.js'

/** Which addresses may be connected to, and how names become addresses (Node's own way if absent). */
export interface Network {
  permits(address: string): boolean
  readonly lookup?: LookupFunction
}

/** The public internet. */
export const PUBLIC: Network = {
  permits: (address) => !isPrivateAddress(address),
  lookup: publicLookup,
}
/** Every address. */
export const ANY: Network = { permits: () => true }

/**
 * Three guards, of which the last alone would do: an IP literal never reaches the look-up, the look-up drops addresses
 * that are not public, and the address that the socket did connect to is checked before a byte is sent. A name that
 * resolves differently the second time therefore changes nothing.
 */
export function guardedConnector(
  network: Network,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  const { lookup } = network
  const connect = buildConnector({ ...options, ...(lookup === undefined ? {} : { lookup }) })
  return (asked, callback) => {
    const host = asked.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !network.permits(host)) {
      callback(new PrivateAddressError('the URL is a private address'), null)
      return
    }
    connect(asked, (...result) => {
      const [error, socket] = result
      if (error !== null || network.permits(socket.remoteAddress ?? '::')) {
        callback(...result)
        return
      }
      socket.destroy()
      callback(new PrivateAddressError('the connection leads to a private address'), null)
    })
  }
}
