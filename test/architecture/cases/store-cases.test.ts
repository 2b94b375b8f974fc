/**
 * Goal: every case of `docs/reference/test-cases/store-cases.md` has the test that the page names, or a
 * reason.
 * Method: compares the page's table with the texts of the tests; a breach of each rule is reported.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { gaps, rowsOf, type Row } from './case-tables.js'
import { filesBelow, type Source } from '../source-tree.js'

/** Ids of the store (H), and of limits and accounting (L). Numbers have gaps. */
const CASES = [
  ...[113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127].map(
    (number) => `H-${number}`,
  ),
  ...[179, 180, 181, 182, 184, 185, 186, 187, 188, 189, 190, 194].map((number) => `L-${number}`),
]

function breaches(rows: readonly Row[], tests: readonly Source[]): string[] {
  const found = gaps(rows, CASES)
  for (const { id, shownBy } of rows) {
    if (shownBy === '—') continue
    const colon = shownBy.indexOf(': ')
    const [path, title] = [shownBy.slice('test/'.length, colon), shownBy.slice(colon + 2)]
    const text = tests.find((test) => test.path === path)?.text ?? ''
    if (title === '' || !text.includes(title)) found.push(`${id}: no test “${title}” in ${path}`)
  }
  return found
}

void t.test('every case has its test or a reason', (t) => {
  const rows = rowsOf(readFileSync('docs/reference/test-cases/store-cases.md', 'utf8'), '[HL]-\\d+')
  t.strictSame(breaches(rows, filesBelow('test', '.ts')), [])
  t.end()
})

void t.test('a breach of each rule is found', (t) => {
  const good = CASES.map((id) => ({
    id,
    what: 'x',
    here: 'y',
    shownBy: 'test/a.test.ts: it: holds',
  }))
  const tests = [{ path: 'a.test.ts', text: "t.test('it: holds', (t) => {})" }]
  const found = (row: Partial<Row>): string =>
    breaches([{ ...(good[0] as Row), ...row }, ...good.slice(1)], tests).join('\n')
  t.equal(found({}), '')
  t.match(found({ id: 'H-1' }), /^H-113: not one row$/)
  t.match(found({ shownBy: '—' }), /^H-113: no test and no reason$/)
  t.equal(found({ shownBy: '—', here: 'Cannot arise: so.' }), '')
  t.match(found({ shownBy: 'test/a.test.ts: it: fails' }), /^H-113: no test “it: fails” in a.test.ts$/)
  t.match(found({ shownBy: 'test/b.test.ts: it: holds' }), /^H-113: no test “it: holds” in b.test.ts$/)
  t.end()
})
