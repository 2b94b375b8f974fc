/**
 * The built-in load generator for machines without wrk, and for fixed rates, a separate process: a closed
 * loop on plain sockets. Its argument is the file of its settings. Prints the
 * same line of JSON as the wrk script.
 */
import { readFileSync } from 'node:fs'
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
  const perSecond = numberField(given, 'perSecond')
  /** Connections that wait for their time. */
  const idle: (() => void)[] = []
  let sent = 0
  const from = performance.now()
  const until = from + seconds * 1000

  const sendDue = (): void => {
    if (performance.now() >= until) {
      clearInterval(timer)
      for (const next of idle.splice(0)) next()
      return
    }
    const due = ((performance.now() - from) / 1000) * perSecond
    while (sent < due && idle.length > 0) {
      sent += 1
      idle.shift()?.()
    }
  }
  const timer = setInterval(sendDue, 1)
  if (perSecond === 0) clearInterval(timer)

  for (let index = 0; index < connections; index++) {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    let sentAt = 0
    const send = (): void => {
      sentAt = performance.now()
      if (sentAt < until) socket.write(bytes)
      else socket.destroy()
    }
    const next = (): void => {
      if (perSecond > 0 && performance.now() < until) idle.push(send)
      else send()
    }
    const reader = new ReplyReader((status) => {
      if (status === 200) latencies.push(performance.now() - sentAt)
      else failures += 1
      next()
    })
    socket.once('connect', next)
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

run(readFileSync(process.argv[2] ?? '', 'utf8'))
