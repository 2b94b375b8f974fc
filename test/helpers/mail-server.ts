/** A mail server of a few lines on a free port, which keeps what it gets. */
import { createServer } from 'node:net'
import type { Test } from 'tap'
import { listen } from './listen.js'

/** A running server. */
export interface MailServer {
  readonly port: number
  /** The mails with their headers. */
  readonly received: string[]
  /** Recipients that are refused once each. */
  readonly refuse: Set<string>
}

/** Starts a server that accepts every mail. */
export async function startMailServer(t: Test): Promise<MailServer> {
  const received: string[] = []
  const refuse = new Set<string>()
  const server = createServer((socket) => {
    let buffer = ''
    let isData = false
    socket.on('error', () => undefined)
    socket.write('220 test\r\n')
    socket.on('data', (chunk) => {
      buffer += chunk.toString()
      for (;;) {
        const end = isData ? '\r\n.\r\n' : '\r\n'
        const at = buffer.indexOf(end)
        if (at < 0) return
        const line = buffer.slice(0, at)
        buffer = buffer.slice(at + end.length)
        if (isData) {
          received.push(line)
          isData = false
          socket.write('250 ok\r\n')
        } else if (line.startsWith('EHLO')) socket.write('250-test\r\n250 AUTH PLAIN\r\n')
        else if (line.startsWith('AUTH')) socket.write('235 ok\r\n')
        else if (line.startsWith('DATA')) {
          isData = true
          socket.write('354 go\r\n')
        } else if (line.startsWith('QUIT')) socket.end('221 bye\r\n')
        else {
          const [, to = ''] = /^RCPT TO:<([^>]*)>/.exec(line) ?? []
          socket.write(refuse.delete(to) ? '451 later\r\n' : '250 ok\r\n')
        }
      }
    })
  })
  return { port: await listen(t, server), received, refuse }
}
