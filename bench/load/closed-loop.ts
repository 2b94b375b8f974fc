/**
 * A closed loop of 32 keep-alive connections on one core, with wrk or the built-in generator, or requests at
 * a fixed rate on them. A run in which a reply is not a 200 fails.
 */
import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { objectOf } from '../../src/base/json.js'
import type { Children } from '../processes/children.js'
import { CORES, cpuBetween, cpuTime, findProgram } from '../processes/machine.js'
import { postBytes, ReplyReader } from './raw-http.js'

/** The request that is repeated. */
export interface LoadRequest {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The measured processes and the amount of load. */
export interface Load {
  /** The process under test, or all processes of it. */
  readonly pids: number | readonly number[]
  readonly seconds: number
  /** Keep-alive connections (default 32). */
  readonly connections?: number
  /** Requests a second, sent at fixed times; absent: as many as the process replies to. */
  readonly perSecond?: number
}

/** One run against one process. */
export interface Run {
  readonly replies: number
  readonly repliesPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** User and system time of the process under test, and the part of it in helper threads. */
  readonly cpuMicrosecondsEach: number
  readonly helperMicrosecondsEach: number
  /** The share of its core that the process used; below 0.9 it was not the bottleneck. */
  readonly busy: number
}

const CONNECTIONS = 32

/** Runs the load. Rejects if a reply was not a 200 or a socket failed. */
export async function closedLoop(children: Children, request: LoadRequest, load: Load): Promise<Run> {
  const command = commandFor(children, request, load)
  const before = cpuTime(load.pids)
  const text = await outputOf(children, command)
  const cpu = cpuBetween(before, cpuTime(load.pids))
  const last = text.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) throw new Error(`the load generator printed: ${text.trim()}`)
  const found = objectOf(JSON.parse(last) as unknown)
  const replies = Number(found.replies)
  const elapsed = Number(found.seconds)
  const failures = Number(found.failures)
  if (failures > 0 || replies === 0) {
    throw new Error(`${failures} of ${replies} exchanges failed on port ${request.port}`)
  }
  return {
    replies,
    repliesPerSecond: replies / elapsed,
    p50Ms: Number(found.p50Ms),
    p99Ms: Number(found.p99Ms),
    cpuMicrosecondsEach: cpu.all / replies,
    helperMicrosecondsEach: cpu.helpers / replies,
    busy: cpu.all / 1e6 / elapsed,
  }
}

/** One request on a new connection: its status and all received text. */
export function sendOnce(request: LoadRequest): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(request.port, '127.0.0.1')
    const reader = new ReplyReader((status, text) => {
      socket.destroy()
      resolve({ status, text })
    })
    socket.on('data', (bytes) => reader.write(bytes))
    socket.once('error', reject)
    socket.once('end', () => reject(new Error(`port ${request.port} closed without a reply`)))
    socket.setTimeout(10_000, () => reject(new Error(`port ${request.port} did not reply within 10 s`)))
    socket.write(postBytes(request.path, request.headers, request.body))
  })
}

function commandFor(children: Children, request: LoadRequest, load: Load): string[] {
  const { seconds, connections = CONNECTIONS, perSecond = 0 } = load
  const wrk = findProgram('wrk')
  // wrk has no fixed rate.
  if (wrk === null || perSecond > 0) {
    const own = fileURLToPath(new URL('closed-loop-process.js', import.meta.url))
    // A prompt of 1 MB is too long for an argument.
    const file = join(children.folder, 'closed-loop.json')
    writeFileSync(file, JSON.stringify({ ...request, connections, seconds, perSecond }), { mode: 0o600 })
    return [process.execPath, own, file]
  }
  const script = join(children.folder, 'wrk.lua')
  writeFileSync(script, luaOf(request), { mode: 0o600 })
  const url = `http://127.0.0.1:${request.port}${request.path}`
  return [wrk, '-t1', '--timeout', '30s', `-c${connections}`, `-d${seconds}s`, '-s', script, url]
}

function luaOf({ headers, body }: LoadRequest): string {
  const lines = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[ [==[${name}]==] ] = [==[${value}]==]`,
  )
  return `wrk.method = 'POST'
wrk.headers['content-type'] = 'application/json'
${lines.join('\n')}
wrk.body = [==[${body}]==]
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"replies":%d,"seconds":%.6f,"failures":%d,"p50Ms":%.3f,"p99Ms":%.3f}\\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`
}

function outputOf(children: Children, command: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const { process: child } = children.start(CORES.rest, command, {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    child.stdout?.on('data', (bytes: Buffer) => (text += bytes.toString()))
    child.stderr?.on('data', (bytes: Buffer) => (text += bytes.toString()))
    child.once('error', reject)
    child.once('close', () => resolve(text))
  })
}
