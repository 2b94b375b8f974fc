/**
 * Goal: the boards of the archive are current, and ask what the documentation does, whose queries a test runs
 * on real engines.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ARCHIVE_QUERIES } from '../../docs/generate/archive-queries.js'
import { archiveBoardFiles } from '../../grafana/archive-boards.js'

void t.test('the boards of the archive', (t) => {
  const files = archiveBoardFiles()
  t.equal(files.length, 2)
  for (const { path, text } of files) {
    t.equal(readFileSync(path, 'utf8'), text, `${path}: npm run generate`)
    t.match(text, /"title": "What did each team cost this month\?"/)
    t.equal(text.split('"rawSql"').length - 1, ARCHIVE_QUERIES.length)
  }
  t.end()
})
