// Draws the requests per second of each upstream from Prometheus.
const LEVELS = ' ▁▂▃▄▅▆▇█'
const QUERY = 'sum by (upstream) (rate(sluice_requests_total{upstream!=""}[3s]))'

export async function graph(prometheus, fromMs) {
  const range = new URLSearchParams({
    query: QUERY,
    start: String(fromMs / 1000),
    end: String(Date.now() / 1000),
    step: '1',
  })
  const response = await fetch(`${prometheus}/api/v1/query_range?${range}`)
  const { data } = await response.json()
  const rows = data.result.map(({ metric, values }) => ({
    name: metric.upstream,
    points: values.map(([second, value]) => ({ at: Math.round(second - fromMs / 1000), value })),
  }))
  const most = Math.max(1, ...rows.flatMap(({ points }) => points.map(({ value }) => value)))
  const last = Math.max(0, ...rows.flatMap(({ points }) => points.map(({ at }) => at)))
  const lines = rows
    .sort((a, b) => a.name.localeCompare(b.name))
    .map(({ name, points }) => {
      const bars = Array.from({ length: last + 1 }, () => ' ')
      for (const { at, value } of points) bars[at] = barOf(value / most)
      return `${name.padEnd(10)} ${bars.join('')}`
    })
  return `\nRequests per second by upstream, one column a second, full height ${most.toFixed()}\n${QUERY}\n${lines.join('\n')}`
}

function barOf(share) {
  return LEVELS[Math.round(share * (LEVELS.length - 1))]
}
