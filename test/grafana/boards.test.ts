/**
 * Goal: the committed boards match the code, every panel has a description, and every name in boards, rules
 * and runbook exists.
 * Method: the files are read; names, labels and label values are compared with the code.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { boardFiles } from '../../grafana/boards/index.js'
import { BOARDS } from '../../grafana/boards/links.js'
import { runbookSections } from '../../grafana/boards/runbook.js'
import { DEFINITIONS } from '../../src/observe/metrics/definitions.js'
import { alerts, annotationExpressions, boards, panelExpressions } from './boards.js'
import { knownMetrics, namesIn, VALUES, valuesOfRows } from './names.js'

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
    t.same(variables, ['datasource', 'instance', 'route', 'upstream', 'model'], title)
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

void t.test('expressions name metrics, labels and values that exist', async (t) => {
  const known = await knownMetrics()
  const all = [
    ...panelExpressions(),
    ...annotationExpressions(),
    ...alerts().map(({ alert, expr }) => ({ where: alert, text: expr, legend: '' })),
  ]
  t.ok(all.length > 80, `${all.length} expressions`)
  for (const { where, text, legend } of all) {
    const { metrics, labels, values, grouped } = namesIn(text)
    t.ok(metrics.length > 0, `${where}: names a metric`)
    const allowed = new Set(['job', 'instance'])
    for (const metric of metrics) {
      t.ok(known.has(metric), `${where}: ${metric}`)
      for (const label of known.get(metric) ?? []) allowed.add(label)
    }
    // `label_replace` may add it.
    if (text.includes('"upstream", "$1"')) allowed.add('upstream')
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
  const pattern =
    /(?:Overview|Providers|Streams|Gateway internals)(?:,|:) ((?:(?:, | and |: )?"[^"]+")+)/g
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
