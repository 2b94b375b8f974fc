/**
 * The built-in load generator for machines without wrk, a separate process: a closed loop on plain sockets.
 * Prints the same line of JSON as the wrk script.
 */
import { createConnection } from 'node:net'
import { isObject, objectOf } from '../../src/base/json.js'
import { numberField, postBytes, ReplyReader, textField } from './raw-http.js'

function run(given: string): void {
  const port = numberField(given, 'port')
  const seconds = numberField(given, 'seconds')
  const connections = numberField(given, 'connections')
  const settings: unknown = JSON.parse(given)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(isObject(settings) ? objectOf(settings.headers) : {})) {
    if (typeof value === 'string') headers[name] = value
  }
  const bytes = postBytes(textField(given, 'path'), headers, textField(given, 'body'))
  const latencies: number[] = []
  let failures = 0
  const from = performance.now()
  const until = from + seconds * 1000

  for (let index = 0; index < connections; index++) {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    let sentAt = 0
    const send = (): void => {
      sentAt = performance.now()
      socket.write(bytes)
    }
    const reader = new ReplyReader((status) => {
      if (status === 200) latencies.push(performance.now() - sentAt)
      else failures += 1
      if (performance.now() < until) send()
      else socket.destroy()
    })
    socket.once('connect', send)
    socket.on('data', (chunk) => reader.write(chunk))
    socket.once('error', () => (failures += 1))
  }

  process.once('beforeExit', () => {
    latencies.sort((a, b) => a - b)
    const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0
    console.log(
      JSON.stringify({
        replies: latencies.length,
        seconds: (performance.now() - from) / 1000,
        failures,
        p50Ms: at(0.5),
        p99Ms: at(0.99),
      }),
    )
  })
}

run(process.argv[2] ?? '')
