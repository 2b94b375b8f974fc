/**
 * Goal: every edge case of `docs/reference/test-cases/edge-cases.md` has the test that the page names, or the
 * reason why it cannot arise; no number and no test is missing from the page.
 * Method: compares the page's table with the titles in `test/edge-cases`; a breach of each rule is reported.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { gaps, rowsOf, type Row } from './case-tables.js'
import { filesBelow, type Source } from '../source-tree.js'

/** Number of cases. */
const CASES = Array.from({ length: 70 }, (_, at) => String(at + 1))

interface Title {
  readonly id: string
  readonly what: string
  readonly file: string
  readonly comment: string
}

const TITLE =
  /t\.test\(\s*(['`"])(\d+): ((?:(?!\1).)*?)(?:: \$\{dialect\})?\1,\s*(?:async )?\(t\) => \{\s*(\/\/ [^\n]*)?/g

function titlesOf({ path, text }: Source): Title[] {
  return [...text.matchAll(TITLE)].map(([, , id = '', what = '', comment = '']) => {
    return { id, what, comment, file: path.replace('edge-cases/', '') }
  })
}

function breaches(rows: readonly Row[], titles: readonly Title[]): string[] {
  const found = gaps(rows, CASES)
  for (const { id, what, shownBy } of rows) {
    const own = titles.filter((title) => title.id === id)
    if (shownBy === '—') {
      if (own.length > 0) found.push(`${id}: has a test`)
    } else if (!own.some((title) => title.what === what && title.file === shownBy)) {
      found.push(`${id}: no test “${what}” in ${shownBy}`)
    }
  }
  for (const { id, comment } of titles) {
    if (!rows.some((row) => row.id === id)) found.push(`${id}: not on the page`)
    if (comment === '') found.push(`${id}: has no comment that cites its source`)
  }
  return found
}

void t.test('every case has its test or a reason', (t) => {
  const rows = rowsOf(readFileSync('docs/reference/test-cases/edge-cases.md', 'utf8'), '\\d+')
  const titles = filesBelow('test', '.ts')
    .filter(({ path }) => path.startsWith('edge-cases/'))
    .flatMap(titlesOf)
  t.strictSame(breaches(rows, titles), [])
  t.comment(`${titles.length} tests, ${rows.length - titles.length} that cannot arise`)
  t.end()
})

void t.test('a breach of each rule is found', (t) => {
  const good = CASES.map((id) => ({ id, what: 'x', here: 'y', shownBy: 'a.test.ts' }))
  const text = good.map(({ id }) => `t.test('${id}: x', (t) => {\n  // Here.\n})`).join('\n')
  const titles = titlesOf({ path: 'edge-cases/a.test.ts', text })
  const found = (rows: Row[], its = titles): string => breaches(rows, its).join('\n')
  t.equal(found(good), '')
  const changed = (row: Partial<Row>): Row[] => good.map((it) => (it.id === '7' ? { ...it, ...row } : it))
  t.match(found(good.slice(1)), /1: not one row\n1: not on the page/)
  t.match(found(changed({ id: '8' })), /7: not one row\n8: not one row/)
  t.match(found(changed({ what: 'z' })), /7: no test “z”/)
  t.match(found(changed({ shownBy: 'b.test.ts' })), /7: no test “x” in b/)
  t.match(found(changed({ shownBy: '—', here: 'Never.' })), /7: no test and no reason\n7: has a test/)
  const bare = titlesOf({ path: 'edge-cases/a.test.ts', text: text.replace('  // Here.\n', '') })
  t.match(found(good, bare), /1: has no comment that cites its source/)
  t.end()
})
