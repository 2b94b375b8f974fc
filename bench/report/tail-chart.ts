/**
 * Distributions of times as an SVG: for each time, the share of samples that took longer. Both axes are
 * logarithmic, so that the slowest hundredth is as visible as the median.
 */

/** One curve. */
export interface Curve {
  readonly name: string
  /** A CSS colour. */
  readonly color: string
  readonly samplesMs: readonly number[]
}

const WIDTH = 720
const HEIGHT = 360
const PLOT = { left: 70, right: 20, top: 40, bottom: 45 } as const
const TIMES_MS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
const SHARES = [1, 0.1, 0.01, 0.001]
/** Points of a curve. */
const STEPS = 200

/** A complete SVG file. Times outside 10 ms to 5 s and shares below 0.1 % are on the edge of the chart. */
export function tailChart(title: string, curves: readonly Curve[]): string {
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(title, { x: WIDTH / 2, y: 20, anchor: 'middle' }),
    ...TIMES_MS.flatMap((ms) => [
      rule({ x1: xOf(ms), y1: yOf(SHARES.at(-1) ?? 1), x2: xOf(ms), y2: yOf(1) }),
      text(ms < 1000 ? `${ms} ms` : `${ms / 1000} s`, {
        x: xOf(ms),
        y: HEIGHT - PLOT.bottom + 18,
        anchor: 'middle',
      }),
    ]),
    ...SHARES.flatMap((share) => [
      rule({ x1: xOf(0), y1: yOf(share), x2: xOf(Infinity), y2: yOf(share) }),
      text(`${share * 100} %`, { x: PLOT.left - 8, y: yOf(share) + 4, anchor: 'end' }),
    ]),
    ...curves.flatMap(({ name, color, samplesMs }, index) => [
      `<polyline fill="none" stroke="${color}" stroke-width="2" points="${pointsOf(samplesMs)}"/>`,
      text(name, {
        x: WIDTH - PLOT.right - 10,
        y: PLOT.top + 18 * (index + 1),
        anchor: 'end',
        fill: color,
      }),
    ]),
    '</svg>',
  ]
  return `${lines.join('\n')}\n`
}

/** At shares that are evenly spaced on the axis. */
function pointsOf(samplesMs: readonly number[]): string {
  const sorted = samplesMs.toSorted((a, b) => a - b)
  const lowest = SHARES.at(-1) ?? 1
  const points = Array.from({ length: STEPS + 1 }, (_, step) => {
    const share = lowest ** (step / STEPS)
    const index = Math.min(sorted.length - 1, Math.floor(sorted.length * (1 - share)))
    return `${xOf(sorted[index] ?? 0).toFixed(1)},${yOf(share).toFixed(1)}`
  })
  return points.join(' ')
}

function xOf(ms: number): number {
  const [from = 1, to = 1] = [TIMES_MS[0], TIMES_MS.at(-1)]
  const at = Math.log(Math.min(to, Math.max(from, ms)) / from) / Math.log(to / from)
  return PLOT.left + at * (WIDTH - PLOT.left - PLOT.right)
}

function yOf(share: number): number {
  const at = Math.log(share) / Math.log(SHARES.at(-1) ?? 1)
  return PLOT.top + at * (HEIGHT - PLOT.top - PLOT.bottom)
}

function rule({ x1, y1, x2, y2 }: { x1: number; y1: number; x2: number; y2: number }): string {
  return `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="#ddd"/>`
}

function text(
  content: string,
  { x, y, anchor, fill = '#333' }: { x: number; y: number; anchor: string; fill?: string },
): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${fill}">${content}</text>`
}
