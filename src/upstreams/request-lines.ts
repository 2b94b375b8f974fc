/**
 * The heads of requests to one upstream, up to the length of the body. Most are one of a few, and are put
 * together and checked once. Knows no connection.
 */
import { flat, isFieldText } from '../wire/http-message.js'

/** As many are kept as one upstream is asked in different ways most of the time. */
const MAX_KNOWN = 4

/** What goes upstream. `headers` is name, value, name, value; framing and host are added here. */
export interface UpstreamRequest {
  readonly path: string
  readonly method: string
  readonly headers: readonly string[]
  readonly body: Buffer | string
  /** How many the body has, in UTF-8 where it is a text. */
  readonly bytes: number
}

type Asked = Pick<UpstreamRequest, 'method' | 'path' | 'headers'>

interface Known extends Asked {
  readonly lines: string
}

/** Makes the heads of one upstream's requests. */
export class RequestLines {
  private readonly host: string
  private readonly known: Known[] = []

  /** `authority` is what the `host` header says. */
  constructor(authority: string) {
    this.host = authority
  }

  /** All lines but those of the body; null where a character may not stand in one. */
  of(asked: Asked): string | null {
    for (const each of this.known) if (isSame(each, asked)) return each.lines
    const lines = this.made(asked)
    if (lines === null) return null
    const { method, path, headers } = asked
    this.known.unshift({ method, path, headers, lines: flat(lines) })
    if (this.known.length > MAX_KNOWN) this.known.pop()
    return lines
  }

  private made({ method, path, headers }: Asked): string | null {
    if (!isFieldText(path)) return null
    let lines = `${method} ${path} HTTP/1.1\r\nhost: ${this.host}\r\nconnection: keep-alive\r\n`
    for (let at = 0; at < headers.length; at += 2) {
      const value = headers[at + 1] ?? ''
      if (!isFieldText(value)) return null
      lines += `${headers[at] ?? ''}: ${value}\r\n`
    }
    return lines
  }
}

/** Texts that are the same object are compared at once, and most of these are constants. */
function isSame(known: Asked, asked: Asked): boolean {
  const { headers } = asked
  if (known.path !== asked.path || known.method !== asked.method) return false
  if (known.headers.length !== headers.length) return false
  for (let at = 0; at < headers.length; at += 1) {
    if (known.headers[at] !== headers[at]) return false
  }
  return true
}
