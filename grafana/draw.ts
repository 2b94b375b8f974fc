/**
 * Draws the boards from a running Prometheus, without Grafana:
 * `node build/grafana/draw.js http://localhost:9090 [MINUTES] [FOLDER]` writes one SVG per board.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { drawBoard, isBoard } from './draw/board.js'
import { PrometheusClient } from './draw/query.js'

const BOARDS = ['overview', 'providers', 'streams', 'internals'].map((name) =>
  join('grafana', 'dashboards', `${name}.json`),
)
const POINTS = 72

/** The source of the data, the time range and the folder of the files. */
export interface DrawOptions {
  readonly origin: string
  /** The length of the time range, which ends now. */
  readonly seconds: number
  /** Replaces `$__rate_interval`; at least four scrapes. */
  readonly rateInterval: string
  readonly folder: string
}

/** Writes the files and returns their paths. */
export async function drawBoards(options: DrawOptions): Promise<string[]> {
  const { origin, seconds, rateInterval, folder } = options
  mkdirSync(folder, { recursive: true })
  const prometheus = new PrometheusClient(origin)
  const to = Math.floor(Date.now() / 1000)
  const range = { from: to - seconds, to, step: Math.max(1, Math.round(seconds / POINTS)) }
  const written: string[] = []
  for (const path of BOARDS) {
    const board: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isBoard(board)) throw new Error(`${path} is no board`)
    const file = join(folder, basename(path).replace(/json$/, 'svg'))
    writeFileSync(file, await drawBoard(board, prometheus, range, rateInterval))
    written.push(file)
  }
  return written
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [origin, minutes = '180', folder = join('grafana', 'pictures')] = process.argv.slice(2)
  if (origin === undefined) {
    process.stderr.write('Usage: node build/grafana/draw.js http://HOST:9090 [MINUTES] [FOLDER]\n')
    process.exit(2)
  }
  const seconds = Number(minutes) * 60
  const files = await drawBoards({ origin, seconds, rateInterval: '2m', folder })
  process.stdout.write(`${files.join('\n')}\n`)
}
