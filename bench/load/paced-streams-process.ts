/**
 * The process of the paced clients: `node paced-streams-process.js '{"port":…,…}'`. Opens streams on plain
 * sockets and counts fragments, so that a loss is detected.
 */
import { createConnection } from 'node:net'
import { isObject, objectOf } from '../../src/base/json.js'
import { MARKER } from './sample-traffic.js'
import { numberField, postBytes, statusOf, textField } from './raw-http.js'

/** Sockets opened at once, every 20 ms. */
const WAVE = 20
const WAVE_MS = 20
const LAST = '\r\n0\r\n\r\n'

/** Counts the marker in one stream, also across chunks. */
class Counter {
  fragments = 0
  private carry = ''
  private tail = ''

  /** The number of new fragments in these bytes. */
  add(text: string): number {
    const joined = this.carry + text
    let found = 0
    for (let at = joined.indexOf(MARKER); at >= 0; at = joined.indexOf(MARKER, at + 1)) found += 1
    this.carry = joined.slice(-(MARKER.length - 1))
    this.tail = (this.tail + text).slice(-LAST.length)
    this.fragments += found
    return found
  }

  get ended(): boolean {
    return this.tail === LAST
  }
}

function run(given: string): void {
  const port = numberField(given, 'port')
  const streams = numberField(given, 'streams')
  const expected = numberField(given, 'fragments')
  const bytes = postBytes(textField(given, 'path'), headersOf(given), textField(given, 'body'))
  const state = { opened: 0, total: 0, reads: 0, whole: 0, broken: 0, firstFault: '' }

  const settle = (fault: string | null): void => {
    if (fault === null) state.whole += 1
    else {
      state.broken += 1
      state.firstFault ||= fault
    }
    if (state.whole + state.broken === streams) process.send?.({ type: 'done', ...state })
  }

  const open = (): void => {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    const counter = new Counter()
    let isFirst = true
    let isSettled = false
    const end = (fault: string | null): void => {
      if (isSettled) return
      isSettled = true
      socket.destroy()
      settle(fault)
    }
    socket.once('connect', () => socket.write(bytes))
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1')
      if (isFirst) {
        isFirst = false
        const status = statusOf(text)
        if (status !== 200) return end(`status ${status}: ${text.slice(0, 300)}`)
        state.opened += 1
        if (state.opened === streams) process.send?.({ type: 'open' })
      }
      state.total += counter.add(text)
      state.reads += 1
      if (!counter.ended) return
      const { fragments } = counter
      end(fragments === expected ? null : `${fragments} fragments of ${expected}`)
    })
    socket.once('error', (error) => end(error.message))
    socket.once('close', () => end('closed before its end'))
  }

  let started = 0
  const waves = setInterval(() => {
    for (let index = 0; index < WAVE && started < streams; index++, started++) open()
    if (started === streams) clearInterval(waves)
  }, WAVE_MS)
  process.on('message', (message) => {
    if (message === 'count') process.send?.({ type: 'count', total: state.total, reads: state.reads })
  })
}

function headersOf(given: string): Record<string, string> {
  const settings: unknown = JSON.parse(given)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(isObject(settings) ? objectOf(settings.headers) : {})) {
    if (typeof value === 'string') headers[name] = value
  }
  return headers
}

process.once('disconnect', () => process.exit(0))
run(process.argv[2] ?? '')
