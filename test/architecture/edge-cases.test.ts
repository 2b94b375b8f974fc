/**
 * Goal: every edge case of `docs/edge-cases.md` has the test that the page names, or says why it cannot
 * arise; no case is left out, and no test is missing from the page.
 * Method: the page's table against the titles in `test/edge-cases`; each rule is also fed a breach.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { filesBelow, type Source } from './tree.js'

/** How many cases there are: the page is complete or wrong. */
const CASES = 70

interface Row {
  readonly number: number
  readonly what: string
  readonly here: string
  readonly shownBy: string
}

interface Title {
  readonly number: number
  readonly what: string
  readonly file: string
  readonly comment: string
}

function rowsOf(page: string): Row[] {
  const line = /^\| *(\d+) *\| *(.*?) *\| *(.*?) *\| *(.*?) *\|$/gm
  return [...page.matchAll(line)].map(([, number, what = '', here = '', shownBy = '']) => {
    return { number: Number(number), what, here, shownBy: shownBy.replaceAll('`', '') }
  })
}

const TITLE =
  /t\.test\(\s*(['`"])(\d+): ((?:(?!\1).)*?)(?:: \$\{dialect\})?\1,\s*(?:async )?\(t\) => \{\s*(\/\/ [^\n]*)?/g

function titlesOf({ path, text }: Source): Title[] {
  return [...text.matchAll(TITLE)].map(([, , number, what = '', comment = '']) => {
    return { number: Number(number), what, comment, file: path.replace('edge-cases/', '') }
  })
}

function breaches(rows: readonly Row[], titles: readonly Title[]): string[] {
  const found: string[] = []
  const numbers = rows.map(({ number }) => number)
  for (let number = 1; number <= CASES; number += 1) {
    if (numbers.filter((it) => it === number).length !== 1) found.push(`${number}: not one row`)
  }
  for (const { number, what, here, shownBy } of rows) {
    const own = titles.filter((title) => title.number === number)
    if (shownBy === '—') {
      if (!here.startsWith('Cannot arise: ')) found.push(`${number}: no test and no reason`)
      if (own.length > 0) found.push(`${number}: has a test`)
    } else if (!own.some((title) => title.what === what && title.file === shownBy)) {
      found.push(`${number}: no test “${what}” in ${shownBy}`)
    }
  }
  for (const { number, comment } of titles) {
    if (!numbers.includes(number)) found.push(`${number}: not on the page`)
    if (comment === '') found.push(`${number}: says not where it comes from`)
  }
  return found
}

void t.test('every case has its test, or the reason why there is none', (t) => {
  const rows = rowsOf(readFileSync('docs/edge-cases.md', 'utf8'))
  const titles = filesBelow('test', '.ts')
    .filter(({ path }) => path.startsWith('edge-cases/'))
    .flatMap(titlesOf)
  t.strictSame(breaches(rows, titles), [])
  t.comment(`${titles.length} tests, ${rows.length - titles.length} that cannot arise`)
  t.end()
})

void t.test('a breach of each rule is found', (t) => {
  const good = Array.from({ length: CASES }, (_, at) => {
    return { number: at + 1, what: 'x', here: 'y', shownBy: 'a.test.ts' }
  })
  const text = good
    .map(({ number }) => `t.test('${number}: x', (t) => {\n  // Here.\n})`)
    .join('\n')
  const titles = titlesOf({ path: 'edge-cases/a.test.ts', text })
  const found = (rows: Row[], its = titles): string => breaches(rows, its).join('\n')
  t.equal(found(good), '')
  const changed = (row: Partial<Row>): Row[] =>
    good.map((it) => (it.number === 7 ? { ...it, ...row } : it))
  t.match(found(good.slice(1)), /1: not one row\n1: not on the page/)
  t.match(found(changed({ number: 8 })), /7: not one row\n8: not one row/)
  t.match(found(changed({ what: 'z' })), /7: no test “z”/)
  t.match(found(changed({ shownBy: 'b.test.ts' })), /7: no test “x” in b/)
  t.match(
    found(changed({ shownBy: '—', here: 'Never.' })),
    /7: no test and no reason\n7: has a test/,
  )
  const bare = titlesOf({ path: 'edge-cases/a.test.ts', text: text.replace('  // Here.\n', '') })
  t.match(found(good, bare), /1: says not where it comes from/)
  t.end()
})
