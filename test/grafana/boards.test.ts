/**
 * Goal: the committed boards match the code, every panel has a description, and every name in boards, rules
 * and runbook exists.
 * Method: the files are read; names, labels and label values are compared with the code.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { boardFiles } from '../../grafana/boards/index.js'
import { BOARDS, VARIABLES } from '../../grafana/boards/links.js'
import { runbookSections } from '../../grafana/boards/runbook.js'
import { DEFINITIONS } from '../../src/observe/metrics/metric-definitions.js'
import { alerts, annotationExpressions, boards, panelExpressions, type PanelJson } from './boards.js'
import { knownMetrics, namesIn, VALUES, valuesOfRows } from './names.js'

function allPanels(): PanelJson[] {
  return boards().flatMap(({ panels }) => panels)
}

function panelsOf(type: string): PanelJson[] {
  return allPanels().filter((panel) => panel.type === type)
}

void t.test('the committed boards are current', (t) => {
  for (const { path, text } of boardFiles()) {
    t.ok(readFileSync(path, 'utf8') === text, `${path}: run npm run generate`)
  }
  t.equal(boards().length, boardFiles().length, 'and there are no others')
  t.end()
})

void t.test('every panel has a description, a unit and a free position', (t) => {
  for (const { title: board, panels } of boards()) {
    const taken = new Set<string>()
    t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, `${board}: ids are distinct`)
    for (const { title, type, gridPos, description, fieldConfig, targets } of panels) {
      const where = `${board}: ${title}`
      if (type !== 'row') t.match(description, /^[A-Z`].{10,}\.$/s, `${where}: description`)
      if (type !== 'row' && type !== 'text') {
        t.ok(targets.length > 0, `${where}: a query`)
        t.ok((fieldConfig?.defaults.unit ?? '') !== '', `${where}: a unit`)
      }
      t.ok(gridPos.x + gridPos.w <= 24, `${where}: within the width`)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          if (taken.has(`${x},${y}`)) t.fail(`${where}: overlaps at ${x},${y}`)
          taken.add(`${x},${y}`)
        }
      }
    }
  }
  t.end()
})

void t.test('boards have the same variables and annotations, and link to each other', (t) => {
  const uids = new Set<string>(Object.values(BOARDS))
  const ids = new Map(boards().map(({ uid, panels }) => [uid, new Set(panels.map(({ id }) => id))]))
  for (const { uid, title, templating, annotations, panels } of boards()) {
    t.ok(uids.has(uid), title)
    if (uid === BOARDS.Runbook) continue
    const variables = (templating?.list ?? []).map(({ name }) => name)
    t.same(variables, [...VARIABLES], title)
    const marks = (annotations?.list ?? []).map(({ name }) => name)
    t.same(marks, ['Configuration reloaded', 'Configuration refused', 'Process started'], title)
    const links = panels.flatMap(({ links, fieldConfig }) => [
      ...links,
      ...(fieldConfig?.defaults.links ?? []),
    ])
    t.ok(
      links.some(({ url }) => url.includes(BOARDS.Runbook)),
      `${title} links to the runbook`,
    )
    t.ok(
      links.some(({ url }) => !url.includes(BOARDS.Runbook)),
      `${title} links to a board`,
    )
    for (const { url } of links) {
      const target = /^\/d\/([a-z-]+)\?(?:viewPanel=(\d+)$)?/.exec(url)
      t.ok(uids.has(target?.[1] ?? ''), url)
      if (target?.[2] !== undefined) t.ok(ids.get(target[1] ?? '')?.has(Number(target[2])), url)
    }
  }
  t.end()
})

void t.test('the first two rows of a board are open, the others collapsed', (t) => {
  for (const { title, panels } of boards()) {
    const rows = panels.filter(({ type }) => type === 'row')
    t.ok(rows.length > 2, title)
    t.same(
      rows.map(({ collapsed }) => collapsed),
      rows.map((_, index) => index >= 2),
      title,
    )
    for (const row of rows) t.equal(row.panels.length > 0, row.collapsed, `${title}: ${row.title}`)
  }
  t.end()
})

void t.test('lines start at 0 and have the last, highest and mean value in their legend', (t) => {
  const lines = panelsOf('timeseries')
  t.ok(lines.length > 60)
  for (const { title, fieldConfig, options } of lines) {
    t.equal(fieldConfig?.defaults.min, 0, `${title}: axis`)
    t.same(options?.legend, { displayMode: 'table', calcs: ['lastNotNull', 'max', 'mean'] }, title)
  }
  t.end()
})

void t.test('a latency without requests is unknown, not zero', (t) => {
  for (const { where, text } of panelExpressions()) {
    if (!/histogram_quantile|_count\{|_timestamp_seconds|lag_/.test(text)) continue
    t.notMatch(text, 'vector(0)', where)
  }
  for (const { title, fieldConfig, targets } of allPanels()) {
    if (fieldConfig?.defaults.unit !== 's') continue
    for (const { expr } of targets) {
      const isShareOfTime = /^sum.*rate\(\w+_seconds_(sum|total)\{[^/]*$/.test(expr)
      if (!isShareOfTime) t.notMatch(expr, 'vector(0)', title)
    }
  }
  t.end()
})

void t.test('every threshold has values on both sides', (t) => {
  const buckets = new Map<string, number>(
    Object.values(DEFINITIONS).flatMap(({ name, buckets }) => {
      const highest = buckets?.at(-1)
      return highest === undefined ? [] : [[name, highest] as const]
    }),
  )
  let found = 0
  for (const { title, fieldConfig, targets } of allPanels()) {
    const values = (fieldConfig?.defaults.thresholds?.steps ?? []).flatMap(({ value }) => value ?? [])
    const expr = targets.map((target) => target.expr).join(' ')
    for (const [index, value] of values.entries()) {
      found += 1
      t.ok(value > (values[index - 1] ?? 0), `${title}: ${values.join(', ')}`)
      const histogram = /histogram_quantile.*?(\w+)_bucket/.exec(expr)?.[1]
      if (histogram !== undefined) t.ok(value < (buckets.get(histogram) ?? 0), `${title}: ${value}`)
    }
  }
  t.ok(found > 40, `${found} thresholds`)
  t.end()
})

void t.test('states are words, and statuses have the colour of their class', (t) => {
  const table = panelsOf('table').find(({ title }) => title === 'Upstreams side by side')
  const breaker = table?.fieldConfig?.overrides.find(({ matcher }) => matcher.options === 'Circuit breaker')
  const words = breaker?.properties.find(({ id }) => id === 'mappings')?.value
  t.match(words, [{ options: { 0: { text: 'Closed' }, 1: { text: 'Half-open' }, 2: { text: 'Open' } } }])
  const byStatus = allPanels().filter(({ targets }) =>
    targets.some(({ legendFormat }) => /\{\{status\}\}$/.test(legendFormat)),
  )
  t.equal(byStatus.length, 2)
  for (const { title, fieldConfig } of byStatus) {
    const colourOf = (name: string): unknown => {
      const matching = (fieldConfig?.overrides ?? []).filter(({ matcher }) => {
        return new RegExp(String(matcher.options).slice(1, -1)).test(name)
      })
      return matching.at(-1)?.properties[0]?.value
    }
    for (const [status, fixedColor] of [
      ['200', 'green'],
      ['429', 'yellow'],
      ['499', 'gray'],
      ['503', 'red'],
    ] as const) {
      for (const name of [status, `openai ${status}`]) {
        t.match(colourOf(name), { mode: 'shades', fixedColor }, `${title}: ${name}`)
      }
    }
    t.equal(colourOf('none'), undefined)
  }
  t.end()
})

void t.test('latencies of requests show exemplars', (t) => {
  const shown = allPanels().filter(({ targets }) => targets.some(({ exemplar }) => exemplar))
  const metrics = new Set(
    shown.flatMap(({ targets }) =>
      targets.flatMap(({ exemplar, expr }) => (exemplar ? (/(\w+)_bucket/.exec(expr)?.[1] ?? '') : [])),
    ),
  )
  t.same([...metrics].sort(), [
    'gen_ai_server_request_duration_seconds',
    'gen_ai_server_time_to_first_token_seconds',
    'sluice_overhead_seconds',
  ])
  t.end()
})

void t.test('accounts and keys are no labels: their spend is a link to the ledger', (t) => {
  for (const { name, labels } of Object.values(DEFINITIONS)) {
    t.notMatch(labels.join(' '), /account|key|member|user/, name)
  }
  const [panel] = allPanels().filter(({ title }) => title === 'Cost by account')
  t.match(panel?.options?.content, '${dashboard}/usage?account=all&group=account')
  t.end()
})

void t.test('expressions name metrics, labels and values that exist', async (t) => {
  const known = await knownMetrics()
  const all = [
    ...panelExpressions(),
    ...annotationExpressions(),
    ...alerts().map(({ alert, expr }) => ({ where: alert, text: expr, legend: '' })),
  ]
  t.ok(all.length > 80, `${all.length} expressions`)
  for (const { where, text, legend } of all) {
    const { metrics, labels, values, grouped, joined } = namesIn(text)
    t.ok(metrics.length > 0, `${where}: names a metric`)
    const allowed = new Set(['job', 'instance'])
    for (const metric of metrics) {
      t.ok(known.has(metric), `${where}: ${metric}`)
      for (const label of known.get(metric) ?? []) allowed.add(label)
    }
    // `label_replace` may add it.
    if (text.includes('"upstream", "$1"')) allowed.add('upstream')
    for (const label of joined) allowed.add(label)
    for (const label of [...labels, ...grouped]) t.ok(allowed.has(label), `${where}: ${label}`)
    for (const { label, value } of values) {
      const ofRows = label === 'kind' && metrics.includes(DEFINITIONS.usageRows.name)
      const set = ofRows ? valuesOfRows : VALUES[label]
      if (set !== undefined) t.ok(set.has(value), `${where}: ${label}="${value}"`)
    }
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
      t.ok(grouped.has(label), `${where}: the legend's ${label}`)
    }
  }
})

void t.test('every metric of the gateway is on a board', (t) => {
  const text = panelExpressions()
    .map((expression) => expression.text)
    .join('\n')
  for (const { name } of Object.values(DEFINITIONS)) {
    t.ok(new RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(text), `${name} is on a board`)
  }
  t.end()
})

void t.test('every alert has a section of the runbook, and every section an alert', (t) => {
  const sections = runbookSections()
  const anchors = new Map(
    sections.map((section) => {
      return [section.heading.toLowerCase().replaceAll(/[^a-z]+/g, '-'), section]
    }),
  )
  for (const { alert, annotations, labels } of alerts()) {
    const anchor = annotations.runbook_url.split('#')[1] ?? ''
    t.match(annotations.runbook_url, /^docs\/how-to\/runbook\.md#/)
    const section = anchors.get(anchor)
    t.ok(section, `${alert}: ${annotations.runbook_url}`)
    t.match(section?.text, `\`${alert}\``, `the section names ${alert}`)
    t.match(section?.text, labels.severity, `and its severity`)
  }
  const named = new Set(alerts().map(({ alert }) => alert))
  for (const { heading, text } of sections) {
    for (const part of ['**Meaning.**', '**Look at.**', '**Do.**']) t.match(text, part, heading)
    const [head = ''] = text.split('**Meaning.**')
    const own = [...head.matchAll(/`(Sluice\w+)`/g)].map(([, name = '']) => name)
    t.ok(own.length > 0, `${heading} names its alerts`)
    for (const name of own) t.ok(named.has(name), `${heading}: ${name}`)
  }
  t.end()
})

void t.test('panels that the runbook and the alerts name exist', (t) => {
  const titles = new Set(boards().flatMap(({ panels }) => panels.map(({ title }) => title)))
  const pattern = /(?:Overview|Providers|Streams|Gateway internals)(?:,|:) ((?:(?:, | and |: )?"[^"]+")+)/g
  const texts = [
    ...runbookSections().map(({ text }) => text),
    ...alerts().map(({ annotations }) => annotations.description.replace(/Board /g, '')),
  ]
  let found = 0
  for (const text of texts) {
    for (const [, list = ''] of text.matchAll(pattern)) {
      for (const [, title = ''] of list.matchAll(/"([^"]+)"/g)) {
        found += 1
        t.ok(titles.has(title), title)
      }
    }
  }
  t.ok(found > 25, `${found} names`)
  t.end()
})

void t.test('alerts and metrics that the pages name exist', (t) => {
  const folders = ['docs/how-to', 'docs/reference', 'docs/explanation']
  // Its tables have the prefix of the metrics.
  const archive = 'docs/reference/archive.md'
  const pages = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  const named = new Set(alerts().map(({ alert }) => alert))
  const known = new Set<string>(Object.values(DEFINITIONS).map(({ name }) => name))
  let found = 0
  for (const page of pages.filter((page) => page.endsWith('.md') && page !== archive)) {
    const text = readFileSync(page, 'utf8')
    for (const [, alert = ''] of text.matchAll(/`(Sluice[A-Z]\w+)`/g))
      t.ok(named.has(alert), `${page}: ${alert}`)
    for (const [, metric = ''] of text.matchAll(/`(sluice_\w+)[`{]/g)) {
      found += 1
      const isView = page === 'docs/how-to/archive.md' && !metric.startsWith('sluice_archive_')
      t.ok(isView || known.has(metric), `${page}: ${metric}`)
    }
  }
  t.ok(found > 50, `${found} metrics`)
  t.end()
})
