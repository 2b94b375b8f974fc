/**
 * Makes `grafana/pictures/*.svg`: four minutes of traffic, with failing upstreams in the middle, drawn from a
 * real Prometheus. Run by `npm run picture:boards`; not a test of its own.
 */
import { join } from 'node:path'
import t from 'tap'
import { drawBoards } from '../../grafana/draw.js'
import { startPrometheus } from '../helpers/prometheus.js'
import { startScene } from './scene.js'

const SECONDS = 240
/** The time in which upstreams fail. */
const TROUBLE = { from: 90, to: 150 }

t.setTimeout(600_000)
void t.test('pictures of the boards', async (t) => {
  const scene = await startScene(t, 10)
  const prometheus = await startPrometheus(t, { scrapes: scene.opsPort, ruleFiles: [] })
  const began = Date.now()
  for (let elapsed = 0; elapsed < SECONDS; elapsed = (Date.now() - began) / 1000) {
    const calm = Array.from({ length: 1 + Math.floor(Math.random() * 4) }, () => scene.calm())
    const isTrouble = elapsed > TROUBLE.from && elapsed < TROUBLE.to
    await Promise.all([...calm, ...(isTrouble ? [scene.round()] : [])])
    await new Promise((next) => setTimeout(next, 200 + Math.random() * 300))
  }
  const folder = join('grafana', 'pictures')
  const files = await drawBoards({
    origin: prometheus.origin,
    // The first scrapes are skipped.
    seconds: SECONDS - 20,
    rateInterval: '15s',
    folder,
  })
  t.equal(files.length, 4)
})
