/**
 * Prevents undici's connections from reaching private addresses: a name that resolves to one (DNS rebinding,
 * a typo) must not give clients access to the network behind the gateway.
 */
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { isPrivateAddress, PrivateAddressError, publicLookup } from '../private-addresses.js'

/** The permitted addresses, and the function that resolves names (default: Node's own). */
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
 * A connector with three checks: IP literals are checked directly, the lookup drops addresses that are not
 * public, and the address of the connected socket is checked before any data is sent. The last check alone
 * would be sufficient; it also covers names that resolve differently the second time.
 */
export function guardedConnector(
  network: Network,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  const { lookup } = network
  const connect = buildConnector({ ...options, ...(lookup === undefined ? {} : { lookup }) })
  return (connectOptions, callback) => {
    const host = connectOptions.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !network.permits(host)) {
      callback(new PrivateAddressError('the URL is a private address'), null)
      return
    }
    connect(connectOptions, (...result) => {
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
