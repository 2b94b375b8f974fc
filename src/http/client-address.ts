/** Finds the client's address behind reverse proxies that the configuration trusts. */
import { BlockList, isIP } from 'node:net'
import { headerOf, type HttpRequest } from './message.js'

/** Longer lists are truncated, because they are forged. */
const MAX_FORWARDED = 64

/** The proxies whose `X-Forwarded-For` is used. */
export class TrustedProxies {
  private readonly list = new BlockList()
  private readonly isEmpty: boolean

  /** `networks` are addresses, or networks such as `10.0.0.0/8`; the configuration has checked them. */
  constructor(networks: readonly string[]) {
    this.isEmpty = networks.length === 0
    for (const network of networks) {
      const [address = '', bits] = network.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.list.addAddress(address, family)
      else this.list.addSubnet(address, Number(bits), family)
    }
  }

  /**
   * The socket's address, or if that is a trusted proxy the rightmost entry of `X-Forwarded-For` that is not
   * one. Entries left of that one were written by the client.
   */
  addressOf(req: HttpRequest): string {
    let address = plain(req.socket.remoteAddress ?? '')
    if (this.isEmpty || !this.has(address)) return address
    const entries = (headerOf(req, 'x-forwarded-for') ?? '').split(',').slice(-MAX_FORWARDED)
    for (const entry of entries.reverse()) {
      const next = plain(entry.trim())
      if (isIP(next) === 0) return address
      address = next
      if (!this.has(address)) return address
    }
    return address
  }

  private has(address: string): boolean {
    const version = isIP(address)
    return version !== 0 && this.list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}

/** Without brackets and port; an IPv4-mapped address as IPv4. */
function plain(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1]
  const address = bracketed ?? (/^\d+\.\d+\.\d+\.\d+:\d+$/.test(text) ? text.split(':')[0] : text)
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '')
}
